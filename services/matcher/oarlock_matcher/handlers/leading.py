"""What runs while this copy leads: the consumers, the watchers of the buckets, the tick."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from oarlock_matcher.adapters.decision_log import DecisionLog
from oarlock_matcher.adapters.metrics import MatcherMetrics
from oarlock_matcher.adapters.policy_document import policy_of
from oarlock_matcher.adapters.telling import SHARES_KEY, STANDING_KEY, standing_seen, usage_seen
from oarlock_matcher.core import events as ev
from oarlock_matcher.handlers.records import Records
from oarlock_matcher.handlers.reign import Reign
from oarlock_runtime import CORDONS_KEY, Bus, Service, TemporaryError
from oarlock_runtime.consumer import Consumer
from oarlock_schemas import DeviceState, LeaseBook, PolicyUpdated, TaskCancel, TaskFinished, TaskProfiled

STOP_SECONDS = 2.0
"""How long a handler may go on after leadership is lost; the server lets the key expire later than that."""

ENDED_KEPT = 20_000
"""Ended tasks whose records are kept; about 3 KiB each, so a quarter of the bucket."""
PRUNE_SECONDS = 600.0

LOOK_AFTER_SECONDS = 2.0
ROUNDS_PER_FULL_LOOK = 30


class Leading:
    """Builds a :class:`Reign` at each election."""

    def __init__(
        self,
        bus: Bus,
        service: Service,
        now: Callable[[], str],
        tick_seconds: float,
        decisions: DecisionLog | None = None,
    ) -> None:
        self._bus = bus
        self._service = service
        self._now = now
        self._tick_seconds = tick_seconds
        self._decisions = decisions
        self._metrics = MatcherMetrics(service.registry)

    async def reign(self, epoch: int) -> None:
        """Lead until cancelled, or until an effect cannot be carried out (then it raises)."""
        policy = await self._bus.bucket("policy").get("matcher")
        settings = policy_of(policy.value if policy else {})
        reign = Reign(self._bus, self._now, settings, epoch, self._metrics, self._decisions)
        standing = await self._bus.bucket("policy").get(STANDING_KEY)
        learned = None if settings.learned is None else settings.learned.version
        seen = None if standing is None else standing_seen(standing.value, learned)
        if seen is not None:
            await reign.feed(seen)
        shares = await self._bus.bucket("policy").get(SHARES_KEY)
        used = None if shares is None else usage_seen(shares.value)
        if used is not None:
            await reign.feed(used)
        await reign.rebuild()
        subjects, consume = self._bus.subjects, self._service.consume
        # One at a time each: the order of a task's events is the order of its stream.
        consumers: list[Consumer[Any]] = [
            consume("matcher-profiled", subjects.profiled(), TaskProfiled, reign.profiled, start=False),
            consume("matcher-finished", subjects.finished(), TaskFinished, reign.finished, start=False),
            consume("matcher-cancel", subjects.cancel(), TaskCancel, reign.cancel, start=False),
        ]
        try:
            self._metrics.leading.set(1)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._until_broken(reign))
                group.create_task(self._follow_devices(reign))
                group.create_task(self._follow_leases(reign))
                group.create_task(self._follow_policy(reign))
                group.create_task(self._tick(reign))
                group.create_task(self._prune())
                group.create_task(self._look_after(reign))
                group.create_task(self._follow_cordons(reign))
                for consumer in consumers:
                    consumer.start()
        finally:
            self._metrics.leading.set(0)
            self._metrics.waiting.set(0)
            await asyncio.gather(*(consumer.stop(STOP_SECONDS) for consumer in consumers))

    @staticmethod
    async def _until_broken(reign: Reign) -> None:
        await asyncio.shield(reign.broken)

    async def _follow_devices(self, reign: Reign) -> None:
        async for change in self._bus.bucket("devices", DeviceState).watch():
            await reign.device(change.key, change.value)

    async def _follow_leases(self, reign: Reign) -> None:
        async for change in self._bus.bucket("leases", LeaseBook).watch():
            await reign.leases(change.key, change.value)

    async def _follow_policy(self, reign: Reign) -> None:
        async for change in self._bus.bucket("policy").watch("matcher"):
            await reign.feed(ev.PolicyUpdated(policy_of(change.value or {})))
            told = PolicyUpdated(
                policy="matcher", version=change.revision, changes=dict(change.value or {}), at=self._now()
            )
            # Named after the revision: whoever leads next tells the same change again, and the server drops it.
            await self._bus.publish(self._bus.subjects.policy_updated(), told, msg_id=f"policy:{change.revision}")

    async def _follow_cordons(self, reign: Reign) -> None:
        async for change in self._bus.bucket("policy").watch(CORDONS_KEY):
            await reign.cordons(frozenset(map(str, change.value or {})))

    async def _prune(self) -> None:
        """The bucket of tasks is bounded: what ended long ago makes room. Events and run records keep the story."""
        records = Records(self._bus)
        while True:
            await records.prune(ENDED_KEPT)
            await asyncio.sleep(PRUNE_SECONDS)

    async def _look_after(self, reign: Reign) -> None:
        """Arrays, and tasks that wait for what ended elsewhere."""
        rounds = 0
        while True:
            with suppress(TemporaryError):
                await reign.look_after(everything=rounds % ROUNDS_PER_FULL_LOOK == 0)
            await reign.tell_shares()
            rounds += 1
            await asyncio.sleep(LOOK_AFTER_SECONDS)

    async def _tick(self, reign: Reign) -> None:
        while True:
            await asyncio.sleep(self._tick_seconds)
            try:
                await reign.feed(ev.Tick())
            except TemporaryError:
                continue
