"""An operator that cannot be followed does not cut off the parameters before it from their gradients."""

from __future__ import annotations

import time

import pytest

from oarlock_profiler.adapters.sources import text_sources
from oarlock_profiler.core.engine.trace import Alloc
from oarlock_profiler.core.reader import read
from oarlock_profiler.core.reading import Reading, Request

SCRIPT = """
import numpy as np
import paddle
from paddle import nn

table, middle, last = nn.Embedding(1000, 64), nn.Linear(70, 32), nn.Linear(32, 2)
learning = [*table.parameters(), *middle.parameters(), *last.parameters()]
optimizer = paddle.optimizer.Adam(parameters=learning)
dense = paddle.to_tensor(np.load("dense.npy"))
for _ in range(10):
    rows = table(paddle.randint(0, 1000, [8]))
    hidden = paddle.tanh(paddle.concat([rows, dense], axis=-1))
    loss = {loss}
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
"""


def _reading(loss: str) -> Reading:
    return read(Request(entry="main.py"), text_sources({"main.py": SCRIPT.format(loss=loss)}), time.monotonic)


def _moments(reading: Reading) -> int:
    return sum(e.nbytes for e in reading.trace.events if isinstance(e, Alloc) and e.op == "moment1")


@pytest.mark.parametrize(
    ("loss", "learning"),
    [
        ("last(middle(hidden)).mean()", 1000 * 64 + 70 * 32 + 32 + 32 * 2 + 2),
        ("hidden.mean()", 1000 * 64),  # the loss itself is unknown: what is known to lie before it learns
    ],
)
def test_what_lies_before_an_unknown_tensor_learns(loss: str, learning: int) -> None:
    reading = _reading(loss)
    assert reading.trace.steps >= 2
    assert _moments(reading) == 4 * learning
    assert any("not known" in gap.why or "file" in gap.why for gap in reading.findings.gaps.values())
