"""Command lines beyond argparse: ``click``, ``typer``, ``fire``, ``absl`` flags.

Each is turned into the argparse model of :mod:`stdlib_argparse`, so that missing and unknown arguments read the same.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from oarlock_profiler.core.interpreter.builtin_types import BOOL, FLOAT, INT, STR
from oarlock_profiler.core.interpreter.descriptors import TypeForm
from oarlock_profiler.core.interpreter.errors import EXCEPTIONS
from oarlock_profiler.core.interpreter.values import (
    MISSING,
    BoundMethod,
    Class,
    Context,
    Function,
    HostObject,
    Native,
    Unknown,
    Value,
)
from oarlock_profiler.core.overlays.registry import entry, native_class, register
from oarlock_profiler.core.overlays.stdlib_argparse import PARSER, ParserInstance, add_argument, parse
from oarlock_profiler.core.overlays.stdlib_inspect import EMPTY, parameters_of

LIBRARIES = ("click", "typer", "fire", "absl", "gflags", "docopt", "jsonargparse", "plac")


def _values(m: Any, parser: ParserInstance, arguments: list[str] | None = None) -> dict[str, Value]:
    result = parse(m, parser, arguments, None, False)
    return dict(result.attrs)


# -- click -----------------------------------------------------------------------------------------------------------


class Option(HostObject):
    """One ``@click.option`` or ``@click.argument``, waiting on its function."""

    def __init__(self, names: tuple[Value, ...], options: dict[str, Value], positional: bool) -> None:
        self.names = [n for n in names if isinstance(n, str)]
        self.options = options
        self.positional = positional

    def destination(self) -> str:
        """The parameter it fills."""
        plain = [n for n in self.names if not n.startswith("-")]
        if plain:
            return plain[0].replace("-", "_").lower() if self.positional else plain[0]
        longest = max((n.partition("/")[0] for n in self.names), key=len, default="value")
        return longest.lstrip("-").replace("-", "_").lower()

    def add_to(self, m: Any, parser: ParserInstance) -> None:
        """Add it to the argparse model."""
        given = self.options
        kept: dict[str, Value] = {}
        default = given.get("default", MISSING)
        if default is not MISSING and default is not ...:
            kept["default"] = m.call(default) if isinstance(default, Function) else default
        flags = [n for n in self.names if n.startswith("-")]
        switch = any("/" in n for n in flags)
        kind = given.get("type", MISSING)
        if switch or given.get("is_flag") is True:
            on = [n.partition("/")[0].strip() for n in flags]
            off = [n.partition("/")[2].strip() for n in flags if "/" in n]
            kept.setdefault("default", False)
            kept["dest"] = self.destination()
            add_argument(m, parser, parser.host, tuple(on), {"action": "store_true", **kept})
            if off:
                add_argument(m, parser, parser.host, tuple(off), {"action": "store_false", **kept})
            return
        if kind is MISSING and isinstance(kept.get("default"), (int, float)):
            kind = BOOL if isinstance(kept["default"], bool) else INT if isinstance(kept["default"], int) else FLOAT
        if kind is not MISSING:
            kept["type"] = Native("click.type", _boolean) if kind is BOOL else kind
        if given.get("multiple") is True:
            kept["action"] = "append"
            kept.setdefault("default", [])
        nargs = given.get("nargs", 1)
        if isinstance(nargs, int) and nargs != 1:
            kept["nargs"] = "*" if nargs < 0 else nargs
        if self.positional:
            if given.get("required") is False:
                kept["nargs"] = "?"
            add_argument(m, parser, parser.host, (self.destination(),), kept)
            return
        kept["required"] = given.get("required") is True
        kept["dest"] = self.destination()
        add_argument(m, parser, parser.host, tuple(flags), kept)


def _boolean(m: Any, text: Value) -> Value:
    return isinstance(text, str) and text.lower() in ("1", "true", "t", "yes", "y", "on")


def _decorator(positional: bool) -> Any:
    def make(m: Any, *names: Value, **options: Value) -> Value:
        def apply(_m: Any, function: Value) -> Value:
            target = function.callback if isinstance(function, Command) else function
            if isinstance(target, Function):
                target.attrs.setdefault(".options", []).insert(0, Option(names, options, positional))
            return function

        return Native("click.option", apply)

    return make


register("click.option", Native("click.option", _decorator(False)))
register("click.argument", Native("click.argument", _decorator(True)))


class Command(HostObject):
    """A click or typer command or group; calling it reads the command line."""

    def __init__(self, callback: Value, group: bool = False) -> None:
        self.callback = callback
        self.group = group
        self.commands: dict[str, Command] = {}

    def py_type(self) -> str:
        return "click.Command"

    def py_getattr(self, context: Any, name: str) -> Value:
        if name in ("command", "group"):
            return Native(f"click.{name}", lambda m, *args, **kw: self._sub(m, name == "group", args, kw))
        if name == "callback":
            return Native("callback", self._as_callback) if self.group else self.callback
        if name == "add_command":
            return Native("add_command", self._add)
        if name == "add_typer":
            return Native("add_typer", lambda m, app, name=None, **_k: self._add(m, app, name))
        if name in ("main", "invoke", "__call__"):
            return Native("main", lambda m, *_a, **_k: self.py_call(m, (), {}))
        return context.find(self.callback, name) if self.callback is not None else MISSING

    def _as_callback(self, m: Any, *_args: Value, **_kw: Value) -> Value:
        def keep(_m: Any, function: Value) -> Value:
            self.callback = function
            return function

        return Native("callback", keep)

    def _add(self, m: Any, command: Value, name: Value = None) -> None:
        if isinstance(command, Command):
            shown = name if isinstance(name, str) else getattr(command.callback, "name", "command")
            self.commands[shown.replace("_", "-")] = command

    def _sub(self, m: Any, group: bool, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
        def apply(_m: Any, function: Value) -> Value:
            made = Command(function, group)
            given = args[0] if args and isinstance(args[0], str) else kwargs.get("name")
            name = given if isinstance(given, str) else getattr(function, "name", "command")
            self.commands[name.replace("_", "-")] = made
            return made if not self.typed() else function

        if args and isinstance(args[0], (Function, BoundMethod)):
            function, args = args[0], ()
            return apply(m, function)
        return Native("click.command", apply)

    def typed(self) -> bool:
        """Whether options come from annotations (typer)."""
        return False

    def py_call(self, context: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        if kwargs:
            return context.call(self.callback, (), kwargs)
        given = (
            context.listed(args[0]) if args and isinstance(args[0], (list, tuple)) else list(context.request.arguments)
        )
        return self.run(context, [a for a in given if isinstance(a, str)])

    def run(self, m: Any, arguments: list[str]) -> Value:
        """Read ``arguments`` and call the command they name."""
        if self.commands:
            position = next((i for i, a in enumerate(arguments) if a in self.commands), None)
            if position is None and len(self.commands) == 1:
                return next(iter(self.commands.values())).run(m, arguments)
            if position is None:
                return m.unknown(f"one of the commands {', '.join(self.commands)[:200]} must be named", name="command")
            if self.callback is not None:
                self._call(m, arguments[:position])
            return self.commands[arguments[position]].run(m, arguments[position + 1 :])
        return self._call(m, arguments)

    def _call(self, m: Any, arguments: list[str]) -> Value:
        parser = ParserInstance(PARSER)
        options = self.options(m)
        for option in options:
            option.add_to(m, parser)
        values = _values(m, parser, arguments)
        return m.call(
            self.callback, self.leading(m), {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        )

    def options(self, m: Any) -> list[Option]:
        """The options of the callback."""
        return list(self.callback.attrs.get(".options", ())) if isinstance(self.callback, Function) else []

    def leading(self, m: Any) -> list[Value]:
        """What is passed before the options (``pass_context``)."""
        return (
            [m.derived("a click context")]
            if isinstance(self.callback, Function) and self.callback.attrs.get(".context")
            else []
        )


def _click_command(group: bool) -> Any:
    def make(m: Any, *args: Value, **_kw: Value) -> Value:
        if args and isinstance(args[0], Function):
            return Command(args[0], group)
        return Native("click.command", lambda _m, function: Command(function, group))

    return make


register("click.command", Native("click.command", _click_command(False)))
register("click.group", Native("click.group", _click_command(True)))


@entry("click.pass_context", "click.pass_obj")
def pass_context(m: Any, function: Value) -> Value:
    if isinstance(function, Function):
        function.attrs[".context"] = True
    return function


class Choice(HostObject):
    """``click.Choice``, ``click.Path`` and other parameter types: text stays text."""

    def __init__(self, convert: Any = None) -> None:
        self.convert = convert

    def py_call(self, context: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        return context.call(self.convert, args) if self.convert is not None else args[0]


for _name, _kind in (
    ("Choice", None),
    ("Path", None),
    ("File", None),
    ("IntRange", INT),
    ("FloatRange", FLOAT),
    ("Tuple", None),
    ("DateTime", None),
):
    register(f"click.{_name}", Native(f"click.{_name}", lambda _m, *_a, _kind=_kind, **_k: Choice(_kind)))
for _name, _kind in (("STRING", STR), ("INT", INT), ("FLOAT", FLOAT), ("BOOL", BOOL)):
    register(f"click.{_name}", _kind)
for _name in ("echo", "secho", "clear", "version_option", "help_option", "confirm", "style"):
    register(f"click.{_name}", Native(f"click.{_name}", lambda _m, *_a, **_k: Native("decorator", lambda _m, fn: fn)))
for _name in ("UsageError", "BadParameter", "ClickException", "Abort"):
    register(f"click.{_name}", EXCEPTIONS["Exception"])


# -- typer -----------------------------------------------------------------------------------------------------------


class Declared(HostObject):
    """``typer.Option(default, "--name")`` as a parameter's default."""

    def __init__(self, default: Value, names: tuple[Value, ...], positional: bool) -> None:
        self.default = default
        self.names = [n for n in names if isinstance(n, str)]
        self.positional = positional


