"""Whole readings: what counts as the model, and what the digest covers."""

from __future__ import annotations

from pathlib import Path

from oarlock_profiler.adapters.portray import Job, portray

AVERAGED = """
import copy
import torch
from torch import nn
model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 2)).cuda()
average = copy.deepcopy(model)
critic = nn.Linear(2, 1).cuda()
optimizer = torch.optim.SGD([*model.parameters(), *critic.parameters()], 0.1)
for _ in range(10):
    loss = critic(model(torch.randn(8, 10, device="cuda"))).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        average(torch.randn(8, 10, device="cuda"))
"""


def test_a_moving_average_is_no_second_model_but_a_critic_is() -> None:
    portrait, _ = portray(Job(text=AVERAGED))
    assert portrait.parameters.total == 10 * 20 + 20 + 20 * 2 + 2 + 3
    # Its weights hold memory all the same.
    assert portrait.memory.parts.weights_bytes is not None
    assert portrait.memory.parts.weights_bytes >= 4 * (2 * 262 + 3)


def test_the_digest_covers_what_was_read_and_the_arguments(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import helper\n")
    (tmp_path / "helper.py").write_text("x = 1\n")
    (tmp_path / "data.txt").write_text("a")

    def digest(*arguments: str) -> str | None:
        return portray(Job(path=str(tmp_path), arguments=arguments))[0].source_digest

    first = digest()
    (tmp_path / "data.txt").write_text("b")
    assert digest() == first
    assert digest("--lr", "1") != first
    (tmp_path / "helper.py").write_text("x = 2\n")
    assert digest() != first
