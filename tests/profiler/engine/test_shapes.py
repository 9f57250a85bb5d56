"""Shape and stride arithmetic against NumPy, by properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock_profiler.core.engine import dtypes, shapes, strides

sizes = st.lists(st.integers(1, 5), min_size=0, max_size=5)


@given(sizes, sizes)
def test_broadcast_is_numpys(a: list[int], b: list[int]) -> None:
    try:
        expected = np.broadcast_shapes(tuple(a), tuple(b))
    except ValueError:
        with pytest.raises(shapes.ShapeError):
            shapes.broadcast(a, b)
        return
    assert shapes.broadcast(a, b) == expected


@given(st.lists(st.integers(1, 4), min_size=2, max_size=4), st.lists(st.integers(1, 4), min_size=2, max_size=4))
def test_matmul_is_numpys(a: list[int], b: list[int]) -> None:
    b[-2] = a[-1]
    try:
        expected = np.matmul(np.ones(a), np.ones(b)).shape
    except ValueError:
        with pytest.raises(shapes.ShapeError):
            shapes.matmul(a, b)
        return
    assert shapes.matmul(a, b) == expected


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.randoms(use_true_random=False), st.data())
def test_a_reshape_is_a_view_exactly_when_numpy_needs_no_copy(shape: list[int], random, data) -> None:  # type: ignore[no-untyped-def]
    order = list(range(len(shape)))
    random.shuffle(order)
    array = np.arange(shapes.numel(shape)).reshape(shape).transpose(order)
    total = array.size
    first = data.draw(st.sampled_from([d for d in range(1, total + 1) if total % d == 0]))
    target = (first, total // first)
    mine = strides.as_view(array.shape, tuple(s // array.itemsize for s in array.strides), target)
    reshaped = array.reshape(target)
    is_view = np.shares_memory(reshaped, array)
    assert (mine is not None) == is_view


@given(st.integers(1, 40), st.integers(1, 7), st.integers(1, 4), st.integers(0, 3), st.integers(1, 3))
def test_window_counts_the_places(size: int, kernel: int, stride: int, pad: int, dilation: int) -> None:
    span = dilation * (kernel - 1) + 1
    places = len(range(0, size + 2 * pad - span + 1, stride))
    if size + 2 * pad < span:
        with pytest.raises(shapes.ShapeError):
            shapes.window(size, kernel, stride, pad, pad, dilation)
    else:
        assert shapes.window(size, kernel, stride, pad, pad, dilation) == places


@pytest.mark.parametrize(
    ("target", "expected"), [((-1,), (24,)), ((2, -1), (2, 12)), ((0, -1), (2, 12)), ((0, 0, 4), (2, 3, 4))]
)
def test_paddles_zero_keeps_a_size(target: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert shapes.reshape((2, 3, 4), target, zero_copies=True) == expected


@pytest.mark.parametrize("target", [(5, -1), (-1, -1), (7,)])
def test_an_impossible_reshape_is_an_error(target: tuple[int, ...]) -> None:
    with pytest.raises(shapes.ShapeError):
        shapes.reshape((2, 3, 4), target)


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ([("float16", False), ("float64", True)], "float16"),
        ([("int64", False), ("float64", True)], "float32"),
        ([("float32", False), ("float16", False)], "float32"),
        ([("bfloat16", False), ("float16", False)], "float32"),
        ([("bool", False), ("int64", False)], "int64"),
        ([("uint8", False), ("int8", False)], "int16"),
        ([("float32", False), ("complex64", True)], "complex64"),
    ],
)
def test_promotion(operands: list[tuple[str, bool]], expected: str) -> None:
    assert dtypes.promote_operands(operands) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch.float", "float32"),
        ("paddle.bfloat16", "bfloat16"),
        ("<f4", "float32"),
        ("i8", "int64"),
        ("half", "float16"),
        ("nonsense", None),
    ],
)
def test_type_names(text: str, expected: str | None) -> None:
    assert dtypes.canonical(text) == expected


@pytest.mark.parametrize("shape", [(2**63,), (2**32, 2**31), (10**400, 3)])
def test_more_elements_than_a_framework_counts_cannot_exist(shape: tuple[int, ...]) -> None:
    with pytest.raises(shapes.ShapeError):
        shapes.numel(shape)
    assert shapes.numel((2**62, 1)) == 2**62
