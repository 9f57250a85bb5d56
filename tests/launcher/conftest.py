"""Placements as a matcher would make them, and a launcher as a process of its own."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.service_process import ServiceProcess, Speaker

from oarlock_accelerators import Device, vendor
from oarlock_launcher.__main__ import build
from oarlock_launcher.settings import LauncherSettings
from oarlock_runtime import Bus, EmbeddedServer
from oarlock_schemas import (
    Lease,
    LeaseBook,
    LogLine,
    PlacedDevice,
    Portrait,
    Source,
    TaskFinished,
    TaskLaunched,
    TaskPlaced,
    TaskRecord,
    TaskSubmitted,
)

SITE = f"s{os.getpid()}"
"""Of this test process: several may use one Docker engine at a time."""
NODE = "node1"
AT = "2026-01-01T00:00:00Z"


@dataclass
class Matcher(Speaker):
    """Does what the matcher does around a placement: task record, lease, event."""

    site: str = SITE

    def cpu(self) -> PlacedDevice:
        """This machine's CPU, as the inventory shows it."""
        (device,) = vendor("cpu").probe().devices
        return PlacedDevice(
            uid=device.uid, kind="CPU", vendor="cpu", node=NODE, index=0, reserved_bytes=1 << 28, fence=0
        )

    async def place(
        self,
        task_id: str,
        source: str | Source | None = None,
        *,
        devices: Sequence[PlacedDevice] | None = None,
        attempt: int = 1,
        site: str = SITE,
        exclusive: bool = False,
        lease: bool = True,
        record: bool = True,
        **task: object,
    ) -> TaskPlaced:
        """Book the devices, write the record, publish the placement."""
        code = Source() if source is None else source if isinstance(source, Source) else Source(inline=source)
        submitted = TaskSubmitted.model_validate({"task_id": task_id, "source": code, **task})
        booked = []
        for device in devices or [self.cpu()]:
            fence = await self.book(device.uid, task_id, attempt, exclusive=exclusive) if lease else device.fence
            booked.append(device.model_copy(update={"fence": fence}))
        placed = TaskPlaced(
            task_id=task_id,
            task=submitted,
            portrait=Portrait(framework="numpy", method="declared", confidence=1),
            attempt=attempt,
            site=site,
            devices=booked,
            exclusive=exclusive,
            predicted_bytes=booked[0].reserved_bytes,
            algorithm="rule_based",
            at=AT,
        )
        if record:
            entry = TaskRecord(task_id=task_id, attempt=attempt, state="placed")
            await self.bus.bucket("tasks", TaskRecord).put(task_id, entry)
        await self.publish(placed)
        return placed

    async def book(self, uid: str, task_id: str, attempt: int = 1, *, exclusive: bool = False) -> int:
        """Add a lease; the book's new revision is the fence."""
        lease = Lease(task_id=task_id, attempt=attempt, bytes=1, exclusive=exclusive, since=AT)

        def add(book: LeaseBook | None) -> LeaseBook:
            held = [] if book is None else [x for x in book.leases if (x.task_id, x.attempt) != (task_id, attempt)]
            return LeaseBook(device_uid=uid, leases=[*held, lease])

        entry = await self.bus.bucket("leases", LeaseBook).change(uid, add)
        assert entry is not None
        return entry.revision

    async def publish(self, placed: TaskPlaced, msg_id: str | None = None) -> None:
        """Publish the placement, again under another message id where one is given."""
        await self.bus.publish(
            self.bus.subjects.placed(placed.site, placed.task_id),
            placed,
            msg_id=msg_id or f"{placed.task_id}:placed:{placed.attempt}",
        )

    async def launched(self, task_id: str, seconds: float = 20) -> TaskLaunched:
        """Await the launch."""
        async with asyncio.timeout(seconds):
            async for message in self.bus.watch(self.bus.subjects.launched(task_id), start="all"):
                return message.parse(TaskLaunched)
        raise AssertionError

    async def finished(self, task_id: str, attempt: int = 1, seconds: float = 30) -> TaskFinished:
        """Await the end of an attempt."""
        async with asyncio.timeout(seconds):
            async for message in self.bus.watch(self.bus.subjects.finished(task_id), start="all"):
                event = message.parse(TaskFinished)
                if event.attempt == attempt:
                    return event
        raise AssertionError

    async def output(self, task_id: str, until: Callable[[list[str]], bool], seconds: float = 20) -> list[str]:
        """A run's log lines, once ``until`` says they are enough."""
        lines: list[str] = []
        async with asyncio.timeout(seconds):
            async for message in self.bus.watch(self.bus.subjects.logs(task_id), start="all"):
                lines.append(message.parse(LogLine).line)
                if until(lines):
                    return lines
        raise AssertionError

    async def record(self, task_id: str) -> TaskRecord:
        """The task's record."""
        entry = await self.bus.bucket("tasks", TaskRecord).get(task_id)
        assert entry is not None
        return entry.value


