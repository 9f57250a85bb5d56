"""The values an abstract program holds.

Plain Python values stand for themselves (None, bool, int, float, complex, str, bytes, tuple, list, dict, set, range,
slice, Ellipsis); containers may hold any value. Everything else is one of the classes below, a framework tensor
(``core.engine.tensor.Tensor``), or another host object that an overlay defines by deriving from :class:`Native`
or :class:`HostObject`.
"""

# ruff: noqa: ARG002 - the signatures are Python's own

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from oarlock_profiler.core.findings import Where

if TYPE_CHECKING:
    from oarlock_profiler.core.findings import Findings

Value = Any


@dataclass(eq=False, slots=True)
class Unknown:
    """A value that could not be known, with the reason. It spreads no further than it must.

    ``hint`` names the Python or framework type when that much is known (``"int"``, ``"float"``, ``"str"``, ``"list"``,
    ``"tensor"``, ``"callable"``…); ``low``/``high`` bound a number (random, environment); ``item`` is one symbolic
    element of an iterable whose length is unknown; ``origin`` is the unknown integer that this one was counted from,
    and how far.
    """

    why: str
    where: Where | None = None
    hint: str | None = None
    low: float | None = None
    high: float | None = None
    item: Value = None
    name: str | None = None
    origin: tuple[Unknown, int] | None = None


class Context(Protocol):
    """What a native function may ask of the interpreter that calls it. The interpreter is the only implementation."""

    @property
    def where(self) -> Where | None:
        """The place in the user's bundle being executed (library frames point at the user's calling line)."""

    @property
    def findings(self) -> Findings: ...

    @property
    def engine(self) -> Any:
        """The tensor engine (``core.engine.engine.Engine``)."""

    @property
    def state(self) -> dict[str, Any]:
        """Notes that overlays keep for the length of one reading, under their own key."""

    def call(self, function: Value, args: Sequence[Value] = (), kwargs: Mapping[str, Value] | None = None) -> Value:
        """Call any callable value (user function, class, native, bound method, instance with ``__call__``)."""

    def getattr(self, value: Value, name: str, default: Value = ...) -> Value: ...

    def setattr(self, value: Value, name: str, new: Value) -> None: ...

    def is_open(self, value: Value) -> bool:
        """Whether ``value`` is a list that holds more items than were seen."""
        ...

    def iterate(self, value: Value) -> Iteration:
        """Iterate any value as a ``for`` loop would."""

    def truth(self, value: Value) -> bool | Unknown: ...

    def type_of(self, value: Value) -> Value: ...

    def isinstance(self, value: Value, cls: Value) -> bool | Unknown: ...

    def unknown(self, why: str, *, hint: str | None = None, **more: Any) -> Unknown:
        """An unknown placed at ``where`` and noted in the findings of the reading."""

    def spend(self, steps: int = 1) -> None:
        """Charge ``steps`` to the budget; raises BudgetExceeded when it is used up."""


@dataclass(slots=True)
class Iteration:
    """How to run a loop body: over ``items`` (a host iterable, produced lazily).

    ``exact`` says that the items are all there is; otherwise they stand for ``count`` (None: unknown) repetitions,
    as a data loader's few symbolic batches do.
    """

    items: Any
    exact: bool = True
    count: int | None = None


@dataclass(eq=False, repr=False)
class Native:
    """A function of the host: ``call(context, *args, **kwargs)``. A TypeError on binding becomes an Unknown."""

    name: str
    call: Callable[..., Value]
    doc: str = ""

    def __repr__(self) -> str:
        return f"<native {self.name}>"


class Method(Native):
    """A host function that binds like a method even in a script's class, where a :class:`Native` would not."""


@dataclass(eq=False, repr=False)
class Function:
    """A function of the script. ``closure`` is the defining scope (interpreter's own type)."""

    name: str
    qualname: str
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    module: Module
    closure: Any
    defaults: list[Value]
    kw_defaults: dict[str, Value]
    owner: Class | None = None
    attrs: dict[str, Value] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<function {self.qualname}>"


@dataclass(eq=False)
class BoundMethod:
    """``function`` with its first argument given."""

    function: Value
    receiver: Value


