"""Training of the learned policy: weights are tried out in the simulator, and a model of how they do says where to go.

A scenario is the fill-up experiment on a part of a fleet with one variation of a workload. In each round weights
scattered around the present ones all play the same fresh scenarios. What they placed, beyond the mean of their round,
is explained by a concave function of the weights, g·d − q·|d|², d being the distance from the rules; the next round
scatters around its maximum. It begins with the rules' own weights, and a weight moves only as far as the runs
of all rounds together carry it. Deterministic by seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from oarlock_matcher.core.devices import Node
from oarlock_matcher.core.policies.learned_weights import RULES
from oarlock_matcher.core.policy_settings import LearnedWeights
from oarlock_matcher.simulator.experiments import QUIET, fill_run
from oarlock_matcher.simulator.files import Job

Vector = NDArray[np.float64]

ON_DEVICES = ("stranding", "scarcity", "device_left")
TRAINED: Mapping[str, tuple[str, ...]] = {
    "processors": ("fragmentation", "stranding", "evenness"),
    "share": (*ON_DEVICES, "evenness"),
    "one": (*ON_DEVICES, "evenness"),
    "gang": (*ON_DEVICES, "opens_row"),
}
"""Features whose weights are trained, by class of shape. Few, because each further one makes the others harder to tell
from luck; the weight of `fragmentation` on devices sets the scale of the others."""
COORDINATES = tuple((name, feature) for name, features in TRAINED.items() for feature in features)

FLEET_SHARE = 0.25
"""Share of the fleet's nodes in a scenario. (With a twentieth, what was learned did not hold for large fleets.)"""
STEPS = (0.0, 0.25, 0.5, 1.0)
"""Shares of the way from the rules to the trained weights that are tried on the whole fleet."""
CHECK_SEEDS = (1, 2, 3)
SCORED_PERCENTS = range(85, 111)
"""Arrived shares over which a run's allocation is averaged: where policies differ."""
RIDGE = 3.0
"""Rounds' worth of evidence against any weight's mattering: the variance of a candidate's score (about 0.05 points²)
by that of a weight's true effect (about 0.1 points by unit, squared), in rounds."""
SMALLEST_BEND = 0.05
"""Points that are at least thought to be lost by moving one unit from the best weights."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How long to train: `rounds`, pairs of mirrored candidates in each, and fresh scenarios that all of them play.
    `spread`: standard deviation of the candidates around the present weights."""

    rounds: int = 5
    pairs: int = 6
    scenarios: int = 6
    spread: float = 0.25
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Scenario:
    """A variation of the workload by name, the seed of its nodes and its order, and the share of the fleet's nodes."""

    variation: str
    seed: int
    fleet_share: float = FLEET_SHARE


@dataclass(frozen=True, slots=True)
class Round:
    """What one round found: the weights that training would end with now, and the gain over the rules that its model
    expects of them, in points of allocation."""

    number: int
    weights: LearnedWeights
    expected_gain: float


Evaluate = Callable[[Sequence[tuple[LearnedWeights, Scenario]]], Sequence[float]]


def variations(plain: Sequence[Job], constrained: Sequence[Job]) -> dict[str, list[Job]]:
    """Workloads to train on: two traces as they are, and with more of one class of tasks and fewer of the others."""
    return {
        "plain": list(plain),
        "constrained": list(constrained),
        "more sharing": resampled(plain, lambda job: 2.5 if class_of(job) == "share" else 0.6, 1),
        "more gangs": resampled(constrained, lambda job: 3.0 if class_of(job) == "gang" else 0.7, 2),
        "more processors": resampled(plain, lambda job: 3.0 if class_of(job) == "processors" else 0.8, 3),
        "more named kinds": resampled(constrained, lambda job: 3.0 if job.demand.required_kinds else 0.7, 4),
    }


def class_of(job: Job) -> str:
    """As the policy classes shapes."""
    count = job.demand.device_count
    if count == 0:
        return "processors"
    if count == "auto" or count > 1:
        return "gang"
    return "share" if job.demand.compute_milli < 1000 else "one"


def resampled(jobs: Sequence[Job], weight: Callable[[Job], float], seed: int) -> list[Job]:
    """Each job as often as its weight says; the fraction is drawn."""
    rng = random.Random(seed)  # noqa: S311 - a reproducible workload, not a secret
    found: list[Job] = []
    for job in jobs:
        wanted = weight(job)
        found += [job] * (int(wanted) + (rng.random() < wanted - int(wanted)))
    return found


