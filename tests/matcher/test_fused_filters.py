"""The one fused look at rows says what the filters say one by one, which is what people are told."""

from __future__ import annotations

import random

import numpy as np
import pytest

from oarlock_matcher.core.demand import Demand
from oarlock_matcher.core.devices import Health, NodeShare, Share
from oarlock_matcher.core.filters import DYNAMIC_FILTERS
from oarlock_matcher.core.fleet import FleetTable
from oarlock_matcher.core.matching import EverRows, ever_rows, fitting_devices
from oarlock_matcher.core.policy_settings import PolicySettings
from oarlock_matcher.core.shapes import ShapeTable, bytes_at_least

from .fleets import A100, GIB, RTX_3090, V100, node

SETTINGS = PolicySettings(sharers_per_device=2)


def disturbed_fleet(rng: random.Random) -> FleetTable:
    """Some nodes with bookings, failures, cordons and drains."""
    fleet = FleetTable()
    for number in range(12):
        fleet.see_node(node(f"n{number}", rng.choice((A100, V100, RTX_3090)), rng.choice((1, 2, 4)), cpus=16))
    for uid, device in list(fleet.devices.items()):
        for holder in range(rng.choice((0, 0, 1, 2))):
            milli, exclusive = rng.choice(((300, False), (500, False), (1000, True)))
            if not fleet.holders.get(uid) or not exclusive:
                fleet.hold(
                    (f"{uid}-{holder}", 1),
                    (Share(uid, device.node, rng.randrange(30) * GIB, milli, exclusive, rng.choice((None, 400, 900))),),
                    (NodeShare(device.node, 3000, 60 * GIB),),
                )
        if rng.random() < 0.3:
            health = rng.choice((Health.OK, Health.FAILED, Health.LOST))
            fleet.change_device(uid, health, rng.random() < 0.3, rng.randrange(8) * GIB)
    fleet.drain("n3", True)
    return fleet


def some_demand(rng: random.Random, number: int) -> Demand:
    """Any mixture of what filters look at."""
    count = rng.choice((0, 1, 1, 1, 2, 4))
    peak = rng.choice((None, 0, rng.randrange(40 * GIB)))
    return Demand(
        f"t{number}",
        device_count=count,
        device_bytes=peak,
        reserve_bytes=rng.choice((None, rng.randrange(40 * GIB))),
        compute_milli=rng.choice((100, 500, 1000)),
        busy_milli=rng.choice((None, 200, 900)),
        exclusive=rng.random() < 0.2,
        cpu_milli=rng.choice((0, 2000, 12000)),
        memory_bytes=rng.choice((0, 100 * GIB, 250 * GIB)),
        memory_threshold=rng.choice((0.5, 0.85, 1.0)),
    )


@pytest.mark.parametrize("seed", range(8))
def test_the_fused_look_is_all_filters_together(seed: int) -> None:
    rng = random.Random(seed)
    fleet, shapes, rows_of = disturbed_fleet(rng), ShapeTable(), EverRows()
    rows = fleet.all_rows()
    seen: set[bool] = set()
    for number in range(150):
        demand = some_demand(rng, number)
        count = demand.device_count
        assert isinstance(count, int)
        shape = shapes.of(demand, count)
        one_by_one = np.ones((len(rows), fleet.slots), dtype=np.bool_)
        for rule in DYNAMIC_FILTERS:
            if rule.concerns(shape):
                one_by_one &= rule.admits(fleet, shape, rows, SETTINGS)
        fused = fitting_devices(fleet, shape, SETTINGS, rows)
        assert (fused == one_by_one).all(), shape
        seen |= set(fused.ravel().tolist())
        if number % 10 == 0:
            uid = rng.choice(sorted(fleet.devices))
            fleet.change_device(uid, rng.choice((Health.OK, Health.LOST)))
        assert (rows_of.of(fleet, shape, SETTINGS) == ever_rows(fleet, shape, SETTINGS)).all()
    assert seen == {True, False}


def test_the_fewest_bytes_are_exact() -> None:
    rng = random.Random(1)
    for _ in range(2000):
        need, threshold = rng.randrange(1, 2**40), rng.choice((0.3, 0.5, 0.85, 0.9, 0.99, 1.0))
        least = bytes_at_least(need, 0, threshold)
        assert least * threshold >= need > (least - 1) * threshold
    assert bytes_at_least(GIB, 3 * GIB, 0.85) == 3 * GIB
    assert bytes_at_least(0, 0, 0.85) == 0
