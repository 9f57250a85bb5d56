"""What PaddlePaddle's loss of connectionist temporal classification takes, beside what it is given."""

from __future__ import annotations

import textwrap
import time

import pytest

from oarlock_profiler.adapters.sources import text_sources
from oarlock_profiler.core.engine.engine import Engine
from oarlock_profiler.core.engine.trace import Trace
from oarlock_profiler.core.findings import Findings
from oarlock_profiler.core.memory.allocator import PlainAllocator
from oarlock_profiler.core.memory.replay import replay
from oarlock_profiler.core.reader import read
from oarlock_profiler.core.reading import Request

SCRIPT = """
import paddle
w = paddle.zeros([{times}, {samples}, {classes}])
w.stop_gradient = False
labels = paddle.zeros([{samples}, {letters}], dtype="int32")
{call}
"""


def _peak(call: str, **sizes: int) -> int:
    def on_cpu(trace: Trace, framework: str | None, findings: Findings) -> Engine:
        del framework
        engine = Engine(trace, "paddle", findings=findings, kernels="cpu")
        engine.default_device = "cpu"
        return engine

    text = textwrap.dedent(SCRIPT).format(call=call, **sizes)
    reading = read(Request(entry="main.py"), text_sources({"main.py": text}), time.monotonic, engine=on_cpu)
    return replay(reading.trace, "cpu", PlainAllocator()).tensor_bytes


@pytest.mark.parametrize(
    ("times", "samples", "classes", "letters", "beside"),
    # forward peaks of paddle._C_ops.warpctc (PaddlePaddle 3.3.1, CPU), less three times the logits and less the copies
    # of the labels' letters (4 bytes each) and 4 bytes
    [
        (148, 8, 4233, 40, 530_756 - 4 * 8 * 40 - 4),
        (100, 4, 500, 10, 43_124 - 4 * 4 * 10 - 4),
        (101, 4, 500, 10, 43_460 - 4 * 4 * 10 - 4),
        (10, 1, 20, 1, 260 - 4 - 4),
    ],
)
def test_warp_ctc_takes_three_times_its_logits_and_its_tables(
    times: int, samples: int, classes: int, letters: int, beside: int
) -> None:
    sizes = {"times": times, "samples": samples, "classes": classes, "letters": letters}
    loss = "lengths = None\nloss = paddle.nn.functional.ctc_loss(w, labels, lengths, lengths, reduction='none')"
    taken = _peak(loss, **sizes) - _peak("", **sizes)
    assert taken == 3 * 4 * times * samples * classes + beside


def test_labels_of_unknown_length_do_not_hide_the_loss() -> None:
    sizes = {"times": 10, "samples": 2, "classes": 20, "letters": 1}
    call = "import numpy as np\nlabels = paddle.to_tensor(np.load('absent.npy'))\n"
    loss = "loss = paddle.nn.functional.ctc_loss(w, labels, None, None, reduction='sum')"
    assert _peak(call + loss, **sizes) - _peak("", **sizes) > 3 * 4 * 10 * 2 * 20
