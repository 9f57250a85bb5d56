"""One leader among many copies, by a key with a time-to-live.

The server's clock alone decides when a leadership ends; ours only measures how long ago we began the last renewal that
succeeded, on the monotonic clock, and steps down before the server can have let the key expire. The revision of the
election is the epoch: it only grows, so whoever is told it can refuse a leader of the past.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from oarlock_runtime.errors import OarlockError, StaleRevision
from oarlock_runtime.kv import Bucket
from oarlock_runtime.logging import get_logger
from oarlock_runtime.topology import LEADERS_TTL_SECONDS

_STEP_DOWN_SHARE = 0.75
"""Share of the time-to-live after which an unconfirmed leader steps down; the rest is for stopping its work."""

log = get_logger("leader")


class Leadership:
    """A candidacy.

    Args:
        bucket: ``bus.bucket("leaders")``.
        key: what is led, e.g. ``matcher``.
        holder_id: who we are; must differ between copies.
        ttl_seconds: how long the others wait after a leader died; at least 1 (the server's resolution).
    """

    def __init__(
        self, bucket: Bucket[dict[str, Any]], key: str, holder_id: str, ttl_seconds: float = LEADERS_TTL_SECONDS
    ) -> None:
        if ttl_seconds < 1:
            raise ValueError("ttl_seconds must be at least 1")
        self._bucket = bucket
        self._key = key
        self.holder_id = holder_id
        self._ttl_seconds = ttl_seconds
        self._epoch: int | None = None

    @property
    def epoch(self) -> int | None:
        """The fencing token while we lead, None while we do not."""
        return self._epoch

    @property
    def leading(self) -> bool:
        return self._epoch is not None

    async def holder(self) -> str | None:
        """Who leads now; None while nobody does."""
        entry = await self._bucket.get(self._key)
        return str(entry.value.get("holder")) if entry else None

    async def run(self, on_elected: Callable[[int], Awaitable[None]]) -> None:
        """Stand for election; while leading, run ``on_elected(epoch)``.

        When leadership is lost it is cancelled, and we stand again. When it returns or raises, so does this, after
        giving the leadership up. Cancelling this gives it up too.
        """
        while True:
            revision, since = await self._win()
            self._epoch = revision
            log.info("elected", key=self._key, holder=self.holder_id, epoch=revision)
            work = asyncio.ensure_future(on_elected(revision))
            keep = asyncio.ensure_future(self._keep(revision, since))
            try:
                await asyncio.wait({work, keep}, return_when=asyncio.FIRST_COMPLETED)
                if work.done():
                    return await work
                log.warning("leadership lost", key=self._key, holder=self.holder_id, epoch=revision)
            finally:
                self._epoch = None
                keep.cancel()
                work.cancel()
                last = (await asyncio.gather(keep, work, return_exceptions=True))[0]
                del last
                await self._give_up()

    async def _win(self) -> tuple[int, float]:
        """Wait until we lead; returns the revision and when, on the monotonic clock, the winning write began."""
        clock = asyncio.get_running_loop().time
        value = {"holder": self.holder_id}
        while True:
            began = clock()
            try:
                return await self._bucket.create(self._key, value, ttl_seconds=self._ttl_seconds), began
            except StaleRevision:
                await self._await_vacancy()
            except OarlockError as error:
                log.warning("cannot stand for election", key=self._key, why=str(error))
                await asyncio.sleep(self._ttl_seconds / 4)

    async def _await_vacancy(self) -> None:
        """Until the key is gone; a look every time-to-live covers a marker that was missed."""
        watcher = self._bucket.watch(self._key)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._ttl_seconds):
                    async for change in watcher:
                        if change.kind != "put":
                            return
        finally:
            await watcher.aclose()

    async def _keep(self, revision: int, confirmed: float) -> None:
        """Renew until it cannot be done in time, or somebody else has the key; then return."""
        clock = asyncio.get_running_loop().time
        value = {"holder": self.holder_id, "epoch": revision}
        while True:
            deadline = confirmed + _STEP_DOWN_SHARE * self._ttl_seconds
            await asyncio.sleep(min(self._ttl_seconds / 3, max(0.0, deadline - clock())))
            began = clock()
            try:
                async with asyncio.timeout(max(0.0, deadline - began)):
                    revision = await self._bucket.update(self._key, value, revision, ttl_seconds=self._ttl_seconds)
                confirmed = began
            except StaleRevision:
                # Perhaps our own renewal, whose answer was lost.
                if (mine := await self._own_revision(deadline)) is None:
                    return
                revision = mine
            except (OarlockError, TimeoutError):
                if clock() >= deadline:
                    return
                await asyncio.sleep(0.05)

    async def _own_revision(self, deadline: float) -> int | None:
        clock = asyncio.get_running_loop().time
        with contextlib.suppress(OarlockError, TimeoutError):
            async with asyncio.timeout(max(0.0, deadline - clock())):
                entry = await self._bucket.get(self._key)
                if entry and entry.value.get("holder") == self.holder_id:
                    return entry.revision
        return None

    async def _give_up(self) -> None:
        """Let the next one in at once instead of after the time-to-live."""
        with contextlib.suppress(OarlockError, TimeoutError):
            async with asyncio.timeout(1.0):
                entry = await self._bucket.get(self._key)
                if entry and entry.value.get("holder") == self.holder_id:
                    await self._bucket.delete(self._key, entry.revision)
