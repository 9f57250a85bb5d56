"""What follows from each event."""

from dataclasses import replace
from typing import Any

import pytest

from oarlock_matcher.core.devices import NodeShare, Share
from oarlock_matcher.core.effects import Cancelled, Preempt, Queued, Rejected, Release, Reserve
from oarlock_matcher.core.events import (
    LeaseConflict,
    LeasesSeen,
    NodeSeen,
    PolicyUpdated,
    TaskAdopted,
    TaskArrived,
    TaskCancelled,
    TaskFinished,
    Tick,
)
from oarlock_matcher.core.machine import InvalidTransition, why
from oarlock_matcher.core.policy_settings import PRESETS, PolicySettings, Quota, Weights

from .fleets import A100, ASCEND_910, GIB, RTX_3090, SEED_FLEET, V100, Driver, need, node


def placed_ids(effects: object) -> list[str]:
    return [e.task_id for e in effects if isinstance(e, Reserve)]  # type: ignore[attr-defined]


def test_every_candidate_keeps_its_score_and_its_parts() -> None:
    placed = Driver().fleet(*SEED_FLEET).place(need("t", 8, flops_per_step=1e13))
    assert {name for name, _ in placed.node_scores} == {"a", "v", "r", "d"}
    assert placed.node_scores[0][1] == placed.score == max(score for _, score in placed.node_scores)
    assert {"cost_performance", "fragmentation", "domestic", "preferred"} <= set(placed.candidates[0].parts)
    assert sum(placed.candidates[0].parts.values()) == pytest.approx(placed.score)


def test_cost_performance_prefers_the_better_buy() -> None:
    driver = Driver().fleet(node("a", A100, 1), node("r", RTX_3090, 1))
    placed = driver.place(need("t", 8, step_seconds={A100.kind: 0.5, RTX_3090.kind: 0.6}))
    assert placed.kind == RTX_3090.kind, "1.2 times the time at a third of the price"


def test_preferred_kind_wins_over_a_cheaper_one() -> None:
    driver = Driver().fleet(node("v", V100, 1), node("r", RTX_3090, 1))
    assert driver.place(need("t", 8, preferred_kinds=("A100-SXM4-40GB", V100.kind))).kind == V100.kind


def test_domestic_first_preset() -> None:
    settings = PolicySettings().with_preset("domestic")
    assert Driver(settings).fleet(*SEED_FLEET).place(need("t", flops_per_step=1e12)).kind == ASCEND_910.kind


def test_energy_weighs_where_operators_say_so_and_is_neutral_where_power_is_unknown() -> None:
    thirsty, frugal, unknown = (
        replace(V100, kind=kind, price_per_hour=None, tdp_watts=watts)
        for kind, watts in (("thirsty", 300.0), ("frugal", 150.0), ("unknown", None))
    )
    task = need("t", step_seconds={"thirsty": 1.0, "frugal": 1.2, "unknown": 1.1})
    nodes = (node("t", thirsty, 1), node("f", frugal, 1), node("u", unknown, 1))
    assert Driver().fleet(*nodes).place(task).kind == "thirsty"
    assert Weights().energy == 0.0 and PRESETS["cost"].energy > 0.0
    placed = Driver(PolicySettings(weights=Weights(energy=2.0))).fleet(*nodes).place(task)
    assert placed.kind == "frugal"
    energy = {candidate.kind: candidate.parts["energy"] for candidate in placed.candidates}
    assert energy == pytest.approx({"frugal": 2.0, "thirsty": 2.0 * 180 / 300, "unknown": 1.0})


def test_weights_can_be_changed_while_running() -> None:
    driver = Driver().fleet(node("r", RTX_3090, 2), node("d", ASCEND_910, 2))
    demand: dict[str, Any] = {"step_seconds": {RTX_3090.kind: 0.1, ASCEND_910.kind: 0.4}}
    assert driver.place(need("t1", **demand)).kind == RTX_3090.kind
    driver.tell(PolicyUpdated(PolicySettings(weights=Weights(domestic=9.0))))
    assert driver.place(need("t2", **demand)).kind == ASCEND_910.kind


