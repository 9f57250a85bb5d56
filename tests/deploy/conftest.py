"""Programs that these tests drive: a Docker engine, Prometheus, Slurm. All of them are real."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def pytest_configure(config: pytest.Config) -> None:
    """Name the markers of tests that need a program of the machine."""
    config.addinivalue_line("markers", "prometheus: needs prometheus and promtool")
    config.addinivalue_line("markers", "slurm: needs Slurm and munge, as root")
    config.addinivalue_line("markers", "docker: needs a Docker engine (.ci/docker.sh starts one, as root)")


def unavailable(what: str, why: str) -> None:
    """Skip for want of ``what``; fail where OARLOCK_REQUIRE says that it must be there."""
    if what in os.environ.get("OARLOCK_REQUIRE", "").split(","):
        pytest.fail(f"{what} is required: {why}")
    pytest.skip(why)


def find(what: str, *programs: str) -> list[str]:
    """Paths of programs that belong to ``what``."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    found = {program: shutil.which(program, path=path) for program in programs}
    missing = [program for program, place in found.items() if place is None]
    if missing:
        unavailable(what, f"no {', '.join(missing)} on this machine")
    return [place for place in found.values() if place is not None]


@dataclass(frozen=True)
class Engine:
    """A real engine, an image with a shell, and one of the NATS server."""

    host: str
    image: str
    nats_image: str


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The engine that ``.ci/docker.sh`` starts or finds."""
    done = subprocess.run([str(ROOT / ".ci" / "docker.sh")], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        unavailable("docker", f"no Docker engine: {done.stderr.strip()[-500:]}")
    named = dict(line.removeprefix("export ").split("=", 1) for line in done.stdout.splitlines())
    return Engine(named["DOCKER_HOST"], named["OARLOCK_TEST_IMAGE"], named["OARLOCK_NATS_IMAGE"])


@pytest.fixture(scope="session")
def promtool() -> str:
    """Debian's promtool."""
    return find("prometheus", "promtool")[0]


@pytest.fixture(scope="session")
def prometheus() -> str:
    """Debian's prometheus."""
    return find("prometheus", "prometheus")[0]
