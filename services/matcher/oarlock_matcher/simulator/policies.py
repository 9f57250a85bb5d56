"""The policies that the simulator compares, with what the published experiment gives some of them beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from oarlock_matcher.core.able_models import able_models
from oarlock_matcher.core.devices import Node
from oarlock_matcher.core.events import NodeSeen
from oarlock_matcher.core.fleet import FleetTable
from oarlock_matcher.core.machine import decide
from oarlock_matcher.core.policies.base import PlacementPolicy
from oarlock_matcher.core.policies.demand_mix import DemandMix
from oarlock_matcher.core.policies.fgd import FgdPolicy
from oarlock_matcher.core.policies.heuristics import RandomPolicy
from oarlock_matcher.core.policies.registry import BUILDERS, build
from oarlock_matcher.core.policy_settings import DEFAULT_POLICY, PolicySettings
from oarlock_matcher.core.shapes import ShapeTable
from oarlock_matcher.core.state import MatcherState
from oarlock_matcher.simulator.files import Job
from oarlock_matcher.simulator.workload import node_order

PUBLISHED_COVERAGE = 0.95

POLICY_NAMES: tuple[str, ...] = (*BUILDERS, "random")


def make_policy(
    name: str, settings: PolicySettings, fleet: FleetTable, trace: Sequence[Job], seed: int, publish: bool
) -> PlacementPolicy:
    """A fresh policy for one simulation.

    `publish`: `fgd` knows the whole trace's demand mix beforehand, as its authors' experiment has it; every other
    policy, and `fgd` otherwise, learns from what has arrived.

    Raises:
        KeyError: no such policy.
    """
    if name == "random":
        return RandomPolicy(_drawing(seed))
    if name == "fgd" and publish:
        mix, shapes = DemandMix(half_life=1e18, coverage=PUBLISHED_COVERAGE, limit=100_000), ShapeTable()
        for job in trace:
            count = job.demand.device_count
            shape = shapes.of(job.demand, 1 if count == "auto" else count)
            able = able_models(fleet, shape)
            mix.note((shape.cpu_milli, shape.count, shape.milli if shape.count else 0, able))
        return FgdPolicy(mix, learns=False)
    return build(name, settings)


def _drawing(seed: int) -> Callable[[int], np.ndarray]:
    draw: Callable[[int], np.ndarray] = np.random.default_rng(seed).random
    return draw


def start(
    nodes: Sequence[Node], jobs: Sequence[Job], policy: str, seed: int, settings: PolicySettings, publish: bool
) -> MatcherState:
    """A state whose fleet is `nodes` in the seed's order, and whose policy is `policy`."""
    state = MatcherState(settings=replace(settings, policy=policy if policy != "random" else DEFAULT_POLICY))
    for node in node_order(nodes, seed):
        state, _ = decide(state, NodeSeen(node), 0.0)
    made = make_policy(policy, state.settings, state.fleet, jobs, seed, publish)
    # `random` is unknown to the core's registry: it answers under the name that the settings ask for.
    state.policies[state.settings.policy] = made
    return state
