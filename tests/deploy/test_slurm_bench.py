"""The comparison with Slurm measures both systems really, with few tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psutil
import pytest
from benchmarks.latency import run, slurm_side
from benchmarks.latency.figures import Figures, quantile, table

from .conftest import unavailable

SPANS = ("read", "placed", "launched", "running")


@pytest.mark.slurm
def test_both_systems_are_measured_and_nothing_is_left_running(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if why := slurm_side.missing():
        unavailable("slurm", why)
    result = tmp_path / "measured.json"
    assert run.main(["--tasks", "2", "--burst", "3", "--json", str(result)]) == 0
    systems: list[dict[str, Any]] = json.loads(result.read_text())["systems"]
    assert [system["system"] for system in systems] == ["oarlock", "slurm"]
    ours, slurm = systems
    for spans in zip(*(ours[f"{name}_seconds"] for name in SPANS), strict=True):
        # A task is read before it is placed, and placed before it is launched; its code runs at about the same time.
        assert 0 < spans[0] < spans[1] < spans[2] < 60 and spans[1] < spans[3] < 60
    assert len(slurm["running_seconds"]) == 2 and min(slurm["running_seconds"]) > 0
    assert all(system["row"]["tasks_per_second"] > 0 for system in systems)
    assert "| oarlock | 2 |" in capsys.readouterr().out
    assert [p.name() for p in psutil.process_iter() if p.name().startswith(("slurm", "munged")) and _ours(p)] == []


def _ours(process: psutil.Process) -> bool:
    try:
        return any("latency-" in part for part in [*process.cmdline(), process.environ().get("SLURM_CONF", "")])
    except psutil.Error:
        return False


def test_quantiles_are_values_that_were_measured() -> None:
    assert quantile([], 0.5) is None
    assert quantile([3, 1, 2], 0.5) == 2
    assert quantile([3, 1, 2], 0.99) == 3
    assert quantile(range(1, 101), 0.99) == 99


def test_the_table_has_a_dash_for_what_a_system_does_not_tell() -> None:
    figures = Figures("slurm", running_seconds=[0.5, 1.0], burst_tasks=10, burst_seconds=2.0)
    *_, row = table([figures.row()]).splitlines()
    assert row == "| slurm | 2 | - | - | - | - | - | - | 500 | 1000 | 5.0 |"
