"""A mixture of experts without the library's source: all experts are held, a token's share of them is computed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oarlock_profiler.core.reading import Reading

SCRIPT = """
import torch
from transformers import AutoModelForCausalLM, MixtralConfig
model = AutoModelForCausalLM.from_config(MixtralConfig({arguments}))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    ids = torch.zeros(2, 64, dtype=torch.long)
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
SMALL = "num_hidden_layers=2, hidden_size=256, intermediate_size=512, num_attention_heads=8, num_key_value_heads=2, "


@pytest.mark.parametrize(
    ("arguments", "parameters"),
    [("", 46_702_792_704), (SMALL + "num_local_experts=4", 19_860_736)],
)
def test_parameters(read_script: Callable[..., Reading], arguments: str, parameters: int) -> None:
    """As transformers 5.24 counts them."""
    reading = read_script(SCRIPT.format(arguments=arguments))
    assert reading.stopped is None
    assert reading.parameters_total == parameters


def test_more_experts_hold_more_and_compute_the_same(read_script: Callable[..., Reading]) -> None:
    few, many = (read_script(SCRIPT.format(arguments=f"{SMALL}num_local_experts={n}")) for n in (4, 8))
    more = (many.parameters_total or 0) - (few.parameters_total or 0)
    assert more == 2 * (
        4 * 3 * 256 * 512 + 4 * 256
    )  # two layers, four experts of three matrices, four rows of the router
    assert many.roots[0].flops == pytest.approx(few.roots[0].flops, rel=0.02)
    assert few.roots[0].flops > 0
