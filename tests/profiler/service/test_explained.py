"""What a portrait explains: the training step by line, and what would settle each unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from oarlock_profiler.adapters.portray import Job, portray
from oarlock_profiler.core.settling import settled_by

_SCRIPT = """
import torch
from torch import nn
net = nn.Linear(8, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(10):
    loss = net(torch.randn(16, 8)).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_each_line_of_a_step() -> None:
    portrait, _ = portray(Job(text=_SCRIPT))
    rows = {(row.phase, row.line) for row in portrait.step}
    assert {("forward", 7), ("backward", 8), ("optimizer", 9)} <= rows
    assert sum(row.launches for row in portrait.step) == portrait.compute.launches_per_step
    assert sum(row.flops for row in portrait.step) == portrait.compute.flops_per_step


@pytest.mark.parametrize(
    ("what", "why", "expected"),
    [
        ("module helper.net", "not in the bundle, not on the library path, not a known library", "helper/net.py"),
        ("file conf/a.yaml", "the file conf/a.yaml is not in the bundle", "add `conf/a.yaml` to the bundle"),
        ("argument --data-dir", "it is required and was not given", "--data-dir VALUE"),
        ("sequence_length", "neither read nor declared", "declare `sequence_length:`"),
        ("branch on x > 2", "the condition is not known: module zoo could not be found", "zoo.py"),
        ("device context", "the device is not chosen yet", "--gpu"),
    ],
)
def test_what_settles_an_unknown(what: str, why: str, expected: str) -> None:
    assert expected in settled_by(what, why)


def test_every_unknown_of_our_scripts_can_be_settled_or_says_why_not() -> None:
    portrait, _ = portray(Job(path=str(Path("tests/scripts/torch_lbfgs.py"))))
    assert portrait.unknowns
    assert all(gap.settle for gap in portrait.unknowns)
