"""Deadlines: devices that are in time win, and a waiting task knows its slack."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock_matcher.core.deadlines import promptness
from oarlock_matcher.core.effects import Reserve
from oarlock_matcher.core.events import Event, NodeSeen, PolicyUpdated, TaskArrived
from oarlock_matcher.core.machine import decide, why
from oarlock_matcher.core.policy_settings import PolicySettings, Weights
from oarlock_matcher.core.recording import record, replay
from oarlock_matcher.core.state import MatcherState

from .fleets import A100, RTX_3090, V100, Driver, need, node

HOURS = {A100.kind: 1000.0, V100.kind: 3000.0}


def test_only_what_tells_models_apart_counts() -> None:
    demand = need("t", deadline=2000.0, duration_seconds=HOURS)
    models = [A100, V100, RTX_3090]
    found = promptness(demand, models, 2.0, 0.0)
    assert found is not None and found.tolist() == [2.0, 0.0, 1.0], "in time, too late, not known"
    assert promptness(demand, [A100, V100], 2.0, 1500.0) is None, "too late everywhere: no reason to pay for speed"
    assert promptness(demand, [A100], 2.0, 0.0) is None
    assert promptness(need("t", duration_seconds=HOURS), models, 2.0, 0.0) is None
    assert promptness(demand, models, 0.0, 0.0) is None


def test_a_device_that_is_in_time_wins_over_a_better_buy() -> None:
    fleet = (node("a", A100, 1), node("v", V100, 1))
    wish: dict[str, Any] = {"duration_seconds": HOURS, "preferred_kinds": (V100.kind,)}
    assert Driver().fleet(*fleet).place(need("t", **wish)).kind == V100.kind
    assert Driver().fleet(*fleet).place(need("t", deadline=9000.0, **wish)).kind == V100.kind, "both are in time"
    driver = Driver(PolicySettings(weights=Weights(deadline=2.0))).fleet(*fleet)
    placed = driver.place(need("t", deadline=driver.now + 2000.0, **wish))
    assert placed.kind == A100.kind
    assert {c.kind: c.parts["deadline"] for c in placed.candidates} == {A100.kind: 2.0, V100.kind: 0.0}
    assert sum(placed.candidates[0].parts.values()) == pytest.approx(placed.score)
    # One task's deadline leaves no trace in the score of the next that is alike.
    driver.finish("t")
    assert driver.place(need("next", **wish)).kind == V100.kind


def test_the_weight_is_live() -> None:
    driver = Driver(PolicySettings(weights=Weights(deadline=0.0))).fleet(node("a", A100, 1), node("v", V100, 1))
    wish: dict[str, Any] = {"duration_seconds": HOURS, "preferred_kinds": (V100.kind,), "deadline": driver.now + 2000.0}
    assert driver.place(need("before", **wish)).kind == V100.kind
    driver.finish("before")
    driver.tell(PolicyUpdated(PolicySettings(weights=Weights(deadline=5.0))))
    assert driver.place(need("after", **wish)).kind == A100.kind


def test_who_waits_knows_the_slack() -> None:
    driver = Driver().fleet(node("v", V100, 1))
    driver.place(need("runs"))
    told = driver.queue(need("t", deadline=driver.now + 900.0, expected_seconds=600.0))
    assert [reason.code for reason in told.reasons] == ["busy", "deadline"]
    assert told.reasons[-1].values == {"slack_seconds": 300.0}
    later = why(driver.state, "t", driver.now + 100.0).reasons[-1]
    assert later.sentence.endswith("is expected to take 600 s: its slack is 200 s")
    missed = why(driver.state, "t", driver.now + 400.0).reasons[-1]
    assert missed.sentence.endswith("it is 100 s too late to be in time")
    driver.queue(need("unknown", deadline=driver.now + 900.0))
    assert "not known" in why(driver.state, "unknown", driver.now).reasons[-1].sentence
    driver.queue(need("free"))
    assert "deadline" not in [reason.code for reason in why(driver.state, "free", driver.now).reasons]


def test_deadlines_are_replayed_bit_for_bit() -> None:
    state, lines, placed = MatcherState(), list[str](), 0
    events: list[Event] = [NodeSeen(node("a", A100, 2)), NodeSeen(node("v", V100, 2))]
    demands = [need(f"t{i}", deadline=500.0 * i, duration_seconds=HOURS) for i in range(9)]
    events += [TaskArrived(demand) for demand in demands]
    for event in events:
        state, effects = decide(state, event, 1000.0)
        placed += sum(isinstance(effect, Reserve) for effect in effects)
        lines.append(record(event, 1000.0, effects))
    assert placed == 4
    assert replay(lines, MatcherState()) == []
