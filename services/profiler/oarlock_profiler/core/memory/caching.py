"""PyTorch's caching allocator, as ``c10/cuda/CUDACachingAllocator.cpp`` behaves with its default settings.

Requests are rounded up to 512 bytes. Those of at most 1 MiB come from the small pool, whose segments are 2 MiB; larger
ones come from segments of 20 MiB when below 10 MiB, else of their own size rounded up to 2 MiB. The smallest cached
block that suffices is taken; it is split when the rest is at least 512 bytes (small pool) or more than 1 MiB (large
pool). A freed block joins its free neighbours and stays cached. When the device is full, cached whole segments are
given back and the request is tried again. ``allocated`` counts the blocks handed out, unsplit rests included, as
``torch.cuda.max_memory_allocated`` does.
"""

from __future__ import annotations

from oarlock_profiler.core.memory.allocator import OutOfMemory
from oarlock_profiler.core.memory.blocks import Block, FreeList, merge_neighbours, split

MIB = 1 << 20
ROUND_BYTES = 512
SMALL_BYTES = MIB
SMALL_SEGMENT_BYTES = 2 * MIB
LARGE_SEGMENT_BYTES = 20 * MIB
OWN_SEGMENT_FROM_BYTES = 10 * MIB
SEGMENT_ROUND_BYTES = 2 * MIB


class CachingAllocator:
    """See the module. ``capacity_bytes`` bounds what may be reserved (None: no bound)."""

    def __init__(self, capacity_bytes: int | None = None) -> None:
        self.capacity_bytes = capacity_bytes
        self.allocated_bytes = 0
        self.reserved_bytes = 0
        self.retries = 0
        self._small = FreeList()
        self._large = FreeList()
        self._used: dict[int, tuple[Block, FreeList]] = {}
        self._segments: dict[int, int] = {}
        self._next_address = 0

    @property
    def device_bytes(self) -> int:
        """The same as reserved: every segment is a whole number of the device's 2 MiB pages."""
        return self.reserved_bytes

    def allocate(self, id: int, nbytes: int) -> None:
        """See :class:`~oarlock_profiler.core.memory.allocator.Allocator`; nothing is taken for 0 bytes."""
        if nbytes <= 0:
            return
        size = -(-nbytes // ROUND_BYTES) * ROUND_BYTES
        small = size <= SMALL_BYTES
        pool = self._small if small else self._large
        block = pool.best_fit(size)
        if block is None:
            block = self._new_segment(_segment_bytes(size))
        else:
            pool.remove(block)
        rest = block.size - size
        if rest >= ROUND_BYTES if small else rest > SMALL_BYTES:
            pool.add(split(block, size))
        self._used[id] = (block, pool)
        self.allocated_bytes += block.size

    def free(self, id: int) -> None:
        """See :class:`~oarlock_profiler.core.memory.allocator.Allocator`."""
        entry = self._used.pop(id, None)
        if entry is None:
            return
        block, pool = entry
        self.allocated_bytes -= block.size
        pool.add(merge_neighbours(block, pool))

    def empty_cache(self) -> None:
        """Give cached whole segments back to the device, as ``torch.cuda.empty_cache`` does."""
        for pool in (self._small, self._large):
            for block in pool.whole_segments():
                pool.remove(block)
                self.reserved_bytes -= self._segments.pop(block.segment)

    def _new_segment(self, nbytes: int) -> Block:
        if self.capacity_bytes is not None and self.reserved_bytes + nbytes > self.capacity_bytes:
            self.retries += 1
            self.empty_cache()
            if self.reserved_bytes + nbytes > self.capacity_bytes:
                raise OutOfMemory(
                    f"{nbytes} bytes asked for, {self.reserved_bytes} of {self.capacity_bytes} bytes reserved "
                    f"and {self.allocated_bytes} allocated"
                )
        address = self._next_address
        self._next_address += nbytes
        self._segments[address] = nbytes
        self.reserved_bytes += nbytes
        return Block(address, nbytes, address)


def _segment_bytes(size: int) -> int:
    if size <= SMALL_BYTES:
        return SMALL_SEGMENT_BYTES
    if size < OWN_SEGMENT_FROM_BYTES:
        return LARGE_SEGMENT_BYTES
    return -(-size // SEGMENT_ROUND_BYTES) * SEGMENT_ROUND_BYTES
