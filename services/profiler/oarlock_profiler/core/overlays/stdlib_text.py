"""``re``, ``string``, ``textwrap``, ``logging``, ``warnings``, ``time``, ``datetime``, ``importlib``, ``tqdm`` and
relatives: text is computed, clocks are unknown, logs are ignored, progress bars are transparent."""

from __future__ import annotations

import re
import shlex
import string
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from oarlock_profiler.core.interpreter.errors import EXCEPTIONS
from oarlock_profiler.core.interpreter.formatting import text
from oarlock_profiler.core.interpreter.values import (
    MISSING,
    Context,
    HostObject,
    Instance,
    Iteration,
    Native,
    Unknown,
    Value,
)
from oarlock_profiler.core.overlays.host_functions import first_unknown, nothing, pure, unknown_result
from oarlock_profiler.core.overlays.registry import entry, native_class, register

LIBRARIES = (
    "re", "regex", "string", "textwrap", "logging", "warnings", "time", "datetime", "importlib", "tqdm", "pprint",
    "traceback", "hashlib", "uuid", "base64", "struct", "difflib", "unicodedata", "html", "timeit", "loguru", "rich",
    "colorama", "termcolor", "pkg_resources", "packaging", "zlib", "binascii", "array", "calendar", "shlex",
    "coloredlogs",
    "absl_logging", "pickletools", "linecache", "code", "site", "sysconfig", "distutils", "setuptools", "ast",
    "tabulate",
    "prettytable", "wandb", "visualdl", "tensorboardX", "tensorboard", "mlflow", "comet_ml", "neptune", "swanlab",
    "clearml",
)  # fmt: skip

# -- re --------------------------------------------------------------------------------------------------------------

_PATHS = 30_000_000
"""Most ways of matching that a pattern may have on its subject; more could take minutes."""


def paths(pattern: str, length: int) -> int:
    """An upper bound of the ways in which ``pattern`` may match a text of ``length`` characters.

    ``re`` cannot be interrupted, so what may backtrack without end is not run: each repeat multiplies the ways by the
    counts it may take, and one inside an unbounded repeat makes them exponential.
    """
    try:
        parsed = re._parser.parse(pattern)  # type: ignore[attr-defined]
    except Exception:
        return 1
    return _ways(parsed, length, False, 0)


def _ways(parsed: Any, length: int, repeated: bool, depth: int) -> int:
    total = 1
    if depth > 50:
        return _PATHS + 1
    for operation, argument in parsed:
        name = str(operation)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            low, high, body = argument
            counts = min(int(high), length) - int(low) + 1
            if counts > 1 and repeated:
                return _PATHS + 1
            inner = _ways(body, length, repeated or int(high) > 1, depth + 1)
            total *= max(1, counts) * inner
        elif name == "BRANCH":
            if repeated:
                return _PATHS + 1
            total *= sum(_ways(b, length, repeated, depth + 1) for b in argument[1])
        elif name in ("SUBPATTERN", "ATOMIC_GROUP", "ASSERT", "ASSERT_NOT"):
            total *= _ways(argument[-1], length, repeated, depth + 1)
        elif name.startswith("GROUPREF"):
            total *= max(1, length)
        if total > _PATHS:
            return total
    return total


def runnable(m: Any, pattern: Value, subject: Value) -> bool:
    """Whether the host may match: both known, and surely quick."""
    text = pattern.pattern if isinstance(pattern, re.Pattern) else pattern
    if not isinstance(text, str) or not isinstance(subject, str) or len(text) > 1000 or len(subject) > 100_000:
        return False
    return paths(text, len(subject)) <= _PATHS


class Match(HostObject):
    """A match object."""

    def __init__(self, host: re.Match[str]) -> None:
        self.host = host

    def py_type(self) -> str:
        return "re.Match"

    def py_getattr(self, context: Context, name: str) -> Value:
        if name in ("group", "groups", "groupdict", "start", "end", "span", "expand"):
            return Native(f"Match.{name}", lambda m, *args: m.host(getattr(self.host, name), *args))
        return getattr(self.host, name) if name in ("string", "pos", "endpos", "lastindex", "lastgroup") else MISSING

    def py_getitem(self, context: Any, key: Value) -> Value:
        return context.host(self.host.__getitem__, key)


