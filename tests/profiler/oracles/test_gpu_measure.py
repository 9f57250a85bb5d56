"""The GPU benchmark's measuring script, for real on the CPU build with tiny sizes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from benchmarks.gpu import measure
from benchmarks.gpu.score import compared
from benchmarks.oracles import environment

from oarlock_profiler.adapters.devices import spec_named

ONLY = "mlp 16x4 batch 5 float32 sgd"


def test_a_tiny_configuration_is_measured_and_scored(oracles: list[str], tmp_path: Path) -> None:
    out = tmp_path / "measured.json"
    command = [str(environment.python()), str(Path(measure.__file__)), str(out), "--tiny", "--only", ONLY]
    subprocess.run(command, check=True, capture_output=True)
    document = json.loads(out.read_text())
    assert [run["name"] for run in document["runs"]] == [ONLY]
    assert document["runs"][0]["step_seconds"] > 0
    errors, failed = compared(document, spec_named("RTX 3090"))
    assert failed == []
    assert [name for _, name in errors["step_seconds"]] == [ONLY]