@dataclass(eq=False, repr=False)
class Class:
    """A class of the script or of an overlay (its namespace then holds natives): both share MRO and attributes.

    ``make`` (overlay classes only) builds the instance's host object in place of :class:`Instance`.
    ``qualname`` is the dotted public name for overlay classes (``torch.nn.Linear``). ``meta`` (inherited) carries the
    class-level behaviour of enums, named tuples and metaclasses; ``unknown_base`` is set when a base could not be
    found: attributes that are missing are then unknown rather than errors; ``getattribute`` is the script's own
    ``__getattribute__`` along the MRO, if any.
    """

    name: str
    qualname: str
    bases: tuple[Class, ...]
    namespace: dict[str, Value]
    module: Module | None = None
    make: Callable[[Class], Instance] | None = None
    mro: tuple[Class, ...] = ()
    where: Where | None = None
    meta: Any = None
    unknown_base: Unknown | None = None
    getattribute: Value = None

    def __repr__(self) -> str:
        return f"<class {self.qualname}>"

    def lookup(self, name: str) -> Value:
        """The attribute along the MRO, or ``MISSING``."""
        for cls in self.mro or (self,):
            if name in cls.namespace:
                return cls.namespace[name]
        return MISSING

    def is_subclass(self, other: Class) -> bool:
        """Whether ``other`` is in the MRO."""
        return other in (self.mro or (self,))


@dataclass(eq=False, repr=False)
class Instance:
    """An object of a :class:`Class`; overlays may subclass it to carry host fields (a layer, an optimiser)."""

    cls: Class
    attrs: dict[str, Value] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<{self.cls.qualname} object>"


@dataclass(eq=False, repr=False)
class Module:
    """An imported module: of the bundle (attrs filled by running it), of a library's source, or of an overlay.

    ``resolve`` (overlays) finds an attribute on demand and returns ``MISSING`` when there is none. ``library`` marks
    source that came from the library path: its frames point at the user's calling line.
    """

    name: str
    attrs: dict[str, Value] = field(default_factory=dict)
    file: str | None = None
    resolve: Callable[[str], Value] | None = None
    library: bool = False

    def __repr__(self) -> str:
        return f"<module {self.name}>"


class HostObject:
    """Base of host objects with behaviour of their own; the interpreter asks these hooks before its defaults."""

    def py_type(self) -> str:
        """Dotted type name, for messages and isinstance."""
        return type(self).__name__

    def py_getattr(self, context: Context, name: str) -> Value:
        """Attribute, or ``MISSING``."""
        return MISSING

    def py_setattr(self, context: Context, name: str, value: Value) -> bool:
        """Set it and return True, or return False for the default (an error)."""
        return False

    def py_call(self, context: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Called."""
        return context.unknown(f"{self.py_type()} is not callable")

    def py_getitem(self, context: Context, key: Value) -> Value:
        """Subscript."""
        return context.unknown(f"{self.py_type()} cannot be indexed")

    def py_setitem(self, context: Context, key: Value, value: Value) -> None:
        """Subscript assignment (ignored unless overridden)."""

    def py_binary(self, context: Context, op: str, other: Value, reflected: bool) -> Value:
        """``op`` is the operator token (``+ - * / // % ** @ & | ^ << >> == != < <= > >= in``).

        ``x += y`` first asks for ``"+="`` (and so on); MISSING falls back to ``"+"``. For ``in``, ``self`` is the
        container and ``other`` the item.
        """
        return MISSING

    def py_unary(self, context: Context, op: str) -> Value:
        """``op`` is one of ``- + ~ not``."""
        return MISSING

    def py_iterate(self, context: Context) -> Iteration | None:
        """How a loop runs over it; None when it is not iterable."""
        return None

    def py_len(self, context: Context) -> Value:
        """``len()``; MISSING when it has none."""
        return MISSING

    def py_truth(self, context: Context) -> bool | Unknown:
        """``bool()``."""
        return True


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING = _Missing()


def length(items: Sized) -> int:
    """``len(items)``, of ranges too that are longer than the host can count."""
    if isinstance(items, range):
        return max(0, -((items.start - items.stop) // items.step))
    return len(items)
