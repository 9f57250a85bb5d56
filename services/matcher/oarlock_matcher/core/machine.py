"""The matcher's state machine: `decide(state, event, now) -> (state, effects)`.

The core believes a reservation as soon as it asks for it: the leases count from that moment, and `LeaseConflict` takes
them back. So decisions never wait for the bus. After every event that can free something the queue's heads are tried
in the order of their turns; a new task is tried once on arrival, and passes those that wait only where nothing is held.
"""
# ruff: noqa: ARG001 - one signature for all, whatever each needs of it

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from oarlock_matcher.core import events as ev
from oarlock_matcher.core.bookkeeping import book, ended_run, forget, new_record, note_use, unbook
from oarlock_matcher.core.deadlines import slack
from oarlock_matcher.core.devices import Share
from oarlock_matcher.core.effects import Cancelled, Effect, Queued, Reason, Rejected, Release, Reserve
from oarlock_matcher.core.explain import Why, closed_devices, rejections, smallest_bytes, would_free
from oarlock_matcher.core.glance import Glance
from oarlock_matcher.core.holds import choose_hold, closed_rows
from oarlock_matcher.core.matching import could_span
from oarlock_matcher.core.placing import describe, find_place, leases_of
from oarlock_matcher.core.policies.learned import LearnedPolicy
from oarlock_matcher.core.policies.registry import BUILDERS, LEARNED
from oarlock_matcher.core.policy_settings import PolicySettings
from oarlock_matcher.core.preemption import preempt
from oarlock_matcher.core.queue import Turn
from oarlock_matcher.core.shapes import Shape
from oarlock_matcher.core.state import MatcherState
from oarlock_matcher.core.tasks import Blocked, Phase, TaskRecord

RETELL_SECONDS = 30.0
"""How old the reasons that a waiting task was told may grow before they are worked out again."""
RETOLD_AT_ONCE = 8

FOREIGN = -1
"""Attempt number under which leases of matchers other than this one are booked."""


class InvalidTransition(Exception):
    """An event that cannot follow what the core knows; the message tells the task's standing. Deliver it again later:
    the event that it should have followed is probably on its way."""


def decide(state: MatcherState, event: ev.Event, now: float) -> tuple[MatcherState, tuple[Effect, ...]]:
    """What follows from `event` at `now` (seconds since the epoch, or of a simulator's clock; never going back).

    Deterministic: the same state, event and time give the same effects. The state passed in is used up.

    Raises:
        InvalidTransition: the event contradicts what is known; nothing has changed.
        KeyError: a device names a node that has not been seen.
    """
    return state, tuple(_HANDLERS[type(event)](state, event, now))


# --- tasks ---------------------------------------------------------------------------------------------------------


def _arrived(state: MatcherState, event: ev.TaskArrived, now: float) -> list[Effect]:
    demand = event.demand
    known = state.tasks.get(demand.task_id)
    if known is not None:
        if demand.attempt <= known.demand.attempt:
            return []
        if known.phase is Phase.PLACED:
            raise InvalidTransition(
                f"attempt {demand.attempt} of {demand.task_id} arrived while attempt {known.demand.attempt} still "
                f"holds {len(known.shares)} devices (placed at {known.placed_at}); its end must be known first"
            )
        forget(state, known)
    ended = state.outcomes.of(demand.task_id)
    if ended is not None and known is None and ended[1] >= demand.attempt:
        return []
    faults = demand.faults()
    if faults:
        reasons = tuple(Reason("invalid", fault) for fault in faults)
        return [Rejected(demand.task_id, demand.attempt, "invalid", reasons)]
    record = new_record(state, demand, now)
    _learn_arrival(state, record, now)
    failed = [(task, o[0]) for task in demand.after if (o := state.outcomes.of(task)) and o[0] != "succeeded"]
    if failed:
        return _reject(state, record, "dependency_failed", _failed_dependencies(failed))
    state.tasks[demand.task_id] = record
    state.usage_of(demand.owner).waiting_devices += record.shapes[0].count
    if demand.timeout_seconds is not None:
        heapq.heappush(state.timeouts, (record.arrived_at + demand.timeout_seconds, demand.task_id, demand.attempt))
    record.after = {task for task in demand.after if state.outcomes.of(task) is None}
    if record.after:
        record.phase = Phase.BLOCKED
        for task in record.after:
            state.dependents.setdefault(task, set()).add(demand.task_id)
        record.reasons = (_waits_for(record),)
        return [_queued(state, record, now)]
    return _try_new(state, record, now)


