"""Telemetry as a process of its own, and the events around it as a launcher and a matcher would publish them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from oarlock_accelerators import vendor
from oarlock_runtime import Bus, EmbeddedServer
from oarlock_schemas import (
    DeviceState,
    PlacedDevice,
    Portrait,
    RunRecord,
    TaskFinished,
    TaskLaunched,
    TaskPlaced,
    TaskSubmitted,
)

SITE, NODE = "local", "node1"


def now() -> str:
    return datetime.now(UTC).isoformat()


@dataclass
class Others:
    """What the matcher and the launcher say of a run."""

    bus: Bus

    def cpu(self) -> PlacedDevice:
        """This machine's CPU."""
        (device,) = vendor("cpu").probe().devices
        return PlacedDevice(uid=device.uid, kind="CPU", vendor="cpu", node=NODE, reserved_bytes=1 << 28, fence=1)

    async def place(self, task_id: str, device: PlacedDevice, portrait: Portrait, site: str = SITE) -> None:
        placed = TaskPlaced(
            task_id=task_id,
            task=TaskSubmitted(task_id=task_id, owner="ann"),
            portrait=portrait,
            attempt=1,
            site=site,
            devices=[device],
            predicted_bytes=portrait.memory.peak.device_bytes,
            algorithm="rule_based",
            at=now(),
        )
        await self.bus.publish(self.bus.subjects.placed(site, task_id), placed, msg_id=f"{task_id}:placed:1")

    async def launch(
        self, task_id: str, device: PlacedDevice, pid: int | None, *, site: str = SITE, predicted: int | None = None
    ) -> TaskLaunched:
        event = TaskLaunched(
            task_id=task_id,
            attempt=1,
            site=site,
            node=device.node,
            runtime="process",
            run_id=str(pid),
            pid=pid,
            device_uids=[device.uid],
            command=["python"],
            docker_command="docker run",
            simulated=device.simulated,
            predicted_bytes=predicted,
            at=now(),
        )
        await self.bus.publish(self.bus.subjects.launched(task_id), event, msg_id=f"{task_id}:launched:1")
        return event

    async def finish(
        self,
        task_id: str,
        device: PlacedDevice,
        *,
        outcome: str = "ok",
        started_at: str | None = None,
        kernel_peak_bytes: int | None = None,
        msg_id: str | None = None,
    ) -> None:
        event = TaskFinished.model_validate(
            {
                "task_id": task_id,
                "attempt": 1,
                "site": SITE,
                "outcome": outcome,
                "device_uids": [device.uid],
                "started_at": started_at,
                "finished_at": now(),
                "simulated": device.simulated,
            }
        )
        headers = None if kernel_peak_bytes is None else {"Oarlock-Peak-Process-Bytes": str(kernel_peak_bytes)}
        await self.bus.publish(
            self.bus.subjects.finished(task_id), event, msg_id=msg_id or f"{task_id}:finished:1", headers=headers
        )

    async def record(self, task_id: str, seconds: float = 20) -> RunRecord:
        """Await the run's record."""
        async with asyncio.timeout(seconds):
            async for message in self.bus.watch(self.bus.subjects.completed(task_id), start="all"):
                return message.parse(RunRecord)
        raise AssertionError

    async def stored(self, subject: str) -> int:
        """How many messages the stream holds under a subject."""
        caught_up = asyncio.Event()
        count = 0

        async def read() -> None:
            nonlocal count
            async for _ in self.bus.watch(subject, start="all", caught_up=caught_up):
                count += 1

        reading = asyncio.create_task(read())
        await asyncio.wait_for(caught_up.wait(), 10)
        reading.cancel()
        return count

    async def device(self, key: str, seconds: float = 20) -> DeviceState:
        """Await a device's inventory entry."""
        async with asyncio.timeout(seconds):
            async for change in self.bus.bucket("devices", DeviceState).watch(key):
                if change.value is not None:
                    return change.value
        raise AssertionError


@dataclass
class TelemetryProcess:
    """``python -m oarlock_telemetry``, to be killed and started again."""

    nats: EmbeddedServer
    folder: Path
    extra: dict[str, str] = field(default_factory=dict)
    process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        environment = {
            **os.environ,
            "OARLOCK_NATS_URL": self.nats.url,
            "OARLOCK_NATS_TOKEN": self.nats.token or "",
            "OARLOCK_SITE": SITE,
            "OARLOCK_NODE": NODE,
            "OARLOCK_DATA_DIR": str(self.folder),
            "OARLOCK_LOG_FORMAT": "console",
            **self.extra,
        }
        with (self.folder.parent / "telemetry.log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "oarlock_telemetry", env=environment, stdout=log, stderr=log
            )

    async def kill(self) -> None:
        """SIGKILL, as in a crash."""
        assert self.process is not None
        self.process.kill()
        await self.process.wait()

    async def stop(self) -> int:
        """SIGTERM; its exit code."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        return await asyncio.wait_for(self.process.wait(), 30)


@pytest.fixture
def others(bus: Bus) -> Others:
    """Publishes what telemetry hears."""
    return Others(bus)


@pytest.fixture
async def telemetry(nats: EmbeddedServer, bus: Bus, tmp_path: Path) -> AsyncIterator[TelemetryProcess]:
    """A running telemetry of this machine."""
    process = TelemetryProcess(nats, tmp_path / "telemetry")
    await process.start()
    yield process
    if process.process is not None and process.process.returncode is None:
        await process.stop()
