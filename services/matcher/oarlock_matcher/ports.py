"""What the matcher's handlers need of the bus side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from oarlock_matcher.core.devices import Share


@dataclass(frozen=True, slots=True)
class Booked:
    """A reservation that succeeded: the fence of each device, by uid (the revision of its lease book)."""

    fences: dict[str, int]


@dataclass(frozen=True, slots=True)
class Taken:
    """A reservation that failed and was rolled back: what the device's book says now."""

    device_uid: str
    holders: tuple[tuple[str, Share], ...]


class Books(Protocol):
    """The lease books, changed by compare-and-set only."""

    async def reserve(self, task_id: str, attempt: int, owner: str, shares: tuple[Share, ...]) -> Booked | Taken:
        """Book every share, or none; doing it again for the same attempt changes nothing."""
        ...

    async def release(self, task_id: str, attempt: int, shares: tuple[Share, ...]) -> None:
        """Give back what the attempt holds; doing it again changes nothing."""
        ...
