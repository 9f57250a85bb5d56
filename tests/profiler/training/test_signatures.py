"""What scripts ask of the signatures of libraries' classes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oarlock_profiler.core.reading import Reading


@pytest.mark.parametrize(
    ("optimizer", "name", "there"),
    [
        ("torch.optim.AdamW", "fused", True),
        ("torch.optim.RMSprop", "fused", False),
        ("paddle.optimizer.Adam", "use_multi_tensor", True),
        ("paddle.optimizer.AdamW", "use_multi_tensor", False),
    ],
)
def test_an_optimiser_is_asked_for_a_parameter(
    read_script: Callable[..., Reading], optimizer: str, name: str, there: bool
) -> None:
    framework = optimizer.split(".", maxsplit=1)[0]
    reading = read_script(
        f"""
        import inspect
        import {framework}
        known = "{name}" in inspect.signature({optimizer}).parameters
        listed = "{name}" in inspect.signature({optimizer}).parameters.keys()
        layer = {framework}.nn.Linear(10 if known else 20, 30 if listed else 40)
        """
    )
    inputs, outputs = (10, 30) if there else (20, 40)
    assert reading.parameters_total == inputs * outputs + outputs
    assert not [gap for gap in reading.findings.gaps.values() if gap.what.startswith("branch")]
