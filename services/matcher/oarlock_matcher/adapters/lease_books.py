"""The lease books of the bucket `leases`: reservations by compare-and-set, all or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from oarlock_matcher.core.devices import Share
from oarlock_matcher.core.lease_book import add, holders, remove
from oarlock_matcher.ports import Booked, Taken
from oarlock_runtime import Bucket, Bus, Contended
from oarlock_schemas import Lease, LeaseBook

Clock = Callable[[], str]


class BusBooks:
    """Implements :class:`oarlock_matcher.ports.Books`.

    ``capacities`` gives each device's total bytes; it is read at every reservation, so it may be live.
    """

    def __init__(self, bus: Bus, capacities: Mapping[str, int], now: Clock) -> None:
        self._bucket: Bucket[LeaseBook] = bus.bucket("leases", LeaseBook)
        self._capacities = capacities
        self._now = now

    async def reserve(self, task_id: str, attempt: int, owner: str, shares: tuple[Share, ...]) -> Booked | Taken:
        """In the order of ``shares`` (sorted by device), so that two reservations cannot wait for each other."""
        fences: dict[str, int] = {}
        done: list[Share] = []
        for share in shares:
            lease = Lease(
                task_id=task_id,
                attempt=attempt,
                owner=owner,
                bytes=share.bytes,
                compute_milli=share.milli,
                exclusive=share.exclusive,
                busy_milli=share.busy_milli,
                since=self._now(),
            )
            try:
                fence, book = await self._add(share, lease)
            except BaseException:
                await self.release(task_id, attempt, tuple(done))
                raise
            if fence is None:
                await self.release(task_id, attempt, tuple(done))
                return Taken(share.device_uid, holders(book, share.node))
            fences[share.device_uid] = fence
            done.append(share)
        return Booked(fences)

    async def release(self, task_id: str, attempt: int, shares: tuple[Share, ...]) -> None:
        """In reverse order."""
        for share in reversed(shares):
            await self.release_device(share.device_uid, task_id, attempt)

    async def release_device(self, device_uid: str, task_id: str, attempt: int) -> None:
        """Take one task's lease off one device."""
        await self._bucket.change(device_uid, lambda book: None if book is None else remove(book, task_id, attempt))

    async def _add(self, share: Share, lease: Lease) -> tuple[int | None, LeaseBook]:
        """The revision of the book that holds the lease (None: it does not fit), and the book."""
        empty = LeaseBook(device_uid=share.device_uid)
        capacity = self._capacities.get(share.device_uid, share.bytes)
        fits = True

        def change(book: LeaseBook | None) -> LeaseBook | None:
            nonlocal fits
            new = add(book or empty, lease, capacity)
            fits = new is not None
            return None if new is book else new

        entry = await self._bucket.change(share.device_uid, change)
        if entry is None:
            return None, empty
        if fits and not any(h.task_id == lease.task_id and h.attempt == lease.attempt for h in entry.value.leases):
            # Cannot be: what was written holds the lease. Said aloud rather than booked wrongly.
            raise Contended(f"the lease book of {share.device_uid} does not hold the lease just written", 0.5)
        return (entry.revision if fits else None), entry.value
