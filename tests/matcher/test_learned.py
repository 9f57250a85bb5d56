"""The learned policy: used when asked for, explained, corrected by runs, watched from the shadow and set aside."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from oarlock_matcher.adapters import telling
from oarlock_matcher.adapters.policy_document import policy_of
from oarlock_matcher.core.demand import Demand
from oarlock_matcher.core.effects import PolicyStanding, Reserve
from oarlock_matcher.core.events import Event, NodeSeen, PolicyUpdated, TaskArrived, TaskFinished, Tick
from oarlock_matcher.core.machine import decide
from oarlock_matcher.core.policies.base import EndedRun
from oarlock_matcher.core.policies.experience import LARGEST_CAUTION, LARGEST_FACTOR, Experience
from oarlock_matcher.core.policies.learned_weights import RULES, SHIPPED, shipped_document, weights_of
from oarlock_matcher.core.policies.packing_features import CLASSES, FEATURES
from oarlock_matcher.core.policy_settings import LearnedWeights, PolicySettings
from oarlock_matcher.core.recording import record, replay
from oarlock_matcher.core.rehearsal import FEWEST_DEMANDS, REMEMBERED_DEMANDS, WINDOW
from oarlock_matcher.core.state import MatcherState

from .fleets import A100, GIB, RTX_3090, SEED_FLEET, V100, Driver, need, node

SPREADING = LearnedWeights("spreading", {name: {"device_left": -5.0, "fragmentation": -2.0} for name in CLASSES})
"""Weights that keep every node half full, which is as bad for gangs as can be."""
EVERY_FEATURE = LearnedWeights("every", {name: {f: 0.1 * (i + 1) for i, f in enumerate(FEATURES)} for name in CLASSES})


def mixed(seed: int, number: int) -> Demand:
    """Parts of devices, whole ones and gangs, each for a minute or so."""
    rng = random.Random(1000 * seed + number)
    count = rng.choice((0, 1, 1, 1, 1, 1, 2, 4, 8))
    milli = rng.choice((200, 300, 500, 700)) if count == 1 and rng.random() < 0.7 else 1000
    share = milli / 1000
    return need(
        f"{seed}-{number}",
        30.0 * share,
        device_count=count,
        compute_milli=milli,
        cpu_milli=rng.choice((1, 2, 4)) * 1000 * max(1, count),
        memory_bytes=GIB,
    )


def busy_days(driver: Driver, arrivals: int, ticks: int, seed: int = 1) -> list[PolicyStanding]:
    """Tasks come, run and end, and time passes; what was told of the learned policy meanwhile."""
    running: list[str] = []
    before = len(driver.effects)
    per_tick = max(1, arrivals // ticks)
    for number in range(arrivals):
        placed = driver.tell(TaskArrived(replace(mixed(seed, number), timeout_seconds=0.0)), 0.1)
        running += [effect.task_id for effect in placed if isinstance(effect, Reserve)]
        if len(running) > 20:
            driver.finish(running.pop(0))
        if number % per_tick == 0:
            driver.tell(Tick(), 0.5)
    for _ in range(ticks):
        driver.tell(Tick(), 1.0)
    return [effect for effect in driver.effects[before:] if isinstance(effect, PolicyStanding)]


def large_fleet(settings: PolicySettings) -> Driver:
    return Driver(settings).fleet(*(node(f"n{i}", A100, 8, cpus=96) for i in range(4)))


def placements(settings: PolicySettings, arrivals: int = 200) -> list[tuple[str, ...]]:
    """Where a fill-up of a small mixed fleet puts its tasks."""
    state = MatcherState(settings=settings)
    for one in (*(node(f"a{i}", A100, 8, cpus=96) for i in range(4)), *(node(f"v{i}", V100, 4) for i in range(4))):
        state, _ = decide(state, NodeSeen(one), 0.0)
    found: list[tuple[str, ...]] = []
    for number in range(arrivals):
        state, effects = decide(state, TaskArrived(replace(mixed(3, number), timeout_seconds=0.0)), float(number))
        found += [tuple(s.device_uid for s in e.shares) for e in effects if isinstance(e, Reserve)]
    return found


def test_a_task_that_asks_for_rl_based_gets_it() -> None:
    placed = Driver().fleet(*SEED_FLEET).place(need("t", algorithm="rl_based"))
    assert (placed.policy, placed.policy_note) == ("rl_based", None)


def test_with_the_rules_weights_it_decides_as_the_rules() -> None:
    rules = placements(PolicySettings(policy="rule_based"))
    assert placements(PolicySettings(policy="rl_based", learned=RULES)) == rules
    assert placements(PolicySettings(policy="rl_based", learned=SPREADING)) != rules


def test_the_shipped_weights_say_what_they_come_from() -> None:
    document = shipped_document()
    assert weights_of(document) == SHIPPED
    assert set(document) >= {"version", "features", "weights", "training", "date"}
    assert document["features"] == list(FEATURES)
    assert set(document["training"]) >= {"traces", "seeds", "score"}


@pytest.mark.parametrize("shape", [{"compute_milli": 300}, {}, {"device_count": 2}, {"device_count": 0}])
def test_a_decision_shows_which_features_counted(shape: dict[str, int]) -> None:
    driver = Driver(PolicySettings(policy="rl_based", learned=EVERY_FEATURE)).fleet(*SEED_FLEET)
    driver.place(need("before", compute_milli=500))
    placed = driver.place(need("t", flops_per_step=1e13, cpu_milli=4000, **shape))
    assert {f"packing.{name}" for name in FEATURES} | {"packing", "cost_performance"} <= set(placed.candidates[0].parts)
    for candidate in placed.candidates:
        assert sum(candidate.parts.values()) == pytest.approx(candidate.score)
    assert {c.parts["packing.device_left"] for c in placed.candidates} != {0.0}


def test_decisions_are_the_same_again_bit_for_bit_through_falls_and_returns() -> None:
    settings = PolicySettings(policy="rl_based", learned=SPREADING, shadow_policy="rule_based")
    state = MatcherState(settings=settings)
    lines: list[str] = []
    running: list[str] = []
    told: list[PolicyStanding] = []
    events: list[Event] = [NodeSeen(node(f"n{i}", A100, 8, cpus=96)) for i in range(4)]
    now = 0.0
    for number in range(450):
        events.append(TaskArrived(replace(mixed(5, number), timeout_seconds=0.0)))
        events += [Tick()]
    for event in events:
        now += 0.25
        state, effects = decide(state, event, now)
        lines.append(record(event, now, effects))
        told += [e for e in effects if isinstance(e, PolicyStanding)]
        running += [e.task_id for e in effects if isinstance(e, Reserve)]
        if len(running) > 20:
            ending = TaskFinished(running.pop(0), 1, "succeeded")
            state, effects = decide(state, ending, now)
            lines.append(record(ending, now, effects))
    assert any(not standing.trusted for standing in told), "nothing was set aside, so little was tested"
    assert replay(lines, MatcherState(settings=settings)) == []


def test_bad_weights_are_set_aside_and_good_ones_trusted_again() -> None:
    driver = large_fleet(PolicySettings(policy="rl_based", learned=SPREADING))
    assert driver.place(need("first")).policy == "rl_based"
    told = busy_days(driver, 420, 120)
    assert told[0].trusted
    fallen = next(standing for standing in told if not standing.trusted)
    assert not told[-1].trusted
    assert fallen.regret_percent > fallen.rules_regret_percent + 1.0
    placed = driver.place(need("second", algorithm="rl_based"))
    assert placed.policy == "rule_based"
    assert "set aside" in (placed.policy_note or "")
    driver.tell(PolicyUpdated(replace(driver.settings, learned=RULES)))
    assert driver.place(need("third")).policy == "rl_based"
    told = busy_days(driver, 420, 120, seed=2)
    assert len(told) >= 4
    assert all(standing.trusted for standing in told), "what decides as the rules do has no regret"


def test_trust_returns_only_after_a_whole_window_without_more_regret_than_the_rules() -> None:
    driver = large_fleet(PolicySettings(policy="rl_based", learned=SPREADING))
    assert not busy_days(driver, 420, 120)[-1].trusted
    # From now on every task wants all of a node: once the others are forgotten it does not matter who chooses.
    standings: list[PolicyStanding] = []
    state, now = driver.state, driver.now
    for number in range(REMEMBERED_DEMANDS + (WINDOW + 1) * FEWEST_DEMANDS):
        demand = need(f"all-{number}", 30.0, device_count=8, timeout_seconds=0.0)
        for event in (TaskArrived(demand), Tick()):
            now += 0.5
            state, effects = decide(state, event, now)
            standings += [effect for effect in effects if isinstance(effect, PolicyStanding)]
    returned = next(i for i, standing in enumerate(standings) if standing.trusted)
    assert returned >= WINDOW - 1
    assert all(not standing.trusted for standing in standings[:returned])
    assert all(standing.trusted for standing in standings[returned:])


def test_nothing_is_rehearsed_while_nobody_asks_for_the_learned_policy() -> None:
    driver = large_fleet(PolicySettings(policy="rule_based"))
    assert busy_days(driver, 200, 100) == []
    assert set(driver.state.policies) == {"rule_based"}


def test_the_shadow_only_records() -> None:
    beside = PolicySettings(policy="rule_based", shadow_policy="rl_based", learned=SPREADING)
    driver, plain = large_fleet(beside), large_fleet(PolicySettings(policy="rule_based"))
    busy_days(driver, 150, 50)
    busy_days(plain, 150, 50)
    with_shadow = [e.placed for e in driver.effects if isinstance(e, Reserve)]
    without = [e.placed for e in plain.effects if isinstance(e, Reserve)]
    assert [p.shares for p in with_shadow] == [p.shares for p in without]
    assert {p.policy for p in with_shadow} == {"rule_based"}
    assert {p.shadow.agrees for p in with_shadow if p.shadow is not None} == {True, False}
    assert all(p.shadow is None for p in without)
    assert any(isinstance(e, PolicyStanding) for e in driver.effects), "in the shadow it rehearses as well"


def ended(kind: str, outcome: str = "succeeded", ratio: float = 1.0) -> EndedRun:
    return EndedRun(kind, outcome, 100.0 * ratio, 100.0)


def test_experience_is_relative_bounded_and_fades() -> None:
    experience = Experience()
    assert experience.lasts("A") == 1.0
    for _ in range(50):
        experience.note(ended("A", ratio=3.0))
        experience.note(ended("B", ratio=3.0))
    assert experience.lasts("A") == pytest.approx(1.0, abs=0.2), "wrong alike everywhere says nothing of a kind"
    for _ in range(1000):
        experience.note(ended("A", ratio=9.0))
        experience.note(ended("B", ratio=1.0))
    assert experience.factor("A") == pytest.approx(LARGEST_FACTOR, rel=0.01)
    for _ in range(3000):
        experience.note(ended("A"))
        experience.note(ended("B"))
    assert experience.lasts("A") == pytest.approx(1.0, abs=0.05)


def test_runs_that_die_of_memory_speak_against_their_kind_and_others_do_not_count() -> None:
    experience = Experience()
    for _ in range(500):
        experience.note(ended("A", "oom"))
        experience.note(ended("B"))
    assert experience.caution("A") == pytest.approx(LARGEST_CAUTION)
    assert experience.caution("B") == 0.0
    before = experience.version
    for outcome in ("failed", "cancelled", "lost", "preempted"):
        experience.note(ended("B", outcome, 9.0))
    assert experience.version == before


def test_a_kind_that_is_slower_than_predicted_is_left_for_another() -> None:
    settings = PolicySettings(policy="rl_based", learned=RULES)
    steps: Mapping[str, float] = {A100.kind: 0.1, RTX_3090.kind: 0.34}
    fleet = (node("a", A100, 1), node("r", RTX_3090, 1))
    driver = Driver(settings).fleet(*fleet)
    demand = need("t0", 8, step_seconds=steps, duration_seconds={A100.kind: 100.0, RTX_3090.kind: 340.0})
    driver.place(need("holds the A100", required_kinds=frozenset({A100.kind})))
    for number in range(60):
        driver.place(replace(demand, task_id=f"r{number}"))
        driver.finish(f"r{number}", after=340.0)
    driver.finish("holds the A100", "cancelled")
    assert driver.place(demand).kind == A100.kind
    driver.finish("t0", after=100.0)
    for number in range(1, 400):
        placed = driver.place(replace(demand, task_id=f"t{number}"))
        driver.finish(f"t{number}", after=180.0 if placed.kind == A100.kind else 340.0)
        if placed.kind == RTX_3090.kind:
            break
    assert placed.kind == RTX_3090.kind
    assert number > 3, "a single run is no proof"
    rules = Driver(PolicySettings(policy="rule_based")).fleet(*fleet)
    for number in range(40):
        assert rules.place(replace(demand, task_id=f"t{number}")).kind == A100.kind
        rules.finish(f"t{number}", after=180.0)


def test_weights_come_from_the_policy_bucket() -> None:
    document = json.loads(json.dumps({"version": "mine", "weights": {"gang": {"fragmentation": 2}}}))
    settings = policy_of({"learned": document, "shadow_policy": "rl_based"})
    assert settings.learned == LearnedWeights("mine", {"gang": {"fragmentation": 2.0}})
    assert settings.shadow_policy == "rl_based"


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"version": "x", "weights": {}},
        {"version": "x", "weights": {"gangs": {}}},
        {"version": "x", "weights": {"gang": {"beauty": 1.0}}},
        {"version": "x", "weights": {"gang": {"scarcity": float("nan")}}},
        {"version": "x", "weights": {"gang": {"scarcity": 1e6}}},
        {"version": "x", "weights": {"gang": {"scarcity": True}}},
        {"version": 3, "weights": {"gang": {"scarcity": 1.0}}},
    ],
)
def test_weights_that_cannot_be_used_leave_those_of_the_release(document: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"weights|version"):
        weights_of(document)
    assert policy_of({"learned": document, "shadow_policy": "nobody"}) == PolicySettings()


def test_operators_read_who_answers_and_why() -> None:
    told = telling.standing(PolicyStanding("rl_based", "rule_based", None, False, 1.25, 0.0, 6), "2026-01-01T00:00:00Z")
    assert told["answers"] == "rule_based"
    assert told["weights"] == SHIPPED.version
    assert told["regret_percent"] == {"rl_based": 1.25, "rule_based": 0.0}
