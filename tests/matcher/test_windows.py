"""Reservations and maintenance: who is kept off which devices, when, and in which words."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from oarlock_matcher.adapters.policy_document import policy_of
from oarlock_matcher.core.effects import Preempt, Queued, Reserve
from oarlock_matcher.core.events import NodeSeen, PolicyUpdated, TaskArrived, TaskFinished, Tick
from oarlock_matcher.core.machine import why
from oarlock_matcher.core.policy_settings import PolicySettings, Window
from oarlock_runtime import Bus, Service
from oarlock_schemas import TaskQueued, read

from .conftest import Fleet, device, profiled
from .fleets import A100, RTX_3090, Driver, need, node


def driver(*windows: Window, **settings: object) -> Driver:
    fields: dict[str, object] = {"windows": windows, **settings}
    return Driver(PolicySettings(**fields)).fleet(node("a", A100, 2), node("r", RTX_3090, 2))  # type: ignore[arg-type]


def maintenance(begins: float, ends: float, **what: frozenset[str]) -> Window:
    return Window("service", begins, ends, **(what or {"nodes": frozenset({"a", "r"})}))  # type: ignore[arg-type]


def test_a_task_that_ends_before_the_window_is_placed_and_a_longer_one_waits_for_its_end() -> None:
    one = driver(maintenance(2000.0, 3000.0))
    one.place(need("short", expected_seconds=900.0))
    queued = one.queue(need("long", expected_seconds=1100.0))
    assert {reason.code for reason in queued.reasons} == {"maintenance"}
    assert "by service; the task may run for 1100 s" in queued.reasons[0].sentence
    assert any(told.startswith("the end of service at ") for told in queued.would_free_it)
    assert one.tell(Tick(), after=1990.0) == ()
    placed = one.tell(Tick(), after=10.0)
    assert [e.task_id for e in placed if isinstance(e, Reserve)] == ["long"]


def test_an_unknown_duration_counts_as_endless_and_is_said_so() -> None:
    queued = driver(maintenance(10_000_000.0, 10_000_001.0)).queue(need("t"))
    assert "how long the task runs is not known" in queued.reasons[0].sentence
    assert "a run timeout (--run-timeout) that ends before the window begins" in queued.would_free_it


def test_a_run_timeout_bounds_a_run_and_so_does_the_duration_on_the_kind() -> None:
    window = maintenance(2000.0, 3000.0)
    driver(window).place(need("bounded", run_timeout_seconds=500.0))
    driver(window).place(need("bounded", run_timeout_seconds=500.0, expected_seconds=9000.0))
    by_kind = need("t", duration_seconds={A100.kind: 900.0, RTX_3090.kind: 1500.0}, preferred_kinds=(RTX_3090.kind,))
    assert driver().place(by_kind).kind == RTX_3090.kind
    assert driver(window).place(by_kind).kind == A100.kind


def test_a_reservation_lets_its_owner_in_and_nobody_else() -> None:
    reserved = Window("course", 0.0, 5000.0, "alice", kinds=frozenset({A100.kind}))
    one = driver(reserved)
    only_a100: dict[str, Any] = {"required_kinds": frozenset({A100.kind})}
    queued = one.queue(need("bobs", owner="bob", **only_a100))
    assert {r.code for r in queued.reasons} == {"kind_not_required", "reserved"}
    assert any("reserved for alice" in r.sentence for r in queued.reasons)
    assert one.place(need("hers", owner="alice", **only_a100)).kind == A100.kind
    assert one.place(need("his", owner="bob")).kind == RTX_3090.kind


def test_one_device_of_a_node_is_closed_and_the_other_is_given() -> None:
    one = driver(maintenance(0.0, 5000.0, devices=frozenset({"a-0"}), kinds=frozenset({RTX_3090.kind})))
    assert [s.device_uid for s in one.place(need("t")).shares] == ["a-1"]
    one.queue(need("u"))
    assert one.place(need("cpus", None, device_count=0, cpu_milli=1000)).node_shares


def test_a_gang_does_not_take_a_closed_device() -> None:
    one = driver(maintenance(0.0, 5000.0, devices=frozenset({"a-0"})))
    queued = one.queue(need("gang", device_count=2, required_kinds=frozenset({A100.kind})))
    assert {r.code for r in queued.reasons} == {"kind_not_required", "maintenance", "gang_size"}


def test_devices_that_join_during_a_window_are_covered_by_it() -> None:
    one = driver(maintenance(0.0, 5000.0, sites=frozenset({"lab"})))
    one.queue(need("t"))
    assert one.tell(NodeSeen(node("a2", A100, 1))) == ()
    assert [type(e) for e in one.tell(NodeSeen(node("far", A100, 1, site="elsewhere")))] == [Reserve]


def test_a_window_that_is_added_or_removed_counts_at_once() -> None:
    one = driver()
    one.tell(PolicyUpdated(PolicySettings(windows=(maintenance(0.0, 5000.0),))))
    one.queue(need("t"))
    assert [type(e) for e in one.tell(PolicyUpdated(PolicySettings()))] == [Reserve]


def test_a_waiting_task_is_told_of_a_window_that_came_later() -> None:
    one = driver()
    for number in range(4):
        one.place(need(f"running{number}"))
    assert {r.code for r in one.queue(need("t")).reasons} == {"busy"}
    one.tell(PolicyUpdated(replace(PolicySettings(), windows=(maintenance(1500.0, 5000.0),))))
    told = [e for e in one.tell(Tick(), after=60.0) if isinstance(e, Queued)]
    assert [{r.code for r in e.reasons} for e in told] == [{"maintenance"}]
    assert {r.code for r in why(one.state, "t", one.now).reasons} == {"maintenance"}
    # Nothing has changed since: it is not told again.
    assert one.tell(Tick(), after=60.0) == ()


def test_nothing_is_held_or_preempted_on_devices_that_the_head_may_not_use() -> None:
    closed = maintenance(2000.0, 9000.0)
    one = driver(closed, hold_after_seconds=0.0, preemption=True)
    one.place(need("low", priority=0, expected_seconds=100.0))
    one.queue(need("head", priority=50))
    effects = one.tell(Tick(), after=1.0)
    assert not any(isinstance(e, Preempt) for e in effects)
    assert one.state.hold is None
    one.place(need("short", expected_seconds=500.0))


def test_windows_are_read_from_the_policy_document_and_what_is_none_is_left_out() -> None:
    settings = policy_of(
        {
            "windows": {
                "good": {
                    "begins_at": "2026-12-01T08:00:00+08:00",
                    "ends_at": "2026-12-01T04:00:00Z",
                    "kinds": ["A100"],
                },
                "backwards": {"begins_at": "2026-12-01T08:00:00Z", "ends_at": "2026-12-01T07:00:00Z", "nodes": ["n"]},
                "nowhere": {"begins_at": "2026-12-01T08:00:00Z", "ends_at": "2026-12-01T09:00:00Z"},
                "zoneless": {"begins_at": "2026-12-01T08:00:00", "ends_at": "2026-12-01T09:00:00Z", "nodes": ["n"]},
                "text": "tomorrow",
            }
        }
    )
    (window,) = settings.windows
    assert window.name == "good" and window.ends - window.begins == 4 * 3600
    assert {"A100-SXM4-40GB", "A100-PCIE-80GB"} <= window.kinds and "RTX 3090" not in window.kinds


@pytest.mark.parametrize("seed", range(8))
def test_no_placement_ever_reaches_into_a_window_and_every_task_gets_its_turn(seed: int) -> None:
    chance = random.Random(seed)
    windows = []
    for number in range(4):
        begins = chance.uniform(1000.0, 9000.0)
        what = chance.choice(
            [{"nodes": frozenset({"a"})}, {"kinds": frozenset({RTX_3090.kind})}, {"devices": frozenset({"a-1"})}]
        )
        owner = chance.choice([None, "alice"])
        ends_at = begins + chance.uniform(10.0, 2000.0)
        windows.append(Window(f"w{number}", begins, ends_at, owner, **what))  # type: ignore[arg-type]
    one = driver(*windows, hold_after_seconds=30.0)
    ends: dict[str, float] = {}
    placed = 0

    def look(effects: tuple[Any, ...]) -> int:
        count = 0
        for effect in effects:
            if isinstance(effect, Reserve):
                demand = one.state.tasks[effect.task_id].demand
                seconds = demand.seconds_on(effect.placed.kind)
                ends[effect.task_id] = one.now + (chance.uniform(1.0, 300.0) if seconds is None else seconds)
                for window in windows:
                    for share in effect.shares:
                        covered = (
                            share.node in window.nodes
                            or effect.placed.kind in window.kinds
                            or share.device_uid in window.devices
                        )
                        reaches = seconds is None or one.now + seconds > window.begins
                        assert not (covered and reaches and one.now < window.ends and demand.owner != window.owner)
                count += 1
        return count

    for number in range(60):
        demand = need(
            f"t{number}",
            owner=chance.choice(["alice", "bob"]),
            device_count=chance.choice([1, 1, 2]),
            expected_seconds=chance.choice([None, 100.0, 700.0]),
        )
        placed += look(one.tell(TaskArrived(demand), after=chance.uniform(0.0, 60.0)))
        for task_id in [t for t, end in ends.items() if end <= one.now]:
            del ends[task_id]
            placed += look(one.tell(TaskFinished(task_id, 1, "succeeded")))
    while ends or len(one.state.queue):
        placed += look(one.tell(Tick(), after=50.0))
        for task_id in [t for t, end in ends.items() if end <= one.now]:
            del ends[task_id]
            placed += look(one.tell(TaskFinished(task_id, 1, "succeeded")))
        assert one.now < 100_000.0, "a task waits though every window has ended"
    assert placed == 60


@pytest.mark.parametrize("everything", [True, False])
async def test_maintenance_on_the_bus_keeps_a_task_waiting_and_says_why(
    bus: Bus, fleet: Fleet, matcher: Service, everything: bool
) -> None:
    begins = datetime.now(UTC) + timedelta(hours=1)
    window: dict[str, object] = {"begins_at": begins.isoformat(), "ends_at": (begins + timedelta(hours=2)).isoformat()}
    window |= {"everything": True} if everything else {"nodes": ["n1"]}
    await bus.bucket("policy").put("matcher", {"windows": {"power": window}})
    await fleet.add(device("GPU-a"))
    await fleet.submit(profiled("quick", 10, scheduler={"run_timeout_seconds": 600}))
    await fleet.placement("quick")
    await fleet.finish("quick", "ok", devices=("GPU-a",))
    await fleet.submit(profiled("endless", 10))
    record = await fleet.state("endless", "queued")
    assert "by power" in (record.message or "")
    message = await bus.last(bus.subjects.queued("endless"))
    assert message is not None
    assert [r.reason for r in read(TaskQueued, message.data)[0].reasons] == ["maintenance"]
    await bus.bucket("policy").put("matcher", {})
    assert (await fleet.placement("endless")).devices[0].uid == "GPU-a"
