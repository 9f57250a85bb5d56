"""The GPU benchmark without a GPU: its scripts are read, and what a machine measured is scored."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.gpu.configurations import Configuration, configurations
from benchmarks.gpu.score import compared

from oarlock_profiler.adapters.devices import spec_named

OWN = [
    c for c in configurations() if c.family in {"mlp", "transformer"} and "import" not in c.script.split("device =")[1]
]
A100 = spec_named("A100 PCIe 40GB")
MEASURED_BYTES = 10**9


def test_about_a_hundred_configurations_of_every_format_and_optimiser() -> None:
    found = list(configurations())
    assert len(found) >= 95
    assert len({c.name for c in found}) == len(found)
    assert {c.precision for c in found} == {"float32", "amp_float16", "amp_bfloat16"}
    assert {c.family for c in found} == {"mlp", "cnn", "transformer"}


@pytest.mark.parametrize("configuration", OWN[::6], ids=lambda c: str(c.name))
def test_a_measured_run_is_scored(configuration: Configuration) -> None:
    run: dict[str, Any] = dict.fromkeys(("allocated_bytes", "reserved_bytes", "device_bytes"), MEASURED_BYTES)
    document = {"tiny": False, "runs": [{"name": configuration.name, **run, "step_seconds": 1.0}]}
    errors, failed = compared(document, A100)
    assert failed == []
    allocated, reserved, device = (errors[kind][0][0] for kind in list(run))
    assert -1 < allocated <= reserved < device
    assert [name for _, name in errors["step_seconds"]] == [configuration.name]


def test_a_run_that_failed_is_named() -> None:
    name = next(configurations(tiny=True)).name
    errors, failed = compared({"tiny": True, "runs": [{"name": name, "error": "out of memory"}]}, A100)
    assert failed == [f"{name}: not measured: out of memory"]
    assert not any(errors.values())
