"""One device's lease book, and what may be written into it. Pure: compare-and-set around it is the adapter's."""

from __future__ import annotations

from oarlock_matcher.core.devices import WHOLE_MILLI, Share
from oarlock_schemas import Lease, LeaseBook


def add(book: LeaseBook, lease: Lease, capacity_bytes: int) -> LeaseBook | None:
    """``book`` with ``lease``; the same book when the attempt is in it already; None when it does not fit.

    An earlier attempt of the same task gives way: its run has ended, or the matcher would not place another.
    """
    others = [held for held in book.leases if held.task_id != lease.task_id]
    for held in book.leases:
        if held.task_id == lease.task_id and held.attempt >= lease.attempt:
            return book if held.attempt == lease.attempt else None
    if others and (lease.exclusive or any(held.exclusive for held in others)):
        return None
    if sum(held.bytes for held in others) + lease.bytes > capacity_bytes:
        return None
    if sum(held.compute_milli for held in others) + lease.compute_milli > WHOLE_MILLI:
        return None
    return book.model_copy(update={"leases": [*others, lease]})


def remove(book: LeaseBook, task_id: str, attempt: int) -> LeaseBook | None:
    """``book`` without what the task holds up to ``attempt``; None when it holds nothing."""
    kept = [held for held in book.leases if held.task_id != task_id or held.attempt > attempt]
    return None if len(kept) == len(book.leases) else book.model_copy(update={"leases": kept})


def holders(book: LeaseBook, node: str) -> tuple[tuple[str, Share], ...]:
    """Who holds what, as the core speaks of it."""
    return tuple((held.task_id, share_of(held, book.device_uid, node)) for held in book.leases)


def share_of(lease: Lease, device_uid: str, node: str) -> Share:
    """What a lease holds on its device, as the core speaks of it."""
    return Share(device_uid, node, lease.bytes, lease.compute_milli, lease.exclusive, lease.busy_milli)
