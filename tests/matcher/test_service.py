"""The matcher on a real bus: placements, queues, rejections, further attempts, fail-over."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from oarlock import AsyncClient
from oarlock.sdk import DeviceNotFound
from oarlock_matcher.adapters.decision_log import DecisionLog, replay_file
from oarlock_matcher.handlers.records import Records
from oarlock_runtime import Bus, EmbeddedServer, Service
from oarlock_schemas import (
    DeviceReason,
    DeviceState,
    LeaseBook,
    StateChange,
    TaskCancel,
    TaskQueued,
    TaskRecord,
    TaskRejected,
    read,
)

from .conftest import GIB, Fleet, device, leading, profiled


async def book(bus: Bus, uid: str) -> list[str]:
    entry = await bus.bucket("leases", LeaseBook).get(uid)
    return [] if entry is None else [lease.task_id for lease in entry.value.leases]


async def freed(bus: Bus, uid: str) -> None:
    """Wait until nobody holds the device."""
    async with asyncio.timeout(60):
        async for change in bus.bucket("leases", LeaseBook).watch(uid):
            if change.value is not None and not change.value.leases:
                return


async def test_a_task_is_placed_booked_and_recorded(bus: Bus, fleet: Fleet, matcher: Service) -> None:
    await fleet.add(device("GPU-a"), device("GPU-b", "RTX 3090", "n2", 24))
    await fleet.submit(profiled("t1", 30))
    placed = await fleet.placement("t1")
    assert [d.uid for d in placed.devices] == ["GPU-a"]
    assert placed.site == "s1" and placed.attempt == 1
    entry = await bus.bucket("leases", LeaseBook).get("GPU-a")
    assert entry is not None and entry.revision == placed.devices[0].fence
    assert any(reason.reason == "memory_too_small" for reason in placed.rejected)
    record = await fleet.state("t1", "placed")
    assert record.device_kind == "A100-SXM4-40GB"
    await fleet.finish("t1", "ok", devices=("GPU-a",))
    await fleet.state("t1", "succeeded")
    await freed(bus, "GPU-a")


async def test_a_task_that_fits_nowhere_is_rejected_with_the_size_it_needs(
    bus: Bus, fleet: Fleet, matcher: Service
) -> None:
    await fleet.add(device("GPU-a"))
    await fleet.submit(profiled("big", 300))
    record = await fleet.state("big", "rejected")
    message = await bus.last(bus.subjects.rejected("big"))
    assert message is not None
    rejected, _ = read(TaskRejected, message.data)
    assert rejected.code == "no_device_fits"
    # 300 GB may be 85 % of a device.
    assert "352.9 GB" in rejected.message and "352.9 GB" in (record.message_zh or "")


async def test_a_task_that_ran_out_of_the_largest_device_there_is_told_so(
    bus: Bus, fleet: Fleet, matcher: Service
) -> None:
    await fleet.add(device("GPU-a"))
    await fleet.submit(profiled("t", 10))
    await fleet.state("t", "placed")
    await fleet.finish("t", "oom", devices=("GPU-a",))
    record = await fleet.state("t", "rejected")
    assert "ran out of memory on A100-SXM4-40GB" in (record.message or ""), record.message


async def test_a_task_waits_with_reasons_until_a_device_is_free(bus: Bus, fleet: Fleet, matcher: Service) -> None:
    await fleet.add(device("GPU-a"))
    await fleet.submit(profiled("first", 30))
    await fleet.placement("first")
    await fleet.submit(profiled("second", 30))
    await fleet.state("second", "queued")
    message = await bus.last(bus.subjects.queued("second"))
    assert message is not None
    queued, _ = read(TaskQueued, message.data)
    assert queued.reasons and queued.would_free
    await fleet.finish("first", "ok", devices=("GPU-a",))
    assert [d.uid for d in (await fleet.placement("second")).devices] == ["GPU-a"]


async def test_tasks_that_allow_it_share_a_device_by_bytes_until_they_would_slow_each_other(
    bus: Bus, nats: EmbeddedServer, fleet: Fleet
) -> None:
    await fleet.add(device("GPU-a"))
    shared: dict[str, Any] = {"resource_policy": {"shared": True}}
    async with await Bus.connect(nats.url, token=nats.token, name="m1") as one, leading(one, "one"):
        await fleet.submit(profiled("calm", 5, busy=0.3, **shared))
        await fleet.submit(profiled("guest", 5, busy=0.6, **shared))
        assert [(await fleet.placement(name)).devices[0].uid for name in ("calm", "guest")] == ["GPU-a", "GPU-a"]
    async with await Bus.connect(nats.url, token=nats.token, name="m2") as two, leading(two, "two"):
        # The next leader knows from the leases how busy the device is.
        await fleet.submit(profiled("eager", 5, busy=0.9, **shared))
        assert {r.reason for r in await _waits(bus, fleet, "eager")} == {"interference"}


async def test_a_task_of_which_nobody_knows_how_busy_it_is_shares_nothing(
    bus: Bus, fleet: Fleet, matcher: Service
) -> None:
    await fleet.add(device("GPU-a"))
    shared: dict[str, Any] = {"resource_policy": {"shared": True}}
    await fleet.submit(profiled("calm", 5, busy=0.3, **shared))
    await fleet.placement("calm")
    await fleet.submit(profiled("dark", 5, **shared))
    assert {r.reason for r in await _waits(bus, fleet, "dark")} == {"busy"}


async def _waits(bus: Bus, fleet: Fleet, task_id: str) -> list[DeviceReason]:
    await fleet.state(task_id, "queued")
    message = await bus.last(bus.subjects.queued(task_id))
    assert message is not None
    return read(TaskQueued, message.data)[0].reasons


async def test_out_of_memory_is_tried_again_on_a_larger_device(bus: Bus, fleet: Fleet, matcher: Service) -> None:
    await fleet.add(device("GPU-s", "RTX 3090", "n2", 24))
    await fleet.submit(profiled("t", 10))
    assert (await fleet.placement("t")).devices[0].uid == "GPU-s"
    await fleet.add(device("GPU-l"))
    await fleet.finish("t", "oom", devices=("GPU-s",))
    again = await fleet.placement("t", attempt=2)
    assert again.devices[0].uid == "GPU-l"
    await freed(bus, "GPU-s")


async def test_after_out_of_memory_a_larger_device_of_the_same_kind_will_do(
    bus: Bus, nats: EmbeddedServer, fleet: Fleet
) -> None:
    await fleet.add(device("GPU-s", "RTX 3090", "n2", 24))
    async with await Bus.connect(nats.url, token=nats.token, name="m1") as one, leading(one, "one"):
        await fleet.submit(profiled("t", 10))
        await fleet.placement("t")
        await fleet.add(device("GPU-e", "RTX 3090", "n3", 24), device("GPU-l", "RTX 3090", "n4", 48))
        await fleet.submit(profiled("other", 30, resource_policy={"required_devices": ["RTX 3090"]}))
        assert (await fleet.placement("other")).devices[0].uid == "GPU-l"
        await fleet.finish("t", "oom", devices=("GPU-s",))
        # Two idle devices of the size that was too small do not tempt it, nor the next leader.
        record = await fleet.state("t", "queued")
        assert record.ran_out_of_bytes is not None and record.ran_out_of_bytes > 23 * GIB
    async with await Bus.connect(nats.url, token=nats.token, name="m2") as two, leading(two, "two"):
        await fleet.finish("other", "ok", devices=("GPU-l",))
        assert (await fleet.placement("t", attempt=2)).devices[0].uid == "GPU-l"


async def test_a_failed_run_is_tried_again_as_often_as_its_retries_allow(fleet: Fleet, matcher: Service) -> None:
    await fleet.add(device("GPU-a"))
    await fleet.submit(profiled("t", 10, retries=1))
    await fleet.placement("t")
    await fleet.finish("t", "error", devices=("GPU-a",))
    await fleet.placement("t", attempt=2)
    await fleet.finish("t", "error", attempt=2, devices=("GPU-a",))
    assert (await fleet.state("t", "failed")).attempt == 2


async def test_a_waiting_task_is_cancelled(bus: Bus, fleet: Fleet, matcher: Service) -> None:
    await fleet.add(device("GPU-a"))
    await fleet.submit(profiled("first", 30))
    await fleet.placement("first")
    await fleet.submit(profiled("second", 30))
    await fleet.state("second", "queued")
    await bus.publish(bus.subjects.cancel("second"), TaskCancel(task_id="second"))
    await fleet.state("second", "cancelled")
    await fleet.finish("first", "ok", devices=("GPU-a",))
    await freed(bus, "GPU-a")


async def test_a_wait_ends_at_its_timeout(fleet: Fleet, matcher: Service) -> None:
    await fleet.add(device("GPU-a"))
    await fleet.submit(profiled("first", 30))
    await fleet.placement("first")
    await fleet.submit(profiled("second", 30, scheduler={"timeout": 0.5}))
    assert (await fleet.state("second", "rejected")).message == "the task waited longer than its timeout"


async def test_a_gpu_task_takes_no_cpu_and_a_host_task_no_gpu(bus: Bus, fleet: Fleet, matcher: Service) -> None:
    await fleet.add(device("CPU-x", "CPU", "n1", 64))
    host = profiled("host", 1)
    host = host.model_copy(update={"portrait": host.portrait.model_copy(update={"framework": "numpy"})})
    await fleet.submit(host)
    assert (await fleet.placement("host")).devices[0].uid == "CPU-x"
    await fleet.submit(profiled("gpu", 1))
    await fleet.state("gpu", "rejected")
    message = await bus.last(bus.subjects.rejected("gpu"))
    assert message is not None
    assert [reason.reason for reason in read(TaskRejected, message.data)[0].reasons] == ["kind_forbidden"]


async def test_preferred_devices_are_matched_through_aliases(fleet: Fleet, matcher: Service) -> None:
    await fleet.add(device("GPU-a"), device("GPU-b", "RTX 3090", "n2", 24))
    await fleet.submit(profiled("t", 5, resource_policy={"required_devices": ["rtx_3090"]}))
    assert (await fleet.placement("t")).devices[0].uid == "GPU-b"


async def test_a_stand_by_takes_over_and_keeps_what_runs(bus: Bus, nats: EmbeddedServer, fleet: Fleet) -> None:
    await fleet.add(device("GPU-a"), device("GPU-b"))
    async with await Bus.connect(nats.url, token=nats.token, name="m1") as one, leading(one, "one"):
        await fleet.submit(profiled("t1", 30))
        first = await fleet.placement("t1")
    async with await Bus.connect(nats.url, token=nats.token, name="m2") as two, leading(two, "two"):
        await fleet.submit(profiled("t2", 30))
        second = await fleet.placement("t2")
        assert second.devices[0].uid != first.devices[0].uid
        await fleet.submit(profiled("t3", 30))
        await fleet.state("t3", "queued")
        await fleet.finish("t1", "ok", devices=(first.devices[0].uid,))
        assert (await fleet.placement("t3")).devices[0].uid == first.devices[0].uid


async def test_an_unreadable_message_of_one_task_keeps_nobody_from_leading(
    bus: Bus, nats: EmbeddedServer, fleet: Fleet
) -> None:
    await fleet.add(device("GPU-a"))
    async with await Bus.connect(nats.url, token=nats.token, name="m1") as one, leading(one, "one"):
        await fleet.submit(profiled("t1", 30))
        await fleet.placement("t1")
        await fleet.submit(profiled("t2", 30))
        await fleet.state("t2", "queued")
    for subject in (
        bus.subjects.profiled("t2"),
        bus.subjects.placed("local", "t2"),
        bus.subjects.placed("local", "t1"),
    ):
        await bus.publish(subject, b"{")
    await fleet.add(device("GPU-b"))
    async with await Bus.connect(nats.url, token=nats.token, name="m2") as two, leading(two, "two"):
        await fleet.submit(profiled("t3", 30))
        assert (await fleet.state("t3", "placed")).device_uids == ["GPU-b"]


async def test_a_booking_without_a_placement_is_given_back_by_the_next_leader(
    bus: Bus, fleet: Fleet, nats: EmbeddedServer
) -> None:
    stray = LeaseBook.model_validate(
        {
            "device_uid": "GPU-a",
            "leases": [
                {"task_id": "ghost", "attempt": 1, "bytes": 1, "exclusive": True, "since": "2026-01-01T00:00:00Z"}
            ],
        }
    )
    await bus.bucket("leases", LeaseBook).create("GPU-a", stray)
    await fleet.add(device("GPU-a"))
    async with await Bus.connect(nats.url, token=nats.token, name="m") as own, leading(own):
        await fleet.submit(profiled("t", 30))
        assert (await fleet.placement("t")).devices[0].uid == "GPU-a"


async def test_the_server_is_killed_between_tasks_and_nothing_is_lost(
    bus: Bus, nats: EmbeddedServer, fleet: Fleet, matcher: Service
) -> None:
    await fleet.add(device("GPU-a"), device("GPU-b"))
    await fleet.submit(profiled("t1", 30))
    await fleet.placement("t1")
    nats.kill()
    await asyncio.to_thread(nats.restart)
    await fleet.add(device("GPU-a"), device("GPU-b"))
    await fleet.submit(profiled("t2", 30))
    placed = await fleet.placement("t2")
    assert await book(bus, placed.devices[0].uid) == ["t2"]


async def test_decisions_are_counted(fleet: Fleet, matcher: Service) -> None:
    def count(name: str, **labels: str) -> float:
        return float(matcher.registry.get_sample_value(name, labels) or 0)

    await fleet.add(device("GPU-a"))
    await fleet.submit(profiled("t1", 30))
    await fleet.placement("t1")
    await fleet.submit(profiled("t2", 30))
    await fleet.state("t2", "queued")
    assert count("oarlock_matcher_leading") == 1
    assert count("oarlock_matcher_waiting_tasks") == 1
    await fleet.submit(profiled("big", 300))
    await fleet.state("big", "rejected")
    await fleet.finish("t1", "ok", devices=("GPU-a",))
    await fleet.state("t2", "placed")
    assert count("oarlock_rejections_total", code="no_device_fits") == 1
    assert count("oarlock_placement_wait_seconds_count") >= 1
    assert count("oarlock_placements_total", policy="rule_based", kind="A100-SXM4-40GB") >= 1


async def test_a_cordon_outlives_the_inventory_entry(bus: Bus, fleet: Fleet, nats: EmbeddedServer) -> None:
    client = AsyncClient(bus)
    await fleet.add(device("GPU-a", node="n1"), device("GPU-b", node="n1"), device("GPU-c", node="n2"))
    assert await client.cordon("n1") == ["GPU-a", "GPU-b"]
    assert [d.state.cordoned for d in await client.fleet()] == [True, True, False]
    devices = bus.bucket("devices", DeviceState)
    for key in await devices.keys("s1.n1.*"):
        await devices.delete(key)
    # The node comes back, and its telemetry knows of no cordon; one device of it is new.
    await fleet.add(device("GPU-a", node="n1"), device("GPU-n", node="n1"))
    async with await Bus.connect(nats.url, token=nats.token, name="m") as own, leading(own):
        await fleet.submit(profiled("t1", 30))
        assert (await fleet.placement("t1")).devices[0].uid == "GPU-c"
        await fleet.submit(profiled("t2", 30))
        assert "cordoned" in ((await fleet.state("t2", "queued")).message or "")
        # Of a cordoned node one device is let on again.
        await client.cordon("GPU-n", cordoned=False)
        assert (await fleet.placement("t2")).devices[0].uid == "GPU-n"
        assert [d.state.uid for d in await client.fleet() if d.state.cordoned] == ["GPU-a", "GPU-b"]
        assert await client.cordon("n1", cordoned=False) == ["GPU-a", "GPU-b", "GPU-n"]
        await fleet.submit(profiled("t3", 30))
        assert (await fleet.placement("t3")).devices[0].uid in {"GPU-a", "GPU-b"}


async def test_a_device_that_is_away_is_let_on_again(bus: Bus, fleet: Fleet) -> None:
    client = AsyncClient(bus)
    await fleet.add(device("GPU-a"))
    await client.cordon("GPU-a")
    await bus.bucket("devices", DeviceState).delete("s1.n1.GPU-a")
    assert await client.cordon("GPU-a", cordoned=False) == []
    await fleet.add(device("GPU-a"))
    assert [d.state.cordoned for d in await client.fleet()] == [False]
    with pytest.raises(DeviceNotFound):
        await client.cordon("GPU-z")


async def test_what_a_leader_decided_is_decided_again_bit_for_bit(
    tmp_path: Path, nats: EmbeddedServer, fleet: Fleet
) -> None:
    path = tmp_path / "decisions.jsonl"
    await fleet.add(device("GPU-a"), device("GPU-b", "RTX 3090", "n2", 24))
    async with await Bus.connect(nats.url, token=nats.token, name="m") as own, leading(own, "m", DecisionLog(path)):
        for number, gib in enumerate((30, 10, 300, 32)):
            await fleet.submit(profiled(f"t{number}", gib))
            await fleet.state(f"t{number}", "placed", "queued", "rejected")
        await fleet.finish("t0", "ok", devices=("GPU-a",))
        await fleet.placement("t3")
    (reign,) = replay_file(path)
    assert reign[1] > 8 and reign[2] == []
    # A decision that was taken otherwise is found.
    lines = path.read_text().splitlines()
    digests = [json.loads(line)["effects"] for line in lines[1:]]
    placed = next(n for n, digest in enumerate(digests) if digests.count(digest) == 1)
    lines[placed + 1] = lines[placed + 1].replace(digests[placed], "0" * 16)
    path.write_text("\n".join(lines) + "\n")
    assert [mismatch.number for _, _, found in replay_file(path) for mismatch in found] == [placed]


async def test_a_lower_priority_gives_way_and_is_placed_again(bus: Bus, fleet: Fleet, nats: EmbeddedServer) -> None:
    await bus.bucket("policy").put("matcher", {"preemption": True, "hold_after_seconds": 0.0})
    await fleet.add(device("GPU-a"))
    async with await Bus.connect(nats.url, token=nats.token, name="m") as own, leading(own):
        await fleet.submit(profiled("low", 30, priority=10))
        await fleet.placement("low")
        await fleet.state("low", "placed")
        await fleet.move("low", "running")
        await fleet.submit(profiled("high", 30, priority=90))
        async with asyncio.timeout(60):
            async for message in bus.watch(bus.subjects.cancel("low"), start="all"):
                asked, _ = read(TaskCancel, message.data)
                break
        assert asked.preempt_attempt == 1
        await fleet.end("low", "preempted", devices=("GPU-a",))
        assert (await fleet.placement("high")).devices[0].uid == "GPU-a"
        assert (await fleet.state("low", "queued")).attempt == 2
        await fleet.finish("high", "ok", devices=("GPU-a",))
        assert (await fleet.placement("low", attempt=2)).devices[0].uid == "GPU-a"


async def test_records_of_tasks_that_ended_long_ago_make_room(bus: Bus) -> None:
    records = bus.bucket("tasks", TaskRecord)
    for number in range(6):
        state = "running" if number == 0 else "succeeded"
        step = StateChange.model_validate({"state": state, "at": f"2026-01-0{number + 1}T00:00:00Z", "by": "test"})
        record = TaskRecord.model_validate({"task_id": f"t{number}", "state": state, "history": [step]})
        await records.create(f"t{number}", record)
    assert await Records(bus).prune(2) == 3
    assert sorted(await records.keys()) == ["t0", "t4", "t5"]
