"""The NumPy array as the reader holds it: shape, dtype, host memory, and its values while they are few and known.

Memory and operators are written into the trace only when the script trains with NumPy itself; beside a framework the
arrays are host data that feed tensors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from oarlock_profiler.core.engine.trace import Op, Storage
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
from oarlock_profiler.core.overlays import array_shapes as shapes
from oarlock_profiler.core.overlays import registry

KEPT_ELEMENTS = 4096
"""Arrays up to this size keep their values when these are known."""

_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})


class NumpyType(HostObject):
    """``numpy.float32`` and the like: a dtype, and a conversion when called."""

    def __init__(self, dtype: str, family: str = "") -> None:
        self.dtype = dtype
        self.family = family
        """The abstract type that this is (``integer``), empty for one that arrays have."""

    def py_type(self) -> str:
        return "numpy.dtype"

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "__str__":
            return Native("numpy.dtype.__str__", lambda _context: self.dtype)
        return {"name": self.dtype, "__name__": self.dtype, "itemsize": shapes.ITEM_BYTES.get(self.dtype, 8)}.get(
            name, MISSING
        )

    def py_binary(self, context: Context, op: str, other: Value, reflected: bool) -> Value:
        if op in ("==", "!="):
            return (dtype_name(other) == self.dtype) == (op == "==")
        return MISSING

    def py_call(self, context: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        value = args[0] if args else 0
        if isinstance(value, bool | int | float):
            return int(value) if "int" in self.dtype else (bool(value) if self.dtype == "bool" else float(value))
        if isinstance(value, NdArray):
            return value.cast(context, self.dtype)
        if isinstance(value, list | tuple):
            from oarlock_profiler.core.overlays.numpy_creation import as_array  # noqa: PLC0415 - the two need each other

            return as_array(context, value, self.dtype)
        return Unknown(f"numpy.{self.dtype} of an unknown value", context.where, hint=_hint(self.dtype))

    def __repr__(self) -> str:
        return f"numpy.{self.dtype}"


_ALIASES = {
    "float": "float64", "int": "int64", "double": "float64", "half": "float16", "single": "float32", "f4": "float32",
    "f8": "float64", "f": "float32", "i8": "int64", "i4": "int32", "u1": "uint8", "bool_": "bool", "int_": "int64",
    "long": "int64", "str_": "str", "object_": "object", "float_": "float64", "<f4": "float32", "d": "float64",
    "<i8": "int64", "B": "uint8", "byte": "int8", "longlong": "int64", "intc": "int32", "short": "int16",
}  # fmt: skip


def dtype_name(value: Value) -> str | None:
    """The dtype that a script's value names (a string, ``numpy.float32``, ``float``, ``arr.dtype``), or None."""
    if isinstance(value, NumpyType):
        return value.dtype
    if isinstance(value, str):
        name = value.rsplit(".", 1)[-1].removesuffix("[ns]")
        name = _ALIASES.get(name, name)
        return name if name in shapes.ITEM_BYTES else None
    named = getattr(value, "name", None) or getattr(value, "__name__", None)
    return dtype_name(named) if isinstance(named, str) else None


def _hint(dtype: str) -> str | None:
    if dtype in ("str", "object"):
        return "str" if dtype == "str" else None
    return "int" if "int" in dtype else ("bool" if dtype == "bool" else "float")


def trains_with_numpy(context: Context) -> bool:
    """Whether no framework is in use, so that arrays are the memory to be counted."""
    modules = getattr(getattr(context, "importer", None), "modules", {})
    return "torch" not in modules and "paddle" not in modules


