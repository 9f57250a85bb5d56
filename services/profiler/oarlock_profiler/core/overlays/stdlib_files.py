"""Files of the bundle: ``open``, ``io``, ``json``, ``yaml``, ``toml``, ``configparser``, ``csv``, ``pickle``.

Only the bundle is read, through :class:`Sources`; nothing is ever written. A file that is not there is an unknown.
"""

# ruff: noqa: E501 - tables

from __future__ import annotations

import json
import posixpath
from typing import Any

from oarlock_profiler.core.interpreter.errors import EXCEPTIONS
from oarlock_profiler.core.interpreter.source_text import decode
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
from oarlock_profiler.core.overlays.host_functions import nothing, unknown_result
from oarlock_profiler.core.overlays.registry import entry, register

LIBRARIES = (
    "io", "json", "yaml", "toml", "tomllib", "tomli", "configparser", "csv", "pickle", "codecs", "gzip", "zipfile",
    "tarfile", "ruamel", "simplejson", "ujson", "joblib", "h5py", "lmdb", "dill", "orjson", "jsonlines", "cPickle",
)  # fmt: skip
BUNDLE = "/bundle"
"""Where the bundle seems to lie, for scripts that ask for absolute paths."""
_CONFIG_BYTES = 2_000_000
_YAML_BYTES = 300_000
_YAML_DEPTH = 100


def bundle_path(m: Any, path: Value) -> str | None:
    """The path inside the bundle, or None when it lies outside (or is not known)."""
    if isinstance(path, (Instance, HostObject)) and not isinstance(path, str):
        method = m.find(path, "__fspath__")
        path = m.call(method) if method is not MISSING else None
    if not isinstance(path, str) or "\x00" in path or len(path) > 4096:
        return None
    if path.startswith(BUNDLE + "/") or path == BUNDLE:
        path = path[len(BUNDLE) + 1 :]
    if path.startswith(("/", "~")) or "://" in path:
        return None
    inside = posixpath.normpath(path) if path else ""
    if inside == ".":
        return ""
    if inside.startswith(".."):
        # a path relative to the entry's folder may climb inside the bundle
        folder = posixpath.dirname(m.request.entry)
        inside = posixpath.normpath(posixpath.join(folder, path))
        return None if inside.startswith("..") else "" if inside == "." else inside
    return inside


def is_file(m: Any, path: str) -> bool:
    """Whether a bundle path is a file (and not a folder)."""
    return bool(path) and m.sources.exists(path) and not list(m.sources.listdir(path))


def locate(m: Any, path: Value) -> str | None:
    """The bundle path of an existing file: as given, or from the entry's folder."""
    inside = bundle_path(m, path)
    if inside is None:
        return None
    if is_file(m, inside):
        return inside
    folder = posixpath.dirname(m.request.entry)
    beside = posixpath.join(folder, inside) if folder else inside
    return beside if is_file(m, beside) else None


class File(HostObject):
    """An open file: its text when it lies in the bundle, a sink when it is written, else unknown."""

    def __init__(self, name: Value, content: str | bytes | None, why: str, writes: bool = False) -> None:
        self.name = name
        self.content = content
        self.why = why
        self.writes = writes
        self.position = 0

    def py_type(self) -> str:
        return "io.TextIOWrapper"

    def rest(self, m: Context) -> Value:
        """What is left to read."""
        if self.content is None:
            return Unknown(self.why, m.where, "str", name=str(self.name)[:100])
        text, self.position = self.content[self.position :], len(self.content)
        return text

    def _line(self, m: Context) -> Value:
        if self.content is None:
            return Unknown(self.why, m.where, "str")
        newline = "\n" if isinstance(self.content, str) else b"\n"
        end = self.content.find(newline, self.position)  # type: ignore[arg-type]
        stop = len(self.content) if end < 0 else end + 1
        line, self.position = self.content[self.position : stop], stop
        return line

    def _lines(self, m: Context) -> Value:
        rest = self.rest(m)
        return Unknown(rest.why, rest.where, "list", item=rest) if isinstance(rest, Unknown) else rest.splitlines(True)

    def _seek(self, m: Context, offset: Value = 0, *_whence: Value) -> Value:
        if isinstance(offset, int):
            self.position = max(0, offset)
        return offset

    def _write(self, m: Context, data: Value = "") -> Value:
        if isinstance(self.content, str) and isinstance(data, str) and len(self.content) < 1_000_000:
            self.content += data
        return len(data) if isinstance(data, (str, bytes)) else 0

    def py_getattr(self, context: Context, name: str) -> Value:
        methods: dict[str, Any] = {
            "read": lambda m, *_size: self.rest(m),
            "readline": lambda m, *_size: self._line(m),
            "readlines": lambda m, *_hint: self._lines(m),
            "getvalue": lambda m: self.content if self.content is not None else self.rest(m),
            "seek": self._seek,
            "tell": lambda m: self.position,
            "write": self._write,
            "__enter__": lambda m: self,
            "__exit__": lambda m, *_error: None,
            "__next__": self._line,
        }
        if name in methods:
            return Native(f"file.{name}", methods[name])
        if name in ("close", "flush", "writelines", "truncate", "fileno", "isatty"):
            return Native(f"file.{name}", lambda _m, *_args: None)
        return self.name if name == "name" else False if name == "closed" else MISSING

    def py_iterate(self, context: Context) -> Iteration | None:
        lines = self._lines(context)
        if isinstance(lines, Unknown):
            return Iteration([lines.item], exact=False)
        return Iteration(lines)


