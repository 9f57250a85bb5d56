"""Shape and dtype arithmetic of NumPy arrays, on plain tuples and names (no array is ever made)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from oarlock_profiler.core.engine.shapes import Shape, ShapeError, axes_of, broadcast, matmul, reduce, reshape

__all__ = ["ITEM_BYTES", "Shape", "ShapeError", "axes_of", "broadcast", "matmul", "reshape"]

ITEM_BYTES = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "float16": 2, "int32": 4, "uint32": 4, "float32": 4,
    "int64": 8, "uint64": 8, "float64": 8, "complex64": 8, "complex128": 16, "object": 8, "str": 64,
    "datetime64": 8, "timedelta64": 8,
}  # fmt: skip

_RANK = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
_FLOATS = ["float16", "float32", "float64"]


def nbytes(shape: Shape, dtype: str) -> int:
    """Bytes of a dense array of ``shape``."""
    return math.prod(shape) * ITEM_BYTES.get(dtype, 8)


def promote(left: str, right: str, *, weak: bool = False) -> str:
    """The dtype of an operation on ``left`` and ``right`` (``weak``: right is a Python scalar, NEP 50)."""
    if left == right:
        return left
    if "object" in (left, right) or "str" in (left, right):
        return "object"
    for wide in ("complex128", "complex64"):
        if wide in (left, right):
            return wide
    if weak and (left in _FLOATS or right not in _FLOATS) and left != "bool":
        return left
    if left in _FLOATS and right in _FLOATS:
        return _FLOATS[max(_FLOATS.index(left), _FLOATS.index(right))]
    if left in _FLOATS or right in _FLOATS:
        real, whole = (left, right) if left in _FLOATS else (right, left)
        small = ITEM_BYTES.get(whole, 8) < ITEM_BYTES[real] or whole == "bool"
        return real if small else ("float32" if ITEM_BYTES.get(whole, 8) < 4 else "float64")
    if left.startswith("uint") != right.startswith("uint") and "bool" not in (left, right):
        signed, unsigned = (right, left) if left.startswith("uint") else (left, right)
        # A signed type that also holds the unsigned one's values; past 64 bits NumPy takes float64.
        nbytes_ = max(ITEM_BYTES[signed], 2 * ITEM_BYTES[unsigned])
        return f"int{8 * nbytes_}" if nbytes_ <= 8 else "float64"
    ranks = [_RANK.index(n) if n in _RANK else len(_RANK) - 1 for n in (left, right)]
    return _RANK[max(ranks)]


def reduced(shape: Shape, axis: Any = None, keepdims: bool = False) -> Shape:
    """Shape after a reduction over ``axis`` (None: over all)."""
    return reduce(shape, axes_of(axis, len(shape)), keepdims)


def dot(left: Shape, right: Shape) -> Shape:
    """Shape of ``numpy.dot``: a product over the last axis of one and the last but one of the other."""
    if not left or not right:
        return left or right
    if len(right) == 1:
        return left[:-1]
    if left[-1] != right[-2]:
        raise ShapeError(f"cannot multiply {left} by {right}")
    return (*left[:-1], *right[:-2], right[-1])


def concatenated(shapes: Sequence[Shape], axis: int = 0) -> Shape:
    """Shape of a concatenation along ``axis``."""
    first = shapes[0]
    axis %= max(1, len(first))
    if any(len(s) != len(first) for s in shapes):
        raise ShapeError(f"cannot concatenate {list(shapes)}")
    return (*first[:axis], sum(s[axis] for s in shapes), *first[axis + 1 :])


def slice_length(key: slice, size: int) -> int:
    """How many elements a slice of known bounds takes from ``size``."""
    bounds = [b if b is None or isinstance(b, int) else None for b in (key.start, key.stop, key.step)]
    return len(range(*slice(*bounds).indices(size)))


def indexed(shape: Shape, key: Any) -> tuple[Shape, bool]:
    """Shape of ``array[key]`` and whether it is a view. Index arrays are given as objects with ``shape`` and ``dtype``.

    Raises:
        ShapeError: too many indices.
    """
    keys = list(key) if isinstance(key, tuple) else [key]
    used = sum(1 for k in keys if k is not None and k is not Ellipsis)
    used += sum(len(k.shape) - 1 for k in keys if getattr(k, "dtype", "") == "bool" and getattr(k, "shape", None))
    if used > len(shape):
        raise ShapeError(f"too many indices for {len(shape)} dimensions")
    if Ellipsis in [k for k in keys if k is Ellipsis]:
        at = next(i for i, k in enumerate(keys) if k is Ellipsis)
        keys[at : at + 1] = [slice(None)] * (len(shape) - used)
    result: list[int] = []
    advanced: list[Shape] = []
    place = 0
    dim = 0
    for k in keys:
        if k is None:
            result.append(1)
        elif isinstance(k, slice):
            result.append(slice_length(k, shape[dim]))
            dim += 1
        elif isinstance(k, (list, range)):
            place = place if advanced else len(result)
            advanced.append((len(k),))
            dim += 1
        elif getattr(k, "shape", None) is not None and k.shape != ():
            place = place if advanced else len(result)
            if getattr(k, "dtype", "") == "bool":
                advanced.append((math.prod(shape[dim : dim + len(k.shape)]),))
                dim += len(k.shape)
            else:
                advanced.append(tuple(k.shape))
                dim += 1
        else:
            dim += 1
    if advanced:
        result[place:place] = broadcast(*advanced)
    return (*result, *shape[dim:]), not advanced
