"""The glance that spares waiting tasks a full look never skips one that could be placed."""

from __future__ import annotations

import random

import pytest

from oarlock_matcher.core.effects import Reserve
from oarlock_matcher.core.events import DeviceChanged, TaskArrived, TaskFinished, Tick
from oarlock_matcher.core.placing import Chosen, find_place
from oarlock_matcher.core.policy_settings import PolicySettings, Quota

from .fleets import A100, RTX_3090, V100, Driver, need, node

NODES = (
    node("a", A100, 4, cpus=24),
    node("b", A100, 4, cpus=24),
    node("v", V100, 2, cpus=8),
    node("r", RTX_3090, 4, cpus=12),
)


@pytest.mark.parametrize("seed", range(6))
def test_no_head_of_the_queue_waits_for_what_is_free(seed: int) -> None:
    chance = random.Random(seed)
    settings = PolicySettings(
        backfill_depth=10_000,
        hold_after_seconds=chance.choice((5.0, 1e9)),
        quotas={"o1": Quota(devices=3)},
        sharers_per_device=3,
        reject_impossible=False,
    )
    driver = Driver(settings).fleet(*NODES)
    running: list[str] = []
    reserved = 0
    for number in range(250):
        what = chance.random()
        if what < 0.5 or not running:
            shared = chance.random() < 0.4
            demand = need(
                f"t{number}",
                chance.choice((3.0, 8.0, 15.0, 26.0)),
                owner=f"o{chance.randrange(3)}",
                device_count=1 if shared else chance.choice((0, 1, 1, 2, 4)),
                compute_milli=chance.choice((200, 500)) if shared else 1000,
                cpu_milli=1000 * chance.randrange(8),
                required_kinds=frozenset({chance.choice((V100.kind, RTX_3090.kind))} if chance.random() < 0.3 else ()),
                expected_seconds=chance.choice((None, 10.0, 100.0)),
                priority=chance.randrange(3),
            )
            effects = driver.tell(TaskArrived(demand), after=1.0)
        elif what < 0.9:
            effects = driver.tell(
                TaskFinished(running.pop(chance.randrange(len(running))), 1, "succeeded"), after=chance.random()
            )
        elif what < 0.95:
            effects = driver.tell(DeviceChanged(f"a-{chance.randrange(4)}", cordoned=chance.random() < 0.5))
        else:
            effects = driver.tell(Tick(), after=1.0)
        placed = [e.task_id for e in effects if isinstance(e, Reserve)]
        running += placed
        reserved += len(placed)
        state = driver.state
        for task_id in state.queue.heads(10_000):
            assert not isinstance(find_place(state, state.tasks[task_id], driver.now), Chosen), task_id
    assert reserved > 50