def _learn_arrival(state: MatcherState, record: TaskRecord, now: float) -> None:
    """Every policy in use learns from every arrival, whichever of them will decide."""
    name, _ = state.answering(record.demand.algorithm)
    state.policy(name)
    if state.settings.shadow_policy in BUILDERS:
        state.policy(state.settings.shadow_policy)
    for policy in state.policies.values():
        policy.arrived(state.fleet, record.shapes[0], now)
    state.trial.note(record.demand)


def _try_new(state: MatcherState, record: TaskRecord, now: float) -> list[Effect]:
    """Place a task that has just become ready, or put it in the queue."""
    if not state.queue.group_waits_before(record.turn, record.group):
        placed = _try(state, record, now)
        if isinstance(placed, Reserve):
            return [placed]
        record.reasons = _reasons(state, record, placed, now)
        if placed is None:
            record.blocked = Blocked(state.fleet.touched_end, state.hold, state.fleet.inventory_version)
    else:
        record.reasons = (Reason("turn", "tasks with the same needs are waiting before it"),)
    impossible = _impossible(state, record)
    if impossible is not None:
        forget(state, record)
        return [impossible]
    timeout = record.demand.timeout_seconds
    if timeout is not None and now >= record.arrived_at + timeout:
        forget(state, record)
        return [_rejected(state, record, "timeout", record.reasons)]
    record.phase = Phase.WAITING
    state.queue.add(record.turn, record.group)
    return [_queued(state, record, now)]


def _try(state: MatcherState, record: TaskRecord, now: float) -> Reserve | Reason | None:
    chosen = find_place(state, record, now)
    if chosen is None or isinstance(chosen, Reason):
        return chosen
    shares, node_shares = leases_of(state, chosen)
    placed = describe(state, record, chosen, shares, node_shares, now)
    book(state, record, shares, node_shares, placed.kind, now)
    return Reserve(record.demand.task_id, record.demand.attempt, shares, node_shares, placed)


def _adopted(state: MatcherState, event: ev.TaskAdopted, now: float) -> list[Effect]:
    demand = event.demand
    known = state.tasks.get(demand.task_id)
    if known is not None:
        if known.phase is Phase.PLACED or demand.attempt < known.demand.attempt:
            return []
        forget(state, known)
    for share in event.shares:
        state.fleet.release((demand.task_id, FOREIGN), (share,))
    record = new_record(state, demand, now)
    state.tasks[demand.task_id] = record
    state.usage_of(demand.owner).waiting_devices += record.shapes[0].count
    placed_at = now if event.placed_at is None else min(now, event.placed_at)
    book(state, record, event.shares, event.node_shares, None, placed_at)
    return []


def _finished(state: MatcherState, event: ev.TaskFinished, now: float) -> list[Effect]:
    record = state.tasks.get(event.task_id)
    if record is None or record.phase is not Phase.PLACED or record.demand.attempt != event.attempt:
        return []
    shares, node_shares = record.shares, record.node_shares
    note_use(state, record, now)
    run = ended_run(record, event.outcome, now)
    for policy in state.policies.values():
        policy.ended(run)
    forget(state, record)
    effects: list[Effect] = [Release(event.task_id, event.attempt, shares, node_shares)]
    if event.final:
        state.outcomes.note(event.task_id, (event.outcome, event.attempt))
        effects += _dependency_ended(state, event.task_id, event.outcome, now)
    return effects + _serve_queue(state, now)


