"""Putting a task's record, leases, usage and queue entry into step with each other: every change of standing is
here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oarlock_matcher.core.deadlines import expected_on, latest_start
from oarlock_matcher.core.demand import Demand
from oarlock_matcher.core.devices import NodeShare, Share
from oarlock_matcher.core.fair_share import behind_seconds
from oarlock_matcher.core.policies.base import EndedRun
from oarlock_matcher.core.queue import Turn
from oarlock_matcher.core.shapes import counts_to_try
from oarlock_matcher.core.tasks import Phase, TaskRecord

if TYPE_CHECKING:
    from oarlock_matcher.core.state import MatcherState

OWNERS_REMEMBERED = 10_000
FORGOTTEN_DEVICES = 0.01
"""Use below this is forgotten where there are more owners than that."""


def new_record(state: MatcherState, demand: Demand, now: float) -> TaskRecord:
    """A record that is not booked, queued or remembered yet."""
    arrived = now if demand.arrived_at is None else min(now, demand.arrived_at)
    settings = state.settings
    due = arrived - demand.priority * settings.ageing_seconds
    if settings.fair_share_seconds:
        due += behind_seconds(state.usage_of(demand.owner), settings, now)
    latest = latest_start(demand)
    if latest is not None:
        # It is due when it must start to be done in time, but no deadline is worth more than so many levels of
        # priority: a stream of tasks that are late already would starve the others.
        due = max(min(due, latest - settings.ageing_seconds), due - settings.deadline_levels * settings.ageing_seconds)
    state.sequence += 1
    shapes = tuple(state.shapes.of(demand, count) for count in counts_to_try(demand))
    # Only short tasks may pass what is held, so tasks of different expected durations do not stand for each other.
    limited = None if demand.array_at_once is None else demand.array
    shape_numbers = tuple(shape.number for shape in shapes)
    group = (demand.owner, demand.algorithm, _duration_class(demand), limited, shape_numbers)
    turn = Turn(due, state.sequence, demand.task_id)
    spans = any(shape.span_nodes for shape in shapes)
    return TaskRecord(demand, Phase.WAITING, arrived, shapes, turn, group, spans=spans)


def _duration_class(demand: Demand) -> int:
    """Expected duration on a coarse scale (doubling); -1 when unknown."""
    return -1 if demand.expected_seconds is None else int(demand.expected_seconds).bit_length()


def book(
    state: MatcherState,
    record: TaskRecord,
    shares: tuple[Share, ...],
    node_shares: tuple[NodeShare, ...],
    kind: str | None,
    now: float,
) -> None:
    """The task holds these leases from now on, and waits no more."""
    task_id = record.demand.task_id
    state.queue.remove(task_id)
    if state.hold is not None and state.hold.task_id == task_id:
        state.hold = None
    state.fleet.hold(record.holder, shares, node_shares)
    record.phase = Phase.PLACED
    record.blocked = None
    record.shares, record.node_shares = shares, node_shares
    record.placed_at, record.kind, record.reasons = now, kind, ()
    usage = state.usage_of(record.demand.owner)
    usage.waiting_devices -= record.shapes[0].count
    usage.devices += len(shares)
    usage.device_bytes += sum(share.bytes for share in shares)
    usage.tasks += 1
    if (array := record.demand.array) is not None:
        state.arrays[array] = state.arrays.get(array, 0) + 1


def unbook(state: MatcherState, record: TaskRecord) -> None:
    """The task's leases are given back; it is neither placed nor queued afterwards."""
    state.fleet.release(record.holder, record.shares, record.node_shares)
    usage = state.usage_of(record.demand.owner)
    usage.devices -= len(record.shares)
    usage.device_bytes -= sum(share.bytes for share in record.shares)
    usage.tasks -= 1
    if (array := record.demand.array) is not None:
        state.arrays[array] -= 1
        if not state.arrays[array]:
            del state.arrays[array]
    usage.waiting_devices += record.shapes[0].count
    record.shares, record.node_shares = (), ()
    record.placed_at = record.kind = None
    record.preempting = False


def ended_run(record: TaskRecord, outcome: str, now: float) -> EndedRun:
    """The run of a placed task, for policies to learn from."""
    kind = record.kind
    began = now if record.placed_at is None else record.placed_at
    return EndedRun(kind, outcome, now - began, expected_on(record.demand, kind))


def note_use(state: MatcherState, record: TaskRecord, now: float) -> None:
    """A run has ended: what it held counts against its owner's next tasks for a while."""
    half_life = state.settings.fair_share_half_life_seconds
    if not state.settings.fair_share_seconds or half_life <= 0.0 or record.placed_at is None:
        return
    state.usage_of(record.demand.owner).note_held(len(record.shares), now - record.placed_at, now, half_life)
    if len(state.usage) > OWNERS_REMEMBERED:
        for owner, usage in list(state.usage.items()):
            if not (usage.waiting_devices or usage.tasks) and usage.recent_devices(now, half_life) < FORGOTTEN_DEVICES:
                del state.usage[owner]


def forget(state: MatcherState, record: TaskRecord) -> None:
    """The task is over for the matcher: leases back, out of the queue, out of memory."""
    task_id, owner = record.demand.task_id, record.demand.owner
    if record.phase is Phase.PLACED:
        unbook(state, record)
    state.queue.remove(task_id)
    for other in record.after:
        waiting = state.dependents.get(other)
        if waiting is not None:
            waiting.discard(task_id)
            if not waiting:
                del state.dependents[other]
    if state.hold is not None and state.hold.task_id == task_id:
        state.hold = None
    if state.tasks.get(task_id) is record:
        del state.tasks[task_id]
        usage = state.usage_of(owner)
        usage.waiting_devices -= record.shapes[0].count
        if not (usage.waiting_devices or usage.tasks or usage.held):
            del state.usage[owner]