class NdArray(HostObject):
    """``shape`` is None when it could not be known; ``data`` is a real array of the values when they are known.

    ``row``, of an array of unknown shape, is the shape of what its first index gives: only their number is unknown.
    """

    def __init__(
        self,
        shape: shapes.Shape | None,
        dtype: str,
        storage: Storage | None = None,
        data: Any = None,
        row: shapes.Shape | None = None,
    ) -> None:
        self.row = row
        self.shape = shape
        self.dtype = dtype
        self.storage = storage
        self.data = data
        self.value_range: tuple[float, float] | None = None

    def py_type(self) -> str:
        return "numpy.ndarray"

    @property
    def nbytes(self) -> int | None:
        """Bytes of the elements, None when the shape is unknown."""
        return None if self.shape is None else shapes.nbytes(self.shape, self.dtype)

    def view(self, shape: shapes.Shape | None, data: Any = None) -> NdArray:
        """Another array over the same memory."""
        return NdArray(shape, self.dtype, self.storage, data)

    def cast(self, context: Context, dtype: str) -> NdArray:
        """A copy converted to ``dtype``."""
        if self.row is not None:
            return NdArray(None, dtype, row=self.row)
        data = None if self.data is None else _real(lambda: self.data.astype(dtype))
        return new(context, self.shape, dtype, op="astype", data=data)

    def py_getattr(self, context: Context, name: str) -> Value:
        shape = self.shape
        if self.row is not None and name in ("shape", "ndim"):
            rows = Unknown("the number of rows is unknown", context.where, hint="int", low=1)
            return (rows, *self.row) if name == "shape" else 1 + len(self.row)
        if name == "shape":
            return Unknown("the array's shape is unknown", context.where, hint="tuple") if shape is None else shape
        if name == "dtype":
            return NumpyType(self.dtype)
        if name == "T":
            return self.view(None if shape is None else shape[::-1], None if self.data is None else self.data.T)
        if name in ("ndim", "size", "nbytes", "itemsize"):
            if name == "itemsize":
                return shapes.ITEM_BYTES.get(self.dtype, 8)
            if shape is None:
                return Unknown("the array's shape is unknown", context.where, hint="int")
            return {"ndim": len(shape), "size": math.prod(shape), "nbytes": shapes.nbytes(shape, self.dtype)}[name]
        if name == "flat":
            return self.view(None if shape is None else (math.prod(shape),))
        method = registry.get(f"numpy.ndarray.{name}")
        return BoundMethod(method, self) if isinstance(method, Native) else MISSING

    def py_setattr(self, context: Context, name: str, value: Value) -> bool:
        if name == "shape" and isinstance(value, tuple) and self.shape is not None:
            self.shape = shapes.reshape(self.shape, value)
            return True
        return False

    def py_len(self, context: Context) -> Value:
        if self.shape:
            return self.shape[0]
        return MISSING if self.shape == () else Unknown("the array's length is unknown", context.where, hint="int")

    def py_iterate(self, context: Context) -> Iteration | None:
        if self.data is not None and self.shape:
            return Iteration([_unwrap(context, item) for item in self.data], exact=True)
        if not self.shape:
            return None if self.shape == () else Iteration([self.py_getitem(context, 0)], exact=False)
        count = self.shape[0]
        shown = min(count, 64)
        return Iteration((self._item(context) for _ in range(shown)), exact=shown == count, count=count)

    def _item(self, context: Context) -> Value:
        if not self.shape or len(self.shape) == 1:
            return Unknown("an element of an array", context.where, hint=_hint(self.dtype))
        return self.view(self.shape[1:])

    def py_getitem(self, context: Context, key: Value) -> Value:
        if self.shape is None:
            return self._of_rows(context, key)
        data = None
        if self.data is not None:
            plain = _plain_key(key)
            if plain is not MISSING:
                data = _real(lambda: self.data[plain])
                if getattr(data, "shape", ()) == ():
                    return _unwrap(context, data)
        try:
            shape, is_view = shapes.indexed(self.shape, _bounded_key(key))
        except shapes.ShapeError as error:
            return context.unknown(f"indexing an array of shape {self.shape}: {error}", hint="array")
        if data is not None:
            shape = tuple(data.shape)
        if shape == () and not isinstance(key, list):
            return Unknown("an element of an array", context.where, hint=_hint(self.dtype))
        return self.view(shape, data) if is_view else new(context, shape, self.dtype, op="take", data=data)

    def _of_rows(self, context: Context, key: Value) -> Value:
        """One row, or some of the rows, of an array of which only their number is unknown, or not even that."""
        if self.row is None and isinstance(key, tuple):
            return self._of_nothing(context, key)
        whole = key[0] if isinstance(key, tuple) and key else key
        one = isinstance(whole, int) or (isinstance(whole, Unknown) and whole.hint == "int")
        shape = self.row
        if shape is not None and isinstance(key, tuple) and len(key) > 1:
            try:
                shape, _ = shapes.indexed(shape, _bounded_key(key[1:]))
            except shapes.ShapeError as error:
                return context.unknown(f"indexing rows of shape {self.row}: {error}", hint="array")
        many = None if one else _taken(whole)
        if many is not None and shape is None and len(many) == 1 and isinstance(whole, NdArray | list):
            context.engine.assumed_batch = context.engine.assumed_batch or many[0]
        if many is not None and shape is not None:
            return NdArray((*many, *shape), self.dtype)
        if not one or shape is None:
            return NdArray(None, self.dtype, row=shape)
        return (
            NdArray(shape, self.dtype)
            if shape
            else Unknown("an element of an array", context.where, hint=_hint(self.dtype))
        )

    def _of_nothing(self, context: Context, key: tuple[Value, ...]) -> Value:
        """``crop[:, :192, :192]``: a script that cuts an array so counts on it being at least that large.

        It has as many dimensions as there are indices (more where an index is a new axis).
        """
        shape: list[int] = []
        for index in key:
            if index is None:
                shape.append(1)
            elif isinstance(index, int) or (isinstance(index, Unknown) and index.hint in ("int", None)):
                continue
            else:
                taken = _taken(index)
                if taken is None:
                    return NdArray(None, self.dtype)
                shape += taken
        context.findings.gap(
            "shape of an array", context.where, "the file's contents are not in the script", assumed=shape
        )
        return NdArray(tuple(shape), self.dtype)

    def py_setitem(self, context: Context, key: Value, value: Value) -> None:
        plain = _plain_key(key)
        known = self.data is not None and plain is not MISSING and isinstance(value, int | float)
        if not known or _real(lambda: self.data.__setitem__(plain, value) or True) is None:
            self.data = None

    def py_unary(self, context: Context, op: str) -> Value:
        if op == "not":
            return Unknown("the truth of an array", context.where, hint="bool")
        data = (
            None
            if self.data is None
            else _real(lambda: ~self.data if op == "~" else (-self.data if op == "-" else self.data))
        )
        return new(context, self.shape, self.dtype, op="negative", data=data)

    def py_binary(self, context: Context, op: str, other: Value, reflected: bool) -> Value:
        if op == "in":
            return Unknown("membership in an array", context.where, hint="bool")
        inplace = op.endswith("=") and op not in _COMPARISONS
        op = op[:-1] if inplace else op
        if not isinstance(other, NdArray | int | float | list | tuple | Unknown) and not _array_like(other):
            return MISSING
        if inplace and op in ("+", "-") and "float" in self.dtype:
            note_update(context, self)
        right = operand(context, other)
        if op == "@":
            return product(context, right, self) if reflected else product(context, self, right)
        return elementwise(context, op, self, right, reflected=reflected, out=self if inplace else None)

    def py_truth(self, context: Context) -> bool | Unknown:
        if self.data is not None and self.data.size == 1:
            return bool(self.data)
        return Unknown("the truth of an array", context.where, hint="bool")

    def __repr__(self) -> str:
        return f"array{self.shape}:{self.dtype}"