class Pattern(HostObject):
    """A compiled pattern."""

    def __init__(self, pattern: Value, flags: int = 0) -> None:
        self.pattern = pattern
        self.flags = flags

    def py_type(self) -> str:
        return "re.Pattern"

    def py_getattr(self, context: Context, name: str) -> Value:
        if name in _RE:
            return Native(f"Pattern.{name}", lambda m, *args, **kwargs: _RE[name](m, self, *args, **kwargs))
        return {"pattern": self.pattern, "flags": self.flags}.get(name, MISSING)


def _compiled(m: Any, pattern: Value, flags: Value) -> Any:
    if isinstance(pattern, Pattern):
        pattern, flags = pattern.pattern, pattern.flags
    return re.compile(pattern, flags if isinstance(flags, int) else 0)


def _text_of(pattern: Value) -> Value:
    return pattern.pattern if isinstance(pattern, Pattern) else pattern


def _search(method: str, hint: str | None) -> Any:
    def call(m: Any, pattern: Value, subject: Value, flags: Value = 0) -> Value:
        if not runnable(m, _text_of(pattern), subject):
            return Unknown("a text search that is not run", m.where, hint)
        try:
            found = getattr(_compiled(m, pattern, flags), method)(subject)
        except (re.error, RecursionError, OverflowError) as error:
            return m.fail("ValueError", f"regular expression: {error}")
        if method == "finditer":
            return [Match(x) for x in found]
        return Match(found) if isinstance(found, re.Match) else found

    return call


def _sub(m: Any, pattern: Value, replacement: Value, subject: Value, count: Value = 0, flags: Value = 0) -> Value:
    if not runnable(m, _text_of(pattern), subject) or isinstance(replacement, Unknown):
        return Unknown("a text replacement that is not run", m.where, "str")
    made: Any = replacement
    if not isinstance(replacement, str):

        def made(match: re.Match[str]) -> str:
            text = m.call(replacement, [Match(match)])
            return text if isinstance(text, str) else ""

    try:
        result = _compiled(m, pattern, flags).sub(made, subject, count if isinstance(count, int) else 0)
    except (re.error, RecursionError, IndexError) as error:
        return m.fail("ValueError", f"regular expression: {error}")
    return result if len(result) <= m.budget.limits.size else m.unknown("text too long", hint="str")


def _split(m: Any, pattern: Value, subject: Value, maxsplit: Value = 0, flags: Value = 0) -> Value:
    if not runnable(m, _text_of(pattern), subject):
        return Unknown("a text split that is not run", m.where, "list", item=Unknown("part of a text", m.where, "str"))
    return m.host(_compiled(m, pattern, flags).split, subject, maxsplit if isinstance(maxsplit, int) else 0)


def _by_name(call: Any) -> Any:
    """Arguments go by Python's names too: ``string=``, ``repl=``."""

    def named(m: Any, *args: Value, string: Value = MISSING, repl: Value = MISSING, **more: Value) -> Value:
        if repl is not MISSING:
            more["replacement"] = repl
        if string is not MISSING:
            more["subject"] = string
        return call(m, *args, **more)

    return named


_RE: dict[str, Any] = {
    "match": _search("match", None), "search": _search("search", None), "fullmatch": _search("fullmatch", None),
    "findall": _search("findall", "list"), "finditer": _search("finditer", "list"), "sub": _sub, "split": _split,
}  # fmt: skip
_RE = {_name: _by_name(_function) for _name, _function in _RE.items()}
for _name, _function in _RE.items():
    for _module in ("re", "regex"):
        register(f"{_module}.{_name}", Native(f"re.{_name}", _function))
