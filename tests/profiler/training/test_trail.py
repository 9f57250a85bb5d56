"""The reader's path: what it did, why, and where; folded, bounded, and without any influence on the reading."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from oarlock_profiler.adapters.sources import open_sources, text_sources
from oarlock_profiler.core import trail_words
from oarlock_profiler.core.interpreter.trail import MOST_STEPS, Step
from oarlock_profiler.core.reader import read
from oarlock_profiler.core.reading import Reading, Request

SCRIPTS = Path(__file__).parents[2] / "scripts"

SCRIPT = """import paddle, no_such_module
import helper
from paddle import nn
u = input()
deep = helper.DEEP
class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.blocks = nn.LayerList([nn.Linear(8, 8) for _ in range(12)])
        if deep:
            self.head = nn.Linear(8, 2)
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)
net = Net()
opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())
if u == "y":
    net.extra = nn.Linear(8, 8)
for epoch in range(90):
    loss = net(paddle.zeros([4, 8])).mean()
    loss.backward()
    opt.step()
    opt.clear_grad()
"""


def followed(source: str, **files: str) -> Step:
    sources = text_sources({"main.py": source, **{f"{name}.py": text for name, text in files.items()}})
    reading = read(Request("main.py"), sources, time.monotonic, follow=True)
    assert reading.trail is not None
    return reading.trail


def every(step: Step) -> Iterator[Step]:
    for one in step.steps:
        yield one
        yield from every(one)


@pytest.fixture(scope="module")
def trail() -> Step:
    return followed(SCRIPT, helper="DEEP = True\n")


def line_of(trail: Step, what: str) -> Step:
    return next(step for step in every(trail) if step.what.startswith(what))


def test_imports_say_how_they_were_resolved(trail: Step) -> None:
    results = {step.what: step.result for step in trail.steps if step.kind == "import"}
    assert results["paddle"] == "known to the reader"
    assert results["helper"] == "read from helper.py"
    assert results["no_such_module"].startswith("not resolved: ")


def test_calls_show_shapes_and_lines(trail: Step) -> None:
    call = line_of(trail, "Net(float32[4, 8])")
    assert call.result == "float32[4, 2]"
    assert call.where is not None
    assert (call.where.file, call.where.line) == ("main.py", 21)
    assert line_of(trail, "head Linear(").result == "float32[4, 2]"


def test_blocks_and_rounds_that_are_alike_are_folded(trail: Step) -> None:
    (training,) = [step for step in trail.steps if step.kind == "loop"]
    assert training.result.endswith("rounds walked of 90")
    assert [(one.kind, one.times) for one in training.steps][-1] == ("round", training.steps[-1].times)
    inner = line_of(training, "Net(").steps[0].steps
    loop = next(step for step in inner if step.kind == "loop")
    assert [(one.kind, one.times) for one in loop.steps] == [("round", 12)]


def test_branches_say_why(trail: Step) -> None:
    known = line_of(trail, "if deep")
    assert known.result == "true (deep = True)"
    unknown = line_of(trail, "if u ==")
    assert unknown.result.startswith("not known (")
    assert "taken" in unknown.result


def test_it_is_bounded() -> None:
    many = "".join(f"def f{n}(x): return x\n" for n in range(40)) + "import time\n"
    many += "for i in range(500):\n" + "".join(
        f"    f{n}('{n}' * (i % 7))\n    if i % {n + 2}: f{n}(i)\n" for n in range(40)
    )
    trail = followed(many)
    assert sum(1 for _ in every(trail)) <= MOST_STEPS
    assert len(trail_words.lines(trail)) <= trail_words.MOST_LINES + 1
    assert sum(step.omitted for step in [trail, *every(trail)]) > 0


@pytest.mark.parametrize(
    "name", ["torch_mingpt.py", "paddle_vit.py", "torch_vae.py", "paddle_dqn.py", "torch_lightning.py"]
)
def test_following_changes_nothing(name: str) -> None:
    def once(follow: bool) -> Reading:
        sources = open_sources(SCRIPTS / name)
        return read(Request(sources.entry), sources, time.monotonic, follow=follow)

    plain, followed = once(False), once(True)
    assert plain.trail is None
    assert followed.trace.events == plain.trace.events
    assert list(followed.findings.gaps.values()) == list(plain.findings.gaps.values())


def test_words_and_values(trail: Step) -> None:
    lines = trail_words.lines(trail)
    assert any(line.startswith("main.py:16") and "make Net()" in line for line in lines)
    assert any(line.rstrip().endswith("×12") for line in lines)
    values = trail_words.values(trail)
    assert {"kind", "what", "file", "line", "result", "times", "omitted", "steps"} == set(values[0])
