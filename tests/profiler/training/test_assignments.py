"""Assignments by SciPy have as many pairs as the shorter side of their costs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oarlock_profiler.core.reading import Reading


@pytest.mark.parametrize("costs", ["torch.rand(100, 7)", "torch.rand(7, 100).numpy()", "np.ones([7, 7])"])
def test_an_assignment_is_as_long_as_the_shorter_side(read_script: Callable[..., Reading], costs: str) -> None:
    reading = read_script(
        f"""
        import numpy as np
        import torch
        from scipy.optimize import linear_sum_assignment
        rows, columns = linear_sum_assignment({costs})
        chosen = torch.zeros(100, 100)[torch.as_tensor(rows), torch.as_tensor(columns)]
        layer = torch.nn.Linear(chosen.shape[0], len(columns), bias=False)
        """
    )
    assert reading.parameters_total == 7 * 7
    assert not [gap for gap in reading.findings.gaps.values() if "scipy" in gap.what]
