"""What PaddlePaddle's loader has read ahead, and has not let go, lies on the device beside the batch in use."""

from __future__ import annotations

import time

import pytest

from oarlock_profiler.adapters.sources import text_sources
from oarlock_profiler.core.engine.trace import Alloc, Free
from oarlock_profiler.core.reader import read
from oarlock_profiler.core.reading import Request

SCRIPT = """
import numpy as np
import paddle

class Rows(paddle.io.Dataset):
    def __len__(self):
        return {rows}
    def __getitem__(self, index):
        return {item}

net = paddle.nn.Linear(1000, 1)
optimizer = paddle.optimizer.SGD(parameters=net.parameters())
for i, {name} in enumerate(paddle.io.DataLoader(Rows(), batch_size=8{options})):
    net(x).mean().backward()
    if (i + 1) % {every} == 0:
        optimizer.step()
        optimizer.clear_grad()
"""
BATCH_BYTES = 8 * 1000 * 4
ROW = 'np.zeros(1000, dtype="float32")'


def _most_inputs(rows: int, options: str, *, bare: bool = False, every: int = 1) -> int:
    item, name = (ROW, "x") if bare else (f"({ROW},)", "(x,)")
    text = SCRIPT.format(rows=rows, options=options, item=item, name=name, every=every)
    trace = read(Request(entry="main.py"), text_sources({"main.py": text}), time.monotonic).trace
    held: dict[int, int] = {}
    most = 0
    for event in trace.events:
        if isinstance(event, Alloc) and event.kind == "input":
            held[event.id] = event.nbytes
            most = max(most, sum(held.values()))
        elif isinstance(event, Free):
            held.pop(event.id, None)
    return most // BATCH_BYTES


@pytest.mark.parametrize(("options", "batches"), [("", 2), (", num_workers=2", 2), (", use_buffer_reader=False", 1)])
def test_one_batch_is_ahead_on_the_device(options: str, batches: int) -> None:
    # the next one is made while the name in the script still holds the last
    assert _most_inputs(800, options) == batches + 1


def test_nothing_is_ahead_of_the_last_batch() -> None:
    assert _most_inputs(8, "") == 1


@pytest.mark.parametrize(("bare", "batches"), [(False, 2), (True, 8)])
def test_batches_of_one_bare_tensor_wait_for_the_collector(bare: bool, batches: int) -> None:
    # measured with PaddlePaddle 3.3.1 on a CPU: each iteration leaves one more, a tuple of one tensor leaves none;
    # two steps of four iterations are read
    assert _most_inputs(800, ", use_buffer_reader=False", bare=bare, every=4) == batches
