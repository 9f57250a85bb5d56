"""``sys._getframe``, ``inspect.currentframe`` and ``inspect.stack``: who is running, and who called it.

A frame is held by its place in the stack, never itself: a script that keeps one must not keep its tensors alive.
"""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.interpreter.frames import Frame
from oarlock_profiler.core.interpreter.values import MISSING, Context, HostObject, Value
from oarlock_profiler.core.overlays.registry import entry

LIBRARIES = ("sys", "inspect", "traceback")


class FrameView(HostObject):
    """A frame object: name, file, line and globals as they were, locals while it still runs."""

    def __init__(self, machine: Any, place: int) -> None:
        frame: Frame = machine.frames[place]
        self.place, self.code = place, frame.code
        self.name = frame.function.name if frame.function is not None else "<module>"
        self.file, self.line, self.globals = frame.globals.get("__file__"), frame.line, frame.globals

    def py_type(self) -> str:
        return "types.FrameType"

    def py_getattr(self, context: Any, name: str) -> Value:
        if name == "f_code":
            return CodeView(self)
        if name == "f_back":
            return FrameView(context, self.place - 1) if 0 < self.place <= len(context.frames) else None
        if name == "f_lineno":
            return self.line
        if name == "f_globals":
            return self.globals
        if name == "f_locals":
            frames = context.frames
            runs = self.place < len(frames) and frames[self.place].code is self.code
            return dict(frames[self.place].vars) if runs else context.derived("names of a frame that has returned")
        return MISSING


class CodeView(HostObject):
    """``frame.f_code``."""

    def __init__(self, frame: FrameView) -> None:
        self.frame = frame

    def py_type(self) -> str:
        return "types.CodeType"

    def py_getattr(self, context: Context, name: str) -> Value:
        if name in ("co_name", "co_qualname"):
            return self.frame.name
        if name == "co_filename":
            return self.frame.file
        if name == "co_firstlineno":
            return getattr(self.frame.code.node, "lineno", 1) if self.frame.code is not None else 1
        return MISSING


class FrameInfo(HostObject):
    """An item of ``inspect.stack()``: a named tuple."""

    NAMES = ("frame", "filename", "lineno", "function", "code_context", "index")

    def __init__(self, frame: FrameView) -> None:
        self.values: tuple[Value, ...] = (frame, frame.file, frame.line, frame.name, None, None)

    def py_type(self) -> str:
        return "inspect.FrameInfo"

    def py_getattr(self, context: Context, name: str) -> Value:
        return self.values[self.NAMES.index(name)] if name in self.NAMES else MISSING

    def py_getitem(self, context: Any, key: Value) -> Value:
        if isinstance(key, int) and -len(self.values) <= key < len(self.values):
            return self.values[key]
        return context.fail("IndexError", "tuple index out of range")


@entry("sys._getframe", "inspect.currentframe")
def getframe(m: Any, depth: int = 0) -> Value:
    """The caller's frame, or the one ``depth`` above it."""
    place = len(m.frames) - 1 - depth if isinstance(depth, int) else -1
    if place < 0:
        return m.fail("ValueError", "call stack is not deep enough")
    return FrameView(m, place)


@entry("inspect.stack")
def stack(m: Any, _context: int = 1) -> Value:
    """Innermost first."""
    return [FrameInfo(FrameView(m, place)) for place in reversed(range(len(m.frames)))]