for _module in ("re", "regex"):
    register(
        f"{_module}.compile",
        Native("re.compile", lambda _m, pattern, flags=0: Pattern(pattern, flags if isinstance(flags, int) else 0)),
    )
    for _name in ("I", "IGNORECASE", "M", "MULTILINE", "S", "DOTALL", "X", "VERBOSE", "A", "ASCII", "U", "UNICODE"):
        register(f"{_module}.{_name}", int(getattr(re, _name)))
    register(f"{_module}.error", EXCEPTIONS["ValueError"])
pure("re.escape", re.escape, "str")
register("re.Match", native_class("re.Match"))
register("re.Pattern", native_class("re.Pattern"))

# -- string, textwrap, small text tools --------------------------------------------------------------------------------

for _name in (
    "ascii_letters",
    "ascii_lowercase",
    "ascii_uppercase",
    "digits",
    "hexdigits",
    "punctuation",
    "whitespace",
    "printable",
):
    register(f"string.{_name}", getattr(string, _name))


class Template(HostObject):
    """``string.Template``."""

    def __init__(self, template: str) -> None:
        self.template = template

    def _filled(self, m: Any, safe: bool, mapping: Value, named: dict[str, Value]) -> Value:
        given = {**mapping, **named} if isinstance(mapping, dict) else named
        shown = {key: text(m, value) for key, value in given.items()}
        for value in shown.values():
            if isinstance(value, Unknown):
                return value
        made = string.Template(self.template)
        return m.host(made.safe_substitute if safe else made.substitute, shown)

    def py_getattr(self, context: Context, name: str) -> Value:
        if name in ("substitute", "safe_substitute"):
            safe = name == "safe_substitute"
            return Native(
                f"string.Template.{name}", lambda m, mapping=None, **named: self._filled(m, safe, mapping, named)
            )
        return self.template if name == "template" else MISSING


@entry("string.Template")
def make_template(m: Any, template: Value) -> Value:
    return Template(template) if isinstance(template, str) else m.derived("text from a template", "str")


for _name in ("dedent", "indent", "shorten"):
    pure(f"textwrap.{_name}", getattr(textwrap, _name), "str")
pure("textwrap.fill", lambda text, width=70, **_k: textwrap.fill(text, min(width, 10_000)), "str")
pure("textwrap.wrap", lambda text, width=70, **_k: textwrap.wrap(text, min(width, 10_000)), "list")
unknown_result(
    "str", "a digest or an id", "hashlib.md5", "hashlib.sha1", "hashlib.sha256", "hashlib.new", "hashlib.sha512",
    "uuid.uuid4", "uuid.uuid1", "uuid.UUID", "hashlib.blake2b", "base64.b64encode", "base64.b64decode",
    "unicodedata.normalize", "struct.pack", "zlib.compress", "zlib.decompress",
    "zlib.crc32", "binascii.hexlify", "array.array", "html.unescape", "html.escape", "difflib.SequenceMatcher",
    "traceback.format_exc", "traceback.format_exception", "traceback.extract_stack", "pprint.pformat",
    "shlex.quote", "tabulate.tabulate", "prettytable.PrettyTable", "unicodedata.category",
    "difflib.get_close_matches",
)  # fmt: skip
unknown_result("int", "the size of a format", "struct.calcsize")


@entry("struct.unpack", "struct.unpack_from", "struct.iter_unpack")
def unpacked(m: Any, *_args: Value, **_kw: Value) -> Value:
    """Numbers of a binary record."""
    why = "the file's contents are not in the script"
    return Unknown(why, m.where, "list", item=Unknown(why, m.where, "int"))


pure("shlex.split", lambda text, *_a, **_k: shlex.split(text) if len(text) < 10_000 else [text], "list")
nothing(
    "traceback.print_exc", "traceback.print_stack", "traceback.print_exception", "pprint.pprint", "pprint.pp",
    "colorama.init", "warnings.warn", "warnings.filterwarnings", "warnings.simplefilter", "warnings.resetwarnings",
    "warnings.showwarning", "traceback.format_tb", "coloredlogs.install", "rich.print", "warnings.warn_explicit",
)  # fmt: skip
pure("termcolor.colored", lambda text, *_a, **_k: text, "str")
pure(
    "distutils.util.strtobool",
    lambda text: {"y": 1, "yes": 1, "t": 1, "true": 1, "on": 1, "1": 1}.get(text.lower(), 0),
    "int",
)


