"""Adds a run's readings up: peaks, time-weighted utilisation, energy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from oarlock_telemetry.core.runs import Facts, Finish, Reading, Tally

T = TypeVar("T", int, float)

GAP_SECONDS = 5.0
"""Two readings further apart than this say nothing of the time between them (telemetry was down)."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What is written down as measured; every ``None`` has its reason in ``absent``."""

    peak_device_bytes: int | None
    peak_process_bytes: int | None
    mean_utilization_ratio: float | None
    peak_temperature_celsius: float | None
    energy_joules: float | None
    duration_seconds: float | None
    samples: int
    absent: Mapping[str, str]


def add(tally: Tally, reading: Reading) -> Tally:
    """``tally`` with one more reading. Readings must come in order of time; an older one changes nothing."""
    if tally.last_at_seconds is not None and reading.at_seconds <= tally.last_at_seconds:
        return tally
    step = 0.0 if tally.last_at_seconds is None else reading.at_seconds - tally.last_at_seconds
    gap = step > GAP_SECONDS
    step = 0.0 if gap else step
    energy = tally.energy_joules
    if reading.power_watts is not None:
        energy = (energy or 0.0) + reading.power_watts * step
    known = reading.utilization_ratio is not None and step > 0
    return replace(
        tally,
        samples=tally.samples + 1,
        last_at_seconds=reading.at_seconds,
        peak_process_bytes=_larger(tally.peak_process_bytes, reading.process_bytes),
        peak_device_bytes=_larger(tally.peak_device_bytes, reading.device_bytes),
        peak_temperature_celsius=_larger(tally.peak_temperature_celsius, reading.temperature_celsius),
        busy_seconds=tally.busy_seconds + (reading.utilization_ratio or 0.0) * step if known else tally.busy_seconds,
        seen_seconds=tally.seen_seconds + (step if known else 0.0),
        energy_joules=energy,
        energy_gaps=tally.energy_gaps + (1 if gap or reading.power_watts is None else 0),
        device_total_bytes=reading.device_total_bytes or tally.device_total_bytes,
        reasons=tuple({**dict(tally.reasons), **reading.reasons}.items()),
    )


def close(facts: Facts, tally: Tally, finish: Finish) -> Totals:
    """What the whole run measured.

    On a CPU the kernel's own count of the largest process joins the samples: it misses nothing, however short.
    """
    process = tally.peak_process_bytes
    device = tally.peak_device_bytes
    if facts.vendor == "cpu" and not facts.simulated:
        process = _larger(process, finish.kernel_peak_bytes)
        device = process
    values: dict[str, float | None] = {
        "peak_device_bytes": device,
        "peak_process_bytes": process,
        "mean_utilization_ratio": min(1.0, tally.busy_seconds / tally.seen_seconds) if tally.seen_seconds else None,
        "peak_temperature_celsius": tally.peak_temperature_celsius,
        "energy_joules": tally.energy_joules if tally.samples > 1 and not tally.energy_gaps else None,
        "duration_seconds": finish.duration_seconds,
    }
    reasons = dict(tally.reasons)
    absent = {name: _why(name, tally, finish, reasons) for name, value in values.items() if value is None}
    return Totals(
        peak_device_bytes=device,
        peak_process_bytes=process,
        mean_utilization_ratio=values["mean_utilization_ratio"],
        peak_temperature_celsius=values["peak_temperature_celsius"],
        energy_joules=values["energy_joules"],
        duration_seconds=values["duration_seconds"],
        samples=tally.samples,
        absent=absent,
    )


_READ_AS = {
    "peak_device_bytes": "device_bytes",
    "peak_process_bytes": "process_bytes",
    "mean_utilization_ratio": "utilization_ratio",
    "peak_temperature_celsius": "temperature_celsius",
    "energy_joules": "power_watts",
}


def _why(name: str, tally: Tally, finish: Finish, reasons: Mapping[str, str]) -> str:
    if name == "duration_seconds":
        return "the launcher does not know when it started"
    if tally.samples == 0:
        lasted = "" if finish.duration_seconds is None else f" (it lasted {finish.duration_seconds:.2f} s)"
        return f"no sample fell into the run{lasted}"
    known = reasons.get(_READ_AS[name])
    if known is not None:
        return known
    if tally.samples == 1 and name in ("mean_utilization_ratio", "energy_joules"):
        return "a single sample fell into the run, which spans no time"
    if name == "energy_joules" and tally.energy_gaps:
        return "the run was not sampled without a gap"
    return "no sample had a value"


def _larger(one: T | None, other: T | None) -> T | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)
