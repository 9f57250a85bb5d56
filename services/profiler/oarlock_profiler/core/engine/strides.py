"""Memory order of views: whether a reshape can be a view or must copy (``at::detail::computeStride``)."""

from __future__ import annotations

from collections.abc import Sequence

Strides = tuple[int, ...]


def contiguous(shape: Sequence[int]) -> Strides:
    """Strides, in elements, of memory in the shape's own order."""
    result = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        result[i] = result[i + 1] * max(shape[i + 1], 1)
    return tuple(result)


def is_contiguous(shape: Sequence[int], strides: Strides | None) -> bool:
    """Whether memory is in the shape's order (None: yes)."""
    if strides is None or 0 in shape:
        return True
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def is_dense(shape: Sequence[int], strides: Strides | None) -> bool:
    """Whether the elements fill their memory without gaps or overlaps, in whatever order."""
    if strides is None:
        return True
    expected = 1
    for size, stride in sorted(((s, t) for s, t in zip(shape, strides, strict=True) if s != 1), key=lambda p: p[1]):
        if stride != expected:
            return False
        expected *= size
    return True


def as_view(shape: Sequence[int], strides: Strides | None, target: Sequence[int]) -> Strides | None:
    """Strides of ``target`` over the same memory, or None when only a copy can have that shape."""
    if strides is None or is_contiguous(shape, strides):
        return contiguous(target)
    result = [0] * len(target)
    at = len(target) - 1
    chunk_base = strides[-1] if strides else 1
    size_old = size_new = 1
    for i in range(len(shape) - 1, -1, -1):
        size_old *= shape[i]
        if i == 0 or (shape[i - 1] != 1 and strides[i - 1] != size_old * chunk_base):
            while at >= 0 and (size_new < size_old or target[at] == 1):
                result[at] = size_new * chunk_base
                size_new *= target[at]
                at -= 1
            if size_new != size_old:
                return None
            if i > 0:
                chunk_base = strides[i - 1]
                size_old = size_new = 1
    return tuple(result) if at == -1 else None


def packed_like(shape: Sequence[int], strides: Strides) -> Strides:
    """Gapless strides of ``shape`` in the memory order that ``strides`` have (``empty_like``, format preserved)."""
    order = sorted(range(len(shape)), key=lambda i: (strides[i], -i))
    result = [1] * len(shape)
    step = 1
    for axis in order:
        result[axis] = step
        step *= max(shape[axis], 1)
    return tuple(result)