def _literal(m: Any, source: Value) -> Value:
    import ast  # noqa: PLC0415

    if not isinstance(source, str) or len(source) > 100_000:
        return source if isinstance(source, Unknown) else m.derived("a literal")
    return m.host(ast.literal_eval, source)


register("ast.literal_eval", Native("ast.literal_eval", _literal))

# -- logs ------------------------------------------------------------------------------------------------------------


class Mute(HostObject):
    """A logger, console, writer or experiment tracker: every method is there and does nothing."""

    def __init__(self, kind: str = "logging.Logger") -> None:
        self.kind = kind

    def py_type(self) -> str:
        return self.kind

    def py_getattr(self, context: Context, name: str) -> Value:
        if name in ("__enter__",):
            return Native("__enter__", lambda _m: self)
        if name in ("__exit__",):
            return Native("__exit__", lambda _m, *_e: None)
        if name.startswith("__"):
            return MISSING
        if name in ("level", "handlers", "name", "propagate", "disabled", "root", "parent", "filters"):
            return {
                "level": 20,
                "handlers": [],
                "name": "log",
                "propagate": True,
                "disabled": False,
                "filters": [],
            }.get(name, self)
        if name in ("getEffectiveLevel", "isEnabledFor", "hasHandlers"):
            return Native(name, lambda _m, *_a: 20 if name == "getEffectiveLevel" else True)
        if name in (
            "getChild",
            "bind",
            "opt",
            "contextualize",
            "add_child",
            "config",
            "run",
            "experiment",
            "log_dir",
            "summary",
        ):
            return self
        return Native(f"{self.kind}.{name}", lambda _m, *_a, **_k: None)

    def py_setattr(self, context: Context, name: str, value: Value) -> bool:
        return True

    def py_call(self, context: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        return self

    def py_getitem(self, context: Context, key: Value) -> Value:
        return self


_LOG = Mute()
for _name in ("getLogger", "getLoggerClass", "LogRecord"):
    register(f"logging.{_name}", Native(f"logging.{_name}", lambda _m, *_a, **_k: _LOG))
for _name in (
    "Handler", "Logger", "Formatter", "Filter", "LoggerAdapter", "StreamHandler", "FileHandler", "NullHandler",
    "handlers.RotatingFileHandler", "handlers.TimedRotatingFileHandler", "handlers.QueueHandler",
):  # fmt: skip
    register(
        f"logging.{_name}",
        native_class(
            f"logging.{_name}",
            __init__=lambda _m, _self, *_a, **_k: None,
            __getattr__=lambda m, _self, name: _LOG.py_getattr(m, name),
        ),
    )
nothing(
    *(
        f"logging.{n}"
        for n in (
            "basicConfig",
            "debug",
            "info",
            "warning",
            "warn",
            "error",
            "exception",
            "critical",
            "log",
            "disable",
            "addLevelName",
            "captureWarnings",
            "shutdown",
            "config.dictConfig",
            "config.fileConfig",
            "setLoggerClass",
            "setLogRecordFactory",
        )
    )
)
for _name, _level in (
    ("DEBUG", 10),
    ("INFO", 20),
    ("WARNING", 30),
    ("WARN", 30),
    ("ERROR", 40),
    ("CRITICAL", 50),
    ("FATAL", 50),
    ("NOTSET", 0),
):
    register(f"logging.{_name}", _level)
register("logging.root", _LOG)
register("logging.getLevelName", Native("logging.getLevelName", lambda _m, level: level))
register("loguru.logger", _LOG)
for _name in (
    "rich.console.Console",
    "rich.progress.Progress",
    "rich.logging.RichHandler",
    "rich.table.Table",
    "rich.progress.track",
):
    register(_name, Native(_name, lambda _m, *_a, **_k: Mute("rich")))
register("rich.progress.track", Native("rich.progress.track", lambda _m, items, *_a, **_k: items))
for _name in (
    "wandb.init", "wandb.Api", "wandb.Table", "wandb.Image", "wandb.Artifact", "wandb.Settings",
    "visualdl.LogWriter", "tensorboardX.SummaryWriter",
    "mlflow.start_run", "comet_ml.Experiment", "neptune.init_run", "clearml.Task.init", "swanlab.init",
    "wandb.Histogram", "wandb.sdk.wandb_run.Run",
):  # fmt: skip
    register(_name, Native(_name, lambda _m, *_a, **_k: Mute("tracker")))
nothing(
    "wandb.log", "wandb.finish", "wandb.watch", "wandb.save", "wandb.login", "wandb.define_metric",
    "mlflow.log_metric", "mlflow.log_param", "mlflow.log_params", "mlflow.log_metrics", "mlflow.set_experiment",
    "mlflow.set_tracking_uri", "swanlab.log", "mlflow.log_artifact", "wandb.alert",
)  # fmt: skip
for _name in ("wandb.config", "wandb.run", "wandb.summary"):
    register(_name, Mute("tracker"))


class CatchWarnings(HostObject):
    """``warnings.catch_warnings()``."""

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "__enter__":
            return Native("__enter__", lambda _m: [])
        return Native("__exit__", lambda _m, *_e: None) if name == "__exit__" else MISSING


register("warnings.catch_warnings", Native("warnings.catch_warnings", lambda _m, *_a, **_k: CatchWarnings()))

# -- clocks ----------------------------------------------------------------------------------------------------------

unknown_result(
    "float",
    "the time when the script runs",
    "time.time",
    "time.perf_counter",
    "time.monotonic",
    "time.process_time",
    "time.clock",
    "timeit.default_timer",
    "time.thread_time",
    "time.mktime",
)
unknown_result("int", "the time when the script runs", "time.time_ns", "time.perf_counter_ns", "time.monotonic_ns")
unknown_result("str", "the time when the script runs", "time.strftime", "time.ctime", "time.asctime")
unknown_result(
    None, "the time when the script runs", "time.localtime", "time.gmtime", "time.strptime",
    "datetime.datetime.now", "datetime.datetime.today", "datetime.datetime.utcnow", "datetime.date.today",
    "datetime.datetime.strptime", "datetime.datetime.fromtimestamp", "datetime.datetime.fromisoformat",
    "datetime.datetime.strftime", "datetime.timezone", "datetime.timezone.utc", "datetime.time",
    "calendar.monthrange",
)  # fmt: skip
nothing("time.sleep", "time.tzset")


class Moment(Instance):
    """A date, a time or a span: only its kind is known."""


def _moment(m: Any, self: Instance, *args: Value, **kwargs: Value) -> None:
    self.attrs["given"] = (args, tuple(kwargs.items()))


def _span_seconds(m: Any, self: Instance) -> Value:
    args, kwargs = self.attrs["given"]
    units = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1, "weeks": 604800, "milliseconds": 0.001}
    doubt = first_unknown([v for _, v in kwargs])
    if doubt is not None or len(args) > 1:
        return m.derived("a span of time", "float")
    total = sum(units.get(k, 0) * v for k, v in kwargs if isinstance(v, (int, float)))
    return float(total + (args[0] * 86400 if args and isinstance(args[0], (int, float)) else 0))


