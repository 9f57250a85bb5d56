"""One matcher's time as leader: it rebuilds what is known, then decides on each event until it leads no longer.

Every event goes through :meth:`Reign.feed`, one at a time. What the core asks for is done at once and in order, so
that a cancellation can never pass a placement. Whatever fails on the bus in the middle ends the reign: the next one
(perhaps our own) rebuilds everything from the streams and buckets, and gives back leases that belong to no run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from pydantic import BaseModel

from oarlock_matcher.adapters import demands, fleet_kinds, telling
from oarlock_matcher.adapters.decision_log import DecisionLog
from oarlock_matcher.adapters.lease_books import BusBooks
from oarlock_matcher.adapters.metrics import MatcherMetrics
from oarlock_matcher.core import effects as fx
from oarlock_matcher.core import events as ev
from oarlock_matcher.core.fair_share import OwnerShare, owner_shares
from oarlock_matcher.core.lease_book import holders, share_of
from oarlock_matcher.core.machine import InvalidTransition, decide
from oarlock_matcher.core.policy_settings import PolicySettings
from oarlock_matcher.core.state import MatcherState
from oarlock_matcher.handlers.arrays import Arrays
from oarlock_matcher.handlers.records import Records
from oarlock_matcher.ports import Taken
from oarlock_runtime import CORDONS_KEY, Bus, BusMessage, Context, Entry, TemporaryError, get_logger
from oarlock_schemas import (
    DeviceState,
    InvalidMessage,
    LeaseBook,
    TaskCancel,
    TaskFinished,
    TaskPlaced,
    TaskProfiled,
    TaskRecord,
    after_run,
    array_spec,
    read,
)

log = get_logger("matcher")

M = TypeVar("M", bound=BaseModel)

LOOKED_UP_AT_ONCE = 256
"""Dependencies whose records are read in one pass."""

_AGAIN_SECONDS = 0.5
_OUTCOMES = {"ok": "succeeded", "oom": "oom", "cancelled": "cancelled", "lost": "lost", "preempted": "preempted"}


class Reign:
    """Use :meth:`rebuild` first, then feed it what comes."""

    def __init__(
        self,
        bus: Bus,
        now: Callable[[], str],
        settings: PolicySettings,
        epoch: int,
        metrics: MatcherMetrics,
        decisions: DecisionLog | None = None,
    ) -> None:
        self._bus = bus
        self._now = now
        self._epoch = epoch
        self._metrics = metrics
        self._state = MatcherState(settings=settings)
        self._decisions = decisions
        if decisions is not None:
            decisions.begin(settings)
        self._devices: dict[str, DeviceState] = {}
        self._cordoned: frozenset[str] = frozenset()
        self._capacities: dict[str, int] = {}
        self._books = BusBooks(bus, self._capacities, now)
        self._records = Records(bus)
        self._profiled: dict[str, TaskProfiled] = {}
        self._arrays = Arrays(self._records)
        self._told: dict[str, tuple[object, ...]] = {}
        self._shares: tuple[OwnerShare, ...] = ()
        self._one_at_a_time = asyncio.Lock()
        self.broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Fails when an effect could not be carried out; the reign must then end."""

    # -- the pump

    async def feed(self, event: ev.Event) -> None:
        """Decide on ``event`` and do what follows."""
        async with self._one_at_a_time:
            await self._feed(event)

    async def _feed(self, event: ev.Event) -> None:
        if self.broken.done():
            raise TemporaryError("this matcher's reign is ending", _AGAIN_SECONDS)
        began = time.perf_counter()
        try:
            now = self._seconds()
            self._state, effects = decide(self._state, event, now)
        except (InvalidTransition, KeyError) as error:
            raise TemporaryError(str(error), _AGAIN_SECONDS) from error
        if self._decisions is not None:
            self._decisions.write(event, now, effects)
        self._metrics.decision_seconds.observe(time.perf_counter() - began)
        self._metrics.waiting.set(len(self._state.queue))
        try:
            for effect in effects:
                await self._do(effect)
        except BaseException as error:
            # The core believes what the bus does not know. Only a fresh reign can bring the two together.
            if not self.broken.done():
                self.broken.set_exception(
                    error if isinstance(error, Exception) else RuntimeError("reign was cancelled")
                )
                # Read here once, so that nobody complains when the reign ends for another reason first.
                self.broken.exception()
            raise

    def _seconds(self) -> float:
        return datetime.fromisoformat(self._now()).timestamp()

    async def _do(self, effect: fx.Effect) -> None:
        match effect:
            case fx.Reserve():
                await self._reserve(effect)
            case fx.Queued():
                await self._queue(effect)
            case fx.Rejected():
                await self._reject(effect)
            case fx.Cancelled():
                await self._records.move(effect.task_id, "cancelled", self._now(), "cancelled while it waited")
                self._forget(effect.task_id)
            case fx.Release():
                await self._books.release(effect.task_id, effect.attempt, effect.shares)
            case fx.Preempt():
                body = TaskCancel(
                    task_id=effect.task_id,
                    by="matcher",
                    reason=f"preempted: {effect.reason}"[:1000],
                    preempt_attempt=effect.attempt,
                )
                await self._bus.publish(
                    self._bus.subjects.cancel(effect.task_id), body, msg_id=f"{effect.task_id}:preempt:{effect.attempt}"
                )
            case fx.PolicyStanding():
                self._metrics.standing(effect)
                await self._bus.bucket("policy").put(telling.STANDING_KEY, telling.standing(effect, self._now()))

    # -- effects

    async def _reserve(self, effect: fx.Reserve) -> None:
        profiled = self._profiled[effect.task_id]
        result = await self._books.reserve(effect.task_id, effect.attempt, profiled.task.owner, effect.shares)
        if isinstance(result, Taken):
            self._metrics.conflicts.inc()
            conflict = ev.LeaseConflict(effect.task_id, effect.attempt, result.device_uid, result.holders)
            await self._feed(conflict)
            return
        event = telling.placed(effect.placed, profiled, result.fences, self._devices, self._now())
        await self._announce(event)
        self._metrics.placed(effect.placed)

    async def _announce(self, event: TaskPlaced) -> None:
        """Publish a placement and move the record; both do nothing the second time."""
        subject = self._bus.subjects.placed(event.site, event.task_id)
        await self._bus.publish(subject, event, msg_id=f"{event.task_id}:placed:{event.attempt}")
        await self._records.move(
            event.task_id,
            "placed",
            event.at,
            f"by {event.algorithm}",
            attempt=event.attempt,
            site=event.site,
            device_uids=[device.uid for device in event.devices],
            device_kind=event.devices[0].kind,
            predicted_bytes=event.predicted_bytes,
            simulated=any(device.simulated for device in event.devices),
        )
        self._told.pop(event.task_id, None)

    async def _queue(self, effect: fx.Queued) -> None:
        told = (effect.attempt, effect.reasons)
        if self._told.get(effect.task_id) == told:
            return
        self._told[effect.task_id] = told
        event = telling.queued(effect, self._now())
        await self._bus.publish(self._bus.subjects.queued(effect.task_id), event)
        why = effect.reasons[0].sentence if effect.reasons else None
        record = await self._records.move(effect.task_id, "queued", event.at, why, message=why)
        if record is not None and record.message != why:
            await self._records.say(effect.task_id, why)

    async def _reject(self, effect: fx.Rejected) -> None:
        record = await self._records.get(effect.task_id)
        event = telling.rejected(effect, self._profiled.get(effect.task_id), self._now(), _died_of_memory_on(record))
        subject = self._bus.subjects.rejected(effect.task_id)
        await self._bus.publish(subject, event, msg_id=f"{effect.task_id}:rejected:{effect.attempt}")
        await self._records.move(
            effect.task_id, "rejected", event.at, effect.code, message=event.message, message_zh=event.message_zh
        )
        self._metrics.rejected(effect)
        self._forget(effect.task_id)

    def _forget(self, task_id: str) -> None:
        """The task has ended."""
        profiled = self._profiled.pop(task_id, None)
        self._told.pop(task_id, None)
        if profiled is not None:
            self._arrays.ended(profiled.task.array_member, task_id)

    async def tell_shares(self) -> None:
        """Write down how owners stand in the fair share, where that has changed."""
        async with self._one_at_a_time:
            at = self._now()
            owners = owner_shares(self._state, self._seconds())
            # That use is forgotten as time goes on is no news: compared as of when each was noted.
            noted = owner_shares(self._state, 0.0)
        if noted != self._shares:
            document = {"owners": telling.shares(owners), "at": at}
            await self._bus.bucket("policy").put(telling.SHARES_KEY, document)
            self._shares = noted

    # -- tasks that this core has not seen end

    async def look_after(self, *, everything: bool = False) -> None:
        """Bring arrays whose tasks have ended to their end, and let go on what waits for tasks that ended unseen.

        ``everything``: look through arrays again of which nothing was heard.
        """
        async with self._one_at_a_time:
            if everything:
                self._arrays.all_due()
            for array_id, state in await self._arrays.settle(self._now()):
                await self._feed(ev.TaskEnded(array_id, 1, state))
            await self._look_up(sorted(self._state.dependents)[:LOOKED_UP_AT_ONCE])

    async def _look_up(self, task_ids: Iterable[str]) -> None:
        """Tell the core of those of the tasks that have ended without its knowing."""
        for task_id in task_ids:
            if task_id in self._state.tasks or self._state.outcomes.of(task_id) is not None:
                continue
            record = await self._records.get(task_id)
            if record is not None and record.final:
                await self._feed(ev.TaskEnded(task_id, record.attempt, record.state))

    async def _arrive(self, profiled: TaskProfiled, record: TaskRecord | None, attempt: int | None = None) -> None:
        """A task (or its next attempt) enters the queue."""
        self._profiled[profiled.task_id] = profiled
        self._arrays.noticed(profiled.task.array_member)
        await self._look_up(profiled.task.after)
        demand = demands.demand_of(profiled, record, self._kinds())
        await self._feed(ev.TaskArrived(demand if attempt is None else replace(demand, attempt=attempt)))

    # -- what comes from the streams

    async def profiled(self, event: TaskProfiled, context: Context) -> None:
        """A task wants devices."""
        del context
        async with self._one_at_a_time:
            record = await self._records.get(event.task_id)
            if record is not None and (record.final or record.state in {"placed", "launching", "running"}):
                return
            if record is not None:
                await self._records.move(event.task_id, "profiled", event.at)
            await self._arrive(self._profiled.get(event.task_id, event), record)

    async def finished(self, event: TaskFinished, context: Context) -> None:
        """A run ended: its leases end, and perhaps another attempt begins."""
        del context
        async with self._one_at_a_time:
            await self._finished(event)

    async def _finished(self, event: TaskFinished) -> None:
        profiled = self._profiled.get(event.task_id) or await self._last_profiled(event.task_id)
        record = await self._records.get(event.task_id)
        had = self._had_bytes(event) if event.outcome == "oom" else None
        # Whatever this core knows of the task, the books must not keep what the run held.
        for uid in event.device_uids:
            await self._books.release_device(uid, event.task_id, event.attempt)
        open_ = profiled is not None and record is not None and not record.final and record.attempt <= event.attempt
        following = after_run(profiled.task, event.outcome, event.attempt) if open_ and profiled is not None else None
        outcome = _OUTCOMES.get(event.outcome, "failed")
        await self._feed(ev.TaskFinished(event.task_id, event.attempt, outcome, final=following != "queued"))
        if following is None or profiled is None or record is None:
            self._forget(event.task_id) if record is not None and record.final else None
            return
        if following != "queued":
            await self._records.move(
                event.task_id, following, event.finished_at, event.outcome, outcome=event.outcome, message=event.message
            )
            self._forget(event.task_id)
            return
        attempt = event.attempt + 1
        note = f"attempt {event.attempt} ended: {event.outcome}"
        learned = {} if had is None else {"ran_out_of_bytes": max(had, record.ran_out_of_bytes or 0)}
        moved = await self._records.move(event.task_id, "queued", event.finished_at, note, attempt=attempt, **learned)
        await self._arrive(profiled, moved or record, attempt)

    def _had_bytes(self, event: TaskFinished) -> int | None:
        """What the run could take at most on the tightest of its devices: all that others did not hold."""
        fleet = self._state.fleet
        left: list[int] = []
        for uid in event.device_uids:
            if (place := fleet.place_of.get(uid)) is not None:
                others = sum(s.bytes for (task, _), s in fleet.holders.get(uid, {}).items() if task != event.task_id)
                left.append(max(0, int(fleet.bytes_usable[place]) - others))
        return min(left, default=None)

    async def cancel(self, event: TaskCancel, context: Context) -> None:
        """Somebody no longer wants a task; a run's own end is the launcher's to bring about."""
        del context
        if event.preempt_attempt is not None:
            return
        async with self._one_at_a_time:
            if await self._cancel_array(event):
                return
            known = event.task_id in self._state.tasks
            await self._feed(ev.TaskCancelled(event.task_id))
            record = await self._records.get(event.task_id)
            if not known and record is not None and record.state in {"submitted", "profiled", "queued"}:
                await self._records.move(event.task_id, "cancelled", self._now(), event.reason)

    async def _cancel_array(self, event: TaskCancel) -> bool:
        """Cancel each task of an array; False when it is none."""
        record = await self._records.get(event.task_id)
        if record is None or record.array is None:
            return False
        for task_id in array_spec(record.array).ids(event.task_id):
            member = await self._records.get(task_id)
            if member is None or not member.final:
                body = event.model_copy(update={"task_id": task_id})
                await self._bus.publish(self._bus.subjects.cancel(task_id), body, msg_id=f"{task_id}:cancel")
        # From now on the profiler adds no more tasks to it.
        await self._records.end_array(event.task_id, "cancelled", self._now(), event.reason)
        await self._feed(ev.TaskEnded(event.task_id, 1, "cancelled"))
        return True

    # -- what comes from the buckets

    async def device(self, uid_or_key: str, state: DeviceState | None) -> None:
        """A device reported, or its entry expired."""
        uid = uid_or_key.rsplit(".", 1)[-1] if state is None else state.uid
        async with self._one_at_a_time:
            if state is None:
                if self._devices.pop(uid, None) is not None:
                    await self._feed(ev.DeviceLost(uid))
                return
            before = self._devices.get(uid)
            self._note(state)
            if before is None or _standing(before) != _standing(state):
                await self._see_nodes({state.node})

    async def cordons(self, names: frozenset[str]) -> None:
        """Operators keep tasks off these devices and nodes, whether they report now or not."""
        async with self._one_at_a_time:
            changed = self._cordoned ^ names
            self._cordoned = names
            await self._see_nodes({d.node for d in self._devices.values() if d.node in changed or d.uid in changed})

    async def _see_nodes(self, names: Collection[str]) -> None:
        of_nodes = [d for d in self._devices.values() if d.node in names]
        for node in fleet_kinds.nodes_of(of_nodes, self._cordoned):
            await self._feed(ev.NodeSeen(node))

    def _note(self, state: DeviceState) -> None:
        self._devices[state.uid] = state
        self._capacities[state.uid] = state.memory_bytes

    async def leases(self, uid: str, book: LeaseBook | None) -> None:
        """Someone wrote a lease book (we too: then the core knows it already)."""
        node = self._devices[uid].node if uid in self._devices else ""
        await self.feed(ev.LeasesSeen(uid, holders(book, node) if book is not None else ()))

    def _kinds(self) -> dict[str, str]:
        return {state.kind: state.vendor for state in self._devices.values()}

    # -- rebuilding

    async def rebuild(self) -> None:
        """Learn the fleet, adopt what runs, give back what belongs to no run, and queue what waits."""
        async with self._one_at_a_time:
            for entry in (await self._bus.bucket("devices", DeviceState).items()).values():
                self._note(entry.value)
            self._cordoned = cordoned_names(await self._bus.bucket("policy").get(CORDONS_KEY))
            await self._see_nodes({state.node for state in self._devices.values()})
            books = {k: e.value for k, e in (await self._bus.bucket("leases", LeaseBook).items()).items()}
            open_records = {record.task_id: record for record in await self._records.open()}
            self._arrays.note(open_records.values())
            waiting = [record for record in open_records.values() if not await self._adopt(record, books)]
            await self._give_back_strays(books)
            for record in sorted(waiting, key=lambda r: r.history[0].at if r.history else ""):
                await self._resume(record)
        log.info("rebuilt", epoch=self._epoch, devices=len(self._devices), tasks=len(open_records))

    async def _adopt(self, record: TaskRecord, books: dict[str, LeaseBook]) -> bool:
        """Take over a placement that stands; False when the task (still, or again) waits."""
        body = await self._bus.last(self._bus.subjects.placed(task_id=record.task_id))
        placed = None if body is None else _readable(TaskPlaced, body)
        if body is not None and placed is None and record.state in {"placed", "launching", "running"}:
            # Where it runs cannot be told, but it does: its leases stand as they are, and it is not placed again.
            return True
        if placed is None or placed.attempt != record.attempt:
            return False
        shares = tuple(
            share_of(lease, device.uid, device.node)
            for device in sorted(placed.devices, key=lambda d: d.uid)
            for lease in (books[device.uid].leases if device.uid in books else [])
            if lease.task_id == record.task_id and lease.attempt == record.attempt
        )
        if len(shares) != len(placed.devices):
            return False
        profiled = TaskProfiled(
            task_id=record.task_id, task=placed.task, portrait=placed.portrait, attempt=placed.attempt, at=placed.at
        )
        self._profiled[record.task_id] = profiled
        demand = demands.demand_of(profiled, record, self._kinds())
        since = demands.epoch_seconds(placed.at)
        await self._feed(ev.TaskAdopted(demand, shares, placed_at=since))
        if record.state not in {"launching", "running"}:
            # Its leader may have died between booking and telling; telling twice does no harm.
            await self._announce(placed)
        return True

    async def _give_back_strays(self, books: dict[str, LeaseBook]) -> None:
        """Leases of tasks that have ended, or of reservations that never became a placement."""
        for uid, book in books.items():
            for lease in book.leases:
                adopted = self._state.tasks.get(lease.task_id)
                if adopted is not None and any(share.device_uid == uid for share in adopted.shares):
                    continue
                record = await self._records.get(lease.task_id)
                if record is None or record.final or record.state in {"submitted", "profiled", "queued"}:
                    log.info("gave back a lease that belongs to no run", device=uid, task_id=lease.task_id)
                    await self._books.release_device(uid, lease.task_id, lease.attempt)
                else:
                    await self._feed(ev.LeasesSeen(uid, ((lease.task_id, share_of(lease, uid, "")),)))

    async def _resume(self, record: TaskRecord) -> None:
        if record.state == "submitted":
            return
        profiled = await self._last_profiled(record.task_id)
        if profiled is None:
            log.warning("a waiting task's portrait is gone from the stream", task_id=record.task_id)
            return
        await self._arrive(profiled, record)

    async def _last_profiled(self, task_id: str) -> TaskProfiled | None:
        body = await self._bus.last(self._bus.subjects.profiled(task_id))
        return None if body is None else _readable(TaskProfiled, body)


def _died_of_memory_on(record: TaskRecord | None) -> str | None:
    """The kind of device on which a run of the task last ran out of memory; None where none did."""
    return None if record is None or record.ran_out_of_bytes is None else record.device_kind


def cordoned_names(entry: Entry[Any] | None) -> frozenset[str]:
    """The devices and nodes that operators keep tasks off, from the entry of the bucket `policy`."""
    return frozenset(map(str, entry.value)) if entry is not None and isinstance(entry.value, dict) else frozenset()


def _readable(model: type[M], message: BusMessage) -> M | None:
    """The message; None where it is not what its subject carries: one task's fault must not keep us from leading."""
    try:
        return read(model, message.data)[0]
    except InvalidMessage as error:
        log.warning("passed over a message that cannot be read", subject=message.subject, error=str(error)[:300])
        return None


def _standing(state: DeviceState) -> tuple[object, ...]:
    """What of a heartbeat matters to placement; use and temperature change every time."""
    return (state.kind, state.memory_bytes, state.healthy, state.cordoned, state.link_group, state.price_per_hour)
