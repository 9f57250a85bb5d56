"""Whatever happens in whatever order: nothing is over-committed, nothing is lost, nothing waits for ever."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oarlock_matcher.core.demand import Demand
from oarlock_matcher.core.devices import WHOLE_MILLI, Health, Share
from oarlock_matcher.core.effects import Cancelled, Effect, Preempt, Queued, Rejected, Release, Reserve
from oarlock_matcher.core.events import (
    DeviceChanged,
    DeviceLost,
    Event,
    LeaseConflict,
    LeasesSeen,
    NodeDrained,
    NodeSeen,
    PolicyUpdated,
    TaskArrived,
    TaskCancelled,
    TaskFinished,
    Tick,
)
from oarlock_matcher.core.machine import decide
from oarlock_matcher.core.policy_settings import PolicySettings, Quota, Weights
from oarlock_matcher.core.recording import record, replay
from oarlock_matcher.core.state import MatcherState

from .fleets import A100, GIB, RTX_3090, V100, node

FLEET = (
    node("a", A100, 4, cpus=16, groups=2),
    node("v", V100, 2, cpus=8),
    node("r", RTX_3090, 1, site="south", cpus=8),
)
DEVICES = tuple(device for n in FLEET for device in n.devices)
QUOTA = Quota(devices=3, tasks=4)
SETTINGS = PolicySettings(quotas={"ann": QUOTA}, explain_limit=2, hold_after_seconds=5.0, ageing_seconds=50.0)

# One byte string drives a whole sequence: hypothesis shrinks it well, and drawing it costs next to nothing.
SEQUENCES = st.binary(min_size=8, max_size=120)
SEQUENCE_COUNT = 5_000
EVENTS_PROMISED = 100_000


@dataclass
class World:
    """Plays the service and the launcher, and keeps its own books of who holds what."""

    state: MatcherState
    now: float = 0.0
    arrived: int = 0
    open: dict[str, str] = field(default_factory=dict)
    leases: dict[str, tuple[int, tuple[Share, ...]]] = field(default_factory=dict)
    foreign: dict[str, Share] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def tell(self, event: Event) -> None:
        self.state, effects = decide(self.state, event, self.now)
        self.lines.append(record(event, self.now, effects))
        for effect in effects:
            self.obey(effect)
        self.check()

    def obey(self, effect: Effect) -> None:
        if isinstance(effect, Reserve):
            assert effect.task_id not in self.leases, "placed twice"
            demand = self.state.tasks[effect.task_id].demand
            if isinstance(demand.device_count, int):
                assert len(effect.shares) == demand.device_count, "gangs are whole"
            uids = [share.device_uid for share in effect.shares]
            assert uids == sorted(set(uids))
            assert len({n.site for n in FLEET if n.name in {s.node for s in effect.node_shares}}) == 1
            self.leases[effect.task_id] = (effect.attempt, effect.shares)
            self.open[effect.task_id] = "placed"
        elif isinstance(effect, Queued):
            self.open[effect.task_id] = "queued"
            assert effect.reasons, "a waiting task knows why"
        elif isinstance(effect, Rejected | Cancelled):
            assert effect.task_id not in self.leases
            self.open.pop(effect.task_id, None)
        elif isinstance(effect, Release):
            assert self.leases.pop(effect.task_id)[1] == effect.shares, "every lease is released as it was taken"
            self.open.pop(effect.task_id, None)
        else:
            assert isinstance(effect, Preempt)
            assert effect.task_id in self.leases

    def check(self) -> None:
        by_device: dict[str, list[Share]] = {}
        for _, shares in self.leases.values():
            for share in shares:
                by_device.setdefault(share.device_uid, []).append(share)
        for uid, share in self.foreign.items():
            by_device.setdefault(uid, []).append(share)
        for device in DEVICES:
            held = by_device.get(device.uid, [])
            assert sum(s.bytes for s in held) <= device.model.memory_bytes
            assert sum(s.milli for s in held) <= WHOLE_MILLI
            assert len(held) < 2 or not any(s.exclusive for s in held), "exclusive means exclusive"
        mine = [shares for task, (_, shares) in self.leases.items() if self.state.tasks[task].demand.owner == "ann"]
        assert sum(len(shares) for shares in mine) <= 3
        assert len(mine) <= 4
        assert set(self.open) == set(self.state.tasks), "no task is lost"


def demand_of(number: int, a: int, b: int) -> Demand:
    shared = bool(a & 8)
    after = (f"t{b % (number + 1)}",) if a & 64 and b % (number + 1) != number else ()
    return Demand(
        f"t{number}",
        owner=("ann", "bob")[a & 1],
        priority=(a >> 1) & 3,
        device_count=0 if b % 11 == 0 else 1 if shared else 1 + b % 4,
        device_bytes=None if b % 7 == 0 else (2 + b % 36) * GIB,
        reserve_bytes=None if b % 7 == 0 else (3 + b % 36) * GIB,
        compute_milli=100 * (1 + b % 9) if shared else WHOLE_MILLI,
        exclusive=bool(a & 16) and b % 2 == 0,
        cpu_milli=500 * (b % 5),
        span_nodes=bool(a & 32),
        expected_seconds=float(b % 50) if a & 4 else None,
        timeout_seconds=float(b % 90) if a & 128 else None,
        after=after,
    )


def play(data: bytes, rules: PolicySettings) -> World:
    world = World(MatcherState(settings=rules))
    for n in FLEET:
        world.tell(NodeSeen(n))
    for i in range(0, len(data) - 2, 3):
        what, a, b = data[i : i + 3]
        world.now += what >> 4
        running, waiting = sorted(world.leases), sorted(t for t, s in world.open.items() if s == "queued")
        kind = what & 15
        if kind < 6:
            world.open[f"t{world.arrived}"] = "arriving"
            world.arrived += 1
            world.tell(TaskArrived(demand_of(world.arrived - 1, a, b)))
        elif kind < 9 and running:
            task = running[a % len(running)]
            outcome = ("succeeded", "failed", "oom", "lost")[b & 3]
            world.tell(TaskFinished(task, world.leases[task][0], outcome))
        elif kind == 9 and (running or waiting):
            names = running + waiting
            world.tell(TaskCancelled(names[a % len(names)]))
        elif kind == 10:
            world.tell(DeviceChanged(DEVICES[a % len(DEVICES)].uid, (Health.OK, Health.FAILED)[b & 1], bool(b & 2)))
        elif kind == 11:
            world.tell(NodeDrained(FLEET[a % len(FLEET)].name, bool(b & 1)))
        elif kind == 12 and running:
            _conflict(world, running[a % len(running)], b)
        elif kind == 13:
            uid = DEVICES[a % len(DEVICES)].uid
            world.tell(DeviceLost(uid) if b & 1 else NodeSeen(FLEET[a % len(FLEET)]))
        else:
            world.tell(Tick())
    return world


def _conflict(world: World, task: str, b: int) -> None:
    """Someone else was first on one of the task's devices; the reservation is rolled back."""
    attempt, shares = world.leases[task]
    if not shares:
        return
    lost = shares[b % len(shares)]
    others = [s for t, (_, held) in world.leases.items() if t != task for s in held if s.device_uid == lost.device_uid]
    if others or lost.device_uid in world.foreign:
        return
    theirs = Share(lost.device_uid, lost.node, GIB, WHOLE_MILLI, True)
    del world.leases[task]
    world.open[task] = "queued"
    world.foreign[lost.device_uid] = theirs
    world.tell(LeaseConflict(task, attempt, lost.device_uid, (("theirs", theirs),)))