def test_an_unknown_policy_is_answered_by_the_rules_and_says_so() -> None:
    placed = Driver().fleet(*SEED_FLEET).place(need("t", algorithm="clever"))
    assert placed.policy == "rule_based"
    assert "no policy 'clever'" in (placed.policy_note or "")


def test_shares_are_sorted_by_device_and_gangs_stay_in_one_link_group() -> None:
    driver = Driver().fleet(node("a", A100, 4, groups=2))
    driver.place(need("one"))
    placed = driver.place(need("two", device_count=2))
    assert [s.device_uid for s in placed.shares] == ["a-2", "a-3"]


def test_gang_spans_nodes_only_when_allowed_and_needed() -> None:
    nodes = [node(f"v{i}", V100, 2) for i in range(3)]
    assert Driver().fleet(*nodes).reject(need("t", device_count=4)).code == "no_device_fits"
    placed = Driver().fleet(*nodes).place(need("t", device_count=4, span_nodes=True, cpu_milli=8000))
    assert len(placed.shares) == 4
    assert len(placed.node_shares) == 2
    assert sum(s.cpu_milli for s in placed.node_shares) == 8000
    tensor = need("t", device_count=4, span_nodes=True, strategy="tensor")
    assert Driver().fleet(*nodes).reject(tensor).code == "no_device_fits"


def test_gang_over_nodes_stays_in_one_site() -> None:
    nodes = [node("x", V100, 2, site="north"), node("y", V100, 2, site="south")]
    assert Driver().fleet(*nodes).reject(need("t", device_count=4, span_nodes=True)).code == "no_device_fits"


def test_auto_takes_the_fewest_devices_that_fit() -> None:
    split = {1: 60 * GIB, 2: 32 * GIB, 4: 18 * GIB}
    placed = Driver().fleet(*SEED_FLEET).place(need("t", 60, device_count="auto", device_bytes_by_count=split))
    assert len(placed.shares) == 2
    assert placed.kind == A100.kind


def test_auto_takes_more_when_the_speed_up_pays_and_nobody_waits() -> None:
    auto: dict[str, Any] = {
        "device_count": "auto",
        "device_bytes_by_count": {1: 8 * GIB, 2: 8 * GIB, 4: 8 * GIB},
        "speedup_by_count": {1: 1.0, 2: 1.9, 4: 2.0},
    }
    assert len(Driver().fleet(node("a", A100, 4)).place(need("t", **auto)).shares) == 2
    driver = Driver().fleet(node("a", A100, 4))
    driver.tell(TaskArrived(need("waits", device_count=4)))
    driver.queue(need("behind", device_count=4))
    driver.finish("waits")
    assert len(driver.state.tasks["behind"].shares) == 4


def test_repeated_and_stale_events_change_nothing() -> None:
    driver = Driver().fleet(node("v", V100, 1))
    driver.place(need("t", attempt=2))
    assert driver.tell(TaskArrived(need("t", attempt=2))) == ()
    assert driver.tell(TaskFinished("t", 1, "failed")) == ()
    assert [type(e) for e in driver.tell(TaskFinished("t", 2, "succeeded"))] == [Release]
    assert driver.tell(TaskFinished("t", 2, "succeeded")) == ()
    assert driver.tell(TaskArrived(need("t", attempt=2))) == ()


def test_newer_attempt_has_to_wait_for_the_end_of_the_older() -> None:
    driver = Driver().fleet(node("v", V100, 1))
    driver.place(need("t"))
    with pytest.raises(InvalidTransition, match="attempt 2 of t arrived while attempt 1 still"):
        driver.tell(TaskArrived(need("t", attempt=2)))
    driver.finish("t", "oom")
    assert driver.place(need("t", attempt=2)).attempt == 2


