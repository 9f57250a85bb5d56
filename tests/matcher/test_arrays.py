"""Arrays and dependencies: so many at a time, and what comes after the whole of them."""

from __future__ import annotations

import asyncio

from oarlock_matcher.core.effects import Rejected, Reserve
from oarlock_matcher.core.events import TaskEnded, TaskFinished
from oarlock_runtime import Bus, EmbeddedServer, Service
from oarlock_schemas import StateChange, TaskCancel, TaskRecord, array_spec

from .conftest import Fleet, device, leading, now, profiled
from .fleets import A100, Driver, need, node


def test_as_many_of_an_array_run_as_it_allows_and_others_pass() -> None:
    driver = Driver().fleet(node("a", A100, 4))
    for index in range(4):
        demand = need(f"s-{index}", array="s", array_at_once=2)
        driver.place(demand) if index < 2 else driver.queue(demand)
    assert [r.code for r in driver.state.tasks["s-2"].reasons] == ["array_limit"]
    driver.place(need("other"))
    driver.place(need("u-0", array="u", array_at_once=1))
    assert driver.finish("other") == []
    assert driver.finish("s-0") == ["s-2"]
    assert driver.finish("s-1") == ["s-3"]


def test_an_attempt_that_another_follows_lets_nothing_go_on_and_fails_nothing() -> None:
    driver = Driver().fleet(node("a", A100, 1))
    driver.place(need("first"))
    driver.queue(need("next", after=("first",)))
    assert not any(isinstance(e, Reserve | Rejected) for e in driver.tell(TaskFinished("first", 1, "oom", final=False)))
    driver.place(need("first", attempt=2))
    assert driver.finish("first") == ["next"]


def test_what_ended_unseen_lets_go_on_what_comes_after_it() -> None:
    driver = Driver().fleet(node("a", A100, 2))
    driver.queue(need("good", after=("s",)))
    driver.queue(need("bad", after=("t",)))
    assert [e.task_id for e in driver.tell(TaskEnded("s", 1, "succeeded")) if isinstance(e, Reserve)] == ["good"]
    (rejected,) = driver.tell(TaskEnded("t", 1, "failed"))
    assert isinstance(rejected, Rejected) and rejected.code == "dependency_failed"
    assert driver.tell(TaskEnded("t", 1, "succeeded")) == ()


async def array(bus: Bus, fleet: Fleet, array_id: str, text: str) -> None:
    """As the profiler spreads an array."""
    record = TaskRecord(task_id=array_id, array=text, history=[StateChange(state="submitted", at=now(), by="test")])
    await bus.bucket("tasks", TaskRecord).create(array_id, record)
    spec = array_spec(text)
    for index in spec.indices:
        event = profiled(f"{array_id}-{index}", 30, array_member=spec.member(array_id, index).model_dump())
        member = event.task.array_member
        await fleet.submit(event)
        change = lambda old, m=member: old.model_copy(update={"array_member": m})  # noqa: E731
        await bus.bucket("tasks", TaskRecord).change(f"{array_id}-{index}", change)


async def test_an_array_runs_so_many_at_a_time_and_ends_as_a_whole(bus: Bus, fleet: Fleet, matcher: Service) -> None:
    await fleet.add(device("GPU-a"), device("GPU-b"))
    await array(bus, fleet, "s", "0-2%1")
    first = await fleet.placement("s-0")
    await fleet.submit(profiled("report", 30, after=["s"]))
    for index in range(3):
        placed = first if index == 0 else await fleet.placement(f"s-{index}")
        if index == 0:
            assert "of array s hold devices" in ((await fleet.state("s-1", "queued")).message or "")
        await fleet.finish(f"s-{index}", "ok", devices=(placed.devices[0].uid,))
    assert (await fleet.state("s", "succeeded")).message == "3 succeeded"
    await fleet.placement("report")


async def test_cancelling_an_array_cancels_its_tasks(bus: Bus, fleet: Fleet, matcher: Service) -> None:
    await fleet.add(device("GPU-a"))
    await array(bus, fleet, "s", "0-2")
    await fleet.placement("s-0")
    await fleet.state("s-1", "queued")
    await fleet.state("s-2", "queued")
    await bus.publish(bus.subjects.cancel("s"), TaskCancel(task_id="s", reason="enough"))
    for index in (1, 2):
        await fleet.state(f"s-{index}", "cancelled")
    assert (await fleet.state("s", "cancelled")).message == "enough"
    async with asyncio.timeout(60):
        # The launcher is asked to end the one that runs.
        async for message in bus.watch(bus.subjects.cancel("s-0"), start="all"):
            assert message.json()["reason"] == "enough"
            break


async def test_what_comes_after_a_task_that_ended_before_this_leader_goes_on(
    bus: Bus, nats: EmbeddedServer, fleet: Fleet
) -> None:
    await fleet.add(device("GPU-a"))
    async with await Bus.connect(nats.url, token=nats.token, name="m1") as one, leading(one, "one"):
        await fleet.submit(profiled("first", 30))
        await fleet.placement("first")
        await fleet.submit(profiled("next", 30, after=["first"]))
        await fleet.state("next", "queued")
        await fleet.finish("first", "ok", devices=("GPU-a",))
        await fleet.placement("next")
        await fleet.finish("next", "ok", devices=("GPU-a",))
    async with await Bus.connect(nats.url, token=nats.token, name="m2") as two, leading(two, "two"):
        await fleet.submit(profiled("later", 30, after=["first", "next"]))
        await fleet.placement("later")
