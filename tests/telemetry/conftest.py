"""Telemetry as a process of its own, and the events around it as a launcher and a matcher would publish them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.service_process import ServiceProcess, Speaker

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
class Others(Speaker):
    """What the matcher and the launcher say of a run."""

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

    async def device(self, key: str, seconds: float = 20) -> DeviceState:
        """Await a device's inventory entry."""
        async with asyncio.timeout(seconds):
            async for change in self.bus.bucket("devices", DeviceState).watch(key):
                if change.value is not None:
                    return change.value
        raise AssertionError


@pytest.fixture
def others(bus: Bus) -> Others:
    """Publishes what telemetry hears."""
    return Others(bus)


@pytest.fixture
async def telemetry(nats: EmbeddedServer, bus: Bus, tmp_path: Path) -> AsyncIterator[ServiceProcess]:
    """A running telemetry of this machine."""
    process = ServiceProcess("telemetry", nats, tmp_path / "telemetry", SITE, NODE)
    await process.start()
    yield process
    await process.end()