@pytest.fixture
def matcher(bus: Bus) -> Matcher:
    """Places tasks."""
    return Matcher(bus)


@pytest.fixture
async def launcher(nats: EmbeddedServer, bus: Bus, tmp_path: Path) -> AsyncIterator[ServiceProcess]:
    """A running launcher of processes."""
    folder = tmp_path / "launcher"
    folder.mkdir()
    extra = {
        "OARLOCK_RUN_GRACE_SECONDS": "2",
        "OARLOCK_SIMULATED_LONGEST_SECONDS": "1",
        "SECRET_OF_THE_LAUNCHER": "leaked",
    }
    process = ServiceProcess("launcher", nats, folder, SITE, NODE, extra)
    await process.start()
    yield process
    await process.end()


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker of tests that need a Docker engine."""
    config.addinivalue_line("markers", "docker: needs a Docker engine (.ci/docker.sh starts one, as root)")


@dataclass(frozen=True)
class DockerEngine:
    """A real engine with a stand-in for NVIDIA's hook, and images that need no registry."""

    host: str
    image: str
    nats_image: str


@pytest.fixture(scope="session")
def docker_engine() -> DockerEngine:
    """The engine; where there can be none the test is skipped, or fails when OARLOCK_REQUIRE names docker."""
    script = Path(__file__).parents[2] / ".ci" / "docker.sh"
    done = subprocess.run([str(script)], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        why = f"no Docker engine: {done.stderr.strip()[-500:]}"
        if "docker" in os.environ.get("OARLOCK_REQUIRE", "").split(","):
            pytest.fail(why)
        pytest.skip(why)
    named = dict(line.removeprefix("export ").split("=", 1) for line in done.stdout.splitlines())
    return DockerEngine(named["DOCKER_HOST"], named["OARLOCK_TEST_IMAGE"], named["OARLOCK_NATS_IMAGE"])


class StandInGpus:
    """NVIDIA GPUs as NVML would list them, for handing over; their nodes come from the engine's stand-in hook."""

    def uid(self, number: int) -> str:
        return f"GPU-5a4e0000-0000-0000-0000-{number:012d}"

    async def find(self, vendor: str, uids: Sequence[str]) -> list[Device]:
        """See ``oarlock_launcher.ports.Devices``."""
        return [Device(uid, vendor, "NVIDIA A100-SXM4-40GB", None, 1 << 35, driver_version="550.90.07") for uid in uids]

    def placed(self, *numbers: int) -> list[PlacedDevice]:
        """The devices of a placement."""
        return [
            PlacedDevice(
                uid=self.uid(n), kind="A100-SXM4-40GB", vendor="nvidia", node=NODE, reserved_bytes=1 << 30, fence=0
            )
            for n in numbers
        ]


@pytest.fixture
def gpus() -> StandInGpus:
    """The stand-in GPUs."""
    return StandInGpus()


@pytest.fixture
async def gpu_launcher(
    nats: EmbeddedServer, docker_engine: DockerEngine, gpus: StandInGpus, tmp_path: Path
) -> AsyncIterator[LauncherSettings]:
    """A launcher of containers in this process, which finds the stand-in GPUs."""
    settings = LauncherSettings(
        site=SITE,
        node=NODE,
        runtime="docker",
        DOCKER_HOST=docker_engine.host,
        docker_network="none",
        docker_pull=False,
        data_dir=tmp_path / "launcher",
        run_grace_seconds=1,
    )
    async with await Bus.connect(nats.url, token=nats.token, name="launcher") as own:
        await own.ensure()
        service, site = build(own, settings, gpus)
        async with service:
            yield settings
        await site.stop()


@pytest.fixture
async def docker_launcher(
    nats: EmbeddedServer, bus: Bus, docker_engine: DockerEngine, tmp_path: Path
) -> AsyncIterator[ServiceProcess]:
    """A launcher of containers as a process of its own, which finds this machine's CPU."""
    folder = tmp_path / "launcher"
    folder.mkdir()
    extra = {
        "OARLOCK_RUNTIME": "docker",
        "DOCKER_HOST": docker_engine.host,
        "OARLOCK_DOCKER_NETWORK": "none",
        "OARLOCK_DOCKER_PULL": "false",
        "OARLOCK_RUN_GRACE_SECONDS": "2",
    }
    process = ServiceProcess("launcher", nats, folder, SITE, NODE, extra)
    await process.start()
    yield process
    await process.end()
