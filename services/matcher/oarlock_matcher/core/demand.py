"""What a task asks of the fleet: the part of its portrait and policy that placement depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from oarlock_matcher.core.devices import WHOLE_MILLI

NOTHING: Mapping[str, float] = MappingProxyType({})
NO_COUNTS: Mapping[int, int] = MappingProxyType({})
NO_SPEEDUPS: Mapping[int, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Demand:
    """One task's needs.

    `device_count`: devices wanted; 0 is a task for processors only; `"auto"` lets the matcher choose from
    `device_bytes_by_count` (bytes on each device when the task is split over that many).
    `device_bytes`: predicted peak on each device as the vendor's tool shows it; `None` when it could not be predicted.
    `reserve_bytes`: what holds with the estimator's chosen probability (99 %); this is what gets leased.
    `compute_milli`: thousandths of one device's compute; below 1000 the device may be shared.
    `busy_milli`: predicted share of the time in which the device computes for it when it is alone (utilisation, as the
    vendor's tool shows it), for the interference of sharers; `None` if unknown.
    `step_seconds`: predicted step time by device kind, on one device. `speedup_by_count`: speed on n devices ÷ on one.
    `expected_seconds`: of the whole run, whatever the kind; `duration_seconds`: by device kind, where that is known.
    `run_timeout_seconds`: the run is ended then at the latest.
    `memory_threshold`: the predicted peak may take this share of a device's free memory.
    `timeout_seconds`: longest wait in the queue; 0 means now or never, `None` means no limit.
    `arrived_at`: when the task first arrived, if this is a later attempt or a restart; `None` means now.
    `array`: the array that the task is of; of those with the same one `array_at_once` may hold devices at a time.
    `span_nodes`: a gang may use several nodes of one site when no single node holds it.
    """

    task_id: str
    owner: str = "anonymous"
    priority: int = 0
    attempt: int = 1
    device_count: int | Literal["auto"] = 1
    device_bytes: int | None = None
    reserve_bytes: int | None = None
    compute_milli: int = WHOLE_MILLI
    busy_milli: int | None = None
    exclusive: bool = False
    cpu_milli: int = 0
    memory_bytes: int = 0
    memory_threshold: float = 0.85
    precision: str | None = None
    kernels: frozenset[str] = frozenset()
    preferred_kinds: tuple[str, ...] = ()
    required_kinds: frozenset[str] = frozenset()
    forbidden_kinds: frozenset[str] = frozenset()
    site: str | None = None
    step_seconds: Mapping[str, float] = field(default_factory=lambda: NOTHING)
    flops_per_step: float | None = None
    expected_seconds: float | None = None
    duration_seconds: Mapping[str, float] = field(default_factory=lambda: NOTHING)
    run_timeout_seconds: float | None = None
    strategy: str | None = None
    span_nodes: bool = False
    device_bytes_by_count: Mapping[int, int] = field(default_factory=lambda: NO_COUNTS)
    speedup_by_count: Mapping[int, float] = field(default_factory=lambda: NO_SPEEDUPS)
    max_devices: int = 8
    timeout_seconds: float | None = None
    deadline: float | None = None
    after: tuple[str, ...] = ()
    arrived_at: float | None = None
    algorithm: str | None = None
    array: str | None = None
    array_at_once: int | None = None

    def seconds_on(self, kind: str) -> float | None:
        """How long the run may go on on this kind of device; `None` when nothing bounds it."""
        expected = self.duration_seconds.get(kind, self.expected_seconds)
        if self.run_timeout_seconds is None:
            return expected
        return self.run_timeout_seconds if expected is None else min(expected, self.run_timeout_seconds)

    def faults(self) -> tuple[str, ...]:
        """Every reason why this demand makes no sense; empty when it does."""
        found: list[str] = []
        if not self.task_id:
            found.append("task_id is empty")
        if self.device_count != "auto" and not 0 <= self.device_count <= 65536:
            found.append(f"device_count must lie in 0..65536, not {self.device_count}")
        if not 1 <= self.compute_milli <= WHOLE_MILLI:
            found.append(f"compute_milli must lie in 1..{WHOLE_MILLI}, not {self.compute_milli}")
        if not 0.0 < self.memory_threshold <= 1.0:
            found.append(f"memory_threshold must lie in (0, 1], not {self.memory_threshold}")
        for name in ("device_bytes", "reserve_bytes", "cpu_milli", "memory_bytes"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < 2**62:
                found.append(f"{name} must lie in 0..2^62, not {value}")
        if self.timeout_seconds is not None and not self.timeout_seconds >= 0:
            found.append(f"timeout_seconds must not be negative: {self.timeout_seconds}")
        if self.task_id in self.after:
            found.append("a task cannot wait for itself (after)")
        if self.max_devices < 1:
            found.append(f"max_devices must be at least 1, not {self.max_devices}")
        return tuple(found)
