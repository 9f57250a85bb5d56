"""What makes a device scarce: demand that can go nowhere else, for its kind or for the size of its node."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oarlock_matcher.core.able_models import able_models
from oarlock_matcher.core.demand import Demand
from oarlock_matcher.core.effects import Reserve
from oarlock_matcher.core.events import NodeSeen, TaskArrived, TaskFinished
from oarlock_matcher.core.fleet import FleetTable
from oarlock_matcher.core.machine import decide
from oarlock_matcher.core.policies.scarcity import SIZE_WEIGHT, Scarcity
from oarlock_matcher.core.policy_settings import PolicySettings
from oarlock_matcher.core.shapes import ShapeTable
from oarlock_matcher.core.state import MatcherState

from .fleets import A100, RTX_3090, node


def prices(fleet: FleetTable, *demands: Demand) -> list[float]:
    shapes, scarcity = ShapeTable(), Scarcity()
    for demand in demands:
        shape = shapes.of(demand, int(demand.device_count))
        scarcity.note(shape, able_models(fleet, shape))
    scarcity.relearn(fleet)
    return [float(price) for price in scarcity.of(fleet, fleet.all_rows())]


@pytest.fixture
def fleet() -> FleetTable:
    """Eight A100s, two of them on the node with most processors, and eight 3090s."""
    table = FleetTable()
    for found in (
        node("small", A100, 6, cpus=32),
        node("large", A100, 2, cpus=128),
        node("other", RTX_3090, 8, cpus=32),
    ):
        table.see_node(found)
    return table


def test_demand_that_can_go_anywhere_makes_nothing_scarce(fleet: FleetTable) -> None:
    assert prices(fleet, Demand("a"), Demand("b", device_count=0, cpu_milli=64_000)) == [0.0, 0.0, 0.0]


def test_demand_bound_to_a_kind_is_priced_by_what_there_is_of_it(fleet: FleetTable) -> None:
    a100 = Demand("a", required_kinds=frozenset({A100.kind}))
    assert prices(fleet, a100, Demand("b")) == pytest.approx([1.0, 1.0, 0.0], rel=1e-3)


@pytest.mark.parametrize("large", [Demand("a", cpu_milli=64_000), Demand("a", memory_bytes=2**40)])
def test_demand_that_only_a_large_node_takes_prices_that_node(fleet: FleetTable, large: Demand) -> None:
    fleet.see_node(replace(node("large", A100, 2, cpus=128), memory_bytes=2 * 2**40))
    assert prices(fleet, large) == pytest.approx([0.0, SIZE_WEIGHT * (16 / 2 - 1), 0.0])


def test_a_node_that_came_later_is_priced_by_its_kind(fleet: FleetTable) -> None:
    shapes, scarcity = ShapeTable(), Scarcity()
    shape = shapes.of(Demand("a", required_kinds=frozenset({A100.kind})), 1)
    scarcity.note(shape, able_models(fleet, shape))
    scarcity.relearn(fleet)
    fleet.see_node(node("new", A100, 4, cpus=96))
    assert scarcity.of(fleet, np.array([3]))[0] == pytest.approx(2.0)


def test_small_tasks_leave_the_large_node_to_those_that_need_it() -> None:
    state = MatcherState(settings=PolicySettings())
    for found in (node("large", A100, 2, cpus=128), *(node(f"n{i}", A100, 2, cpus=48) for i in range(6))):
        state, _ = decide(state, NodeSeen(found), 0.0)
    homes = []
    for number in range(7):
        large = number in (0, 6)
        # A task that asks for many processors would strand a small node's second device, so the large one tempts it.
        demand = Demand(f"t{number}", device_count=2 if large else 1, cpu_milli=100_000 if large else 30_000)
        state, (effect,) = decide(state, TaskArrived(demand), float(number))
        assert isinstance(effect, Reserve)
        homes.append({share.node for share in effect.shares})
        if number == 0:
            state, _ = decide(state, TaskFinished("t0", 1, "succeeded"), 0.5)
    assert {"large"} not in homes[1:6]
    assert homes[6] == {"large"}
