"""A gang from the matcher's decision to the last lease given back: real matcher, two launchers, real processes."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.launcher.test_process_runs import SLEEPER, gone
from tests.service_process import ServiceProcess

from oarlock_accelerators import Device, vendor
from oarlock_launcher.__main__ import build
from oarlock_launcher.settings import LauncherSettings
from oarlock_runtime import Bus, EmbeddedServer
from oarlock_schemas import (
    DeviceState,
    LeaseBook,
    Portrait,
    Source,
    TaskLaunched,
    TaskPlaced,
    TaskProfiled,
    TaskRecord,
    TaskSubmitted,
)

if TYPE_CHECKING:
    from tests.launcher.conftest import Matcher

AT = "2026-01-01T00:00:00Z"
NODES = ("left", "right")


class OneCpu:
    """This machine's CPU under the name of a node, so that two nodes of one machine differ."""

    async def find(self, vendor_name: str, uids: Sequence[str]) -> list[Device]:
        """See ``oarlock_launcher.ports.Devices``."""
        (device,) = vendor("cpu").probe().devices
        return [replace(device, uid=uid) for uid in uids]


@pytest.fixture
async def fleet(nats: EmbeddedServer, bus: Bus, matcher: Matcher, tmp_path: Path) -> AsyncIterator[None]:
    """A matcher, and a launcher and a heartbeat for each node."""
    folder = tmp_path / "matcher"
    folder.mkdir()
    deciding = ServiceProcess("matcher", nats, folder, matcher.site, "left")
    await deciding.start()
    async with AsyncExitStack() as stack:
        for node in NODES:
            settings = LauncherSettings(
                site=matcher.site, node=node, site_shared=True, data_dir=tmp_path / node, run_grace_seconds=1
            )
            own = await stack.enter_async_context(await Bus.connect(nats.url, token=nats.token, name=node))
            service, site = build(own, settings, OneCpu())
            stack.push_async_callback(site.stop)
            await stack.enter_async_context(service)
        beating = asyncio.create_task(heartbeats(bus, matcher.site))
        yield
        beating.cancel()
    await deciding.end()


async def heartbeats(bus: Bus, site: str) -> None:
    """What telemetry of both nodes writes."""
    while True:
        for node in NODES:
            state = DeviceState(
                uid=f"CPU-{node}", site=site, node=node, kind="CPU", vendor="cpu", memory_bytes=1 << 34, seen_at=AT
            )
            await bus.bucket("devices", DeviceState).put(f"{site}.{node}.{state.uid}", state)
        await asyncio.sleep(2)


async def submit(bus: Bus, task_id: str, script: str, **task: object) -> None:
    """What the profiler publishes of a task for two devices."""
    submitted = TaskSubmitted.model_validate(
        {
            "task_id": task_id,
            "source": Source(inline=script),
            "task": {"num_gpus_estimate": 2},
            "resource_policy": {"several_nodes": True},
            **task,
        }
    )
    await bus.bucket("tasks", TaskRecord).put(task_id, TaskRecord(task_id=task_id))
    portrait = Portrait(framework="numpy", method="declared", confidence=1)
    event = TaskProfiled(task_id=task_id, task=submitted, portrait=portrait, at=AT)
    await bus.publish(bus.subjects.profiled(task_id), event, msg_id=f"{task_id}:profiled:1")


async def held(bus: Bus, by: set[str]) -> None:
    """Await the moment when exactly these tasks hold each of the devices."""
    books: dict[str, set[str]] = {}
    async with asyncio.timeout(60):
        async for change in bus.bucket("leases", LeaseBook).watch():
            books[change.key] = {lease.task_id for lease in change.value.leases} if change.value else set()
            if [books.get(f"CPU-{node}") for node in NODES] == [by, by]:
                return


async def test_a_gang_is_placed_runs_and_gives_everything_back(bus: Bus, matcher: Matcher, fleet: None) -> None:
    await submit(bus, "g1", "import os; print(os.environ['RANK'], os.environ['WORLD_SIZE'])")
    finished = await matcher.finished("g1", seconds=60)
    assert (finished.outcome, sorted(finished.device_uids)) == ("ok", ["CPU-left", "CPU-right"])
    await held(bus, set())
    assert sorted(await matcher.output("g1", lambda lines: len(lines) == 2)) == ["[left] 0 2", "[right] 1 2"]
    assert await matcher.stored(bus.subjects.finished("g1")) == 1
    placed = (await anext(bus.watch(bus.subjects.placed(task_id="g1"), start="all"))).parse(TaskPlaced)
    assert {device.node for device in placed.devices} == set(NODES)


async def launches(bus: Bus, task_id: str, count: int) -> dict[tuple[int, str], int]:
    """The process of each attempt on each node, once there are ``count``."""
    found: dict[tuple[int, str], int] = {}
    async with asyncio.timeout(60):
        async for message in bus.watch(bus.subjects.launched(task_id), start="all"):
            event = message.parse(TaskLaunched)
            assert event.pid is not None
            found[event.attempt, event.node] = event.pid
            if len(found) == count:
                return found
    raise AssertionError


async def test_a_member_that_dies_frees_all_devices_once_and_the_task_is_tried_again(
    bus: Bus, matcher: Matcher, fleet: None
) -> None:
    await submit(bus, "g2", SLEEPER, retries=1)
    # Waits for both devices, whole.
    await submit(bus, "g3", "print('after')")
    first = await launches(bus, "g2", 2)
    await held(bus, {"g2"})
    os.kill(first[1, "right"], signal.SIGKILL)
    finished = await matcher.finished("g2", seconds=60)
    assert finished.outcome == "error" and finished.message is not None and finished.message.startswith("on right:")
    await gone(first[1, "left"])
    assert (await matcher.finished("g3", seconds=60)).outcome == "ok"
    # Its second attempt is a gang of its own.
    assert len(await launches(bus, "g2", 4)) == 4
    await bus.publish(bus.subjects.cancel("g2"), {})
    assert (await matcher.finished("g2", 2, seconds=60)).outcome == "cancelled"
    await held(bus, set())
    assert await matcher.stored(bus.subjects.finished("g2")) == 2
    assert (await matcher.record("g2")).state == "cancelled"