def open_file(m: Any, path: Value, mode: Value = "r") -> Value:
    """``open(path, mode)``."""
    if isinstance(mode, str) and any(c in mode for c in "wax+"):
        return File(path, None, "a file that the script writes", writes=True)
    found = locate(m, path)
    data = m.sources.read(found) if found is not None else None
    if data is not None:
        m.findings.fact("file read", found, m.where)
        if isinstance(mode, str) and "b" in mode:
            return File(path, data, "")
        text = decode(data)
        return File(path, text if isinstance(text, str) else data.decode("latin-1"), "")
    if isinstance(path, str):
        if m.caught(EXCEPTIONS["FileNotFoundError"]) and bundle_path(m, path) is not None:
            return m.fail("FileNotFoundError", f"no such file in the bundle: {path}")
        why = f"the file {path[:200]} is not in the bundle"
    else:
        why = path.why if isinstance(path, Unknown) else "no path is given: its argument is not set"
    m.findings.gap(f"file {path[:200] if isinstance(path, str) else ''}", m.where, why)
    return File(path, None, why)


@entry("io.open", "codecs.open", "gzip.open", "bz2.open", "lzma.open")
def opened(m: Any, path: Value, mode: Value = "r", *_args: Value, **_kw: Value) -> Value:
    """``open`` by other names; encoding and buffering change nothing."""
    return open_file(m, path, mode)


@entry("io.StringIO", "io.BytesIO", "StringIO.StringIO")
def string_io(m: Any, content: Value = "") -> Value:
    return File("memory", content if isinstance(content, (str, bytes)) else None, "text made while the script runs")


def content_of(m: Any, source: Value) -> str | Unknown:
    """The text of a file object or a string."""
    if isinstance(source, File):
        source = source.rest(m)
    if isinstance(source, Unknown):
        return source
    if isinstance(source, (bytes, bytearray)):
        source = bytes(source).decode("utf-8", "replace")
    if isinstance(source, str):
        if len(source) <= _CONFIG_BYTES:
            return source
        return m.unknown(f"a configuration of more than {_CONFIG_BYTES:,} characters", hint="dict")  # type: ignore[no-any-return]
    return Unknown("text that is not known", m.where, "str")


def _parsed(m: Any, source: Value, parse: Any, kind: str) -> Value:
    text = content_of(m, source)
    if isinstance(text, Unknown):
        return Unknown(text.why, text.where, "dict", name=text.name)
    try:
        return parse(text)
    except (RecursionError, MemoryError):
        return m.unknown(f"the {kind} is nested too deeply")
    except Exception as error:
        return m.fail("ValueError", f"{kind}: {str(error)[:200]}")


@entry("json.load", "json.loads", "simplejson.load", "simplejson.loads", "ujson.load", "ujson.loads", "orjson.loads")
def load_json(m: Any, source: Value, *_args: Value, object_hook: Value = None, **_kwargs: Value) -> Value:
    value = _parsed(m, source, json.loads, "JSON")
    return m.call(object_hook, [value]) if object_hook is not None and isinstance(value, dict) else value