def new(context: Context, shape: shapes.Shape | None, dtype: str, *, op: str, data: Any = None) -> NdArray:
    """A fresh array; its memory enters the trace when the script trains with NumPy."""
    storage = None
    if shape and trains_with_numpy(context):
        trace = context.engine.trace
        storage = trace.allocate(
            shapes.nbytes(shape, dtype), "other", device="cpu", op=f"numpy.{op}", where=context.where
        )
    if data is not None and (shape is None or math.prod(shape) > KEPT_ELEMENTS):
        data = None
    return NdArray(shape, dtype, storage, data)


class NumpyNotes:
    """What a script that trains with NumPy updates in place. An array updated again is a parameter; when the first
    of them
    comes round again, a training step is over. ``inputs`` is what is multiplied with a parameter first."""

    def __init__(self) -> None:
        self.elements: dict[int, int] = {}
        self.parameters: dict[int, int] = {}
        self.first: int | None = None
        self.inputs: tuple[shapes.Shape, str] | None = None


def note_update(context: Context, array: NdArray) -> None:
    """Remember an array that is updated in place."""
    if array.storage is None or array.shape is None:
        return
    notes: NumpyNotes = context.state.setdefault("numpy", NumpyNotes())
    key = array.storage.id
    if key not in notes.elements:
        notes.elements[key] = math.prod(array.shape)
        return
    notes.parameters[key] = notes.elements[key]
    if notes.first in (None, key):
        notes.first = key
        context.engine.training_step_done()


