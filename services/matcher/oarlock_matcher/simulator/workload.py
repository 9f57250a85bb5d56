"""The published fill-up workload: a trace shuffled by seed and stretched or cut to 1.3 × the fleet's devices."""

from __future__ import annotations

import random
from collections.abc import Sequence

from oarlock_matcher.core.devices import WHOLE_MILLI, Node
from oarlock_matcher.simulator.files import Job

FILL_TO = 1.3


def capacity_milli(nodes: Sequence[Node]) -> int:
    """Device milli of the whole fleet."""
    return WHOLE_MILLI * sum(len(node.devices) for node in nodes)


def milli_by_kind(nodes: Sequence[Node]) -> dict[str, int]:
    """Device milli of each kind."""
    found: dict[str, int] = {}
    for node in nodes:
        for device in node.devices:
            found[device.model.kind] = found.get(device.model.kind, 0) + WHOLE_MILLI
    return found


def asked_milli(job: Job) -> int:
    """Device milli that a task asks for."""
    count = job.demand.device_count
    return 0 if count == "auto" else count * job.demand.compute_milli


def fill_up(jobs: Sequence[Job], capacity: int, seed: int) -> list[Job]:
    """Tasks sorted by name and shuffled, then stretched or cut to 1.3 × capacity. Deterministic by seed.

    Below, uniform samples with replacement are appended until the next would exceed it (as published, that check looks
    at the milli of one device of the sample); above, random tasks are taken out.
    """
    rng = random.Random(seed)  # noqa: S311 - a reproducible experiment, not a secret
    ordered = sorted(jobs, key=lambda job: job.demand.task_id)
    chosen = list(ordered)
    rng.shuffle(chosen)
    total = sum(asked_milli(job) for job in chosen)
    target = FILL_TO * capacity
    if total > target:
        while total > target:
            total -= asked_milli(chosen.pop(rng.randrange(len(chosen))))
        return chosen
    if not total:
        return chosen
    while True:
        sample = ordered[rng.randrange(len(ordered))]
        count = sample.demand.device_count
        if total + (sample.demand.compute_milli if count else 0) > target:
            return chosen
        chosen.append(sample)
        total += asked_milli(sample)


def node_order(nodes: Sequence[Node], seed: int) -> list[Node]:
    """The seed's random order of nodes: ties go to the first."""
    shuffled = list(nodes)
    random.Random(seed).shuffle(shuffled)  # noqa: S311 - a reproducible experiment, not a secret
    return shuffled
