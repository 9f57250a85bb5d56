"""What the launcher starts, telemetry measures: both as processes of their own, on real runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.service_process import ServiceProcess

from oarlock_runtime import EmbeddedServer
from oarlock_schemas import DeviceState, RunRecord

if TYPE_CHECKING:
    from tests.launcher.conftest import DockerEngine, Matcher

MIB = 1024**2


@pytest.fixture
async def telemetry(nats: EmbeddedServer, matcher: Matcher, tmp_path: Path) -> AsyncIterator[None]:
    """The telemetry of the launcher's node."""
    process = ServiceProcess("telemetry", nats, tmp_path / "telemetry", matcher.site, matcher.cpu().node)
    await process.start()
    async with asyncio.timeout(60):  # until it looks at its devices, and so at runs
        async for change in matcher.bus.bucket("devices", DeviceState).watch():
            if change.value is not None:
                break
    yield
    assert await process.stop() == 0


async def record(matcher: Matcher, task_id: str) -> RunRecord:
    """Await the run's record."""
    async with asyncio.timeout(40):
        async for message in matcher.bus.watch(matcher.bus.subjects.completed(task_id), start="all"):
            return message.parse(RunRecord)
    raise AssertionError


async def test_processes(matcher: Matcher, launcher: ServiceProcess, telemetry: None) -> None:
    # The workers leave the run's session, as data loaders of some frameworks do; they are its own all the same.
    worker = "import time; b = b'x' * (60 << 20); time.sleep(4)"
    script = (
        "import subprocess, sys, time\n"
        "import numpy as np\n"
        "a = np.ones(100 << 20, dtype=np.uint8)\n"
        f"w = [subprocess.Popen([sys.executable, '-c', {worker!r}], start_new_session=True) for _ in range(2)]\n"
        "[p.wait() for p in w]"
    )
    await matcher.place("workers", script)
    # Too short for a sample in its middle: the kernel's count says it.
    await matcher.place("short", "a = b'x' * (80 << 20)")
    measured = (await record(matcher, "workers")).measured
    assert measured.peak_process_bytes is not None
    assert 220 * MIB < measured.peak_process_bytes < 320 * MIB
    assert measured.samples >= 2 and measured.duration_seconds is not None and measured.duration_seconds > 2
    short = (await record(matcher, "short")).measured
    assert short.peak_process_bytes is not None and 80 * MIB < short.peak_process_bytes < 120 * MIB


@pytest.mark.docker
async def test_containers(
    matcher: Matcher, docker_launcher: ServiceProcess, docker_engine: DockerEngine, telemetry: None
) -> None:
    # The shell itself holds the text; `true` keeps it from becoming the sleep.
    command = ["sh", "-c", "x=$(head -c 30000000 /dev/zero | busybox tr '\\000' a); sleep 3; true"]
    device = matcher.cpu().model_copy(update={"reserved_bytes": 512 * MIB})
    await matcher.place("box", devices=[device], image=docker_engine.image, command=command)
    found = await record(matcher, "box")
    assert found.outcome == "ok"
    measured = found.measured.peak_process_bytes
    assert measured is not None and measured > 28 * MIB
