"""What a class attribute may be: properties, static and class methods, ``super`` and generic aliases."""

# ruff: noqa: ARG002 - the signatures are Python's own

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oarlock_profiler.core.interpreter.values import MISSING, Class, Context, HostObject, Value

if TYPE_CHECKING:
    pass


@dataclass(eq=False, slots=True)
class Property:
    """``property``; ``cached`` keeps the first value on the instance (``functools.cached_property``)."""

    getter: Value
    setter: Value = None
    deleter: Value = None
    cached: bool = False


@dataclass(eq=False, slots=True)
class StaticMethod:
    """``staticmethod``."""

    function: Value


@dataclass(eq=False, slots=True)
class ClassMethod:
    """``classmethod``."""

    function: Value


@dataclass(eq=False, slots=True)
class Super:
    """``super()`` in a method of ``cls`` on ``holder`` (an instance, or a class in a class method)."""

    cls: Class
    holder: Value


class TypeForm(HostObject):
    """``list[int]``, ``Optional[X]``, ``A | B``: a type expression. Calling it calls its origin."""

    def __init__(self, origin: Value, args: tuple[Value, ...], name: str = "") -> None:
        self.origin = origin
        self.args = args
        self.name = name

    def py_type(self) -> str:
        return "types.GenericAlias"

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "__origin__":
            return self.origin
        if name == "__args__":
            return self.args
        if name == "__name__":
            return self.name
        return context.getattr(self.origin, name, MISSING) if isinstance(self.origin, Class) else MISSING

    def py_call(self, context: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        return context.call(self.origin, args, kwargs)

    def py_getitem(self, context: Context, key: Value) -> Value:
        return TypeForm(self.origin, key if isinstance(key, tuple) else (key,), self.name)

    def py_binary(self, context: Context, op: str, other: Value, reflected: bool) -> Value:
        return TypeForm(None, (other, self) if reflected else (self, other), "Union") if op == "|" else MISSING
