"""PaddlePaddle's ``auto_growth`` allocator (the default), as ``auto_growth_best_fit_allocator.cc`` behaves.

Requests are rounded up to 256 bytes. The smallest free block that suffices is taken and split whenever anything is
left over. When none suffices, a chunk is taken from the device: as large as the request, but at least the chunk size
(``FLAGS_auto_growth_chunk_size_in_mb``, 0 by default). Free blocks join their neighbours inside a chunk. When the
device is full, free chunks are given back (``FLAGS_free_idle_chunk``) and the request is tried again.
"""

from __future__ import annotations

from oarlock_profiler.core.memory.allocator import OutOfMemory
from oarlock_profiler.core.memory.blocks import Block, FreeList, merge_neighbours, split

ALIGNMENT_BYTES = 256
DEVICE_PAGE_BYTES = 2 << 20
SHARED_PAGE_BYTES = 1 << 20


class AutoGrowthAllocator:
    """See the module. ``chunk_bytes`` is the least chunk taken; ``capacity_bytes`` bounds what may be reserved.

    ``reserved_bytes`` counts chunks as ``paddle.device.cuda.memory_reserved`` does; ``device_bytes`` what the device
    takes for them: ``cudaMalloc`` maps pages of 2 MiB, and requests of at most 1 MiB share pages.
    """

    def __init__(self, capacity_bytes: int | None = None, *, chunk_bytes: int = ALIGNMENT_BYTES) -> None:
        self.capacity_bytes = capacity_bytes
        self.allocated_bytes = 0
        self.reserved_bytes = 0
        self._small_bytes = 0
        self._page_bytes = 0
        self._chunk_bytes = max(chunk_bytes, ALIGNMENT_BYTES)
        self._free = FreeList()
        self._used: dict[int, Block] = {}
        self._chunks: dict[int, int] = {}
        self._next_address = 0

    @property
    def device_bytes(self) -> int:
        """What the chunks hold of the device, in bytes: whole pages."""
        return self._page_bytes + _pages(self._small_bytes)

    def allocate(self, id: int, nbytes: int) -> None:
        """See :class:`~oarlock_profiler.core.memory.allocator.Allocator`; nothing is taken for 0 bytes."""
        if nbytes <= 0:
            return
        size = -(-nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        block = self._free.best_fit(size)
        if block is None:
            block = self._new_chunk(max(size, self._chunk_bytes))
        else:
            self._free.remove(block)
        if block.size > size:
            # The tail is handed out; the front of the block stays free.
            front, block = block, split(block, block.size - size)
            self._free.add(front)
        self._used[id] = block
        self.allocated_bytes += block.size

    def free(self, id: int) -> None:
        """See :class:`~oarlock_profiler.core.memory.allocator.Allocator`."""
        block = self._used.pop(id, None)
        if block is None:
            return
        self.allocated_bytes -= block.size
        self._free.add(merge_neighbours(block, self._free))

    def _new_chunk(self, nbytes: int) -> Block:
        if self.capacity_bytes is not None and self.reserved_bytes + nbytes > self.capacity_bytes:
            for block in self._free.whole_segments():
                self._free.remove(block)
                self._count(-self._chunks.pop(block.segment))
            if self.reserved_bytes + nbytes > self.capacity_bytes:
                raise OutOfMemory(
                    f"{nbytes} bytes asked for, {self.reserved_bytes} of {self.capacity_bytes} bytes reserved "
                    f"and {self.allocated_bytes} allocated"
                )
        address = self._next_address
        self._next_address += nbytes
        self._chunks[address] = nbytes
        self._count(nbytes)
        return Block(address, nbytes, address)

    def _count(self, nbytes: int) -> None:
        self.reserved_bytes += nbytes
        if abs(nbytes) <= SHARED_PAGE_BYTES:
            self._small_bytes += nbytes
        else:
            self._page_bytes += _pages(nbytes) if nbytes > 0 else -_pages(-nbytes)


def _pages(nbytes: int) -> int:
    return -(-nbytes // DEVICE_PAGE_BYTES) * DEVICE_PAGE_BYTES


def preallocated_bytes(usable_bytes: int, *, fraction: float = 0.92, initial_mb: int = 0) -> int:
    """What ``FLAGS_allocator_strategy=naive_best_fit`` takes at once: a share of the free memory, or a fixed amount.

    ``FLAGS_fraction_of_gpu_memory_to_use`` is 0.92 by default; ``FLAGS_initial_gpu_memory_in_mb`` wins when given.
    """
    return initial_mb * (1 << 20) if initial_mb > 0 else int(usable_bytes * fraction)
