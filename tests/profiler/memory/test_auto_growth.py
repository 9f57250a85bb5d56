"""PaddlePaddle's auto-growth allocator, against what its source says it does."""

from __future__ import annotations

import pytest

from oarlock_profiler.core.memory.allocator import OutOfMemory
from oarlock_profiler.core.memory.auto_growth import AutoGrowthAllocator, preallocated_bytes

MIB = 1 << 20


def test_a_chunk_is_as_large_as_its_request() -> None:
    allocator = AutoGrowthAllocator()
    allocator.allocate(1, 1000)
    assert (allocator.allocated_bytes, allocator.reserved_bytes) == (1024, 1024)
    assert allocator.device_bytes == 2 * MIB  # the device maps whole pages


def test_large_chunks_take_whole_pages_of_their_own() -> None:
    allocator = AutoGrowthAllocator()
    allocator.allocate(1, 3 * MIB)
    allocator.allocate(2, MIB // 2)
    allocator.allocate(3, MIB // 2)
    assert allocator.reserved_bytes == 4 * MIB
    assert allocator.device_bytes == 6 * MIB


def test_blocks_are_split_however_small_the_rest_and_join_again() -> None:
    allocator = AutoGrowthAllocator()
    allocator.allocate(1, 100 * MIB)
    allocator.free(1)
    allocator.allocate(2, 60 * MIB)
    allocator.allocate(3, 40 * MIB)
    assert allocator.reserved_bytes == 100 * MIB
    allocator.free(2)
    allocator.free(3)
    allocator.allocate(4, 100 * MIB)
    assert allocator.reserved_bytes == 100 * MIB


def test_the_chunk_flag_sets_the_least_chunk() -> None:
    allocator = AutoGrowthAllocator(chunk_bytes=64 * MIB)
    allocator.allocate(1, MIB)
    allocator.allocate(2, 100 * MIB)
    assert allocator.reserved_bytes == 164 * MIB


def test_idle_chunks_are_given_back_before_it_fails() -> None:
    allocator = AutoGrowthAllocator(capacity_bytes=100 * MIB)
    allocator.allocate(1, 60 * MIB)
    allocator.free(1)
    allocator.allocate(2, 90 * MIB)
    assert allocator.reserved_bytes == 90 * MIB
    with pytest.raises(OutOfMemory):
        allocator.allocate(3, 20 * MIB)


def test_preallocation() -> None:
    assert preallocated_bytes(1000 * MIB) == 920 * MIB
    assert preallocated_bytes(1000 * MIB, initial_mb=300) == 300 * MIB