def typed_options(m: Any, function: Value) -> list[Option]:
    """The options that a function's parameters and annotations declare."""
    out: list[Option] = []
    for name, parameter in (parameters_of(m, function) or {}).items():
        default, kind = parameter.values["default"], parameter.values["annotation"]
        if parameter.values["kind"] in ("VAR_POSITIONAL", "VAR_KEYWORD"):
            continue
        declared = default if isinstance(default, Declared) else None
        if isinstance(kind, TypeForm) and kind.name == "Annotated" and kind.args:
            declared = next((a for a in kind.args[1:] if isinstance(a, Declared)), declared)
            kind = kind.args[0]
        if declared is not None and isinstance(default, Declared):
            default = declared.default
        options: dict[str, Value] = {}
        positional = declared.positional if declared is not None else default is EMPTY
        if default is not EMPTY and default is not ...:
            options["default"] = default
        else:
            options["required"] = True
        plain = _plain_type(kind)
        if plain is BOOL:
            names = [f"--{name.replace('_', '-')}/--no-{name.replace('_', '-')}", name]
            out.append(Option(tuple(names), {**options, "is_flag": True}, False))
            continue
        if plain is not None:
            options["type"] = plain
        names = [n for n in (declared.names if declared is not None else []) if n.startswith("-")]
        if positional:
            out.append(Option((name,), options, True))
        else:
            out.append(Option((*(names or [f"--{name.replace('_', '-')}"]), name), options, False))
    return out