def record(context: Context, name: str, dtype: str, flops: int, moved: int, *, matmul: bool = False) -> None:
    """Write one NumPy operator into the trace."""
    if trains_with_numpy(context):
        trace = context.engine.trace
        trace.add(Op(f"numpy.{name}", f"numpy.{name}", dtype, trace.phase, flops, moved, 0, "", context.where, matmul))


def operand(context: Context, value: Value) -> Value:
    """An operand as an array or a Python scalar."""
    if isinstance(value, NdArray | int | float | complex):
        return value
    if isinstance(value, list | tuple):
        from oarlock_profiler.core.overlays.numpy_creation import as_array  # noqa: PLC0415 - the two need each other

        return as_array(context, value)
    if _array_like(value):
        return NdArray(value.shape, value.dtype)
    hint = getattr(value, "hint", None)
    return 0.0 if hint in ("float", "int", "number", "bool", None) else NdArray(None, "float64")


def _array_like(value: Value) -> bool:
    return isinstance(getattr(value, "dtype", None), str) and hasattr(value, "shape")


_DIVIDING = frozenset({"/", "mean", "exp", "log", "sqrt", "sin", "cos", "tanh", "log2", "log10", "log1p", "expm1"})


def _rows_broadcast(arrays: Sequence[NdArray], dtype: str) -> NdArray | None:
    """Rows of unknown number with what they are broadcast against; None where less is known of either."""
    known = [a.shape if a.shape is not None else None if a.row is None else (1, *a.row) for a in arrays]
    if any(shape is None for shape in known):
        return None
    try:
        shape = shapes.broadcast(*(s for s in known if s is not None))
    except shapes.ShapeError:
        return None
    ranks = {1 + len(a.row) for a in arrays if a.shape is None and a.row is not None}
    if ranks != {len(shape)}:
        return None
    # Another's first side of more than one is the number of the rows, too.
    return NdArray(None, dtype, row=shape[1:]) if shape[0] == 1 else NdArray(shape, dtype)


def elementwise(
    context: Context, op: str, left: Value, right: Value, *, reflected: bool = False, out: NdArray | None = None
) -> NdArray:
    """Result of a broadcasting binary operator, as a fresh array or in ``out``."""
    arrays = [v for v in (left, right) if isinstance(v, NdArray)]
    if any(a.shape is None for a in arrays):
        rows = {a.row for a in arrays if a.shape != ()}
        floating = op in _DIVIDING or isinstance(left, float) or isinstance(right, float)
        dtype = (
            "bool"
            if op in _COMPARISONS
            else "float64"
            if floating and "float" not in arrays[0].dtype
            else arrays[0].dtype
        )
        if len(rows) == 1:
            return NdArray(None, dtype, row=rows.pop())
        return _rows_broadcast(arrays, dtype) or NdArray(None, "float64")
    try:
        shape = shapes.broadcast(*(a.shape for a in arrays if a.shape is not None))
    except shapes.ShapeError as error:
        context.unknown(f"numpy: {error}")
        return NdArray(None, arrays[0].dtype)
    if op in _COMPARISONS:
        dtype = "bool"
    elif len(arrays) == 2:
        dtype = shapes.promote(arrays[0].dtype, arrays[1].dtype)
    else:
        scalar = right if isinstance(left, NdArray) else left
        kind = "float64" if isinstance(scalar, float) else ("bool" if isinstance(scalar, bool) else "int64")
        dtype = shapes.promote(arrays[0].dtype, kind, weak=True)
    if op in _DIVIDING and "float" not in dtype and "complex" not in dtype:
        dtype = "float64"
    elements = math.prod(shape)
    record(context, _NAMES.get(op, op), dtype, elements, 3 * shapes.nbytes(shape, dtype))
    data = None
    if elements <= KEPT_ELEMENTS:
        first, second = (right, left) if reflected else (left, right)
        data = _compute(op, first, second)
    if out is not None:
        out.data = data
        return out
    return new(context, shape, dtype, op=_NAMES.get(op, op), data=data)


_NAMES = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "**": "power", "//": "floor_divide", "%": "remainder",
    "==": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal",
    "&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor", "<<": "left_shift", ">>": "right_shift",
}  # fmt: skip


