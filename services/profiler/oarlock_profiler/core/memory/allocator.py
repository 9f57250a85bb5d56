"""What the replay asks of an allocator, and the plain one of a framework that keeps no cache."""

from __future__ import annotations

from typing import Protocol


class OutOfMemory(Exception):
    """The device has no room for a request; the message names sizes in bytes."""


class Allocator(Protocol):
    """A framework's device allocator: what it counts as allocated, and what it has taken from the device, in bytes."""

    allocated_bytes: int
    reserved_bytes: int

    @property
    def device_bytes(self) -> int:
        """What the reserved memory holds of the device, in whole pages."""

    def allocate(self, id: int, nbytes: int) -> None:
        """Serve a request of ``nbytes`` under ``id``.

        Raises:
            OutOfMemory: the allocator was given a capacity and it does not suffice.
        """

    def free(self, id: int) -> None:
        """Give back what ``id`` holds."""


class PlainAllocator:
    """No cache: memory goes back at once. ``alignment_bytes`` rounds each request up (64: C++ tensor libraries)."""

    def __init__(self, alignment_bytes: int = 1) -> None:
        self._alignment = alignment_bytes
        self._sizes: dict[int, int] = {}
        self.allocated_bytes = 0
        self.reserved_bytes = 0
        """The most that was allocated at once: what a tool that looks at the process would have seen."""

    @property
    def device_bytes(self) -> int:
        """The same as reserved: nothing is rounded further."""
        return self.reserved_bytes

    def allocate(self, id: int, nbytes: int) -> None:
        """See :class:`Allocator`; never runs out."""
        size = -(-nbytes // self._alignment) * self._alignment
        self._sizes[id] = size
        self.allocated_bytes += size
        self.reserved_bytes = max(self.reserved_bytes, self.allocated_bytes)

    def free(self, id: int) -> None:
        """See :class:`Allocator`."""
        self.allocated_bytes -= self._sizes.pop(id, 0)
