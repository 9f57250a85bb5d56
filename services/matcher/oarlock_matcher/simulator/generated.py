"""A generated workload in the manner of the published analysis of the Philly cluster (Jeon et al., USENIX ATC'19): most
tasks want one device and end within minutes, a few run for a day, and arrivals follow the hours of the day.

All numbers are drawn from the seed. What the users declare and what the tasks need are drawn separately, because the
point of prediction is the difference between the two.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from oarlock_matcher.core.demand import Demand
from oarlock_matcher.core.devices import DeviceModel, Node
from oarlock_matcher.simulator.files import Job

T = TypeVar("T")
GIB = 2**30
DAY_SECONDS = 86_400.0
UNSUPPORTED = "unsupported-on-domestic"
"""Stands for framework kernels that the domestic kinds of the fleet do not implement."""


@dataclass(frozen=True, slots=True)
class Habits:
    """What the users of a cluster are like.

    `load`: device-seconds asked for ÷ the fleet's, at the mean step time of its kinds. `gangs`: weight of each device
    count. `median_seconds`, `sigma`: of the log-normal duration on the kind with the mean step time (clipped to
    60 s … 1 day). `swing`: how far arrivals swing around their mean within a day. `declares`: weight of each kind in
    what users declare (they choose among kinds that hold the task). `bound`: share of tasks whose kernels the
    domestic kinds lack. `error`: standard deviation of the logarithm of predicted ÷ real duration.
    """

    load: float = 1.0
    days: float = 7.0
    gangs: Mapping[int, float] = field(default_factory=lambda: {1: 0.78, 2: 0.12, 4: 0.10})
    device_gib: Mapping[float, float] = field(default_factory=lambda: {4: 0.3, 8: 0.3, 14: 0.2, 20: 0.12, 28: 0.08})
    median_seconds: float = 900.0
    sigma: float = 1.2
    swing: float = 0.4
    owners: int = 12
    priorities: Mapping[int, float] = field(default_factory=lambda: {0: 0.8, 1: 0.15, 2: 0.05})
    declares: Mapping[str, float] = field(default_factory=dict)
    bound: float = 0.2
    error: float = 0.3


@dataclass(frozen=True, slots=True)
class DeclaredJob:
    """A task as the matcher sees it, and the kind that its user would have declared."""

    job: Job
    declared_kind: str


def philly_like(
    nodes: Sequence[Node], step_factor: Mapping[str, float], habits: Habits, seed: int
) -> list[DeclaredJob]:
    """Tasks for this fleet in the order of arrival. `step_factor`: relative step time by kind, before each task's own
    deviation of ±20 %.

    Raises:
        KeyError: a kind of the fleet has no step factor.
    """
    rng = random.Random(seed)  # noqa: S311 - a reproducible workload, not a secret
    devices = [device for node in nodes for device in node.devices]
    models = {device.model.kind: device.model for device in devices}
    mean_factor = sum(step_factor[d.model.kind] for d in devices) / len(devices)
    mean_count = _mean(habits.gangs)
    # Mean of the clipped log-normal, from a fixed sample, so that `load` means what it says.
    sample = random.Random(0)  # noqa: S311
    mean_seconds = sum(_duration(sample, habits) for _ in range(20_000)) / 20_000
    mean_gap = mean_seconds * mean_count / (habits.load * len(devices))
    jobs: list[DeclaredJob] = []
    now = 0.0
    while True:
        daily = 1.0 + habits.swing * math.sin(2.0 * math.pi * now / DAY_SECONDS)
        now += rng.expovariate(daily / mean_gap)
        if now > habits.days * DAY_SECONDS:
            return jobs
        jobs.append(_job(rng, len(jobs), now, models, step_factor, mean_factor, habits))


def _job(
    rng: random.Random,
    number: int,
    now: float,
    models: Mapping[str, DeviceModel],
    step_factor: Mapping[str, float],
    mean_factor: float,
    habits: Habits,
) -> DeclaredJob:
    count = _draw(rng, habits.gangs)
    needed = int(_draw(rng, habits.device_gib) * GIB * rng.uniform(0.8, 1.0))
    seconds = _duration(rng, habits)
    bound = rng.random() < habits.bound
    holds = {
        kind: model
        for kind, model in models.items()
        if needed <= 0.85 * model.memory_bytes and not (bound and model.domestic)
    }
    steps = {kind: step_factor[kind] / mean_factor * rng.uniform(0.8, 1.2) for kind in sorted(models)}
    declared = _draw(rng, {kind: habits.declares.get(kind, 1.0) for kind in sorted(holds)})
    demand = Demand(
        task_id=f"g{number:06d}",
        # The larger half of the work comes from a few owners.
        owner=f"owner-{int(habits.owners * rng.random() ** 2):02d}",
        priority=_draw(rng, habits.priorities),
        device_count=count,
        device_bytes=needed,
        reserve_bytes=needed,
        exclusive=True,
        kernels=frozenset({UNSUPPORTED}) if bound else frozenset(),
        step_seconds=steps,
        expected_seconds=seconds * math.exp(rng.gauss(0.0, habits.error)),
    )
    return DeclaredJob(Job(demand, now, seconds, steps=seconds), declared)


def _duration(rng: random.Random, habits: Habits) -> float:
    return min(DAY_SECONDS, max(60.0, habits.median_seconds * math.exp(rng.gauss(0.0, habits.sigma))))


def _draw(rng: random.Random, weights: Mapping[T, float]) -> T:
    return rng.choices(list(weights), list(weights.values()))[0]


def _mean(weights: Mapping[int, float]) -> float:
    return sum(value * weight for value, weight in weights.items()) / sum(weights.values())