def _compute(op: str, left: Value, right: Value) -> Any:
    values = []
    for value in (left, right):
        if isinstance(value, NdArray):
            if value.data is None:
                return None
            values.append(value.data)
        else:
            values.append(value)
    import numpy  # noqa: PLC0415 - only scripts that compute with known arrays pay for the import

    function = getattr(numpy, _NAMES.get(op, op), None)
    return None if function is None else _real(lambda: function(*values))


def product(context: Context, left: Value, right: Value, *, rule: Any = shapes.matmul, name: str = "matmul") -> Value:
    """``left @ right``."""
    if not isinstance(left, NdArray) or not isinstance(right, NdArray):
        return elementwise(context, "*", left, right)
    if left.shape is None or right.shape is None:
        return NdArray(None, "float64")
    try:
        shape = rule(left.shape, right.shape)
    except shapes.ShapeError as error:
        context.unknown(f"numpy: {error}")
        return NdArray(None, left.dtype)
    dtype = shapes.promote(left.dtype, right.dtype)
    seen: NumpyNotes | None = context.state.get("numpy")
    if seen is not None and seen.inputs is None and right.storage is not None and right.storage.id in seen.elements:
        seen.inputs = (left.shape, left.dtype)
    inner = left.shape[-1] if left.shape else 1
    moved = sum(shapes.nbytes(s, dtype) for s in (left.shape, right.shape, shape))
    record(context, name, dtype, 2 * math.prod(shape) * inner, moved, matmul=True)
    data = _compute("matmul" if name == "matmul" else "dot", left, right) if math.prod(shape) <= 64 else None
    if shape == () and data is None:
        return Unknown("a product of arrays", context.where, hint="float")
    return new(context, shape, dtype, op=name, data=data) if shape else _unwrap(context, data)


def _real(compute: Any) -> Any:
    """A value that real NumPy computes from few known elements; None when it cannot."""
    import numpy  # noqa: PLC0415 - see _compute

    try:
        with numpy.errstate(all="ignore"):
            return compute()
    except (ValueError, TypeError, IndexError, OverflowError, FloatingPointError):
        return None


def _unwrap(context: Context, value: Any) -> Value:
    """Real NumPy's answer as the script's value: a Python number, or an array that keeps the values."""
    if value is None:
        return Unknown("an element of an array", context.where, hint="float")
    if getattr(value, "shape", ()) == () and hasattr(value, "item"):
        return value.item()
    if hasattr(value, "dtype"):
        return NdArray(tuple(value.shape), known_dtype(str(value.dtype)), None, value)
    return value


def known_dtype(name: str) -> str:
    """A real NumPy dtype's name as one that :mod:`array_shapes` sizes."""
    if name in shapes.ITEM_BYTES:
        return name
    return "str" if name.startswith(("<U", "U", "str")) else "object"


def _taken(key: Value) -> shapes.Shape | None:
    """The dimensions that an index takes of a long one: as many as a slice of known ends or an index array says."""
    if isinstance(key, slice):
        start, stop, step = 0 if key.start is None else key.start, key.stop, 1 if key.step is None else key.step
        if not all(type(v) is int for v in (start, stop, step)) or step < 1 or (start < 0) is not (stop < 0):
            return None
        return (len(range(start, stop, step)),)
    if isinstance(key, NdArray):
        return None if key.dtype == "bool" else key.shape
    return (len(key),) if isinstance(key, list) and all(isinstance(k, int | Unknown) for k in key) else None


def _plain_key(key: Value) -> Any:
    """The key in host values, or MISSING when part of it is unknown."""
    if key is None or key is Ellipsis or isinstance(key, int):
        return key
    if isinstance(key, slice):
        bounds = (key.start, key.stop, key.step)
        return key if all(b is None or isinstance(b, int) for b in bounds) else MISSING
    if isinstance(key, tuple | list):
        parts = [_plain_key(k) for k in key]
        return MISSING if any(p is MISSING for p in parts) else type(key)(parts)
    if isinstance(key, NdArray) and key.data is not None:
        return key.data
    return MISSING


def _bounded_key(key: Value) -> Any:
    """Unknown indices become 0, bounds that are unknown stay open; index arrays of unknown shape are refused."""
    if isinstance(key, tuple):
        return tuple(_bounded_key(k) for k in key)
    if isinstance(key, NdArray) and key.shape is None:
        raise shapes.ShapeError("the index array's shape is unknown")
    return 0 if isinstance(key, Unknown) else key
