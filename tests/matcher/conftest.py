"""A matcher that leads on a real bus, and what it needs to decide on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from oarlock_matcher.adapters.decision_log import DecisionLog
from oarlock_matcher.handlers.leading import Leading
from oarlock_runtime import Bus, EmbeddedServer, Leadership, OarlockError, Service
from oarlock_schemas import (
    Compute,
    DeviceState,
    Memory,
    MemoryPeak,
    Portrait,
    State,
    StateChange,
    TaskFinished,
    TaskPlaced,
    TaskProfiled,
    TaskRecord,
    TaskSubmitted,
    read,
)

GIB = 2**30


def now() -> str:
    return datetime.now(UTC).isoformat()


def device(uid: str, kind: str = "A100-SXM4-40GB", node: str = "n1", gib: int = 40, **more: Any) -> DeviceState:
    vendor = "cpu" if kind == "CPU" else "nvidia"
    return DeviceState(
        uid=uid, site="s1", node=node, kind=kind, vendor=vendor, memory_bytes=gib * GIB, seen_at=now(), **more
    )


def profiled(task_id: str, gib: float | None, *, busy: float | None = None, **task: Any) -> TaskProfiled:
    size = None if gib is None else int(gib * GIB)
    peak = MemoryPeak(device_bytes=size, reserve_bytes=size)
    compute = Compute(busy_share={} if busy is None else {"A100-SXM4-40GB": busy, "RTX 3090": busy / 2})
    portrait = Portrait(
        framework="pytorch", method="interpreted", confidence=1.0, memory=Memory(peak=peak), compute=compute
    )
    submitted, _ = read(TaskSubmitted, {"task_id": task_id, **task})
    return TaskProfiled(task_id=task_id, task=submitted, portrait=portrait, at=now())


@dataclass
class Fleet:
    """Speaks for everything around the matcher: nodes, the profiler, the launcher."""

    bus: Bus
    devices: dict[str, DeviceState] = field(default_factory=dict)

    async def add(self, *states: DeviceState) -> None:
        for state in states:
            self.devices[f"{state.site}.{state.node}.{state.uid}"] = state
        await self.beat()

    async def beat(self) -> None:
        """A heartbeat of every node: without it the entries expire."""
        for key, state in self.devices.items():
            await self.bus.bucket("devices", DeviceState).put(key, state)

    async def submit(self, event: TaskProfiled) -> None:
        record = TaskRecord(
            task_id=event.task_id,
            owner=event.task.owner,
            history=[StateChange(state="submitted", at=event.at, by="test")],
        )
        await self.bus.bucket("tasks", TaskRecord).create(event.task_id, record)
        await self.publish(event)

    async def publish(self, event: TaskProfiled) -> None:
        await self.bus.publish(
            self.bus.subjects.profiled(event.task_id), event, msg_id=f"{event.task_id}:profiled:{event.attempt}"
        )

    async def finish(self, task_id: str, outcome: str, attempt: int = 1, devices: tuple[str, ...] = ()) -> None:
        """As a launcher ends a run: the record has moved to running, and to its end where the launcher knows it."""
        await self.state(task_id, "placed")
        await self.move(task_id, "running")
        if outcome == "ok":
            await self.move(task_id, "succeeded")
        await self.end(task_id, outcome, attempt, devices)

    async def end(self, task_id: str, outcome: str, attempt: int = 1, devices: tuple[str, ...] = ()) -> None:
        event = TaskFinished.model_validate(
            {
                "task_id": task_id,
                "attempt": attempt,
                "site": "s1",
                "outcome": outcome,
                "finished_at": now(),
                "device_uids": list(devices),
            }
        )
        await self.bus.publish(self.bus.subjects.finished(task_id), event, msg_id=f"{task_id}:finished:{attempt}")

    async def move(self, task_id: str, state: State) -> None:
        def step(record: TaskRecord | None) -> TaskRecord | None:
            return None if record is None else record.move(state, at=now(), by="launcher")

        await self.bus.bucket("tasks", TaskRecord).change(task_id, step)

    async def placement(self, task_id: str, attempt: int = 1) -> TaskPlaced:
        async with asyncio.timeout(60):
            async for message in self.bus.watch(self.bus.subjects.placed(task_id=task_id), start="all"):
                placed, _ = read(TaskPlaced, message.data)
                if placed.attempt == attempt:
                    return placed
        raise AssertionError("unreachable")

    async def record(self, task_id: str, wanted: Callable[[TaskRecord], bool]) -> TaskRecord:
        async with asyncio.timeout(60):
            async for change in self.bus.bucket("tasks", TaskRecord).watch(task_id):
                if change.value is not None and wanted(change.value):
                    return change.value
        raise AssertionError("unreachable")

    async def state(self, task_id: str, *states: str) -> TaskRecord:
        return await self.record(task_id, lambda record: record.state in states)


@asynccontextmanager
async def leading(bus: Bus, holder: str = "one", decisions: DecisionLog | None = None) -> AsyncIterator[Service]:
    """A matcher service that stands for election."""
    service = Service(bus, "matcher")
    leadership = Leadership(bus.bucket("leaders"), "matcher", holder, 2)
    work = Leading(bus, service, now, 0.1, decisions)

    async def lead() -> None:
        await leadership.run(work.reign)

    service.background(lead, name="leadership")
    async with service:
        yield service


@pytest.fixture
async def fleet(bus: Bus) -> AsyncIterator[Fleet]:
    made = Fleet(bus)

    async def heart() -> None:
        while True:
            await asyncio.sleep(4)
            with suppress(OarlockError):
                await made.beat()

    beating = asyncio.create_task(heart())
    yield made
    beating.cancel()


@pytest.fixture
async def matcher(bus: Bus, nats: EmbeddedServer) -> AsyncIterator[Service]:
    """A leading matcher on a connection of its own."""
    async with await Bus.connect(nats.url, token=nats.token, name="matcher") as own, leading(own) as service:
        yield service
