"""The abstract tensor: shape.

Type and storage, no numbers (but small known values, such as a scalar or a size list).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oarlock_profiler.core.engine.dtypes import size_of
from oarlock_profiler.core.engine.shapes import Shape, numel
from oarlock_profiler.core.interpreter.values import (
    MISSING,
    BoundMethod,
    Context,
    HostObject,
    Iteration,
    Native,
    Unknown,
    Value,
)
from oarlock_profiler.core.overlays import registry

if TYPE_CHECKING:
    from oarlock_profiler.core.engine.autograd import Node
    from oarlock_profiler.core.engine.engine import Engine
    from oarlock_profiler.core.engine.trace import Storage


ROWS = 1009
"""Stands for a number of rows that is not known (a prime, so that it is hardly met by chance): ``len`` is unknown, and
so is the length of a data set that has as many."""
SEQUENCE = 127
"""The same for a list of numbers, such as the tokens of a text, where the task does not say how long they are."""
STAND_INS = frozenset({ROWS, SEQUENCE})
"""A data set of so many samples is one whose length is not known."""


class Property:
    """A registry entry that is read.

    Not called: ``tensor.shape`` (``get``) and, where allowed, ``tensor.grad = None`` (``set``).
    """

    __slots__ = ("get", "set")

    def __init__(self, get: Any, set: Any = None) -> None:
        self.get = get
        self.set = set


class Tensor(HostObject):
    """A framework tensor. ``shape`` None: nothing is known of it but that it is a tensor (then it has no
    storage).

    ``node`` is the operator that made it, ``output_index`` which of its outputs it is; leaves have no node.
    ``value`` is the content where it is small and known: a number for no dimension, a list for one.
    ``lineage``: of an unknown tensor, an empty one through which gradients reach what it was made of.
    ``cleared``: its gradient is kept but counts as none (PaddlePaddle's ``clear_grad``).
    """

    __slots__ = (
        "attrs", "cleared", "device", "dtype", "engine", "grad", "is_buffer", "is_parameter", "is_view", "lineage",
        "name", "node", "output_index", "requires_grad", "shape", "storage", "strides", "value", "why",
    )  # fmt: skip

    def __init__(
        self,
        engine: Engine,
        shape: Shape | None,
        dtype: str,
        storage: Storage | None,
        device: str,
        *,
        requires_grad: bool = False,
        node: Node | None = None,
        output_index: int = 0,
        value: Any = None,
        why: str | None = None,
    ) -> None:
        self.engine = engine
        self.shape = shape
        self.dtype = dtype
        self.storage = storage
        self.device = device
        self.requires_grad = requires_grad
        self.node = node
        self.output_index = output_index
        self.value = value
        self.why = why
        self.grad: Tensor | None = None
        self.cleared = False
        self.is_parameter = False
        self.is_view = False
        self.is_buffer = False
        self.name: str | None = None
        self.strides: tuple[int, ...] | None = None
        self.attrs: dict[str, Value] | None = None
        self.lineage: Tensor | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of its elements (0 while the shape is unknown)."""
        return int(numel(self.shape) * size_of(self.dtype)) if self.shape is not None else 0

    @property
    def known(self) -> bool:
        """Whether its shape is known."""
        return self.shape is not None

    def __repr__(self) -> str:
        return f"Tensor({list(self.shape) if self.shape is not None else '?'}, {self.dtype})"

    def py_type(self) -> str:
        if self.engine.framework == "paddle":
            return "paddle.Tensor"
        return "torch.nn.Parameter" if self.is_parameter else "torch.Tensor"

    def py_getattr(self, context: Context, name: str) -> Value:
        if self.attrs is not None and name in self.attrs:
            return self.attrs[name]
        entry = registry.get(f"{self.engine.framework}.Tensor.{name}")
        if entry is MISSING:
            return MISSING
        if isinstance(entry, Property):
            return entry.get(context, self)
        return BoundMethod(entry, self)

    def py_setattr(self, context: Context, name: str, value: Value) -> bool:
        entry = registry.get(f"{self.engine.framework}.Tensor.{name}")
        if isinstance(entry, Property) and entry.set is not None:
            entry.set(context, self, value)
            return True
        if self.attrs is None:
            self.attrs = {}
        self.attrs[name] = value
        return True

    def _operator(self, context: Context, name: str, *args: Value) -> Value:
        entry = registry.get(f"{self.engine.framework}.Tensor.{name}")
        if not isinstance(entry, Native):
            return MISSING
        return entry.call(context, self, *args)

    def py_getitem(self, context: Context, key: Value) -> Value:
        return self._operator(context, "__getitem__", key)

    def py_setitem(self, context: Context, key: Value, value: Value) -> None:
        self._operator(context, "__setitem__", key, value)

    def py_binary(self, context: Context, op: str, other: Value, reflected: bool) -> Value:
        name = BINARY.get(op)
        if name is None:
            return MISSING
        if reflected:
            name = REFLECTED.get(op, name)
        return self._operator(context, name, other)

    def py_unary(self, context: Context, op: str) -> Value:
        name = {"-": "__neg__", "+": "__pos__", "~": "__invert__"}.get(op)
        return MISSING if name is None else self._operator(context, name)

    def py_iterate(self, context: Context) -> Iteration | None:
        if self.shape is None:
            return Iteration(iter([self.engine.unknown_tensor("an element of an unknown tensor")]), exact=False)
        if not self.shape:
            return None
        if isinstance(self.value, list):
            return Iteration(iter([self.engine.constant(v, self.dtype, device=self.device) for v in self.value]))
        length = self.shape[0]
        return Iteration(self._operator(context, "__getitem__", index) for index in range(length))

    def py_len(self, context: Context) -> Value:
        if self.shape is None:
            return context.unknown("the length of a tensor of unknown shape", hint="int")
        if self.shape and self.shape[0] == ROWS:
            return Unknown("the number of rows is unknown", context.where, "int", 1)
        return self.shape[0] if self.shape else MISSING

    def py_truth(self, context: Context) -> bool | Unknown:
        if self.value is not None and not isinstance(self.value, list):
            return bool(self.value)
        return Unknown("the value of a tensor", context.where, hint="bool")


BINARY = {
    "+": "__add__", "-": "__sub__", "*": "__mul__", "/": "__truediv__", "//": "__floordiv__", "%": "__mod__",
    "**": "__pow__", "@": "__matmul__", "&": "__and__", "|": "__or__", "^": "__xor__", "<<": "__lshift__",
    ">>": "__rshift__", "==": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__",
    ">=": "__ge__", "in": "__contains__", "+=": "__iadd__", "-=": "__isub__", "*=": "__imul__",
    "/=": "__itruediv__", "//=": "__ifloordiv__", "%=": "__imod__", "**=": "__ipow__", "&=": "__iand__",
    "|=": "__ior__", "^=": "__ixor__", "@=": "__matmul__",
}  # fmt: skip
REFLECTED = {
    "+": "__radd__", "-": "__rsub__", "*": "__rmul__", "/": "__rtruediv__", "//": "__rfloordiv__",
    "%": "__rmod__", "**": "__rpow__", "@": "__rmatmul__", "<": "__gt__", "<=": "__ge__", ">": "__lt__",
    ">=": "__le__",
}  # fmt: skip
