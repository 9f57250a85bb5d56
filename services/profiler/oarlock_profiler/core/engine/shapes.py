"""Shape arithmetic: broadcasting, reductions, reshapes, axes. Plain integers in and out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Shape = tuple[int, ...]


class ShapeError(ValueError):
    """The shapes do not fit the operator; the message says which and why."""


MAX_COUNT = 2**63 - 1
"""Frameworks count elements and bytes in signed 64-bit integers, and refuse what does not fit into them."""


def numel(shape: Iterable[int]) -> int:
    """Number of elements.

    Raises:
        ShapeError: more than a framework can count.
    """
    count = math.prod(shape)
    if abs(count) > MAX_COUNT:
        raise ShapeError("a tensor of 2^63 elements or more cannot exist")
    return count


def broadcast(*shapes: Sequence[int]) -> Shape:
    """Common shape by NumPy's rules.

    Raises:
        ShapeError: two sizes differ and neither is 1.
    """
    if len(shapes) == 2 and tuple(shapes[0]) == tuple(shapes[1]):
        return tuple(shapes[0])
    rank = max((len(shape) for shape in shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        offset = rank - len(shape)
        for index, size in enumerate(shape):
            at = offset + index
            if size == 1 or size == result[at]:
                continue
            if result[at] != 1:
                raise ShapeError(f"shapes {' and '.join(str(list(s)) for s in shapes)} do not broadcast")
            result[at] = size
    return tuple(result)


def axis_of(axis: int, rank: int) -> int:
    """``axis`` counted from the front.

    Raises:
        ShapeError: it is out of range.
    """
    bound = max(rank, 1)
    if not -bound <= axis < bound:
        raise ShapeError(f"axis {axis} is out of range for {rank} dimensions")
    return axis % bound


def axes_of(axis: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """The axes meant by ``axis`` (None or empty: all), counted from the front, sorted."""
    if axis is None:
        return tuple(range(rank))
    if isinstance(axis, int):
        return (axis_of(axis, rank),) if rank else ()
    if not axis:
        return tuple(range(rank))
    return tuple(sorted({axis_of(a, rank) for a in axis}))


def reduce(shape: Sequence[int], axes: Sequence[int], keepdim: bool) -> Shape:
    """Shape after reducing ``axes``."""
    if keepdim:
        return tuple(1 if i in axes else s for i, s in enumerate(shape))
    return tuple(s for i, s in enumerate(shape) if i not in axes)


def reshape(shape: Sequence[int], target: Sequence[int], *, zero_copies: bool = False) -> Shape:
    """Resolve ``target`` (one -1 allowed) against ``shape``. ``zero_copies``: a 0 keeps the size at its place
    (Paddle).

    Raises:
        ShapeError: the number of elements differs.
    """
    total = numel(shape)
    result = [int(s) for s in target]
    if zero_copies:
        result = [shape[i] if s == 0 and i < len(shape) else s for i, s in enumerate(result)]
    if result.count(-1) > 1:
        raise ShapeError(f"reshape to {list(target)} has more than one -1")
    if -1 in result:
        rest = numel(s for s in result if s != -1)
        if rest == 0 or total % rest:
            raise ShapeError(f"cannot reshape {list(shape)} to {list(target)}")
        result[result.index(-1)] = total // rest
    if numel(result) != total:
        raise ShapeError(f"cannot reshape {list(shape)} to {list(target)}")
    return tuple(result)


def flatten(shape: Sequence[int], start: int, stop: int) -> Shape:
    """Join the axes ``start`` … ``stop`` (inclusive)."""
    if not shape:
        return (1,)
    first, last = axis_of(start, len(shape)), axis_of(stop, len(shape))
    return (*shape[:first], numel(shape[first : last + 1]), *shape[last + 1 :])


def matmul(a: Sequence[int], b: Sequence[int]) -> Shape:
    """Shape of ``a @ b``.

    Raises:
        ShapeError: the inner sizes differ.
    """
    if not a or not b:
        raise ShapeError("matmul needs at least one dimension")
    left = (1, *a) if len(a) == 1 else tuple(a)
    right = (*b, 1) if len(b) == 1 else tuple(b)
    if left[-1] != right[-2]:
        raise ShapeError(f"matmul of {list(a)} and {list(b)}: {left[-1]} is not {right[-2]}")
    batch = broadcast(left[:-2], right[:-2])
    rows = () if len(a) == 1 else (left[-2],)
    columns = () if len(b) == 1 else (right[-1],)
    return (*batch, *rows, *columns)


def window(size: int, kernel: int, stride: int, before: int, after: int, dilation: int, ceil: bool = False) -> int:
    """Number of places a window of ``kernel`` takes along ``size`` (convolution and pooling.

    Both frameworks).
    """
    span = size + before + after - dilation * (kernel - 1) - 1
    if span < 0:
        raise ShapeError(
            f"a window of {kernel} (dilation {dilation}) does not fit in {size} with padding {before}+{after}"
        )
    if not ceil:
        return span // stride + 1
    count = -(-span // stride) + 1
    if (count - 1) * stride >= size + before:
        count -= 1
    return count