def _plain_type(kind: Value) -> Value:
    if isinstance(kind, TypeForm) and kind.args:
        inner = [a for a in kind.args if isinstance(a, Class) and a.name != "NoneType"]
        return inner[0] if len(inner) == 1 and kind.name in ("Optional", "Union") else None
    return kind if isinstance(kind, Class) and (kind in (INT, FLOAT, STR, BOOL) or kind.meta is not None) else None


class Typed(Command):
    """A typer app."""

    def typed(self) -> bool:
        return True

    def options(self, m: Any) -> list[Option]:
        return typed_options(m, self.callback)

    def _sub(self, m: Any, group: bool, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
        def apply(_m: Any, function: Value) -> Value:
            given = args[0] if args and isinstance(args[0], str) else kwargs.get("name")
            name = given if isinstance(given, str) else getattr(function, "name", "command")
            self.commands[name.replace("_", "-")] = Typed(function)
            return function

        return Native("typer.command", apply)


register("typer.Typer", Native("typer.Typer", lambda _m, *_a, **_k: Typed(None, True)))
register(
    "typer.Option", Native("typer.Option", lambda _m, default=EMPTY, *names, **_k: _declared(default, names, False))
)
register(
    "typer.Argument", Native("typer.Argument", lambda _m, default=EMPTY, *names, **_k: _declared(default, names, True))
)


def _declared(default: Value, names: tuple[Value, ...], positional: bool) -> Declared:
    if isinstance(default, str) and default.startswith("-"):
        return Declared(EMPTY, (default, *names), positional)
    return Declared(default, names, positional)


@entry("typer.run")
def typer_run(m: Any, function: Value) -> Value:
    return Typed(function).run(m, list(m.request.arguments))


for _name in ("echo", "secho", "Exit", "Abort", "Context"):
    register(f"typer.{_name}", Native(f"typer.{_name}", lambda m, *_a, **_k: None))


# -- fire ------------------------------------------------------------------------------------------------------------


def literal(text: str) -> Value:
    """A command-line word as fire reads it: a Python literal, else text."""
    if len(text) > 10_000:
        return text
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


def split_words(arguments: Sequence[str]) -> tuple[list[Value], dict[str, Value]]:
    """Positional values and ``--name value`` / ``--name=value`` / ``--flag`` pairs."""
    positional: list[Value] = []
    named: dict[str, Value] = {}
    words = list(arguments)
    while words:
        word = words.pop(0)
        if word.startswith("--") or (word.startswith("-") and len(word) > 1 and word[1].isalpha()):
            name, equals, value = word.lstrip("-").partition("=")
            name = name.replace("-", "_")
            if equals:
                named[name] = literal(value)
            elif words and (not words[0].startswith("-") or words[0][1:2].isdigit()):
                named[name] = literal(words.pop(0))
            elif name.startswith("no") and len(name) > 2:
                named[name] = True
                named[name[2:]] = False
            else:
                named[name] = True
        else:
            positional.append(literal(word))
    return positional, named


def _fits(m: Any, target: Value, named: dict[str, Value]) -> dict[str, Value]:
    known = parameters_of(m, target)
    if known is None or any(p.values["kind"] == "VAR_KEYWORD" for p in known.values()):
        return {k: v for k, v in named.items() if not (k.startswith("no") and named.get(k[2:]) is False)}
    kept = {}
    for name in list(named):
        full = name if name in known else next((k for k in known if len(name) == 1 and k.startswith(name)), None)
        if full is not None:
            kept[full] = named.pop(name)
    return kept


def _fill(m: Any, target: Value, positional: list[Value], named: dict[str, Value]) -> Value:
    """Call ``target``; a required parameter that is not given becomes a named unknown."""
    known = parameters_of(m, target) or {}
    slots = [n for n, p in known.items() if p.values["kind"] == "POSITIONAL_OR_KEYWORD"]
    for name in slots[len(positional) :]:
        if name not in named and known[name].values["default"] is EMPTY:
            m.findings.gap(f"argument --{name}", m.where, "it is required and was not given")
            named[name] = Unknown(f"argument --{name} was not given", m.where, None, name=f"--{name}")
    for name, value in named.items():
        if isinstance(value, (int, float, str, bool)):
            m.findings.fact(f"argument {name}", value, m.where)
    return m.call(target, positional, named)


@entry("fire.Fire")
def fire(m: Any, component: Value = None, command: Value = None, *_args: Value, **_kw: Value) -> Value:
    words = (
        list(m.request.arguments)
        if command is None
        else m.listed(command)
        if not isinstance(command, str)
        else command.split()
    )
    target = component
    if target is None:
        target = {k: v for k, v in m.frames[0].globals.items() if isinstance(v, (Function, Class))}
    for _ in range(20):
        if isinstance(target, dict):
            if words and words[0] in target:
                target = target[words.pop(0)]
                continue
            if len(target) == 1 and not words:
                target = next(iter(target.values()))
                continue
            return m.unknown(f"one of the commands {', '.join(map(str, target))[:200]} must be named", name="command")
        if isinstance(target, Class):
            positional, named = split_words(
                [w for w in words if w.startswith("-")] if words and not words[0].startswith("-") else words
            )
            made = _fill(m, target, [], _fits(m, target, named))
            words = [w for w in words if not w.startswith("-")] + _left(named)
            target = made
            if not words:
                return made
            continue
        if isinstance(target, (Function, BoundMethod)) or m.find(target, "__call__") is not MISSING:
            positional, named = split_words(words)
            return _fill(m, target, positional, _fits(m, target, named))
        if words and not words[0].startswith("-"):
            method = m.find(target, words[0].replace("-", "_"))
            if method is not MISSING:
                words.pop(0)
                target = method
                continue
        return target
    return target


def _left(named: dict[str, Value]) -> list[str]:
    return [f"--{k}={v}" for k, v in named.items()]


# -- absl flags ------------------------------------------------------------------------------------------------------


class Flags(HostObject):
    """``absl.flags.FLAGS``: parsed when first asked for."""

    def py_type(self) -> str:
        return "absl.flags.FlagValues"

    def py_getattr(self, context: Any, name: str) -> Value:
        if name.startswith("__"):
            return Native("FLAGS", lambda m, *_a, **_k: m.request.arguments) if name == "__call__" else MISSING
        values = flag_values(context)
        if name in values:
            return values[name]
        if name in ("flag_values_dict",):
            return Native(name, lambda m: dict(flag_values(m)))
        return (
            Native(name, lambda _m, *_a, **_k: None)
            if name in ("mark_as_parsed", "append_flags_into_file")
            else MISSING
        )

    def py_setattr(self, context: Any, name: str, value: Value) -> bool:
        flag_values(context)[name] = value
        return True

    def py_getitem(self, context: Any, key: Value) -> Value:
        return Holder(self.py_getattr(context, key)) if isinstance(key, str) else MISSING

    def py_call(self, context: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        return list(context.request.arguments)

    def py_binary(self, context: Any, op: str, other: Value, reflected: bool) -> Value:
        return other in flag_values(context) if op == "in" else MISSING


class Holder(HostObject):
    """One flag: ``FLAGS["x"].value``, or what ``DEFINE_*`` returns."""

    def __init__(self, value: Value, name: str | None = None) -> None:
        self.held = value
        self.name = name

    def py_getattr(self, context: Any, name: str) -> Value:
        if name == "value":
            return flag_values(context).get(self.name, self.held) if self.name else self.held
        return {"default": self.held, "name": self.name, "present": True}.get(name, MISSING)


def flag_values(m: Any) -> dict[str, Value]:
    """The parsed flags; definitions made later are parsed then."""
    kept = m.state.setdefault("absl", {"parser": ParserInstance(PARSER), "values": None, "set": {}})
    if kept["values"] is None:
        kept["values"] = _values(m, kept["parser"])
    return kept["values"]  # type: ignore[no-any-return]


_FLAG_TYPES: dict[str, Any] = {
    "string": None, "integer": INT, "float": FLOAT, "enum": None, "list": None, "multi_string": None,
    "spaceseplist": None,
    "multi_integer": INT, "enum_class": None, "multi_enum": None, "multi_float": FLOAT,
}  # fmt: skip


def _define(kind: str) -> Any:
    def define(m: Any, name: Value, default: Value = None, *args: Value, required: Value = False, **kw: Value) -> Value:
        kept = m.state.setdefault("absl", {"parser": ParserInstance(PARSER), "values": None, "set": {}})
        parser = kept["parser"]
        options: dict[str, Value] = {"default": default, "dest": name, "required": required is True and default is None}
        if kind in ("list", "spaceseplist"):
            options["type"] = Native("list", lambda _m, text: text.split("," if kind == "list" else None))
            if isinstance(default, str):
                options["default"] = default.split(",")
        elif kind.startswith("multi"):
            options["action"] = "append"
        if _FLAG_TYPES.get(kind) is not None:
            options["type"] = _FLAG_TYPES[kind]
        names = [f"--{name}"]
        short = kw.get("short_name")
        if isinstance(short, str):
            names.append(f"-{short}")
        add_argument(m, parser, parser.host, tuple(names), options)
        kept["values"] = None
        return Holder(default, name if isinstance(name, str) else None)

    return define


def _define_boolean(m: Any, name: Value, default: Value = False, *_args: Value, **_kw: Value) -> Value:
    kept = m.state.setdefault("absl", {"parser": ParserInstance(PARSER), "values": None, "set": {}})
    parser = kept["parser"]
    add_argument(
        m,
        parser,
        parser.host,
        (f"--{name}",),
        {"default": default, "dest": name, "nargs": "?", "const": True, "type": Native("bool", _boolean)},
    )
    add_argument(m, parser, parser.host, (f"--no{name}",), {"default": default, "dest": name, "action": "store_false"})
    kept["values"] = None
    return Holder(default, name if isinstance(name, str) else None)


for _module in ("absl.flags", "gflags"):
    for _name in _FLAG_TYPES:
        register(f"{_module}.DEFINE_{_name}", Native(f"{_module}.DEFINE_{_name}", _define(_name)))
    for _name in ("bool", "boolean"):
        register(f"{_module}.DEFINE_{_name}", Native(f"{_module}.DEFINE_{_name}", _define_boolean))
    register(f"{_module}.FLAGS", Flags())
    for _name in (
        "mark_flag_as_required",
        "mark_flags_as_required",
        "adopt_module_key_flags",
        "declare_key_flag",
        "register_validator",
    ):
        register(f"{_module}.{_name}", Native(_name, lambda _m, *_a, **_k: None))


@entry("absl.app.run")
def app_run(m: Any, main: Value, *_args: Value, **_kw: Value) -> Value:
    flag_values(m)
    return m.call(main, [[m.request.entry]])


for _name in (
    "info",
    "warning",
    "error",
    "debug",
    "fatal",
    "set_verbosity",
    "log",
    "vlog",
    "log_first_n",
    "use_absl_handler",
):
    register(f"absl.logging.{_name}", Native(f"absl.logging.{_name}", lambda _m, *_a, **_k: None))
for _name in ("INFO", "WARNING", "ERROR", "DEBUG"):
    register(f"absl.logging.{_name}", 0)


@entry("docopt.docopt")
def docopt(m: Any, *_args: Value, **_kw: Value) -> Value:
    return m.unknown("a command line described in prose (docopt)", hint="dict", name="docopt")


_PLAIN = native_class("jsonargparse.ArgumentParser", bases=(PARSER,))
_PLAIN.make = ParserInstance
register("jsonargparse.ArgumentParser", _PLAIN)


@entry("jsonargparse.CLI", "plac.call")
def cli(m: Any, component: Value = None, *_args: Value, **_kw: Value) -> Value:
    return fire(m, component)