def score(
    nodes: Sequence[Node], workloads: Mapping[str, Sequence[Job]], weights: LearnedWeights, scenario: Scenario
) -> float:
    """Mean allocation, in percent of the scenario's devices, while 85 to 110 % of them have been asked for."""
    rng = random.Random(scenario.seed)  # noqa: S311
    part = rng.sample(list(nodes), max(1, round(scenario.fleet_share * len(nodes))))
    settings = replace(QUIET, learned=weights)
    allocation = fill_run(part, workloads[scenario.variation], "rl_based", scenario.seed, settings).allocation_percent
    return float(np.mean([allocation[percent] for percent in SCORED_PERCENTS if percent in allocation]))


def train(evaluate: Evaluate, names: Sequence[str], plan: Plan) -> Iterator[Round]:
    """Round after round. `evaluate` gives each pair's score, in order; `names` are the variations there are."""
    rng = np.random.default_rng(plan.seed)
    centre = np.zeros(len(COORDINATES))
    tried: list[Vector] = []
    scores: list[Vector] = []
    for number in range(plan.rounds):
        half = rng.standard_normal((plan.pairs, len(COORDINATES))) * plan.spread
        candidates = centre + np.concatenate((half, -half))
        first = number * plan.scenarios
        numbers = range(first, first + plan.scenarios)
        played = [Scenario(names[i % len(names)], scenario_seed(plan, i)) for i in numbers]
        pairs = [(weights_at(candidate), scenario) for candidate in candidates for scenario in played]
        found = np.array(evaluate(pairs)).reshape(len(candidates), len(played)).mean(axis=1)
        tried.append(candidates)
        scores.append(found)
        centre, gain = best_guess(tried, scores)
        yield Round(number, weights_at(centre, f"{plan.seed}.{number + 1}"), gain)


def search(
    evaluate: Evaluate, names: Sequence[str], trained: LearnedWeights
) -> tuple[LearnedWeights, dict[str, float]]:
    """How far to go from the rules to the trained weights, by trying it on the whole fleet with the training traces:
    parts of a fleet are cheaper, but not the same. The best weights, and the mean score of each step."""
    tried = [along(trained, step) for step in STEPS]
    whole = [Scenario(name, seed, 1.0) for name in names for seed in CHECK_SEEDS]
    scores = np.array(evaluate([(weights, scenario) for weights in tried for scenario in whole]))
    means = scores.reshape(len(STEPS), len(whole)).mean(axis=1)
    return tried[int(means.argmax())], {
        str(step): round(float(mean), 3) for step, mean in zip(STEPS, means, strict=True)
    }


def along(trained: LearnedWeights, step: float) -> LearnedWeights:
    """That share of the way from the rules' weights to these."""
    weights = {
        name: {f: round((1.0 - step) * RULES.weights[name].get(f, 0.0) + step * w, 4) for f, w in by_feature.items()}
        for name, by_feature in trained.weights.items()
    }
    return LearnedWeights(f"{trained.version}.{step:g}", weights)


def scenario_seed(plan: Plan, number: int) -> int:
    """Seeds of training are far from those that anything is tested on."""
    return 1_000_000 * plan.seed + number


def best_guess(tried: Sequence[Vector], scores: Sequence[Vector]) -> tuple[Vector, float]:
    """The maximum of the concave model fitted to all rounds, and its height over the rules (which are the origin)."""
    # Rounds have scenarios of their own, easy or hard: only differences within a round count.
    rows = np.concatenate([_centred(_terms(candidates)) for candidates in tried])
    gains = np.concatenate([_centred(found[:, np.newaxis])[:, 0] for found in scores])
    size = rows.shape[1] - 1
    spread = float(np.mean(rows[:, :size] ** 2))
    penalty = np.diag([RIDGE * spread * len(tried[0])] * size + [0.0])
    fitted = np.linalg.solve(rows.T @ rows + penalty, rows.T @ gains)
    slope, bend = fitted[:size], max(float(-fitted[size]), SMALLEST_BEND)
    step = slope / (2.0 * bend)
    length = float(np.linalg.norm(step))
    reach = max(float(np.linalg.norm(candidates, axis=1).max()) for candidates in tried)
    # The model is only believed as far as weights have been tried.
    step *= min(1.0, reach / length) if length else 0.0
    return step, float(slope @ step - bend * step @ step)


def _terms(candidates: Vector) -> Vector:
    return np.column_stack((candidates, (candidates**2).sum(axis=1)))


def _centred(values: Vector) -> Vector:
    centred: Vector = values - values.mean(axis=0)
    return centred


def weights_at(distance: Vector, version: str = "trial") -> LearnedWeights:
    """The rules' weights plus `distance`, one number for each of `COORDINATES`."""
    weights = {name: dict(by_feature) for name, by_feature in RULES.weights.items()}
    for (name, feature), moved in zip(COORDINATES, distance.tolist(), strict=True):
        weights[name][feature] = round(weights[name].get(feature, 0.0) + moved, 4)
    return LearnedWeights(version, weights)
