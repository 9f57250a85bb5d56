"""The classes that stand for builtin types, and instances of script classes that derive from them.

A script's ``class Config(dict)`` makes a host ``dict`` that is also an :class:`Instance`: natives may treat it as the
dictionary it is.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

from oarlock_profiler.core.interpreter.descriptors import ClassMethod, Property, StaticMethod
from oarlock_profiler.core.interpreter.errors import EXCEPTIONS, OBJECT
from oarlock_profiler.core.interpreter.values import Class, Instance, Native, Value
from oarlock_profiler.core.overlays.registry import linearise


def _make(cls: Class) -> Instance:
    return _INSTANCES[next(c.qualname for c in cls.mro if c.qualname in _INSTANCES)](cls)


class DictInstance(dict, Instance):  # type: ignore[type-arg]
    """An object of a script class that derives from ``dict``."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, cls: Class) -> None:
        dict.__init__(self)
        self.cls = cls
        self.attrs = {}


class ListInstance(list, Instance):  # type: ignore[type-arg]
    """An object of a script class that derives from ``list``."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, cls: Class) -> None:
        list.__init__(self)
        self.cls = cls
        self.attrs = {}


class SetInstance(set, Instance):  # type: ignore[type-arg]
    """An object of a script class that derives from ``set``."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, cls: Class) -> None:
        set.__init__(self)
        self.cls = cls
        self.attrs = {}


class TupleInstance(tuple, Instance):  # type: ignore[type-arg]
    """An object of a class that derives from ``tuple``, such as a named tuple."""

    def __new__(cls, kind: Class, items: Any = ()) -> TupleInstance:
        made = tuple.__new__(cls, items)
        made.cls = kind
        made.attrs = {}
        return made

    def __init__(self, kind: Class, items: Any = ()) -> None:
        """Made in ``__new__``."""


class StrInstance(str, Instance):
    """An object of a class that derives from ``str``, such as a member of a string enum."""

    def __new__(cls, kind: Class, text: str = "") -> StrInstance:
        made = str.__new__(cls, text)
        made.cls = kind
        made.attrs = {}
        return made

    def __init__(self, kind: Class, text: str = "") -> None:
        """Made in ``__new__``."""


class IntInstance(int, Instance):
    """An object of a class that derives from ``int``."""

    def __new__(cls, kind: Class, number: int = 0) -> IntInstance:
        made = int.__new__(cls, number)
        made.cls = kind
        made.attrs = {}
        return made

    def __init__(self, kind: Class, number: int = 0) -> None:
        """Made in ``__new__``."""


class FloatInstance(float, Instance):
    """An object of a class that derives from ``float``."""

    def __new__(cls, kind: Class, number: float = 0.0) -> FloatInstance:
        made = float.__new__(cls, number)
        made.cls = kind
        made.attrs = {}
        return made

    def __init__(self, kind: Class, number: float = 0.0) -> None:
        """Made in ``__new__``."""


_INSTANCES: dict[str, Callable[[Class], Instance]] = {
    "builtins.dict": DictInstance,
    "collections.OrderedDict": DictInstance,
    "collections.defaultdict": DictInstance,
    "collections.Counter": DictInstance,
    "builtins.list": ListInstance,
    "collections.deque": ListInstance,
    "builtins.set": SetInstance,
}
IMMUTABLE: dict[str, Callable[..., Instance]] = {
    "builtins.tuple": TupleInstance,
    "builtins.str": StrInstance,
    "builtins.int": IntInstance,
    "builtins.float": FloatInstance,
}


def builtin_class(host: type, qualname: str = "", bases: tuple[Class, ...] = (OBJECT,)) -> Class:
    """The class standing for ``host``, made once."""
    found = TYPES.get(host)
    if found is None:
        found = Class(qualname.rpartition(".")[2] or host.__name__, qualname or f"builtins.{host.__name__}", bases, {})
        found.mro = linearise(found)
        if found.qualname in _INSTANCES:
            found.make = _make
        TYPES[host] = found
    return found


TYPES: dict[type, Class] = {}
INT = builtin_class(int)
BOOL = builtin_class(bool, bases=(INT,))
FLOAT = builtin_class(float)
COMPLEX = builtin_class(complex)
STR = builtin_class(str)
BYTES = builtin_class(bytes)
BYTEARRAY = builtin_class(bytearray)
LIST = builtin_class(list)
TUPLE = builtin_class(tuple)
DICT = builtin_class(dict)
SET = builtin_class(set)
FROZENSET = builtin_class(frozenset)
RANGE = builtin_class(range)
SLICE = builtin_class(slice)
NONE = builtin_class(type(None))
ELLIPSIS = builtin_class(type(...))
ORDERED_DICT = builtin_class(collections.OrderedDict, "collections.OrderedDict", (DICT,))
DEFAULT_DICT = builtin_class(collections.defaultdict, "collections.defaultdict", (DICT,))
COUNTER = builtin_class(collections.Counter, "collections.Counter", (DICT,))
DEQUE = builtin_class(collections.deque, "collections.deque")
PROPERTY = builtin_class(Property, "builtins.property")
builtin_class(StaticMethod, "builtins.staticmethod")
builtin_class(ClassMethod, "builtins.classmethod")
NOT_IMPLEMENTED = builtin_class(type(NotImplemented))


def method(*classes: Class, name: str = "") -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Put a host function into the namespaces of ``classes`` under its own name (a trailing ``_`` dropped)."""

    def decorate(fn: Callable[..., Value]) -> Callable[..., Value]:
        key = name or fn.__name__.rstrip("_") if not fn.__name__.startswith("__") else fn.__name__
        for cls in classes:
            cls.namespace[key] = Native(f"{cls.name}.{key}", fn)
        return fn

    return decorate


__all__ = ["EXCEPTIONS", "IMMUTABLE", "TYPES", "builtin_class", "method"]