register(
    "datetime.timedelta",
    native_class(
        "datetime.timedelta",
        __init__=_moment,
        total_seconds=_span_seconds,
        __sub__=lambda m, _s, _o: m.derived("a span of time"),
        __add__=lambda m, _s, _o: m.derived("a moment"),
    ),
)
for _name in ("datetime", "date"):
    register(
        f"datetime.{_name}",
        native_class(
            f"datetime.{_name}",
            __init__=_moment,
            strftime=lambda m, *_a: m.derived("a date", "str"),
            isoformat=lambda m, *_a, **_k: m.derived("a date", "str"),
            timestamp=lambda m, _s: m.derived("a moment", "float"),
            __sub__=lambda m, _s, _o: m.derived("a span of time"),
            __str__=lambda m, _s: m.derived("a date", "str"),
        ),
    )

# -- importlib, versions ---------------------------------------------------------------------------------------------


@entry("importlib.import_module")
def import_module(m: Any, name: Value, package: Value = None) -> Value:
    if not isinstance(name, str):
        return m.unknown("a module whose name is not known", name="importlib.import_module")
    if name.startswith("."):
        level = len(name) - len(name.lstrip("."))
        parts = package.split(".") if isinstance(package, str) else []
        keep = parts[: len(parts) - (level - 1)] if level > 1 else parts
        name = ".".join([*keep, name.lstrip(".")])
    return m.importer.load(name)