def settle(world: World) -> None:
    """Everything comes back, every run ends, time goes on: nothing may be left waiting."""
    for uid in list(world.foreign):
        del world.foreign[uid]
        world.tell(LeasesSeen(uid, ()))
    for n in FLEET:
        world.tell(NodeDrained(n.name, False))
        world.tell(NodeSeen(n))
    for device in DEVICES:
        world.tell(DeviceChanged(device.uid, Health.OK, False))
    for _ in range(4 * world.arrived + 4):
        if not world.open:
            return
        world.now += 10.0
        running = sorted(world.leases)
        if running:
            world.tell(TaskFinished(running[0], world.leases[running[0]][0], "succeeded"))
        world.tell(Tick())
    # Tasks may only be left that wait for one that never arrived.
    blocked = {task for task, rec in world.state.tasks.items() if rec.after and not rec.after & set(world.state.tasks)}
    assert set(world.open) <= blocked | {t for t, r in world.state.tasks.items() if r.after}


def test_random_sequences_keep_every_promise() -> None:
    told = 0

    @settings(
        max_examples=SEQUENCE_COUNT,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        derandomize=True,
    )
    @given(SEQUENCES)
    def check(data: bytes) -> None:
        nonlocal told
        world = play(data, SETTINGS)
        assert world.state.faults() == []
        settle(world)
        assert world.state.faults() == []
        assert not world.leases
        assert not world.state.fleet.holders
        told += len(world.lines)

    check()
    assert told >= EVENTS_PROMISED, f"only {told} events"