@entry("json.dumps", "simplejson.dumps", "ujson.dumps", "orjson.dumps")
def dump_json(
    m: Any, value: Value, *_args: Value, indent: Value = None, sort_keys: Value = False, **_kw: Value
) -> Value:
    from oarlock_profiler.core.overlays.host_functions import first_unknown  # noqa: PLC0415

    doubt = first_unknown([value])
    if doubt is not None:
        return Unknown(doubt.why, doubt.where, "str")
    try:
        made = json.dumps(value, sort_keys=sort_keys is True, default=lambda _v: None)
    except (TypeError, ValueError, RecursionError) as error:
        return Unknown(f"JSON text: {str(error)[:100]}", m.where, "str")
    return made


@entry("yaml.safe_load", "yaml.load", "yaml.full_load", "yaml.unsafe_load", "ruamel.yaml.safe_load", "ruamel.yaml.load")
def load_yaml(m: Any, source: Value, *_args: Value, **_kwargs: Value) -> Value:
    """Plain data only: a tag that would build an object is an error of the file."""
    import yaml  # noqa: PLC0415 - only scripts that read YAML need it

    return _parsed(m, source, lambda text: yaml.safe_load(_shallow(text)), "YAML")


def _shallow(text: str) -> str:
    """The text itself, unless it is nested so deeply that the parser (quadratic in depth) would take minutes."""
    depth = 0
    for char in text:
        if char in "[{":
            depth += 1
            if depth > _YAML_DEPTH:
                raise RecursionError
        elif char in "]}":
            depth -= 1
    if len(text) > _YAML_BYTES:
        raise ValueError(f"more than {_YAML_BYTES:,} characters")
    return text


@entry("yaml.safe_load_all", "yaml.load_all")
def load_all_yaml(m: Any, source: Value, *_args: Value, **_kwargs: Value) -> Value:
    import yaml  # noqa: PLC0415

    return _parsed(m, source, lambda text: list(yaml.safe_load_all(_shallow(text))), "YAML")


@entry("toml.load", "toml.loads", "tomllib.load", "tomllib.loads", "tomli.load", "tomli.loads")
def load_toml(m: Any, source: Value, *_args: Value, **_kwargs: Value) -> Value:
    import tomllib  # noqa: PLC0415

    if isinstance(source, str) and locate(m, source) is not None:
        source = open_file(m, source)
    return _parsed(m, source, tomllib.loads, "TOML")


for _name in ("SafeLoader", "FullLoader", "Loader", "UnsafeLoader", "CLoader", "CSafeLoader", "SafeDumper", "Dumper"):
    register(f"yaml.{_name}", Native(f"yaml.{_name}", lambda m, *_a, **_k: m.derived("a YAML loader")))
nothing("json.dump", "yaml.dump", "yaml.safe_dump", "pickle.dump", "toml.dump", "joblib.dump", "yaml.add_constructor",
        "yaml.add_representer", "ujson.dump", "dill.dump")  # fmt: skip
unknown_result("str", "text made while the script runs", "toml.dumps", "pickle.dumps")
unknown_result(
    None, "stored data that only running the script would read", "pickle.load", "pickle.loads", "joblib.load", "dill.load",
    "h5py.File", "lmdb.open", "zipfile.ZipFile", "tarfile.open", "gzip.GzipFile", "pickle.Unpickler", "cPickle.load", quiet=False,
)  # fmt: skip


def _is_archive(suffixes: tuple[str, ...]) -> Any:
    def test(m: Any, path: Value) -> Value:
        if isinstance(path, (Instance, HostObject)) and not isinstance(path, str):
            method = m.find(path, "__fspath__")
            path = m.call(method) if method is not MISSING else path
        return (
            path.lower().endswith(suffixes)
            if isinstance(path, str)
            else m.derived("whether a file is an archive", "bool")
        )

    return test