def _cancelled(state: MatcherState, event: ev.TaskCancelled, now: float) -> list[Effect]:
    record = state.tasks.get(event.task_id)
    if record is None:
        return []
    if record.phase is Phase.PLACED:
        record.cancelled = True
        return []
    forget(state, record)
    state.outcomes.note(event.task_id, ("cancelled", record.demand.attempt))
    effects: list[Effect] = [Cancelled(event.task_id, record.demand.attempt)]
    effects += _dependency_ended(state, event.task_id, "cancelled", now)
    return effects + _serve_queue(state, now)


def _ended(state: MatcherState, event: ev.TaskEnded, now: float) -> list[Effect]:
    if event.task_id in state.tasks or state.outcomes.of(event.task_id) is not None:
        return []
    state.outcomes.note(event.task_id, (event.outcome, event.attempt))
    return _dependency_ended(state, event.task_id, event.outcome, now) + _serve_queue(state, now)


def _dependency_ended(state: MatcherState, task_id: str, outcome: str, now: float) -> list[Effect]:
    effects: list[Effect] = []
    if outcome in ("preempted",):
        return effects
    for waiting in sorted(state.dependents.pop(task_id, ())):
        record = state.tasks.get(waiting)
        if record is None or record.phase is not Phase.BLOCKED:
            continue
        if outcome != "succeeded":
            forget(state, record)
            effects += _reject(state, record, "dependency_failed", _failed_dependencies([(task_id, outcome)]))
            effects += _dependency_ended(state, waiting, "dependency_failed", now)
            continue
        record.after.discard(task_id)
        record.reasons = (_waits_for(record),) if record.after else ()
        if not record.after:
            effects += _try_new(state, record, now)
    return effects


def _conflict(state: MatcherState, event: ev.LeaseConflict, now: float) -> list[Effect]:
    record = state.tasks.get(event.task_id)
    if record is None or record.phase is not Phase.PLACED or record.demand.attempt != event.attempt:
        return []
    unbook(state, record)
    record.conflicts += 1
    _sync_foreign(state, event.device_uid, event.holders)
    if record.cancelled:
        forget(state, record)
        state.outcomes.note(event.task_id, ("cancelled", event.attempt))
        return [Cancelled(event.task_id, event.attempt)]
    record.phase = Phase.WAITING
    state.queue.add(record.turn, record.group)
    if event.holders:
        effects = _serve_queue(state, now)
        if any(isinstance(e, Reserve) and e.task_id == event.task_id for e in effects):
            return effects
    else:
        # Nobody said who holds it: trying at once would run into the same wall. The next event tries again.
        effects = []
    record.reasons = (
        Reason("lease_conflict", f"another matcher took {event.device_uid} first", (event.device_uid,), 1),
    )
    return [*effects, _queued(state, record, now)]


def _leases_seen(state: MatcherState, event: ev.LeasesSeen, now: float) -> list[Effect]:
    _sync_foreign(state, event.device_uid, event.holders)
    return _serve_queue(state, now)


def _sync_foreign(state: MatcherState, uid: str, holders: tuple[tuple[str, Share], ...]) -> None:
    """Book what others hold on a device; forget what they no longer hold."""
    listed = dict(holders)
    for (task, attempt), share in list(state.fleet.holders.get(uid, {}).items()):
        if attempt == FOREIGN and task not in listed:
            state.fleet.release((task, FOREIGN), (share,))
    for task, share in holders:
        record = state.tasks.get(task)
        mine = record is not None and any(s.device_uid == uid for s in record.shares)
        if not mine:
            state.fleet.hold((task, FOREIGN), (share,))


# --- fleet and policy ----------------------------------------------------------------------------------------------


def _node_seen(state: MatcherState, event: ev.NodeSeen, now: float) -> list[Effect]:
    state.fleet.see_node(event.node)
    return _serve_queue(state, now)


