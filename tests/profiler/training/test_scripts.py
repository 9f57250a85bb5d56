"""Every script of tests/scripts is read, and what is found equals ``expected.yaml``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from oarlock_profiler.adapters.sources import open_sources
from oarlock_profiler.core.reader import read
from oarlock_profiler.core.reading import Reading, Request

FOLDER = Path(__file__).parents[2] / "scripts"
EXPECTED: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "expected.yaml").read_text("utf-8"))


def reading_of(name: str, arguments: tuple[str, ...]) -> Reading:
    path = FOLDER / name
    if "/" in name:
        return read(Request(path.name, arguments), open_sources(path.parent, entry=path.name), time.monotonic)
    sources = open_sources(path)
    return read(Request(sources.entry, arguments), sources, time.monotonic)


def test_every_script_has_its_expectation() -> None:
    scripts = {p.name for p in FOLDER.glob("*.py")} | {p.name for p in FOLDER.glob("*.ipynb")}
    assert scripts <= set(EXPECTED)
    assert len(EXPECTED) >= 60
    assert sum(e["framework"] == "paddlepaddle" for e in EXPECTED.values()) >= len(EXPECTED) / 2


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_script(name: str) -> None:
    expected = EXPECTED[name]
    reading = reading_of(name, tuple(expected.get("arguments", ())))
    assert reading.stopped is None
    assert reading.kind == "training"
    found = {
        "framework": reading.framework,
        "parameters": [reading.parameters_total, reading.parameters_trainable],
        "batch_size": reading.batch_size,
        "inputs": [[list(spec.shape), spec.dtype] for spec in reading.inputs],
        "precision": reading.precision,
        "optimizer": reading.optimizer.name if reading.optimizer else None,
        "strategy": reading.distributed.strategy,
        "accumulation_steps": reading.accumulation_steps,
        "recompute": reading.recompute,
        "steps_per_epoch": reading.steps_per_epoch,
        "epochs": reading.epochs,
    }
    defaults = {"strategy": None, "accumulation_steps": 1, "recompute": False}
    wanted = {key: expected.get(key, defaults.get(key)) for key in found}
    assert found == wanted, expected["why"]
    assert reading.trace.steps >= 2
