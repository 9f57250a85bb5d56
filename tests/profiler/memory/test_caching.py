"""PyTorch's caching allocator, against what its source says it does."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarlock_profiler.core.memory.allocator import OutOfMemory
from oarlock_profiler.core.memory.caching import CachingAllocator

MIB = 1 << 20


def test_small_requests_are_rounded_and_share_a_segment_of_2_mib() -> None:
    allocator = CachingAllocator()
    allocator.allocate(1, 1)
    allocator.allocate(2, 513)
    assert allocator.allocated_bytes == 512 + 1024
    assert allocator.reserved_bytes == 2 * MIB


@pytest.mark.parametrize(
    ("request_mib", "segment_mib"), [(1, 2), (1.5, 20), (9.99, 20), (10, 10), (10.5, 12), (643, 644), (1000.1, 1002)]
)
def test_segment_sizes(request_mib: float, segment_mib: int) -> None:
    allocator = CachingAllocator()
    allocator.allocate(1, int(request_mib * MIB))
    assert allocator.reserved_bytes == segment_mib * MIB


def test_a_rest_of_at_most_1_mib_is_not_split_off_a_large_block() -> None:
    allocator = CachingAllocator()
    allocator.allocate(1, 19 * MIB)  # its own segment of 20 MiB: a rest of exactly 1 MiB stays with the block
    assert allocator.reserved_bytes == 20 * MIB
    assert allocator.allocated_bytes == 20 * MIB


def test_freed_neighbours_join_and_are_used_again() -> None:
    allocator = CachingAllocator()
    for id in range(4):
        allocator.allocate(id, 5 * MIB)
    assert allocator.reserved_bytes == 20 * MIB
    for id in range(4):
        allocator.free(id)
    allocator.allocate(9, 20 * MIB)
    assert allocator.reserved_bytes == 20 * MIB


def test_the_smallest_sufficient_block_is_taken() -> None:
    allocator = CachingAllocator()
    allocator.allocate(1, 100 * MIB)
    allocator.allocate(2, 40 * MIB)
    allocator.free(1)
    allocator.free(2)
    allocator.allocate(3, 39 * MIB)
    allocator.allocate(4, 100 * MIB)
    assert allocator.reserved_bytes == 140 * MIB


def test_a_small_request_may_spoil_a_large_block() -> None:
    allocator = CachingAllocator()
    allocator.allocate(1, 100 * MIB)
    allocator.free(1)
    allocator.allocate(2, 8 * MIB)
    allocator.allocate(3, 100 * MIB)
    assert allocator.reserved_bytes == 200 * MIB


def test_cached_segments_are_given_back_before_it_fails() -> None:
    allocator = CachingAllocator(capacity_bytes=150 * MIB)
    allocator.allocate(1, 100 * MIB)
    allocator.free(1)
    allocator.allocate(2, 120 * MIB)
    assert allocator.reserved_bytes == 120 * MIB
    assert allocator.retries == 1
    with pytest.raises(OutOfMemory, match="83886080 bytes asked for"):
        allocator.allocate(3, 80 * MIB)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 64 * MIB)), max_size=120))
def test_what_is_reserved_always_holds_what_is_allocated(steps: list[tuple[int, int]]) -> None:
    allocator = CachingAllocator()
    held: dict[int, int] = {}
    for id, nbytes in steps:
        if id in held:
            allocator.free(id)
            del held[id]
        else:
            allocator.allocate(id, nbytes)
            held[id] = nbytes
        assert sum(held.values()) <= allocator.allocated_bytes <= allocator.reserved_bytes
    for id in held:
        allocator.free(id)
    assert allocator.allocated_bytes == 0
    allocator.empty_cache()
    assert allocator.reserved_bytes == 0  # every block found its neighbours again


def test_a_hundred_thousand_requests_take_well_under_a_second() -> None:
    allocator = CachingAllocator()
    begun = time.perf_counter()
    for i in range(50_000):
        allocator.allocate(i, (i * 7919) % (4 * MIB) + 1)
        if i >= 400:
            allocator.free(i - 400)
    assert time.perf_counter() - begun < 1.5