@pytest.mark.parametrize("policy", ["best_fit", "packing", "clustering", "dot_product", "fgd", "first_fit"])
def test_every_policy_keeps_the_promises(policy: str) -> None:
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True)
    @given(SEQUENCES)
    def check(data: bytes) -> None:
        world = play(data, PolicySettings(policy=policy, quotas={"ann": QUOTA}, explain_limit=2))
        settle(world)
        assert world.state.faults() == []

    check()


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True)
@given(SEQUENCES)
def test_replay_reproduces_every_decision_bit_for_bit(data: bytes) -> None:
    world = play(data, SETTINGS)
    assert replay(world.lines, MatcherState(settings=SETTINGS)) == []


def test_replay_notices_another_policy() -> None:
    world = play(bytes(range(3, 120)), SETTINGS)
    other = PolicySettings(quotas={"ann": QUOTA}, weights=Weights(speed=5.0, fragmentation=0.1), explain_limit=2)
    assert replay(world.lines, MatcherState(settings=other))


def test_ageing_bounds_the_wait_of_the_lowest_priority() -> None:
    """A steady stream of higher priority on a full device: the low one starts within the bound that ageing gives."""
    rules = PolicySettings(ageing_seconds=100.0)
    world = World(MatcherState(settings=rules))
    world.tell(NodeSeen(node("v", V100, 1)))

    def arrive(task: str, priority: int) -> None:
        world.open[task] = "arriving"
        world.tell(TaskArrived(Demand(task, priority=priority, device_bytes=GIB)))

    arrive("first", 3)
    arrive("low", 0)
    for step in range(100):
        world.now += 10.0
        arrive(f"high{step}", 3)
        (running,) = world.leases
        world.tell(TaskFinished(running, 1, "succeeded"))
        if "low" in world.leases:
            break
    assert world.now <= 3 * 100.0 + 20.0


PRIORITIES = 3
STREAMS = st.lists(
    st.tuples(
        st.integers(0, PRIORITIES),
        st.sampled_from((None, -1e6, 0.0, 100.0, 1000.0, 1e6)),
        st.sampled_from(("ann", "bob", "cid")),
        st.integers(0, 60),
        st.sampled_from((None, 30.0, 600.0)),
    ),
    min_size=10,
    max_size=70,
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True)
@given(STREAMS, st.sampled_from((0.0, 30.0)), st.integers(1, 3), st.booleans())
def test_whatever_others_ask_for_a_task_is_passed_only_by_those_that_come_soon_after_it(
    stream: list[tuple[int, float | None, str, int, float | None]], fair_share: float, devices: int, holding: bool
) -> None:
    """Priorities, deadlines (past ones too) and shares of owners can put a task before another that came earlier, but
    not before one that came longer ago than all of them together are worth: so every wait is bounded by the work
    that was there before it and that came within this time."""
    rules = PolicySettings(
        ageing_seconds=100.0,
        fair_share_seconds=fair_share,
        hold_after_seconds=20.0 if holding else 1e9,
        explain_limit=0,
    )
    state, now, running, arrived, most = MatcherState(settings=rules), 0.0, list[str](), dict[str, float](), 0.0
    state, _ = decide(state, NodeSeen(node("v", V100, devices)), now)
    started: list[str] = []

    def tell(event: Event) -> None:
        nonlocal state
        state, effects = decide(state, event, now)
        placed = [effect.task_id for effect in effects if isinstance(effect, Reserve)]
        running.extend(placed)
        started.extend(placed)

    for number, (priority, deadline, owner, pause, expected) in enumerate(stream):
        now += pause
        arrived[str(number)] = now
        due = None if deadline is None else now + deadline
        tell(TaskArrived(Demand(str(number), owner, priority, deadline=due, expected_seconds=expected)))
        shares = sum(usage.devices + usage.waiting_devices + devices for usage in state.usage.values())
        most = max(most, fair_share * shares)
        if number % 2:
            tell(TaskFinished(running.pop(0), 1, "succeeded"))
    while running:
        now += 10.0
        tell(TaskFinished(running.pop(0), 1, "succeeded"))
    assert sorted(started) == sorted(arrived), "every task starts"
    bound = (PRIORITIES + rules.deadline_levels) * rules.ageing_seconds + most
    order = {task: place for place, task in enumerate(started)}
    for task, at in arrived.items():
        passing = [other for other in arrived if order[other] < order[task] and arrived[other] > at + bound]
        assert not passing, f"{task} of {at} was passed by {passing}"


def test_policy_update_keeps_promises() -> None:
    world = play(bytes(range(120)), SETTINGS)
    world.tell(PolicyUpdated(SETTINGS.with_preset("throughput")))
    settle(world)
    assert not world.leases
