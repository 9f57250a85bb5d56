"""``pathlib``: paths as text; what exists is only the bundle."""

from __future__ import annotations

import pathlib
import posixpath
from typing import Any

from oarlock_profiler.core.interpreter.values import MISSING, Context, HostObject, Native, Unknown, Value
from oarlock_profiler.core.overlays.registry import entry, native_class, register
from oarlock_profiler.core.overlays.stdlib_files import BUNDLE, File, open_file
from oarlock_profiler.core.overlays.stdlib_os import absolute, exists, glob, listdir

LIBRARIES = ("pathlib",)
_PURE = {"name", "stem", "suffix", "suffixes", "parts", "root", "anchor", "drive"}
_SAME = {"with_name", "with_suffix", "with_stem", "relative_to"}


class PathValue(HostObject):
    """A path whose text is known, or unknown."""

    def __init__(self, text: str | Unknown) -> None:
        self.text = text

    def py_type(self) -> str:
        return "pathlib.Path"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PathValue) and isinstance(self.text, str) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text) if isinstance(self.text, str) else id(self)

    def _pure(self) -> pathlib.PurePosixPath | None:
        return pathlib.PurePosixPath(self.text) if isinstance(self.text, str) else None

    def py_binary(self, context: Context, op: str, other: Value, reflected: bool) -> Value:
        if op == "/":
            return join(context, other, self) if reflected else join(context, self, other)
        if op in ("==", "!=") and isinstance(other, PathValue) and isinstance(self.text, str):
            return (self == other) is (op == "==")
        if (
            op in ("<", ">")
            and isinstance(other, PathValue)
            and isinstance(self.text, str)
            and isinstance(other.text, str)
        ):
            return self.text < other.text if op == "<" else self.text > other.text
        return MISSING

    def py_getattr(self, context: Any, name: str) -> Value:
        pure = self._pure()
        if name in ("__fspath__", "__str__", "as_posix"):
            return Native(f"Path.{name}", lambda _m: self.text)
        if name == "__repr__":
            return Native("Path.__repr__", lambda _m: self.text)
        method = _METHODS.get(name)
        if method is not None:
            return Native(f"Path.{name}", lambda m, *args, **kwargs: method(m, self, *args, **kwargs))
        if name in _PURE:
            if pure is None:
                return Unknown(self.text.why, self.text.where, "str")  # type: ignore[union-attr]
            value = getattr(pure, name)
            return list(value) if name == "suffixes" else value
        if name == "parent":
            return PathValue(str(pure.parent)) if pure is not None else PathValue(self.text)
        if name == "parents":
            return [PathValue(str(p)) for p in pure.parents] if pure is not None else Unknown("a path", None, "list")
        if name in _SAME:
            return Native(f"Path.{name}", lambda m, *args: self._derived(m, name, args))
        return MISSING

    def _derived(self, m: Any, name: str, args: tuple[Value, ...]) -> Value:
        pure = self._pure()
        given = [a.text if isinstance(a, PathValue) else a for a in args]
        if pure is None or any(isinstance(g, Unknown) for g in given):
            return PathValue(Unknown("a path that is not known", m.where, "str"))
        made = m.host(getattr(pure, name), *given)
        return PathValue(str(made)) if isinstance(made, pathlib.PurePath) else made


def join(m: Any, *parts: Value) -> PathValue:
    """``Path(a) / b``."""
    texts: list[str] = []
    for part in parts:
        if isinstance(part, PathValue):
            part = part.text
        if isinstance(part, Unknown):
            return PathValue(Unknown(part.why, part.where, "str", name=part.name))
        if not isinstance(part, str):
            return PathValue(Unknown("a path made from something that is not text", m.where, "str"))
        texts.append(part)
    if sum(map(len, texts)) > 10_000:
        return PathValue(m.unknown("a path of more than 10,000 characters", hint="str"))
    return PathValue(str(pathlib.PurePosixPath(*texts)))


def _listed(m: Any, names: Value, base: PathValue) -> Value:
    if isinstance(names, Unknown):
        return Unknown(names.why, names.where, "list", item=PathValue(Unknown(names.why, names.where, "str")))
    return iter([join(m, base, n) for n in names])


def _glob(m: Any, self: PathValue, pattern: Value, **_kw: Value) -> Value:
    if isinstance(self.text, str) and isinstance(pattern, str):
        found = glob(m, posixpath.join(self.text, pattern))
        if not isinstance(found, Unknown):
            return iter([PathValue(f) for f in found])
    names = listdir(m, "\x00")
    return Unknown(names.why, names.where, "list", item=PathValue(Unknown(names.why, names.where, "str")))


def _read(m: Any, self: PathValue, mode: str) -> Value:
    file = open_file(m, self.text, mode)
    return file.rest(m) if isinstance(file, File) else file


def _absolute(m: Any, self: PathValue, *_args: Value, **_kw: Value) -> Value:
    return PathValue(absolute(self.text)) if isinstance(self.text, str) else self


def _nothing(m: Any, self: PathValue, *_args: Value, **_kw: Value) -> None:
    return None


_METHODS: dict[str, Any] = {
    "exists": lambda m, self, **_k: exists(m, self.text),
    "is_file": lambda m, self: exists(m, self.text, "file"),
    "is_dir": lambda m, self: exists(m, self.text, "folder"),
    "is_absolute": lambda m, self: self.text.startswith("/") if isinstance(self.text, str) else self.text,
    "is_symlink": lambda m, self: False,
    "joinpath": join,
    "resolve": _absolute,
    "absolute": _absolute,
    "expanduser": lambda m, self: self,
    "iterdir": lambda m, self: _listed(m, listdir(m, self.text), self),
    "glob": _glob,
    "rglob": lambda m, self, pattern, **_k: _glob(m, self, f"**/{pattern}" if isinstance(pattern, str) else pattern),
    "open": lambda m, self, mode="r", *_a, **_k: open_file(m, self.text, mode),
    "read_text": lambda m, self, *_a, **_k: _read(m, self, "r"),
    "read_bytes": lambda m, self: _read(m, self, "rb"),
    "match": lambda m, self, pattern: m.host(pathlib.PurePosixPath(self.text).match, pattern),
    "stat": lambda m, self: m.derived("a property of a file"),
    "as_uri": lambda m, self: self.text,
    "samefile": lambda m, self, other: self == other,
    "__rtruediv__": lambda m, self, other: join(m, other, self),
}
for _name in (
    "mkdir",
    "unlink",
    "rmdir",
    "touch",
    "write_text",
    "write_bytes",
    "rename",
    "replace",
    "symlink_to",
    "chmod",
):
    _METHODS[_name] = _nothing


def _new(m: Any, _cls: Value, *parts: Value, **_kw: Value) -> Value:
    return join(m, *parts) if parts else PathValue(".")


PATH = native_class("pathlib.Path", __new__=_new, **{n: f for n, f in _METHODS.items() if not n.startswith("__")})
for _name in ("Path", "PosixPath", "PurePath", "PurePosixPath", "WindowsPath", "PureWindowsPath"):
    register(f"pathlib.{_name}", PATH)


@entry("pathlib.Path.cwd")
def cwd(m: Any) -> Value:
    return PathValue(BUNDLE)


@entry("pathlib.Path.home")
def home(m: Any) -> Value:
    return PathValue("/root")