def _device_seen(state: MatcherState, event: ev.DeviceSeen, now: float) -> list[Effect]:
    state.fleet.see_device(event.device)
    return _serve_queue(state, now)


def _device_changed(state: MatcherState, event: ev.DeviceChanged, now: float) -> list[Effect]:
    state.fleet.change_device(event.device_uid, event.health, event.cordoned, event.foreign_bytes)
    return _serve_queue(state, now)


def _device_lost(state: MatcherState, event: ev.DeviceLost, now: float) -> list[Effect]:
    state.fleet.lose_device(event.device_uid)
    return _serve_queue(state, now)


def _node_drained(state: MatcherState, event: ev.NodeDrained, now: float) -> list[Effect]:
    state.fleet.drain(event.node, event.draining)
    return _serve_queue(state, now)


def _policy_updated(state: MatcherState, event: ev.PolicyUpdated, now: float) -> list[Effect]:
    if (event.settings.learned, event.settings.weights) != (state.settings.learned, state.settings.weights):
        state.trial.restart()
    state.settings = event.settings
    state.views.clear()
    for record in state.tasks.values():
        record.blocked = None
    for policy in state.policies.values():
        policy.retune(event.settings)
    return _serve_queue(state, now)


def _standing_seen(state: MatcherState, event: ev.StandingSeen, now: float) -> list[Effect]:
    state.trial.resume(event.trusted, event.rehearsals, event.recent)
    learned = state.policy(LEARNED)
    if isinstance(learned, LearnedPolicy):
        learned.recall(event.experience)
    return []


def _usage_seen(state: MatcherState, event: ev.UsageSeen, now: float) -> list[Effect]:
    for owner, held in event.held.items():
        usage = state.usage_of(owner)
        if not usage.held:
            usage.held, usage.held_at = held, min(event.at, now)
    return []


def _tick(state: MatcherState, event: ev.Tick, now: float) -> list[Effect]:
    effects: list[Effect] = []
    while state.timeouts and state.timeouts[0][0] <= now:
        _, task_id, attempt = heapq.heappop(state.timeouts)
        record = state.tasks.get(task_id)
        if record is None or record.demand.attempt != attempt or record.phase is Phase.PLACED:
            continue
        forget(state, record)
        state.outcomes.note(task_id, ("timeout", attempt))
        effects.append(_rejected(state, record, "timeout", record.reasons))
        effects += _dependency_ended(state, task_id, "timeout", now)
    effects += _serve_queue(state, now) + _retell(state, now)
    standing = state.trial.step(state, _fresh, decide)
    return effects if standing is None else [*effects, standing]


def _fresh(settings: PolicySettings) -> MatcherState:
    """An empty state, for what is only rehearsed."""
    return MatcherState(settings=settings)


# --- the queue -----------------------------------------------------------------------------------------------------


def _serve_queue(state: MatcherState, now: float) -> list[Effect]:
    """Try the heads of the queue in turn order; place what fits, then look after the first that does not."""
    if not len(state.queue):
        state.hold = None
        return []
    effects: list[Effect] = []
    if state.settings.windows and state.calendar.window_ended(state.settings, now):
        for record in state.tasks.values():
            record.blocked = None
    heads = [state.tasks[task] for task in state.queue.heads(state.settings.backfill_depth)]
    # Tasks that came up because the one before them in their group was placed; the heads are in order already.
    risen: list[Turn] = []
    first_blocked: TaskRecord | None = None
    glance = Glance(state, heads)
    at = 0
    while at < len(heads) or risen:
        if risen and (at == len(heads) or risen[0] < heads[at].turn):
            record = state.tasks[heapq.heappop(risen).task_id]
        else:
            record = heads[at]
            at += 1
        result = None if glance.still_blocked(record) else _try(state, record, now)
        if isinstance(result, Reserve):
            effects.append(result)
            following = state.queue.next_in_group(record.group)
            if following is not None:
                heapq.heappush(risen, state.tasks[following].turn)
            continue
        if result is not None:
            record.blocked = None
            continue
        if first_blocked is None:
            first_blocked = record
            _renew_hold(state, record, now)
            glance.follow_hold()
        record.blocked = glance.blocked_now
    if first_blocked is not None and state.settings.preemption:
        effects += preempt(state, first_blocked, now)
    return effects


