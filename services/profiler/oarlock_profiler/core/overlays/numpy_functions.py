"""``numpy`` functions and array methods: what they return and what they allocate."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from oarlock_profiler.core.engine.shapes import axes_of
from oarlock_profiler.core.interpreter.values import MISSING, Class, Context, Iteration, Native, Unknown, Value
from oarlock_profiler.core.overlays import array_shapes as shapes
from oarlock_profiler.core.overlays.numpy_arrays import (
    KEPT_ELEMENTS,
    NdArray,
    NumpyType,
    _real,
    _unwrap,
    dtype_name,
    elementwise,
    new,
    operand,
    product,
    record,
)
from oarlock_profiler.core.overlays.numpy_creation import as_array
from oarlock_profiler.core.overlays.numpy_values import computed
from oarlock_profiler.core.overlays.registry import entry, register

LIBRARIES = ("numpy",)


def _method(name: str) -> str:
    return f"numpy.ndarray.{name}"


def _known(array: NdArray, compute: Callable[[Any, Any], Any]) -> Any:
    """``compute(numpy, values)`` when the values are known, else None."""
    if array.data is None:
        return None
    import numpy  # noqa: PLC0415 - only scripts that compute with known arrays pay for the import

    return _real(lambda: compute(numpy, array.data))


# --- elementwise -----------------------------------------------------------------------------------------------

_UNARY = [
    "exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "sinh", "cosh", "arctan", "arcsin", "arccos", "log2",
    "log10", "log1p", "expm1", "abs", "absolute", "fabs", "floor", "ceil", "round", "around", "rint", "sign",
    "square", "negative", "reciprocal", "cbrt", "deg2rad", "rad2deg", "nan_to_num", "conj", "logical_not", "isnan",
    "isinf", "isfinite", "invert", "real", "imag", "angle", "trunc", "radians", "degrees",
]  # fmt: skip
_TO_BOOL = {"logical_not", "isnan", "isinf", "isfinite"}
_TO_FLOAT = set(_UNARY) - _TO_BOOL - {
    "abs", "absolute", "round", "around", "sign", "square", "negative", "conj", "invert", "real", "imag", "nan_to_num",
    "floor", "ceil", "rint", "trunc",
}  # fmt: skip


def _unary(name: str) -> Callable[..., Value]:
    def function(context: Context, x: Value, *args: Value, out: Value = None, **options: Value) -> Value:
        if isinstance(x, bool | int | float):
            import numpy  # noqa: PLC0415 - see _known

            return _unwrap(context, _real(lambda: getattr(numpy, name)(x, *[a for a in args if isinstance(a, int)])))
        if isinstance(x, Unknown) and x.hint in ("int", "float", "number"):
            return Unknown(x.why, context.where, hint="float" if name in _TO_FLOAT else x.hint)
        array = as_array(context, x)
        dtype = array.dtype
        if name in _TO_BOOL:
            dtype = "bool"
        elif name in _TO_FLOAT and "float" not in dtype and "complex" not in dtype:
            dtype = "float64"
        if array.shape is not None:
            record(context, name, dtype, math.prod(array.shape), 2 * shapes.nbytes(array.shape, dtype))
        if isinstance(out, NdArray):
            out.data = None
            return out
        return new(context, array.shape, dtype, op=name, data=_known(array, lambda np, v: getattr(np, name)(v)))

    return function


for _name in _UNARY:
    register(f"numpy.{_name}", Native(f"numpy.{_name}", _unary(_name)))

_BINARY = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "true_divide": "/", "power": "**", "mod": "%",
    "floor_divide": "//", "remainder": "%", "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=",
    "greater": ">", "greater_equal": ">=", "maximum": "maximum", "minimum": "minimum", "arctan2": "arctan2",
    "logical_and": "&", "logical_or": "|", "logical_xor": "^", "bitwise_and": "&", "bitwise_or": "|", "fmax": "maximum",
    "fmin": "minimum", "hypot": "hypot", "left_shift": "<<", "right_shift": ">>", "float_power": "**", "lcm": "lcm",
}  # fmt: skip


def _binary(name: str, op: str) -> Callable[..., Value]:
    def function(context: Context, x1: Value, x2: Value, out: Value = None, **options: Value) -> Value:
        left, right = operand(context, x1), operand(context, x2)
        if not isinstance(left, NdArray) and not isinstance(right, NdArray):
            if isinstance(x1, Unknown) or isinstance(x2, Unknown):
                return Unknown("computed from an unknown number", context.where, hint="float")
            import numpy  # noqa: PLC0415 - see _known

            return _unwrap(context, _real(lambda: getattr(numpy, name)(left, right)))
        if not isinstance(left, NdArray):
            return elementwise(context, op, right, left, reflected=True, out=out if isinstance(out, NdArray) else None)
        result = elementwise(context, op, left, right, out=out if isinstance(out, NdArray) else None)
        if name.startswith("logical"):
            result.dtype = "bool"
        return result

    return function


for _name, _op in _BINARY.items():
    register(f"numpy.{_name}", Native(f"numpy.{_name}", _binary(_name, _op)))


@entry("numpy.where")
def where(context: Context, condition: Value, *choices: Value) -> Value:
    """Three arguments choose elementwise; one gives a tuple of index arrays of unknown length."""
    chosen = as_array(context, condition)
    if len(choices) < 2:
        rank = len(chosen.shape or (1,))
        return tuple(NdArray(None, "int64") for _ in range(rank))
    left, right = operand(context, choices[0]), operand(context, choices[1])
    arrays = [a for a in (chosen, left, right) if isinstance(a, NdArray)]
    rows = {a.row for a in arrays if a.row is not None}
    held = {a.shape for a in arrays if a.shape}
    if len(held) == 1 and any(a.shape is None for a in arrays):
        # they must fit: the one that is known says how many there are
        return NdArray(held.pop(), next((a.dtype for a in (left, right) if isinstance(a, NdArray)), "int64"))
    if len(rows) == 1:
        dtype = next((a.dtype for a in (left, right) if isinstance(a, NdArray)), "int64")
        return NdArray(None, dtype, row=rows.pop())
    if not isinstance(left, NdArray) and not isinstance(right, NdArray):
        dtype = "float64" if isinstance(left, float) or isinstance(right, float) else "int64"
        return new(context, chosen.shape, dtype, op="where")
    base = left if isinstance(left, NdArray) else right
    other = right if base is left else left
    mixed = elementwise(context, "maximum", base, other)
    if mixed.shape is None or chosen.shape is None:
        return NdArray(None, mixed.dtype)
    return new(context, shapes.broadcast(mixed.shape, chosen.shape), mixed.dtype, op="where")


@entry("numpy.clip", _method("clip"))
def clip(
    context: Context, a: Value, a_min: Value = None, a_max: Value = None, out: Value = None, **more: Value
) -> Value:
    """Same shape and dtype."""
    if isinstance(a, int | float) and isinstance(a_min, int | float) and isinstance(a_max, int | float):
        return min(max(a, a_min), a_max)
    if isinstance(a, Unknown) and a.hint in ("int", "float"):
        return a
    array = as_array(context, a)
    if isinstance(out, NdArray):
        return out
    return new(context, array.shape, array.dtype, op="clip")


# --- reductions ------------------------------------------------------------------------------------------------

_REDUCTIONS = {
    "sum": "same", "mean": "float", "max": "same", "min": "same", "amax": "same", "amin": "same", "std": "float",
    "var": "float", "prod": "same", "argmax": "int64", "argmin": "int64", "all": "bool", "any": "bool", "median":
    "float",
    "nanmean": "float", "nansum": "same", "nanmax": "same", "nanmin": "same", "ptp": "same", "count_nonzero": "int64",
    "average": "float", "nanstd": "float",
}  # fmt: skip


def _reduction(name: str, kind: str) -> Callable[..., Value]:
    def function(
        context: Context, a: Value, axis: Value = None, *args: Value, keepdims: Value = False, **options: Value
    ) -> Value:
        if isinstance(a, Unknown) and a.hint not in ("array", "tensor"):
            return Unknown("computed from an unknown value", context.where, hint="float" if kind == "float" else a.hint)
        array = as_array(context, a)
        if array.data is not None and (axis is None or isinstance(axis, int | tuple)):
            known = _known(array, lambda np, v: getattr(np, name)(v, axis=axis))
            if known is not None and not keepdims:
                return _unwrap(context, known)
        if array.shape is None:
            return (
                Unknown("computed from an unknown array", context.where, hint="float")
                if axis is None
                else _reduced_rows(context, array, axis, keepdims is True)
            )
        dtype = array.dtype
        if kind == "float":
            dtype = dtype if "float" in dtype else "float64"
        elif kind != "same":
            dtype = kind
        elif dtype == "bool":
            dtype = "int64"
        record(context, name, array.dtype, math.prod(array.shape), shapes.nbytes(array.shape, array.dtype))
        try:
            shape = shapes.reduced(array.shape, axis if not isinstance(axis, Unknown) else None, keepdims is True)
        except shapes.ShapeError as error:
            context.unknown(f"numpy.{name}: {error}")
            return NdArray(None, dtype)
        if shape == ():
            hint = "int" if "int" in dtype else ("bool" if dtype == "bool" else "float")
            low, high = array.value_range or (None, None)
            if name not in ("max", "min", "amax", "amin", "mean"):
                low = high = None
            return Unknown(f"{name} of an array", context.where, hint=hint, low=low, high=high)
        return new(context, shape, dtype, op=name)

    return function


def _reduced_rows(context: Context, array: NdArray, axis: Value, keepdims: bool) -> Value:
    """A reduction of rows of unknown number: over the rows all is known, within them their number stays unknown."""
    if array.row is None or not isinstance(axis, int | tuple):
        return NdArray(None, array.dtype)
    try:
        over = axes_of(axis, 1 + len(array.row))
        shape = shapes.reduced((1, *array.row), axis, keepdims)
    except shapes.ShapeError:
        return NdArray(None, array.dtype)
    if 0 not in over:
        return NdArray(None, array.dtype, row=shape[1:])
    if shape == ():
        return Unknown("computed from an unknown array", context.where, hint="float")
    return NdArray(shape, array.dtype)


for _name, _kind in _REDUCTIONS.items():
    _native = Native(f"numpy.{_name}", _reduction(_name, _kind))
    register(f"numpy.{_name}", _native)
    register(_method(_name), _native)


@entry("numpy.linalg.norm")
def norm(context: Context, x: Value, ord: Value = None, axis: Value = None, keepdims: Value = False) -> Value:
    """Norm over all elements or an axis."""
    return _reduction("mean", "float")(context, x, axis, keepdims=keepdims)


@entry("numpy.percentile", "numpy.quantile")
def percentile(context: Context, a: Value, q: Value, axis: Value = None, **options: Value) -> Value:
    """A number, or as many as ``q`` holds."""
    if isinstance(q, list | tuple):
        return NdArray((len(q),), "float64")
    return _reduction("mean", "float")(context, a, axis)


# --- products --------------------------------------------------------------------------------------------------


@entry("numpy.matmul")
def matmul(context: Context, x1: Value, x2: Value, out: Value = None, **options: Value) -> Value:
    """Matrix product."""
    return product(context, as_array(context, x1), as_array(context, x2))


@entry("numpy.dot", "numpy.inner", _method("dot"))
def dot(context: Context, a: Value, b: Value, out: Value = None) -> Value:
    """Dot product."""
    return product(context, operand(context, a), operand(context, b), rule=shapes.dot, name="dot")


@entry("numpy.outer")
def outer(context: Context, a: Value, b: Value, **options: Value) -> Value:
    """Outer product of the flattened arrays."""
    left, right = as_array(context, a), as_array(context, b)
    if left.shape is None or right.shape is None:
        return NdArray(None, left.dtype)
    shape = (math.prod(left.shape), math.prod(right.shape))
    record(context, "outer", left.dtype, math.prod(shape), shapes.nbytes(shape, left.dtype))
    return new(context, shape, shapes.promote(left.dtype, right.dtype), op="outer")


@entry("numpy.einsum")
def einsum(context: Context, subscripts: Value, *operands: Value, **options: Value) -> Value:
    """Explicit or implicit subscripts without ellipsis."""
    arrays = [as_array(context, o) for o in operands]
    if not isinstance(subscripts, str) or any(a.shape is None for a in arrays) or "." in subscripts:
        return NdArray(None, "float64")
    left, _, right = subscripts.replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    for letters, array in zip(left.split(","), arrays, strict=False):
        sizes.update(zip(letters, array.shape or (), strict=False))
    if "->" not in subscripts:
        right = "".join(sorted(c for c in set(left) - {","} if left.count(c) == 1))
    shape = tuple(sizes.get(c, 1) for c in right)
    record(context, "einsum", arrays[0].dtype, 2 * math.prod(sizes.values()), shapes.nbytes(shape, arrays[0].dtype))
    return new(context, shape, arrays[0].dtype, op="einsum")


for _name in ("inv", "pinv", "cholesky", "matrix_power"):
    register(
        f"numpy.linalg.{_name}",
        Native(
            f"numpy.linalg.{_name}",
            lambda context, a, *args, **options: new(context, as_array(context, a).shape, "float64", op="linalg"),
        ),
    )


# --- rearranging -----------------------------------------------------------------------------------------------


def _viewed(
    context: Context, array: NdArray, shape: shapes.Shape | None, compute: Callable[[Any, Any], Any]
) -> NdArray:
    return array.view(shape, _known(array, compute))


def _sizes(args: tuple[Value, ...]) -> list[int] | None:
    flat = list(args[0]) if len(args) == 1 and isinstance(args[0], list | tuple) else list(args)
    flat = [int(n) if isinstance(n, float) else n for n in flat]
    return flat if all(isinstance(n, int) for n in flat) else None


@entry(_method("reshape"))
def reshape(context: Context, self: Value, *shape: Value, **options: Value) -> Value:
    """A view where NumPy gives one."""
    array = as_array(context, self)
    target = _sizes(shape or (options.get("newshape", options.get("shape")),))
    if target is None or array.shape is None:
        known = target is not None and all(n >= 0 for n in target or [])
        return array.view(tuple(target) if known and target is not None else None)
    try:
        return _viewed(context, array, shapes.reshape(array.shape, target), lambda np, v: v.reshape(target))
    except shapes.ShapeError as error:
        context.unknown(f"numpy: {error}")
        return NdArray(None, array.dtype)


@entry("numpy.reshape")
def reshape_function(context: Context, a: Value, newshape: Value = None, *args: Value, **options: Value) -> Value:
    """``a.reshape(newshape)``."""
    return reshape(context, a, options.get("shape", newshape))


@entry("numpy.transpose", _method("transpose"))
def transpose(context: Context, a: Value, *axes: Value, **options: Value) -> Value:
    """A view with its axes permuted."""
    array = as_array(context, a)
    order = _sizes(axes if axes and axes[0] is not None else (options.get("axes"),)) if axes or options else None
    if array.shape is None:
        return array.view(None)
    if order is None:
        return _viewed(context, array, array.shape[::-1], lambda np, v: v.T)
    shape = array.shape
    if sorted(n % len(shape) for n in order) != list(range(len(shape))):
        context.unknown(f"numpy.transpose of {shape} by {order}")
        return NdArray(None, array.dtype)
    return _viewed(context, array, tuple(shape[n] for n in order), lambda np, v: v.transpose(order))


@entry("numpy.swapaxes", _method("swapaxes"))
def swapaxes(context: Context, a: Value, axis1: Value, axis2: Value) -> Value:
    """Two axes exchanged."""
    array = as_array(context, a)
    if array.shape is None or not isinstance(axis1, int) or not isinstance(axis2, int):
        return array.view(None)
    order = list(range(len(array.shape)))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return transpose(context, array, order)


@entry("numpy.moveaxis", "numpy.rollaxis")
def moveaxis(context: Context, a: Value, source: Value, destination: Value = 0) -> Value:
    """One axis moved."""
    array = as_array(context, a)
    if array.shape is None or not isinstance(source, int) or not isinstance(destination, int):
        return array.view(None)
    order = [n for n in range(len(array.shape)) if n != source % len(array.shape)]
    order.insert(destination % len(array.shape), source % len(array.shape))
    return transpose(context, array, order)


@entry("numpy.expand_dims")
def expand_dims(context: Context, a: Value, axis: Value) -> Value:
    """A new axis of length 1."""
    array = as_array(context, a)
    if array.shape is None or not isinstance(axis, int):
        return array.view(None)
    at = axis if axis >= 0 else axis + len(array.shape) + 1
    return _viewed(context, array, (*array.shape[:at], 1, *array.shape[at:]), lambda np, v: np.expand_dims(v, axis))


@entry("numpy.squeeze", _method("squeeze"))
def squeeze(context: Context, a: Value, axis: Value = None) -> Value:
    """Axes of length 1 removed."""
    array = as_array(context, a)
    if array.shape is None:
        return array.view(None)
    axes = shapes.axes_of(axis, len(array.shape)) if axis is not None else None
    shape = tuple(n for i, n in enumerate(array.shape) if n != 1 or (axes is not None and i not in axes))
    return _viewed(context, array, shape, lambda np, v: np.squeeze(v, axis))


@entry(_method("flatten"), "numpy.ravel", _method("ravel"))
def flatten(context: Context, a: Value, *args: Value, **options: Value) -> Value:
    """One dimension."""
    array = as_array(context, a)
    shape = None if array.shape is None else (math.prod(array.shape),)
    return _viewed(context, array, shape, lambda np, v: v.reshape(-1))


@entry("numpy.atleast_1d", "numpy.atleast_2d")
def at_least(context: Context, a: Value) -> Value:
    """At least one dimension."""
    array = as_array(context, a)
    return array.view(array.shape or (1,) if array.shape is not None else None, array.data)


def _arrays(context: Context, sequence: Value) -> list[NdArray] | None:
    if isinstance(sequence, NdArray):
        return None if not sequence.shape else [sequence.view(sequence.shape[1:])] * sequence.shape[0]
    if not isinstance(sequence, list | tuple) or not sequence:
        return None
    arrays = [as_array(context, item) for item in sequence]
    return None if any(a.shape is None for a in arrays) else arrays


@entry("numpy.concatenate")
def concatenate(context: Context, arrays: Value, axis: Value = 0, *args: Value, **options: Value) -> Value:
    """Joined along an axis (None: flattened first). Rows of unknown number stay rows."""
    parts = _arrays(context, arrays)
    if parts is None:
        return _joined_rows(context, arrays)
    if axis is None:
        return new(context, (sum(math.prod(p.shape or ()) for p in parts),), parts[0].dtype, op="concatenate")
    return _joined(context, parts, [p.shape or (1,) for p in parts], axis if isinstance(axis, int) else 0)


def _joined(context: Context, parts: list[NdArray], sizes: list[shapes.Shape], axis: int) -> NdArray:
    try:
        shape = shapes.concatenated(sizes, axis)
    except (shapes.ShapeError, IndexError):
        return NdArray(None, parts[0].dtype)
    return new(context, shape, parts[0].dtype, op="concatenate")


def _joined_rows(context: Context, arrays: Value) -> NdArray:
    """Parts of which one has an unknown number of rows."""
    parts = [as_array(context, one) for one in arrays] if isinstance(arrays, list | tuple) else []
    rows = {part.row if part.shape is None else part.shape[1:] for part in parts}
    return NdArray(None, parts[0].dtype if parts else "float64", row=rows.pop() if len(rows) == 1 else None)


@entry("numpy.vstack", "numpy.row_stack")
def vstack(context: Context, tup: Value, **options: Value) -> Value:
    """Joined as rows; vectors are rows."""
    parts = _arrays(context, tup)
    if parts is None:
        return _joined_rows(context, tup)
    return _joined(context, parts, [_at_least(p.shape or (), 2) for p in parts], 0)


@entry("numpy.hstack")
def hstack(context: Context, tup: Value, **options: Value) -> Value:
    """Joined as columns; vectors end to end."""
    parts = _arrays(context, tup)
    if parts is None:
        return NdArray(None, "float64")
    sizes = [_at_least(p.shape or (), 1) for p in parts]
    return _joined(context, parts, sizes, 0 if len(sizes[0]) == 1 else 1)


@entry("numpy.dstack")
def dstack(context: Context, tup: Value) -> Value:
    """Joined along the third axis."""
    parts = _arrays(context, tup)
    if parts is None:
        return NdArray(None, "float64")
    sizes = [_at_least(p.shape or (), 2) for p in parts]
    return _joined(context, parts, [(*size, 1) if len(size) == 2 else size for size in sizes], 2)


@entry("numpy.column_stack")
def column_stack(context: Context, tup: Value) -> Value:
    """Joined as columns; vectors are columns."""
    parts = _arrays(context, tup)
    if parts is None:
        known = isinstance(tup, list | tuple) and not context.is_open(tup)
        return _columns_of(context, [as_array(context, one) for one in tup]) if known else NdArray(None, "float64")
    return _joined(context, parts, [_as_columns(p.shape or ()) for p in parts], 1)


@entry("numpy.append")
def append(context: Context, arr: Value, values: Value, axis: Value = None) -> Value:
    """Joined along an axis; without one, flattened first."""
    return concatenate(context, (arr, values), axis)


def _as_columns(shape: shapes.Shape) -> shapes.Shape:
    return (*shape, 1) if len(shape) == 1 else shape or (1, 1)


def _at_least(shape: shapes.Shape, dimensions: int) -> shapes.Shape:
    return (1,) * (dimensions - len(shape)) + shape


@entry("numpy.stack")
def stack(context: Context, arrays: Value, axis: Value = 0, **options: Value) -> Value:
    """Joined along a new axis. Columns whose length is unknown make rows of as many numbers as there are columns."""
    parts = _arrays(context, arrays)
    if parts is None and isinstance(arrays, list | tuple) and axis in (1, -1) and not context.is_open(arrays):
        return _columns_of(context, [as_array(context, one) for one in arrays])
    if parts is None or not isinstance(axis, int):
        return NdArray(None, "float64")
    first = parts[0].shape or ()
    at = axis if axis >= 0 else axis + len(first) + 1
    return new(context, (*first[:at], len(parts), *first[at:]), parts[0].dtype, op="stack")


def _columns_of(context: Context, parts: list[NdArray]) -> NdArray:
    """Columns put side by side of which one has an unknown length: each is taken for one number a row."""
    if not parts or any(part.row for part in parts):
        return NdArray(None, "float64")
    if any(part.shape is None and part.row is None for part in parts):
        context.findings.gap(
            "columns of an array", context.where, "the file's contents are not in the script", assumed=len(parts)
        )
    return NdArray(None, parts[0].dtype, row=(len(parts),))


@entry("numpy.split", "numpy.array_split", "numpy.hsplit", "numpy.vsplit")
def split(context: Context, ary: Value, sections: Value, axis: Value = 0) -> Value:
    """Views of parts."""
    array = as_array(context, ary)
    if array.shape is None or not isinstance(axis, int):
        return Unknown("parts of an unknown array", context.where, hint="list", item=NdArray(None, array.dtype))
    size = array.shape[axis]
    if isinstance(sections, int):
        bounds = [round(size * i / sections) for i in range(sections + 1)]
    elif isinstance(sections, list | tuple) and all(isinstance(n, int) for n in sections):
        bounds = [0, *sections, size]
    else:
        return Unknown("parts of an array", context.where, hint="list", item=NdArray(None, array.dtype))
    at = axis % len(array.shape)
    parts = [max(0, end - start) for start, end in pairwise(bounds)]
    return [array.view((*array.shape[:at], n, *array.shape[at + 1 :])) for n in parts]


@entry("numpy.tile", "numpy.repeat", _method("repeat"))
def tile(context: Context, a: Value, reps: Value = 1, axis: Value = None, **options: Value) -> Value:
    """Repeated along axes (``tile``) or within one (``repeat``)."""
    array = as_array(context, a)
    if array.shape is None:
        return array.view(None)
    counts = (reps,) if isinstance(reps, int) else reps
    if not isinstance(counts, list | tuple) or not all(isinstance(n, int) for n in counts):
        return NdArray(None, array.dtype)
    shape = array.shape
    if isinstance(axis, int) and isinstance(reps, int):
        at = axis % len(shape)
        return new(context, (*shape[:at], shape[at] * reps, *shape[at + 1 :]), array.dtype, op="repeat")
    rank = max(len(shape), len(counts))
    sized = (1,) * (rank - len(shape)) + shape
    factors = (1,) * (rank - len(counts)) + tuple(counts)
    return new(context, tuple(n * f for n, f in zip(sized, factors, strict=True)), array.dtype, op="tile")


@entry("numpy.pad")
def pad(context: Context, array: Value, pad_width: Value, mode: Value = "constant", **options: Value) -> Value:
    """Known widths give a known shape."""
    source = as_array(context, array)
    widths: Any = pad_width
    if isinstance(pad_width, int):
        widths = [(pad_width, pad_width)] * len(source.shape or ())
    if source.shape is None or not isinstance(widths, list | tuple):
        return NdArray(None, source.dtype)
    if widths and isinstance(widths[0], int):
        widths = [tuple(widths)] * len(source.shape)
    try:
        shape = tuple(n + w[0] + w[1] for n, w in zip(source.shape, widths, strict=True))
    except (TypeError, ValueError, IndexError):
        return NdArray(None, source.dtype)
    return new(context, shape, source.dtype, op="pad")


@entry("numpy.broadcast_to")
def broadcast_to(context: Context, array: Value, shape: Value) -> Value:
    """A view."""
    source = as_array(context, array)
    target = _sizes((shape,))
    return source.view(tuple(target) if target else None)


@entry("numpy.meshgrid")
def meshgrid(context: Context, *axes: Value, indexing: Value = "xy", **options: Value) -> Value:
    """One grid per axis."""
    sizes = [math.prod(as_array(context, a).shape or (1,)) for a in axes]
    if indexing == "xy" and len(sizes) >= 2:
        sizes[0], sizes[1] = sizes[1], sizes[0]
    return [new(context, tuple(sizes), as_array(context, a).dtype, op="meshgrid") for a in axes]


@entry("numpy.take")
def take(context: Context, a: Value, indices: Value, axis: Value = None, **options: Value) -> Value:
    """Elements along an axis."""
    array, picked = as_array(context, a), as_array(context, indices)
    if array.shape is None or picked.shape is None:
        return NdArray(None, array.dtype)
    known = computed(context, "take", (array, picked), {"axis": axis})
    if known is not MISSING:
        return known
    if axis is None:
        return new(context, picked.shape, array.dtype, op="take")
    return new(context, (*array.shape[:axis], *picked.shape, *array.shape[axis + 1 :]), array.dtype, op="take")


def _same(name: str) -> Callable[..., Value]:
    def function(context: Context, a: Value, *args: Value, **options: Value) -> Value:
        array = as_array(context, a)
        dtype = "int64" if name.startswith("arg") else array.dtype
        known = computed(context, name, (array, *args), options)
        if isinstance(known, NdArray):
            return known
        return new(
            context,
            _flat(array) if name in ("cumsum", "cumprod") and not args and not options else array.shape,
            dtype,
            op=name,
        )

    return function


def _flat(array: NdArray) -> shapes.Shape | None:
    return None if array.shape is None else (math.prod(array.shape),)


for _name in ("sort", "argsort", "flip", "fliplr", "flipud", "roll", "cumsum", "cumprod", "tril", "triu", "copy",
              "argpartition", "partition"):  # fmt: skip
    register(f"numpy.{_name}", Native(f"numpy.{_name}", _same(_name)))
    if _name in ("copy", "argsort", "cumsum", "cumprod", "sort"):
        register(_method(_name), Native(_method(_name), _same(_name)))


@entry("numpy.bincount", "numpy.histogram")
def counts(context: Context, a: Value, *args: Value, **options: Value) -> Value:
    """As many as the values or the bins ask for, which may be any number: never computed."""
    return NdArray(None, "int64")


@entry("numpy.diag", "numpy.trace")
def diag(context: Context, v: Value, *args: Value, **options: Value) -> Value:
    """A matrix from its diagonal, or the reverse."""
    array = as_array(context, v)
    if array.shape is None:
        return array.view(None)
    shape = (array.shape[0],) * 2 if len(array.shape) == 1 else (min(array.shape),)
    return new(context, shape, array.dtype, op="diag")


# --- conversions and questions ---------------------------------------------------------------------------------


@entry(_method("astype"))
def astype(context: Context, self: Value, dtype: Value, *args: Value, **options: Value) -> Value:
    """A copy of another dtype."""
    array = as_array(context, self)
    return array.cast(context, dtype_name(dtype) or array.dtype)


@entry(_method("item"))
def item(context: Context, self: Value, *args: Value) -> Value:
    """A Python number."""
    if self.data is not None and self.data.size == 1:
        return self.data.item()
    return Unknown("an element of an array", context.where, hint="int" if "int" in self.dtype else "float")


@entry(_method("tolist"))
def tolist(context: Context, self: Value) -> Value:
    """A list when the values are known."""
    if self.data is not None:
        return self.data.tolist()
    size = self.shape[0] if self.shape else None
    if size is not None and size <= KEPT_ELEMENTS and len(self.shape) == 1:
        hint = "int" if "int" in self.dtype else "float"
        return [Unknown("an element of an array", context.where, hint=hint)] * size
    return Unknown(
        "the elements of an array", context.where, hint="list", item=self._item(context) if self.shape else None
    )


@entry(_method("fill"), _method("tofile"), _method("setflags"))
def nothing(context: Context, *args: Value, **options: Value) -> Value:
    """Keeps shape and memory."""
    if args and isinstance(args[0], NdArray):
        args[0].data = None


@entry(_method("view"))
def view(context: Context, self: Value, dtype: Value = None) -> Value:
    """The same memory."""
    return self.view(self.shape if dtype is None else None)


@entry("numpy.shape")
def shape_function(context: Context, a: Value) -> Value:
    """``a.shape``."""
    return context.getattr(as_array(context, a), "shape")


@entry("numpy.finfo", "numpy.iinfo")
def limits(context: Context, dtype: Value) -> Value:
    """Machine limits of a dtype."""
    import numpy  # noqa: PLC0415 - see _known

    name = dtype_name(dtype) or "float64"
    return _Limits(numpy.iinfo(name) if "int" in name else numpy.finfo(name))


class _Limits(NumpyType):
    def __init__(self, info: Any) -> None:
        super().__init__(str(info.dtype))
        self.info = info

    def py_getattr(self, context: Context, name: str) -> Value:
        value = getattr(self.info, name, MISSING)
        return value.item() if hasattr(value, "item") else value

    def py_iterate(self, context: Context) -> Iteration | None:
        return None


for _name in ("seterr", "set_printoptions", "save", "savez", "savez_compressed", "savetxt", "testing.assert_allclose",
              "testing.assert_almost_equal", "testing.assert_equal", "testing.assert_array_equal"):  # fmt: skip
    register(f"numpy.{_name}", Native(f"numpy.{_name}", lambda context, *args, **options: None))


@entry("numpy.allclose", "numpy.array_equal", "numpy.isclose", "numpy.isscalar", "numpy.isin")
def question(context: Context, *args: Value, **options: Value) -> Value:
    """A truth that depends on values."""
    return Unknown("a comparison of arrays", context.where, hint="bool")


@entry("numpy.issubdtype")
def issubdtype(context: Context, arg1: Value, arg2: Value) -> Value:
    """Whether the first dtype lies at or under the second in NumPy's tree of scalar types."""
    name, above = (dtype_name(arg) or ("object" if isinstance(arg, Class) else None) for arg in (arg1, arg2))
    if name is None or above is None:
        return Unknown("a dtype that is not known", context.where, hint="bool")
    family = getattr(arg2, "family", "")
    return name == above if not family else family in _families(name)


def _families(dtype: str) -> set[str]:
    """The abstract types above a dtype (NumPy's manual, "Scalars")."""
    for stem, above in _ABOVE.items():
        if dtype.startswith(stem):
            return {"generic", *above}
    return {"generic"}


_ABOVE = {
    "int": ("number", "integer", "signedinteger"),
    "uint": ("number", "integer", "unsignedinteger"),
    "float": ("number", "inexact", "floating"),
    "complex": ("number", "inexact", "complexfloating"),
    "timedelta": ("number", "integer", "signedinteger"),
    "str": ("flexible", "character"),
}
