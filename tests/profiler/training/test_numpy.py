"""NumPy scripts are sized like any other: shapes, bytes, parameters that are updated in place."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oarlock_profiler.core.engine.trace import Alloc
from oarlock_profiler.core.overlays import array_shapes as shapes
from oarlock_profiler.core.reading import Reading


def allocated(reading: Reading, op: str) -> list[int]:
    return [e.nbytes for e in reading.trace.events if isinstance(e, Alloc) and e.op == f"numpy.{op}"]


@pytest.mark.parametrize(
    ("expression", "op", "nbytes"),
    [
        ("np.zeros((10, 20))", "zeros", 1600),
        ("np.ones(5000, dtype=np.float32)", "ones", 20000),
        ("np.random.rand(30, 40)", "random.rand", 9600),
        ("np.zeros((50, 60)) @ np.zeros((60, 70))", "matmul", 28000),
        ("np.zeros((100, 10)).astype('float32')", "astype", 4000),
        ("np.zeros((4, 5000)) + np.zeros(5000)", "add", 160000),
        ("np.concatenate([np.zeros((3, 9)), np.zeros((4, 9))], axis=0)", "concatenate", 504),
        ("np.zeros((6, 7, 8)).sum(axis=(0, 2), keepdims=True)", "sum", 56),
        ("np.zeros((9, 8))[np.array([1, 2, 3])]", "take", 192),
    ],
)
def test_array_bytes(read_script: Callable[..., Reading], expression: str, op: str, nbytes: int) -> None:
    reading = read_script(f"import numpy as np\nx = {expression}\n")
    assert reading.framework == "numpy"
    assert allocated(reading, op)[-1] == nbytes
    assert not reading.findings.gaps


def test_in_place_updates_are_training(read_script: Callable[..., Reading]) -> None:
    reading = read_script(
        """
        import numpy as np
        x, y = np.random.rand(100, 6), np.random.rand(100, 1)
        w, b = np.zeros((6, 1)), np.zeros(1)
        for epoch in range(500):
            error = x.dot(w) + b - y
            w -= 0.1 * x.T.dot(error) / len(x)
            b -= 0.1 * error.mean(axis=0)
        """
    )
    assert (reading.kind, reading.parameters_total) == ("training", 7)
    assert reading.trace.steps == 2


def test_arrays_beside_a_framework_are_not_its_memory(read_script: Callable[..., Reading]) -> None:
    reading = read_script(
        "import numpy as np, torch\nx = torch.from_numpy(np.zeros((8, 8), dtype=np.float32)).cuda()\n"
    )
    assert not [e for e in reading.trace.events if isinstance(e, Alloc) and e.op.startswith("numpy.")]


@pytest.mark.parametrize(
    ("shape", "key", "expected"),
    [
        ((5, 6), (slice(1, 4), 0), ((3,), True)),
        ((5, 6), None, ((1, 5, 6), True)),
        ((5, 6, 7), (Ellipsis, 2), ((5, 6), True)),
        ((5, 6), ([0, 1],), ((2, 6), False)),
        ((5, 6), slice(None, None, 2), ((3, 6), True)),
    ],
)
def test_indexing(shape: shapes.Shape, key: object, expected: tuple[shapes.Shape, bool]) -> None:
    assert shapes.indexed(shape, key) == expected


def test_promotion_follows_numpy() -> None:
    assert shapes.promote("float32", "float64", weak=True) == "float32"
    assert shapes.promote("int64", "float64", weak=True) == "float64"
    assert shapes.promote("uint8", "int8") == "int16"
    assert shapes.promote("uint8", "int64") == "int64"
    assert shapes.promote("float32", "int64") == "float64"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("np.diff([0, 1, 4, 10, 23]).tolist()", [1, 3, 6, 13]),
        ("np.unique(a, return_counts=True)[1].tolist()", [2, 1, 1]),
        ("np.nonzero(a > 1)[0].tolist()", [0, 3]),
        ("np.roll(a, 1).tolist()", [2, 3, 1, 1]),
        ("np.cumsum([[1, 2], [3, 4]], axis=0).tolist()", [[1, 2], [4, 6]]),
        ("np.searchsorted(np.array([1, 5, 9]), 6)", 2),
        ("np.cumsum(np.random.rand(10, 3)).shape", (30,)),
    ],
)
def test_known_values_are_computed(read_script: Callable[..., Reading], expression: str, value: object) -> None:
    source = f"import numpy as np\na = np.array([3, 1, 1, 2])\nx = {expression}\nassert x == {value!r}, x\n"
    reading = read_script(source)
    assert reading.stopped is None
    assert not [g for g in reading.findings.gaps if "AssertionError" in g[2] or "is not known" in g[2]]
