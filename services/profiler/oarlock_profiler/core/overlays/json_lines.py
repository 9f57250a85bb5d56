"""Files of one JSON value a line (``jsonlines``)."""

from __future__ import annotations

import json
from typing import Any

from oarlock_profiler.core.interpreter.values import MISSING, Context, HostObject, Iteration, Native, Unknown, Value
from oarlock_profiler.core.overlays.registry import entry
from oarlock_profiler.core.overlays.stdlib_files import File, content_of, open_file

LIBRARIES = ("jsonlines",)


class JsonLines(HostObject):
    """A reader over the lines of a file, or a writer (whose ``content`` is None)."""

    def __init__(self, content: str | Unknown | None) -> None:
        self.content = content
        self.values: list[Value] | None = None
        if isinstance(content, str):
            self.values = _parsed(content)

    def py_type(self) -> str:
        return "jsonlines.Writer" if self.content is None else "jsonlines.Reader"

    def py_getattr(self, context: Context, name: str) -> Value:
        methods: dict[str, Any] = {
            "__enter__": lambda _m: self,
            "__exit__": lambda _m, *_error: None,
            "iter": lambda m, **_options: m.listed(self) if self.values is not None else self._item(m),
            "read": lambda m, **_options: self.values.pop(0) if self.values else self._item(m),
        }
        if name in methods:
            return Native(f"jsonlines.{name}", methods[name])
        if name in ("write", "write_all", "close"):
            return Native(f"jsonlines.{name}", lambda _m, *_args: None)
        return MISSING

    def _item(self, context: Context) -> Value:
        why = self.content.why if isinstance(self.content, Unknown) else "nothing is left in the file"
        return Unknown(why, context.where, "list", item=Unknown(why, context.where))

    def py_iterate(self, context: Context) -> Iteration | None:
        if self.values is None:
            return Iteration([self._item(context).item], exact=False)
        return Iteration(self.values)


def _parsed(content: str) -> list[Value]:
    """The values, up to the first line that holds none."""
    values: list[Value] = []
    for line in content.splitlines():
        try:
            values += [json.loads(line)] if line.strip() else []
        except (ValueError, RecursionError):
            break
    return values


@entry("jsonlines.open")
def opened(m: Any, path: Value, mode: Value = "r", **_options: Value) -> Value:
    """``jsonlines.open(path)`` reads; with ``"w"`` or ``"a"`` it writes."""
    file = open_file(m, path, mode)
    return JsonLines(None if isinstance(file, File) and file.writes else content_of(m, file))


@entry("jsonlines.Reader")
def reader(m: Any, source: Value, **_options: Value) -> Value:
    """Over an open file, or over lines."""
    return JsonLines(content_of(m, source))


@entry("jsonlines.Writer")
def writer(m: Any, *_args: Value, **_options: Value) -> Value:
    """Writes nothing."""
    return JsonLines(None)
