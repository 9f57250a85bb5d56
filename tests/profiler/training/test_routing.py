"""Hand-written experts: of ``k`` choices among ``n`` for each token, each expert gets its share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oarlock_profiler.core.reading import Reading

SCRIPT = """
import torch
import torch.nn.functional as F
gate = torch.nn.Linear(16, 8)
expert = torch.nn.Linear(16, 16)
x = torch.rand(64, 16)
weights, chosen = gate(x).topk(2, dim=-1)
{rows}
optimizer = torch.optim.SGD([*gate.parameters(), *expert.parameters()], lr=0.1)
out = expert(x[rows])
assert out.shape[0] == {expected}
loss = out.mean() + weights.mean()
loss.backward()
optimizer.step()
"""


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("rows = torch.nonzero(chosen == 3)[:, 0]", 16),
        ("rows, slot = torch.where(chosen == 3)", 16),
        ("rows = (chosen == 3).any(dim=-1)", 16),
        ("rows, slot = torch.where(F.one_hot(chosen, 8)[:, :, 3])", 16),
        ("rows = torch.nonzero(x[:, 0] > 0)[:, 0]", 64),
    ],
)
def test_share_of_the_tokens(read_script: Callable[..., Reading], rows: str, expected: int) -> None:
    reading = read_script(SCRIPT.format(rows=rows, expected=expected))
    assert reading.stopped is None
    assert reading.kind == "training"