register("zipfile.is_zipfile", Native("zipfile.is_zipfile", _is_archive((".zip",))))
register(
    "tarfile.is_tarfile", Native("tarfile.is_tarfile", _is_archive((".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")))
)
register("pickle.HIGHEST_PROTOCOL", 5)
register("yaml.YAMLError", EXCEPTIONS["ValueError"])
register("json.JSONDecodeError", EXCEPTIONS["ValueError"])
register("json.decoder.JSONDecodeError", EXCEPTIONS["ValueError"])
for _name in ("JSONEncoder", "JSONDecoder"):
    register(f"json.{_name}", EXCEPTIONS["Exception"].mro[-1])
for _name in ("PickleError", "UnpicklingError", "PicklingError"):
    register(f"pickle.{_name}", EXCEPTIONS["Exception"])


# -- csv -------------------------------------------------------------------------------------------------------------


def _rows(m: Any, source: Value, dictionary: bool, delimiter: str) -> Value:
    import csv  # noqa: PLC0415

    text = (
        content_of(m, source)
        if isinstance(source, (File, Unknown, str))
        else "\n".join(line for line in m.listed(source) if isinstance(line, str))
    )
    if isinstance(text, Unknown):
        item: Value = Unknown(
            text.why, text.where, "dict" if dictionary else "list", item=Unknown(text.why, text.where, "str")
        )
        return Unknown(text.why, text.where, "list", item=item)
    lines = text.splitlines()
    reader: Any = csv.DictReader(lines, delimiter=delimiter) if dictionary else csv.reader(lines, delimiter=delimiter)
    return m.host(lambda: iter(list(reader)))


@entry("csv.reader")
def csv_reader(m: Any, source: Value, *_args: Value, delimiter: Value = ",", **_kw: Value) -> Value:
    return _rows(m, source, False, delimiter if isinstance(delimiter, str) and len(delimiter) == 1 else ",")


@entry("csv.DictReader")
def csv_dict_reader(m: Any, source: Value, *_args: Value, delimiter: Value = ",", **_kw: Value) -> Value:
    return _rows(m, source, True, delimiter if isinstance(delimiter, str) and len(delimiter) == 1 else ",")


@entry("csv.writer", "csv.DictWriter")
def csv_writer(m: Any, *_args: Value, **_kw: Value) -> Value:
    return m.derived("a file that the script writes")


# -- configparser ----------------------------------------------------------------------------------------------------


class Config(HostObject):
    """A ``ConfigParser`` over files of the bundle."""

    def __init__(self) -> None:
        import configparser  # noqa: PLC0415

        self.host = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)

    def py_type(self) -> str:
        return "configparser.ConfigParser"

    def _read(self, m: Any, paths: Value, *_args: Value, **_kw: Value) -> Value:
        done = []
        for path in [paths] if isinstance(paths, str) else m.listed(paths):
            file = open_file(m, path)
            if isinstance(file, File) and isinstance(file.content, str):
                m.host(self.host.read_string, file.content)
                done.append(path)
        return done

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "read":
            return Native("configparser.read", self._read)
        if name in ("read_file", "readfp"):
            return Native(
                name,
                lambda m, file: m.host(self.host.read_string, t) if isinstance(t := content_of(m, file), str) else None,
            )
        if name == "read_string":
            return Native(name, lambda m, text: m.host(self.host.read_string, text) if isinstance(text, str) else None)
        if name in ("get", "getint", "getfloat", "getboolean"):
            return Native(name, lambda m, *args, fallback=MISSING, **_kw: self._get(m, name, args, fallback))
        if name in ("sections", "options", "has_section", "has_option", "items", "add_section", "set"):
            return Native(name, lambda m, *args: m.host(getattr(self.host, name), *args))
        return MISSING

    def _get(self, m: Any, name: str, args: tuple[Value, ...], fallback: Value) -> Value:
        given = {} if fallback is MISSING else {"fallback": fallback}
        try:
            return getattr(self.host, name)(*args, **given)
        except Exception as error:
            return m.fail("KeyError", str(error)[:200])

    def py_getitem(self, context: Context, key: Value) -> Value:
        try:
            return dict(self.host[key])
        except KeyError:
            return context.unknown(f"section {key!r} is not in the configuration", hint="dict")

    def py_iterate(self, context: Context) -> Iteration | None:
        return Iteration(list(self.host))


@entry("configparser.ConfigParser", "configparser.RawConfigParser", "configparser.SafeConfigParser")
def config_parser(m: Any, *_args: Value, **_kw: Value) -> Value:
    return Config()
