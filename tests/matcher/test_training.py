"""Training finds better weights where there are any, and the same ones each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from oarlock_matcher.core.policies.learned_weights import RULES
from oarlock_matcher.core.policy_settings import LearnedWeights
from oarlock_matcher.simulator.files import Job
from oarlock_matcher.simulator.training import (
    COORDINATES,
    Plan,
    Scenario,
    along,
    class_of,
    score,
    search,
    train,
    variations,
    weights_at,
)

from .fleets import A100, V100, need, node

PLAN = Plan(rounds=12, pairs=8, scenarios=2, spread=0.25)
BEST = np.linspace(-0.5, 0.5, len(COORDINATES))


def distance(weights: LearnedWeights) -> float:
    """From the best weights, squared."""
    found = [weights.weights[name][feature] - RULES.weights[name].get(feature, 0.0) for name, feature in COORDINATES]
    return float(((np.array(found) - BEST) ** 2).sum())


def noisy(pairs: Sequence[tuple[LearnedWeights, Scenario]]) -> list[float]:
    """Scores with one maximum, scenarios of different difficulty, and luck."""
    rng = np.random.default_rng(len(pairs))
    return [
        90.0 + s.seed % 7 - distance(w) + luck
        for (w, s), luck in zip(pairs, rng.normal(0, 0.1, len(pairs)), strict=True)
    ]


def test_training_comes_near_the_best_weights_and_is_reproducible() -> None:
    rounds = list(train(noisy, ["a", "b"], PLAN))
    assert distance(rounds[-1].weights) < 0.2 * distance(weights_at(np.zeros(len(COORDINATES))))
    assert rounds == list(train(noisy, ["a", "b"], PLAN))
    assert rounds != list(train(noisy, ["a", "b"], replace(PLAN, seed=2)))


def test_where_nothing_is_better_than_the_rules_they_are_kept() -> None:
    def worse(pairs: Sequence[tuple[LearnedWeights, Scenario]]) -> list[float]:
        return [-float(w.version.endswith(("0.25", "0.5", ".1"))) for w, _ in pairs]

    chosen, by_step = search(worse, ["a"], weights_at(BEST, "x"))
    assert chosen == along(weights_at(BEST, "x"), 0.0)
    assert chosen.weights["gang"]["scarcity"] == RULES.weights["gang"]["scarcity"]
    assert set(by_step) == {"0.0", "0.25", "0.5", "1.0"}


def jobs() -> list[Job]:
    shapes: tuple[dict[str, Any], ...] = (
        {"compute_milli": 300},
        {},
        {"device_count": 4},
        {"device_count": 0},
        {"required_kinds": frozenset({"V"})},
    )
    return [Job(need(f"t{i}", 8, cpu_milli=2000, **shapes[i % 5])) for i in range(200)]


def test_variations_have_more_of_what_they_are_named_after() -> None:
    found = variations(jobs(), jobs())

    def share(name: str, kind: str) -> float:
        return sum(class_of(job) == kind for job in found[name]) / len(found[name])

    assert share("more sharing", "share") > share("plain", "share")
    assert share("more gangs", "gang") > share("constrained", "gang")
    assert share("more processors", "processors") > share("plain", "processors")
    named = [
        sum(bool(job.demand.required_kinds) for job in found[n]) / len(found[n])
        for n in ("constrained", "more named kinds")
    ]
    assert named[1] > named[0]


@pytest.mark.parametrize("weights", [RULES, weights_at(BEST)])
def test_a_score_is_what_the_policy_allocates(weights: LearnedWeights) -> None:
    nodes = [node(f"n{i}", A100 if i % 2 else replace(V100, kind="V"), 4) for i in range(8)]
    found = score(nodes, {"all": jobs()}, weights, Scenario("all", 3, 1.0))
    assert 50.0 < found <= 100.0
    assert found == score(nodes, {"all": jobs()}, weights, Scenario("all", 3, 1.0))