def _renew_hold(state: MatcherState, head: TaskRecord, now: float) -> None:
    """Hold rows for the head once it has waited long enough; a hold that no longer is the head's is dropped."""
    hold = state.hold
    if hold is not None and hold.task_id == head.demand.task_id:
        if hold.inventory_version == state.fleet.inventory_version:
            return
    elif hold is not None and hold.task_id in state.queue and state.tasks[hold.task_id].turn < head.turn:
        return
    state.hold = None
    if now - head.arrived_at >= state.settings.hold_after_seconds:
        state.hold = choose_hold(state, head, now)


# --- saying why ----------------------------------------------------------------------------------------------------


def why(state: MatcherState, task_id: str, now: float) -> Why:
    """Why a task stands where it stands, worked out afresh. Changes nothing."""
    record = state.tasks.get(task_id)
    if record is None:
        ended = state.outcomes.of(task_id)
        text = f"it ended: {ended[0]}" if ended else "the matcher does not know this task"
        return Why(task_id, "unknown", None, None, (Reason("unknown", text),), ())
    waited = (record.placed_at if record.placed_at is not None else now) - record.arrived_at
    if record.phase is Phase.PLACED:
        devices = tuple(s.device_uid for s in record.shares)
        text = f"it holds {', '.join(devices) or 'processors of ' + record.node_shares[0].node}"
        return Why(task_id, "placed", None, waited, (Reason("placed", text, devices, len(devices)),), ())
    if record.phase is Phase.BLOCKED:
        reasons: tuple[Reason, ...] = (_waits_for(record),)
        free = would_free(state, record.shapes, reasons, now)
        return Why(task_id, "blocked", None, waited, reasons + slack(record.demand, now), free)
    reasons = _standing(state, record, now)
    position = state.queue.position(task_id)
    free = would_free(state, record.shapes, reasons, now)
    return Why(task_id, "waiting", position, waited, reasons + slack(record.demand, now), free)


def _standing(state: MatcherState, record: TaskRecord, now: float) -> tuple[Reason, ...]:
    """Why a waiting task waits at this moment."""
    found = find_place(state, record, now)
    if found is None or isinstance(found, Reason):
        return _reasons(state, record, found, now)
    return (Reason("turn", "a device is free and it is about to be tried"),)


def _retell(state: MatcherState, now: float) -> list[Effect]:
    """Tell waiting tasks whose reasons have changed: a few at each tick, so that all of them come round."""
    effects: list[Effect] = []
    if state.settings.explain_limit <= 0:
        return effects
    for turn in state.queue.following(state.retold, RETOLD_AT_ONCE):
        state.retold = turn
        record = state.tasks[turn.task_id]
        if now - record.told_at < RETELL_SECONDS:
            continue
        record.told_at = now
        if state.queue.next_in_group(record.group) != turn.task_id:
            continue
        reasons = _standing(state, record, now)
        if reasons != record.reasons:
            record.reasons = reasons
            effects.append(_queued(state, record, now))
    return effects


def _reasons(state: MatcherState, record: TaskRecord, rule: Reason | None, now: float) -> tuple[Reason, ...]:
    if rule is not None:
        return (rule,)
    # Of the device counts that `auto` allows, speak of the first that the fleet could ever give.
    shapes = record.shapes
    telling = next((s for s in shapes if len(shapes) == 1 or could_ever(state, s)), shapes[-1])
    held = closed_rows(state, record, now)
    return rejections(state.fleet, telling, state.settings, held, closed_devices(state, record, now))


