"""Reads a case's script with the product's own reader and replays it: what is known before the context is added."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.prediction_error.cases import Case
from oarlock_profiler.adapters.devices import spec_named
from oarlock_profiler.adapters.sources import text_sources
from oarlock_profiler.core.devices import DeviceSpec
from oarlock_profiler.core.engine.trace import Op
from oarlock_profiler.core.memory.peaks import Peaks, Stack, peaks_of, usage_within
from oarlock_profiler.core.reader import read
from oarlock_profiler.core.reading import Reading, Request


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the reader makes of one case; ``abstained`` says why there is no number."""

    case: Case
    allocated_bytes: int = 0
    reserved_bytes: int = 0
    context_bytes: int = 0
    capacity_bytes: int = 0
    batch_norm: bool = False
    fits: bool = True
    parameters: int | None = None
    gaps: int = 0
    seconds: float = 0.0
    abstained: str | None = None

    @property
    def device_bytes(self) -> int:
        """The product's own figure, with the context of its table."""
        return self.reserved_bytes + self.context_bytes


def predict(case: Case, library_paths: Sequence[Path] = ()) -> Prediction:
    """Read and replay ``case``; library models are read from the sources under ``library_paths``."""
    spec = spec_named(case.device)
    if spec is None:
        raise ValueError(f"the catalogue has no device {case.device}")
    begun = time.perf_counter()
    sources = text_sources({"main.py": case.script}, library_paths=library_paths)
    reading = read(Request(entry="main.py", arguments=case.arguments), sources, time.monotonic)
    peaks = _peaks(reading, spec, _stack(case))
    took = time.perf_counter() - begun
    if peaks is None or peaks.on_host or not reading.parameters_total or reading.trace.steps < 1:
        return Prediction(case, abstained=_why(reading), seconds=took, gaps=len(reading.findings.gaps))
    usage, fits = peaks.usage, True
    if usage.reserved_bytes >= spec.capacity_bytes * 0.5 and case.measured_bytes <= spec.capacity_bytes:
        within = usage_within(reading.trace, reading.framework, spec, stack=_stack(case))
        fits = within.out_of_memory is None
        if fits and usage.reserved_bytes + peaks.context.bytes.value > spec.capacity_bytes:
            usage = within  # a full device is seen, not what the steps would have liked to have
    return Prediction(
        case,
        allocated_bytes=usage.allocated_bytes,
        reserved_bytes=usage.reserved_bytes,
        context_bytes=peaks.context.bytes.value,
        capacity_bytes=spec.capacity_bytes,
        batch_norm=any(isinstance(event, Op) and "batch_norm" in event.name for event in reading.trace.events),
        fits=fits,
        parameters=reading.parameters_total,
        gaps=len(reading.findings.gaps),
        seconds=took,
    )


def _stack(case: Case) -> Stack:
    """SchedTune's and the Trainer guide's measurements are from PyTorch 1.x, the others from 2.x."""
    return Stack(loading="eager" if case.source in ("SchedTune", "hf_perf_train_gpu_one") else "lazy")


def _peaks(reading: Reading, spec: DeviceSpec, stack: Stack) -> Peaks | None:
    return peaks_of(reading.trace, reading.framework, spec, stack=stack)


def _why(reading: Reading) -> str:
    if reading.stopped:
        return reading.stopped
    gap = next(iter(reading.findings.gaps.values()), None)
    return f"{gap.what}: {gap.why}" if gap else "no training step was read"