@entry("importlib.reload")
def reload(m: Any, module: Value) -> Value:
    return module


unknown_result(
    "str", "the version that is installed where the script runs", "pkg_resources.resource_filename",
    "importlib.resources.files", "importlib.metadata.entry_points", "importlib.resources.path",
)  # fmt: skip
for _name in ("pkg_resources.DistributionNotFound",):
    register(_name, EXCEPTIONS["ImportError"])
nothing("importlib.invalidate_caches", "setuptools.setup", "site.addsitedir", "pkg_resources.require")

# -- tqdm ------------------------------------------------------------------------------------------------------------


class Bar(HostObject):
    """A progress bar: what it wraps, and methods that do nothing."""

    def __init__(self, items: Value, total: Value) -> None:
        self.items = items
        self.total = total

    def py_type(self) -> str:
        return "tqdm.tqdm"

    def py_iterate(self, context: Context) -> Iteration | None:
        return context.iterate(self.items) if self.items is not None else None

    def py_len(self, context: Any) -> Value:
        if self.total is not None or self.items is None:
            return self.total
        return context.call(context.builtins["len"], [self.items])

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "__enter__":
            return Native("tqdm.__enter__", lambda _m: self)
        if name == "__exit__":
            return Native("tqdm.__exit__", lambda _m, *_e: None)
        if name == "__iter__":
            return MISSING
        if name in ("iterable", "total", "n", "desc", "format_dict"):
            return {"iterable": self.items, "total": self.total, "n": 0, "desc": "", "format_dict": {}}[name]
        if name in (
            "set_description",
            "set_postfix",
            "update",
            "close",
            "write",
            "refresh",
            "set_postfix_str",
            "set_description_str",
            "reset",
            "clear",
            "display",
            "unpause",
            "disable",
            "leave",
        ):
            return Native(f"tqdm.{name}", lambda _m, *_a, **_k: None)
        return MISSING

    def py_setattr(self, context: Context, name: str, value: Value) -> bool:
        return True


def _bar(
    m: Any, items: Value = None, *_args: Value, iterable: Value = None, total: Value = None, **_kw: Value
) -> Value:
    return Bar(items if items is not None else iterable, total)


for _name in (
    "tqdm.tqdm",
    "tqdm.auto.tqdm",
    "tqdm.notebook.tqdm",
    "tqdm.std.tqdm",
    "tqdm.rich.tqdm",
    "tqdm.asyncio.tqdm",
    "tqdm.tqdm_notebook",
    "tqdm.autonotebook.tqdm",
    "tqdm.contrib.tzip",
):
    register(_name, Native(_name, _bar))
    register(f"{_name}.write", Native("tqdm.write", lambda _m, *_a, **_k: None))
    register(f"{_name}.pandas", Native("tqdm.pandas", lambda _m, *_a, **_k: None))
for _name in ("tqdm.trange", "tqdm.auto.trange", "tqdm.notebook.trange", "tqdm.std.trange"):
    register(_name, Native(_name, lambda m, *args, **_kw: Bar(m.call(m.builtins["range"], args), None)))