def _waits_for(record: TaskRecord) -> Reason:
    waits = sorted(record.after)
    return Reason("after", f"it comes after {', '.join(waits[:5])}", tuple(waits[:8]), len(waits))


def _failed_dependencies(failed: list[tuple[str, str]]) -> tuple[Reason, ...]:
    return tuple(Reason("dependency_failed", f"it comes after {task}, which ended: {how}") for task, how in failed)


def _queued(state: MatcherState, record: TaskRecord, now: float) -> Queued:
    demand = record.demand
    position = state.queue.position(demand.task_id) if record.phase is Phase.WAITING else len(state.queue)
    record.told_at = now
    free = would_free(state, record.shapes, record.reasons, now) if state.settings.explain_limit > 0 else ()
    return Queued(demand.task_id, demand.attempt, position, record.reasons + slack(demand, now), free)


def _reject(state: MatcherState, record: TaskRecord, code: str, reasons: tuple[Reason, ...]) -> list[Effect]:
    state.outcomes.note(record.demand.task_id, (code, record.demand.attempt))
    return [Rejected(record.demand.task_id, record.demand.attempt, code, reasons)]


def _rejected(state: MatcherState, record: TaskRecord, code: str, reasons: tuple[Reason, ...]) -> Rejected:
    largest = int(state.fleet.bytes_usable.max()) if state.fleet.devices else None
    smallest = smallest_bytes(record.shapes)
    return Rejected(record.demand.task_id, record.demand.attempt, code, reasons, smallest, largest)


def could_ever(state: MatcherState, shape: Shape) -> bool:
    """Whether the fleet could take the shape if all of it were idle and healthy."""
    could = state.ever.of(state.fleet, shape, state.settings)
    if not len(could):
        return False
    return int(could.max()) >= shape.count or (shape.span_nodes and could_span(state.fleet, could, shape.count))


def _impossible(state: MatcherState, record: TaskRecord) -> Rejected | None:
    """A rejection when nothing in the fleet could take the task even if all of it were idle."""
    settings, fleet = state.settings, state.fleet
    if not settings.reject_impossible or not fleet.size or not (fleet.devices or not record.shapes[0].count):
        return None
    demand = record.demand
    quota = settings.quota_of(demand.owner)
    fewest = record.shapes[0]
    if quota.devices is not None and fewest.count > quota.devices:
        text = f"asks for {fewest.count} devices, the quota of {demand.owner} is {quota.devices}"
        return _rejected(state, record, "quota", (Reason("quota", text),))
    wanted = fewest.count * fewest.lease_bytes
    if quota.device_bytes is not None and wanted > quota.device_bytes:
        text = f"asks for {wanted} device bytes, the quota of {demand.owner} is {quota.device_bytes}"
        return _rejected(state, record, "quota", (Reason("quota", text),))
    if any(could_ever(state, shape) for shape in record.shapes):
        return None
    reasons = record.reasons or rejections(fleet, fewest, settings)
    return _rejected(state, record, "no_device_fits", reasons)


_HANDLERS: dict[type, Callable[[MatcherState, Any, float], list[Effect]]] = {
    ev.TaskArrived: _arrived,
    ev.TaskAdopted: _adopted,
    ev.TaskFinished: _finished,
    ev.TaskEnded: _ended,
    ev.TaskCancelled: _cancelled,
    ev.LeaseConflict: _conflict,
    ev.LeasesSeen: _leases_seen,
    ev.NodeSeen: _node_seen,
    ev.DeviceSeen: _device_seen,
    ev.DeviceChanged: _device_changed,
    ev.DeviceLost: _device_lost,
    ev.NodeDrained: _node_drained,
    ev.PolicyUpdated: _policy_updated,
    ev.StandingSeen: _standing_seen,
    ev.UsageSeen: _usage_seen,
    ev.Tick: _tick,
}
