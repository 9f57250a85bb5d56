"""The import contracts hold, and each fails when it is broken."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "oarlock_schemas": "schemas",
    "oarlock_accelerators": "accelerators",
    "oarlock_runtime": "runtime",
    **{f"oarlock_{name}": f"services/{name}" for name in ("profiler", "matcher", "launcher", "telemetry", "gateway")},
    "oarlock": "client",
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The tree's packages, side by side, with the root's settings."""
    folder = tmp_path_factory.mktemp("tree")
    for name, home in PACKAGES.items():
        shutil.copytree(ROOT / home / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder / "pyproject.toml")
    yield folder


def lint(folder: Path) -> tuple[int, str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_contracts_hold(copy: Path) -> None:
    code, output = lint(copy)
    assert code == 0, output


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("oarlock_matcher/adapters/telling.py", "import oarlock_launcher.ports", "services never meet"),
        ("oarlock_runtime/bus.py", "import oarlock_accelerators", "services never meet"),
        ("oarlock_matcher/core/state.py", "import oarlock_matcher.ports", "anatomy of a service"),
        ("oarlock_launcher/spare.py", "", "anatomy of a service"),
        ("oarlock_matcher/core/state.py", "import time", "cores are pure"),
        ("oarlock_profiler/core/cost.py", "import oarlock_runtime", "cores are pure"),
        ("oarlock/sdk.py", "import oarlock_matcher.core.state", "run a service's code"),
        ("oarlock_telemetry/adapters/machine.py", "import pynvml", "vendor's SDK"),
        ("oarlock_profiler/core/cost.py", "import torch", "no framework is imported"),
    ],
)
def test_each_contract_fails_when_broken(copy: Path, file: str, line: str, contract: str) -> None:
    path = copy / file
    before = path.read_text(encoding="utf-8") if path.exists() else None
    path.write_text(f"{before or ''}\n{line}\n", encoding="utf-8")
    try:
        code, output = lint(copy)
    finally:
        if before is None:
            path.unlink()
        else:
            path.write_text(before, encoding="utf-8")
    assert code != 0
    broken = [row for row in output.splitlines() if contract in row or "Missing layer" in row or "not listed" in row]
    assert broken, output
