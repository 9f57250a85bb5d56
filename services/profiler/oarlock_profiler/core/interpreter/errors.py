"""Exceptions of the script, as the host carries them.

A script's exception is an :class:`Instance` of an exception class; :class:`Raised` carries it through host frames. The
host exception must die before a handler's body runs, or its traceback would keep the tensors of dead frames alive.
"""

from __future__ import annotations

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


def _init(_context: object, self: Instance, *args: Value, **kwargs: Value) -> None:
    self.attrs["args"] = args
    for key, value in kwargs.items():
        self.attrs[key] = value
    if isinstance(self.cls, Class) and args and "StopIteration" in {cls.name for cls in self.cls.mro}:
        self.attrs["value"] = args[0]


def _with_traceback(_context: object, self: Instance, _traceback: Value = None) -> Instance:
    return self


def _text(_context: object, self: Instance) -> Value:
    args = self.attrs.get("args", ())
    if len(args) == 1 and isinstance(args[0], str):
        return args[0]
    return str(args) if args and all(isinstance(a, (str, int, float)) for a in args) else ""


def _build(host: type[BaseException], bases: tuple[Class, ...]) -> None:
    if host.__name__ in EXCEPTIONS:
        return
    cls = Class(host.__name__, f"builtins.{host.__name__}", bases, {})
    cls.mro = linearise(cls)
    EXCEPTIONS[host.__name__] = cls
    if host is BaseException:
        cls.namespace.update(
            {
                "__init__": Native("BaseException.__init__", _init),
                "__str__": Native("BaseException.__str__", _text),
                "with_traceback": Native("BaseException.with_traceback", _with_traceback),
                "add_note": Native("BaseException.add_note", lambda _c, _s, _n: None),
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
for _alias in ("IOError", "EnvironmentError"):
    EXCEPTIONS[_alias] = EXCEPTIONS["OSError"]


def exception(name: str, message: str) -> Instance:
    """An instance of the builtin exception class ``name`` with ``message``."""
    return Instance(EXCEPTIONS[name], {"args": (message,)})


def class_of_host(error: BaseException) -> str:
    """The nearest builtin exception class of a host exception."""
    for cls in type(error).__mro__:
        if cls.__name__ in EXCEPTIONS and cls.__module__ == "builtins":
            return cls.__name__
    return "Exception"
