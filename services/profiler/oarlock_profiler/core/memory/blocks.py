"""Free blocks kept in order of size, and the neighbours they merge with: what both frameworks' allocators share."""

from __future__ import annotations

from bisect import bisect_left, insort


class Block:
    """A piece of a segment: ``address`` and ``size`` in bytes, and its neighbours inside the same segment."""

    __slots__ = ("address", "following", "free", "previous", "segment", "size")

    def __init__(self, address: int, size: int, segment: int) -> None:
        self.address = address
        self.size = size
        self.segment = segment
        self.free = False
        self.previous: Block | None = None
        self.following: Block | None = None

    @property
    def whole(self) -> bool:
        """Whether it is its segment's only block, so that the segment could be given back to the device."""
        return self.previous is None and self.following is None


class FreeList:
    """Free blocks ordered by (size, address), as both allocators order them."""

    __slots__ = ("_blocks", "_order")

    def __init__(self) -> None:
        self._order: list[tuple[int, int]] = []
        self._blocks: dict[int, Block] = {}

    def add(self, block: Block) -> None:
        """Mark ``block`` free and keep it."""
        block.free = True
        insort(self._order, (block.size, block.address))
        self._blocks[block.address] = block

    def remove(self, block: Block) -> None:
        """Take ``block`` out and mark it used."""
        block.free = False
        del self._order[bisect_left(self._order, (block.size, block.address))]
        del self._blocks[block.address]

    def best_fit(self, size: int) -> Block | None:
        """The smallest free block of at least ``size`` bytes (the lowest address among equals), or None."""
        index = bisect_left(self._order, (size, -1))
        return self._blocks[self._order[index][1]] if index < len(self._order) else None

    def whole_segments(self) -> list[Block]:
        """The free blocks that are whole segments."""
        return [block for block in self._blocks.values() if block.whole]


def split(block: Block, size: int) -> Block:
    """Cut ``block`` down to ``size`` bytes and return the rest as a new block after it."""
    rest = Block(block.address + size, block.size - size, block.segment)
    rest.previous, rest.following = block, block.following
    if block.following is not None:
        block.following.previous = rest
    block.following = rest
    block.size = size
    return rest


def merge_neighbours(block: Block, free: FreeList) -> Block:
    """Join ``block`` with its free neighbours (taken out of ``free``) and return the joined block."""
    before = block.previous
    if before is not None and before.free:
        free.remove(before)
        before.size += block.size
        before.following = block.following
        if block.following is not None:
            block.following.previous = before
        block = before
    after = block.following
    if after is not None and after.free:
        free.remove(after)
        block.size += after.size
        block.following = after.following
        if after.following is not None:
            after.following.previous = block
    return block
