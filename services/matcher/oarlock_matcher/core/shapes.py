"""Shapes: demands that are alike for placement share one shape, and caches are kept by shape.

A shape has one device count; a demand with `num_gpus: auto` is turned into one shape for each count worth trying.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from oarlock_matcher.core.demand import Demand
from oarlock_matcher.core.devices import WHOLE_MILLI


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """The placement-relevant part of a demand for one device count. Compared by identity: shapes are interned.

    `lease_bytes` is what each device's lease holds. `whole` says that only idle devices will do. No device with less
    than `bytes_at_least` free can take it.
    """

    number: int
    count: int
    milli: int
    busy_milli: int | None
    whole: bool
    exclusive: bool
    device_bytes: int | None
    reserve_bytes: int | None
    threshold: float
    cpu_milli: int
    memory_bytes: int
    precision: str | None
    kernels: frozenset[str]
    preferred: tuple[str, ...]
    required: frozenset[str]
    forbidden: frozenset[str]
    site: str | None
    step_seconds: tuple[tuple[str, float], ...]
    flops_per_step: float | None
    span_nodes: bool
    tightly_coupled: bool
    bytes_at_least: int

    @property
    def lease_bytes(self) -> int:
        return max(self.device_bytes or 0, self.reserve_bytes or 0)


class ShapeTable:
    """Interns shapes; the least recently used are forgotten beyond `limit`, with whatever was cached for them."""

    def __init__(self, limit: int = 2048) -> None:
        self._shapes: OrderedDict[tuple[object, ...], Shape] = OrderedDict()
        self._limit = limit
        self._next = 0

    def of(self, demand: Demand, count: int) -> Shape:
        """The shape of `demand` on `count` devices."""
        device_bytes = demand.device_bytes_by_count.get(count, demand.device_bytes)
        reserve = demand.reserve_bytes
        if device_bytes is not None and demand.device_bytes is not None and reserve is not None:
            reserve = device_bytes + max(0, reserve - demand.device_bytes)
        tightly_coupled = demand.strategy in ("tensor", "pipeline", "sharding")
        key = (
            count,
            demand.compute_milli,
            demand.busy_milli,
            demand.exclusive,
            device_bytes,
            reserve,
            demand.memory_threshold,
            demand.cpu_milli,
            demand.memory_bytes,
            demand.precision,
            demand.kernels,
            demand.preferred_kinds,
            demand.required_kinds,
            demand.forbidden_kinds,
            demand.site,
            tuple(sorted(demand.step_seconds.items())) if demand.step_seconds else (),
            demand.flops_per_step,
            demand.span_nodes,
            tightly_coupled,
        )
        found = self._shapes.get(key)
        if found is not None:
            self._shapes.move_to_end(key)
            return found
        whole = count > 1 or demand.exclusive or demand.compute_milli >= WHOLE_MILLI
        shape = Shape(
            number=self._next,
            count=count,
            milli=WHOLE_MILLI if whole else demand.compute_milli,
            busy_milli=demand.busy_milli,
            whole=whole,
            exclusive=demand.exclusive or whole,
            device_bytes=device_bytes,
            reserve_bytes=reserve,
            threshold=demand.memory_threshold,
            cpu_milli=demand.cpu_milli,
            memory_bytes=demand.memory_bytes,
            precision=demand.precision,
            kernels=demand.kernels,
            preferred=demand.preferred_kinds,
            required=demand.required_kinds,
            forbidden=demand.forbidden_kinds,
            site=demand.site,
            step_seconds=tuple(sorted(demand.step_seconds.items())),
            flops_per_step=demand.flops_per_step,
            span_nodes=demand.span_nodes and not tightly_coupled,
            tightly_coupled=tightly_coupled,
            bytes_at_least=bytes_at_least(device_bytes or 0, reserve or 0, demand.memory_threshold),
        )
        self._next += 1
        self._shapes[key] = shape
        if len(self._shapes) > self._limit:
            self._shapes.popitem(last=False)
        return shape


def bytes_at_least(device_bytes: int, reserve_bytes: int, threshold: float) -> int:
    """The fewest free bytes of which `threshold` holds `device_bytes`, and which hold `reserve_bytes`."""
    least = int(device_bytes / threshold)
    while least > 0 and (least - 1) * threshold >= device_bytes:
        least -= 1
    while least * threshold < device_bytes:
        least += 1
    return max(least, reserve_bytes)


def counts_to_try(demand: Demand) -> tuple[int, ...]:
    """Device counts that the demand allows, fewest first. `auto` without a table of bytes means one device."""
    if demand.device_count != "auto":
        return (demand.device_count,)
    counts = sorted(c for c in demand.device_bytes_by_count if 1 <= c <= demand.max_devices)
    return tuple(counts) or (1,)