def test_priority_then_arrival_and_ageing() -> None:
    driver = Driver(PolicySettings(ageing_seconds=100.0)).fleet(node("v", V100, 1))
    driver.place(need("runs"))
    driver.queue(need("low"))
    driver.now += 50
    driver.queue(need("high", priority=1))
    driver.now += 100
    driver.queue(need("late", priority=1))
    order = [driver.finish("runs")]
    order += [driver.finish(order[-1][0]), driver.finish("low")]
    assert order == [["high"], ["low"], ["late"]], "waiting 150 s outweighs one level of priority at 100 s a level"


def test_a_deadline_that_is_near_counts_but_not_without_end() -> None:
    driver = Driver(PolicySettings(ageing_seconds=100.0, deadline_levels=2.0)).fleet(node("v", V100, 1))
    driver.place(need("runs"))
    driver.queue(need("early"))
    driver.now += 150
    driver.queue(need("relaxed", deadline=driver.now + 9000.0, expected_seconds=60.0))
    driver.queue(need("pressed", deadline=driver.now + 5.0, expected_seconds=60.0))
    driver.now += 100
    driver.queue(need("missed", deadline=0.0))
    order = ["runs"]
    while len(order) < 5:
        order += driver.finish(order[-1])
    assert order == ["runs", "pressed", "early", "missed", "relaxed"], "missed by a thousand years is worth two levels"


def test_who_used_much_of_late_comes_after_who_did_not() -> None:
    rules = PolicySettings(fair_share_seconds=100.0, fair_share_half_life_seconds=1000.0)
    for pause, first in ((10.0, "b"), (20_000.0, "a")):
        driver = Driver(rules).fleet(node("v", V100, 2))
        driver.place(need("used", owner="ann", device_count=2))
        driver.finish("used", after=3000.0)
        driver.tell(Tick(), after=pause)
        driver.place(need("runs", owner="cid", device_count=2))
        driver.queue(need("a", owner="ann", device_count=2))
        driver.queue(need("b", owner="bob", device_count=2), after=5.0)
        assert driver.finish("runs") == [first], "usage is forgotten"


def test_quota_holds_back_its_owner_only() -> None:
    driver = Driver(PolicySettings(quotas={"ann": Quota(devices=1)})).fleet(node("v", V100, 2))
    driver.place(need("a1", owner="ann"))
    assert {r.code for r in driver.queue(need("a2", owner="ann")).reasons} == {"quota"}
    driver.place(need("b1", owner="bob"))
    assert driver.finish("a1") == ["a2"]
    assert driver.reject(need("a3", owner="ann", device_count=2)).code == "quota"


def test_time_out_rejects_with_the_last_reasons() -> None:
    driver = Driver().fleet(node("v", V100, 1))
    driver.place(need("runs"))
    driver.queue(need("t", timeout_seconds=300.0))
    assert driver.tell(Tick(), after=299.0) == ()
    (rejected,) = driver.tell(Tick(), after=1.0)
    assert isinstance(rejected, Rejected)
    assert rejected.code == "timeout"
    assert rejected.reasons[0].code == "busy"
    assert driver.reject(need("now", timeout_seconds=0.0)).code == "timeout"


def test_dependencies_wait_start_and_fail_with_what_they_come_after() -> None:
    driver = Driver().fleet(node("v", V100, 2))
    assert driver.queue(need("second", after=("first",))).reasons[0].code == "after"
    assert driver.queue(need("third", after=("second",))).reasons[0].code == "after"
    driver.place(need("first"))
    assert driver.finish("first") == ["second"]
    effects = driver.tell(TaskFinished("second", 1, "failed"))
    assert [type(e) for e in effects] == [Release, Rejected]
    assert driver.reject(need("fourth", after=("second",))).code == "dependency_failed"


def test_cancel_of_waiting_and_of_placed_tasks() -> None:
    driver = Driver().fleet(node("v", V100, 1))
    driver.place(need("runs"))
    driver.queue(need("waits"))
    assert driver.tell(TaskCancelled("waits")) == (Cancelled("waits", 1),)
    assert driver.tell(TaskCancelled("runs")) == ()
    assert [type(e) for e in driver.tell(TaskFinished("runs", 1, "cancelled"))] == [Release]


