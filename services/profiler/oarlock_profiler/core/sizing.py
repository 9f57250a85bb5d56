"""The memory of a portrait, and whether it fits: from peaks, a cold-start guess and what was learned."""

from __future__ import annotations

from collections.abc import Sequence

from oarlock_profiler.core import calibration as learning
from oarlock_profiler.core.advice import advise, largest_batch_advice
from oarlock_profiler.core.cold_start import ColdStart
from oarlock_profiler.core.devices import DeviceSpec
from oarlock_profiler.core.fit import Case, verdict
from oarlock_profiler.core.memory.interval import Interval
from oarlock_profiler.core.memory.peaks import Peaks, peaks_of
from oarlock_profiler.core.notes import Notes
from oarlock_profiler.core.reading import Reading
from oarlock_profiler.core.setting import Setting
from oarlock_schemas import Advice, Fit, Memory, MemoryParts, MemoryPeak
from oarlock_schemas.portrait import How

DOUBT_PER_ASSUMPTION = 0.05
DOUBT_PER_GAP = 0.01
MAX_DOUBT = 0.5


def doubt_of(reading: Reading) -> float:
    """How far the interval widens for what the reader had to assume or leave out."""
    gaps = reading.findings.gaps.values()
    assumed = sum(gap.assumed is not None for gap in gaps)
    total = DOUBT_PER_ASSUMPTION * assumed + DOUBT_PER_GAP * (len(gaps) - assumed)
    if reading.stopped or reading.trace.truncated:
        total += 0.2
    return min(total, MAX_DOUBT)


def sized(
    reading: Reading, setting: Setting, framework: str | None, devices: int, strategy: str | None
) -> Peaks | None:
    """The peaks on the device asked about; None when the trace is empty."""
    return peaks_of(
        reading.trace,
        framework,
        setting.target,
        devices=devices,
        strategy=strategy,
        stack=setting.stack,
        doubt=doubt_of(reading),
    )


def memory_of(
    peaks: Peaks | None, guess: ColdStart | None, setting: Setting, key: learning.Key, notes: Notes
) -> tuple[Memory, How]:
    """Memory, and how its device figure was got."""
    correction = learning.correction(setting.calibration or learning.empty(), key)
    if guess is not None:
        whole, ratio = guess.device, correction.reserve_ratio
        return (
            Memory(
                peak=MemoryPeak(
                    allocated_bytes=guess.device.value,
                    device_bytes=whole.value,
                    raw_device_bytes=whole.value,
                    low_bytes=whole.low,
                    high_bytes=whole.high,
                    reserve_bytes=max(round(whole.value * ratio), whole.high),
                ),
            ),
            "cold_start",
        )
    assert peaks is not None  # noqa: S101 - one of the two is given by the caller
    whole = peaks.device
    how: How = "interpreted"
    if correction.observations:
        whole = _corrected(whole, correction.factor)
        how = "calibrated"
        notes.fact("calibration factor", round(correction.factor, 4), "calibrated")
        notes.fact("runs it was learned from", correction.observations, "calibrated")
    notes.fact("device context", peaks.context.source, "assumed" if peaks.context.assumed else "table")
    if peaks.context.assumed:
        notes.unknown(
            "device context",
            peaks.context.source if setting.target else "the device is not chosen yet",
            peaks.context.bytes.value,
        )
    usage = peaks.usage
    parts = usage.parts_bytes
    known = sum(parts.values())
    return (
        Memory(
            parts=MemoryParts(
                weights_bytes=parts.get("weights", 0),
                gradients_bytes=parts.get("gradients", 0),
                optimizer_bytes=parts.get("optimizer", 0),
                activations_bytes=parts.get("activations", 0),
                inputs_bytes=parts.get("inputs", 0),
                workspace_bytes=parts.get("workspace", 0),
                communication_bytes=peaks.communication.value,
                context_bytes=peaks.context.bytes.value,
                allocator_bytes=max(0, peaks.reserved.value - known),
                other_bytes=parts.get("other", 0),
            ),
            peak=MemoryPeak(
                allocated_bytes=peaks.allocated.value,
                reserved_bytes=peaks.reserved.value,
                device_bytes=whole.value,
                raw_device_bytes=peaks.device.value,
                low_bytes=whole.low,
                high_bytes=whole.high,
                # Until runs have shown how far estimates miss, the upper end of the interval is booked.
                reserve_bytes=max(
                    round(whole.value * correction.reserve_ratio), 0 if correction.observations else whole.high
                ),
            ),
            first_step_allocated_bytes=usage.first_step_bytes,
            steady_allocated_bytes=usage.steady_bytes,
            host_bytes=peaks.host_bytes.value,
        ),
        how,
    )


def _corrected(whole: Interval, factor: float) -> Interval:
    """The interval moved by a learned factor, its width kept."""
    value = round(whole.value * factor)
    return Interval(max(0, value - (whole.value - whole.low)), value, value + (whole.high - whole.value))


def fit_of(
    reading: Reading,
    setting: Setting,
    memory: Memory,
    key: learning.Key,
    on_host: bool,
    guessed: bool,
    family: str | None,
    batch: int | None,
    devices: int,
    strategy: str | None,
) -> tuple[Fit | None, list[Advice]]:
    """The verdict for the device asked about, and advice.

    With no device asked about, the fleet's largest kind stands in when nothing of the fleet would hold the task, so
    that a rejection can say what would help.
    """
    need, reserve = memory.peak.device_bytes, memory.peak.reserve_bytes
    asked = setting.target
    if asked is None:
        asked = _largest_of(setting.fleet, on_host)
        if asked is None or reserve is None or reserve <= asked.capacity_bytes or guessed:
            return None, []
    free = asked.capacity_bytes
    if guessed or need is None or reserve is None or asked.is_host != on_host:
        why = Fit(device=asked.name, verdict="unknown", free_bytes=free, needed_bytes=need)
        return (why if setting.target else None), []
    correction = learning.correction(setting.calibration or learning.empty(), key)
    case = Case(
        reading.trace,
        reading.framework,
        asked,
        devices,
        strategy,
        setting.stack,
        doubt_of(reading),
        correction.factor,
        correction.reserve_ratio,
    )
    found = verdict(case, need, reserve)
    fit = Fit(device=asked.name, verdict=found, free_bytes=free, needed_bytes=reserve)
    if found == "fits":
        advice = largest_batch_advice(case, batch) if batch else []
    else:
        advice = advise(
            case,
            reading,
            family=family,
            batch=batch,
            fleet=setting.fleet,
            allow_mixed_precision=bool(setting.declared.get("allow_mixed_precision", True)),
        )
    return (fit if setting.target else None), advice


def _largest_of(fleet: Sequence[DeviceSpec], on_host: bool) -> DeviceSpec | None:
    kinds = [spec for spec in fleet if spec.is_host == on_host]
    return max(kinds, key=lambda spec: spec.capacity_bytes, default=None)
