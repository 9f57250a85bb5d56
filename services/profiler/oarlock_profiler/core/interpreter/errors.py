"""Exceptions of the script, as the host carries them.

A script's exception is an :class:`Instance` of an exception class; :class:`Raised` carries it through host frames. The
host exception must die before a handler's body runs, or its traceback would keep the tensors of dead frames alive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oarlock_profiler.core.interpreter.formatting import text
from oarlock_profiler.core.interpreter.values import Class, Instance, Native, Value
from oarlock_profiler.core.overlays.registry import linearise


class Raised(Exception):
    """``value`` is in flight. ``implicit`` marks one that an operation raised, not a ``raise`` statement."""

    def __init__(self, value: Instance, implicit: bool = False) -> None:
        super().__init__()
        self.value = value
        self.implicit = implicit


EXCEPTIONS: dict[str, Class] = {}
OBJECT = Class("object", "builtins.object", (), {})
OBJECT.mro = (OBJECT,)


def _new(_context: object, cls: Class, *args: Value, **_kwargs: Value) -> Instance:
    return Instance(cls, {"args": args})


def _init(_context: object, self: Instance, *args: Value, **kwargs: Value) -> None:
    self.attrs["args"] = args
    for key, value in kwargs.items():
        self.attrs[key] = value
    names = {cls.name for cls in self.cls.mro}
    if args and "StopIteration" in names:
        self.attrs["value"] = args[0]
    if "SystemExit" in names:
        self.attrs["code"] = args[0] if len(args) == 1 else args or None
    if "OSError" in names and len(args) > 1:
        self.attrs.update(zip(("errno", "strerror", "filename"), args, strict=False))


def _with_traceback(_context: object, self: Instance, _traceback: Value = None) -> Instance:
    return self


def _text(context: Any, self: Instance) -> Value:
    args = self.attrs.get("args", ())
    if not isinstance(args, tuple) or not args:
        return ""
    names = {cls.name for cls in self.cls.mro}
    if "BaseExceptionGroup" in names:
        return f"{args[0]} ({len(self.attrs.get('exceptions', ()))} sub-exceptions)"
    if "OSError" in names and len(args) > 1:
        file = f": {args[2]!r}" if len(args) > 2 else ""
        return f"[Errno {args[0]}] {args[1]}{file}"
    if len(args) == 1:
        return text(context, args[0], quote="KeyError" in names)
    return text(context, args)


def _shown(context: Any, self: Instance) -> Value:
    args = self.attrs.get("args", ())
    parts = [text(context, arg, quote=True) for arg in args] if isinstance(args, tuple) else []
    return f"{self.cls.name}({', '.join(str(part) for part in parts)})"


def _note(_context: object, self: Instance, note: Value) -> None:
    self.attrs.setdefault("__notes__", []).append(note)


def _group_init(_context: object, self: Instance, *args: Value) -> None:
    members = args[1] if len(args) > 1 and isinstance(args[1], (list, tuple)) else ()
    self.attrs.update(args=args, message=args[0] if args else "")
    self.attrs["exceptions"] = tuple(one for one in members if isinstance(one, Instance))


def _group_split(context: Any, self: Instance, condition: Value) -> tuple[Instance | None, Instance | None]:
    def fits(one: Instance) -> bool:
        kinds = condition if isinstance(condition, tuple) else (condition,)
        if all(isinstance(kind, Class) for kind in kinds):
            return any(one.cls.is_subclass(kind) for kind in kinds)
        return context.truth(context.call(condition, [one])) is True

    return split(self, fits)


def group(cls: Class, message: Value, members: list[Instance]) -> Instance:
    """An exception group."""
    return Instance(cls, {"args": (message, list(members)), "message": message, "exceptions": tuple(members)})


def split(error: Instance, fits: Callable[[Instance], bool]) -> tuple[Instance | None, Instance | None]:
    """``error.split(...)``: the members that fit and the others, in groups of the same nesting."""
    if fits(error):
        return error, None
    members = error.attrs.get("exceptions")
    if not isinstance(members, tuple):
        return None, error
    taken: list[Instance] = []
    left: list[Instance] = []
    for one in members:
        mine, rest = split(one, fits)
        taken += [mine] if mine is not None else []
        left += [rest] if rest is not None else []
    message = error.attrs.get("message", "")
    return (
        group(error.cls, message, taken) if taken else None,
        group(error.cls, message, left) if left else None,
    )


def _build(host: type[BaseException], bases: tuple[Class, ...]) -> None:
    if host.__name__ in EXCEPTIONS:
        return
    cls = Class(host.__name__, f"builtins.{host.__name__}", bases, {})
    cls.mro = linearise(cls)
    EXCEPTIONS[host.__name__] = cls
    if host is BaseException:
        cls.namespace.update(
            {
                "__new__": Native("BaseException.__new__", _new),
                "__init__": Native("BaseException.__init__", _init),
                "__str__": Native("BaseException.__str__", _text),
                "__repr__": Native("BaseException.__repr__", _shown),
                "with_traceback": Native("BaseException.with_traceback", _with_traceback),
                "add_note": Native("BaseException.add_note", _note),
                "__suppress_context__": False,
                "args": (),
                "__traceback__": None,
                "__cause__": None,
                "__context__": None,
            }
        )
    for child in host.__subclasses__():
        if child.__module__ == "builtins":
            _build(child, (cls,))


_build(BaseException, (OBJECT,))
EXCEPTIONS["ExceptionGroup"].bases = (EXCEPTIONS["BaseExceptionGroup"], EXCEPTIONS["Exception"])
EXCEPTIONS["ExceptionGroup"].mro = linearise(EXCEPTIONS["ExceptionGroup"])
EXCEPTIONS["BaseExceptionGroup"].namespace.update(
    {
        "__init__": Native("BaseExceptionGroup.__init__", _group_init),
        "split": Native("BaseExceptionGroup.split", _group_split),
        "subgroup": Native(
            "BaseExceptionGroup.subgroup", lambda c, self, condition: _group_split(c, self, condition)[0]
        ),
        "derive": Native(
            "BaseExceptionGroup.derive", lambda _c, self, m: group(self.cls, self.attrs["message"], list(m))
        ),
    }
)
for _alias in ("IOError", "EnvironmentError"):
    EXCEPTIONS[_alias] = EXCEPTIONS["OSError"]


def exception(name: str, message: str) -> Instance:
    """An instance of the builtin exception class ``name`` with ``message``."""
    return Instance(EXCEPTIONS[name], {"args": (message,) if message else ()})


def class_of_host(error: BaseException) -> str:
    """The nearest builtin exception class of a host exception."""
    for cls in type(error).__mro__:
        if cls.__name__ in EXCEPTIONS and cls.__module__ == "builtins":
            return cls.__name__
    return "Exception"