def test_lease_conflict_rolls_back_and_tries_elsewhere() -> None:
    driver = Driver().fleet(node("v", V100, 2))
    first = driver.place(need("t")).shares[0].device_uid
    theirs = Share(first, "v", 20 * GIB, 1000, True)
    (reserve,) = driver.tell(LeaseConflict("t", 1, first, (("other", theirs),)))
    assert isinstance(reserve, Reserve)
    second = reserve.shares[0].device_uid
    assert second != first
    effects = driver.tell(LeaseConflict("t", 1, second, (("another", Share(second, "v", 1, 1000, True)),)))
    assert isinstance(effects[-1], Queued)
    assert effects[-1].reasons[0].code == "lease_conflict"
    assert placed_ids(driver.tell(LeasesSeen(first, ()))) == ["t"]


def test_adopted_leases_count_even_before_their_device_is_seen() -> None:
    driver = Driver()
    share = Share("v-0", "v", 8 * GIB, 1000, True)
    driver.tell(TaskAdopted(need("old"), (share,), (NodeShare("v", 0, 0),)))
    driver.fleet(node("v", V100, 1))
    driver.queue(need("new"))
    assert driver.finish("old") == ["new"]


def test_lost_device_keeps_its_lease_until_the_run_has_ended() -> None:
    driver = Driver().fleet(node("v", V100, 2))
    driver.place(need("t"))
    driver.tell(NodeSeen(node("v", V100, 1)))
    assert driver.state.tasks["t"].shares
    (release,) = driver.tell(TaskFinished("t", 1, "lost"))
    assert isinstance(release, Release)


def test_backfill_does_not_starve_the_head() -> None:
    driver = Driver(PolicySettings(hold_after_seconds=60.0)).fleet(node("a", A100, 2))
    driver.place(need("x", expected_seconds=500.0))
    driver.queue(need("gang", device_count=2))
    driver.place(need("early", expected_seconds=100.0))
    driver.tell(Tick(), after=60.0)
    driver.finish("early", after=40.0)
    assert {r.code for r in driver.queue(need("long", expected_seconds=10_000.0)).reasons} == {"busy", "held"}
    driver.place(need("short", expected_seconds=100.0))
    driver.finish("short", after=100.0)
    assert driver.finish("x") == ["gang"]


def test_preemption_is_off_by_default_and_takes_the_lowest_priority() -> None:
    def full(settings: PolicySettings) -> Driver:
        driver = Driver(settings).fleet(node("v", V100, 2))
        driver.place(need("low", priority=0))
        driver.place(need("middle", priority=1))
        driver.queue(need("high", priority=5))
        return driver

    assert full(PolicySettings()).tell(Tick()) == ()
    driver = full(PolicySettings(preemption=True))
    (preempt,) = driver.tell(Tick())
    assert isinstance(preempt, Preempt)
    assert (preempt.task_id, preempt.for_task) == ("low", "high")
    assert driver.tell(Tick()) == (), "one at a time"
    assert driver.finish("low", "preempted") == ["high"]


def test_why_tells_position_and_cause() -> None:
    driver = Driver().fleet(node("v", V100, 1))
    driver.place(need("runs"))
    driver.queue(need("one"))
    driver.queue(need("two", 9))
    answer = why(driver.state, "two", driver.now + 5)
    assert (answer.phase, answer.position, answer.waited_seconds) == ("waiting", 1, 5.0)
    assert answer.reasons[0].code == "busy"
    assert why(driver.state, "runs", driver.now).phase == "placed"


def test_invalid_demands_are_rejected_with_every_fault() -> None:
    rejected = Driver().fleet(node("v", V100, 1)).reject(need("t", device_count=-1, memory_threshold=0.0))
    assert rejected.code == "invalid"
    assert len(rejected.reasons) == 2


def test_tasks_for_processors_only() -> None:
    driver = Driver().fleet(node("v", V100, 1, cpus=4))
    assert driver.place(need("t", None, device_count=0, cpu_milli=3000)).shares == ()
    assert {r.code for r in driver.queue(need("u", None, device_count=0, cpu_milli=2000)).reasons} == {"node_cpu"}
