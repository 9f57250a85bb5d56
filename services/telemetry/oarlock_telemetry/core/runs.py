"""The values a followed run is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

Key = tuple[str, int]
"""(task id, attempt)."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was known of a run when it was launched. ``device_uids`` are all of its devices."""

    task_id: str
    attempt: int
    node: str
    device_uids: tuple[str, ...]
    vendor: str
    device_kind: str
    runtime: str
    run_id: str
    pid: int | None
    started_at: str
    simulated: bool = False
    owner: str = "anonymous"
    framework: str | None = None
    family: str | None = None
    precision: str | None = None
    source_digest: str | None = None
    predicted_bytes: int | None = None
    raw_predicted_bytes: int | None = None
    reserve_bytes: int | None = None
    step_seconds: float | None = None
    method: str | None = None

    @property
    def key(self) -> Key:
        return (self.task_id, self.attempt)


@dataclass(frozen=True, slots=True)
class Reading:
    """A run at one moment, over its devices. ``None`` was not seen; ``reasons`` says why, by field name.

    ``process_bytes``: the run's own memory on the device where it uses most. ``device_bytes``: what that device shows
    as used in all, known of this run only while it has the device to itself. ``power_watts``: of all its devices.
    """

    at_seconds: float
    process_bytes: int | None = None
    device_bytes: int | None = None
    utilization_ratio: float | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None
    device_total_bytes: int | None = None
    reasons: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Tally:
    """What a run's readings add up to."""

    samples: int = 0
    last_at_seconds: float | None = None
    peak_process_bytes: int | None = None
    peak_device_bytes: int | None = None
    peak_temperature_celsius: float | None = None
    busy_seconds: float = 0.0
    seen_seconds: float = 0.0
    energy_joules: float | None = None
    energy_gaps: int = 0
    device_total_bytes: int | None = None
    reasons: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Followed:
    """A run with its tally; ``recorded_at_seconds`` once its record has been written."""

    facts: Facts
    tally: Tally = Tally()
    finish: Finish | None = None
    recorded_at_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """How the run ended, as the launcher tells it. ``kernel_peak_bytes``: largest process by the kernel's own count."""

    outcome: str
    started_at: str | None
    finished_at: str
    duration_seconds: float | None
    kernel_peak_bytes: int | None = None
