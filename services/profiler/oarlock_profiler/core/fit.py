"""Does it fit a device, and the largest batch that would."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from oarlock_profiler.core.devices import DeviceSpec
from oarlock_profiler.core.engine.trace import Trace
from oarlock_profiler.core.memory.peaks import Peaks, Stack, peaks_of, runs_within
from oarlock_profiler.core.memory.whatif import with_batch

Verdict = Literal["fits", "tight", "oom", "unknown"]

MAX_BATCH_RATIO = 4096


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked: a trace under its framework, spread over ``devices``, on one device kind.

    ``factor`` and ``reserve_ratio`` come from calibration; ``doubt`` widens the interval.
    """

    trace: Trace
    framework: str | None
    device: DeviceSpec
    devices: int = 1
    strategy: str | None = None
    stack: Stack = field(default_factory=Stack)
    doubt: float = 0.0
    factor: float = 1.0
    reserve_ratio: float = 1.08

    def peaks(self, trace: Trace | None = None) -> Peaks | None:
        """The peaks of ``trace`` (or of the case's own) on the case's device."""
        return peaks_of(
            trace or self.trace,
            self.framework,
            self.device,
            devices=self.devices,
            strategy=self.strategy,
            stack=self.stack,
            doubt=self.doubt,
        )

    def device_bytes(self, trace: Trace | None = None) -> int | None:
        """The corrected device peak, or None for an empty trace."""
        peaks = self.peaks(trace)
        return None if peaks is None else round(peaks.device.value * self.factor)


def verdict(case: Case, device_bytes: int, reserve_bytes: int) -> Verdict:
    """``fits``: what would be booked is there. ``tight``: it runs, but without that margin. ``oom``: it does not.

    Near the limit the steps are replayed with the device's real capacity, as the framework's allocator gives cached
    memory back before it fails.
    """
    free = case.device.capacity_bytes
    if reserve_bytes <= free:
        return "fits"
    if device_bytes <= free:
        return "tight"
    if device_bytes > 2 * free:
        return "oom"
    return "tight" if runs_within(case.trace, case.framework, case.device, stack=case.stack) else "oom"


def largest_batch(case: Case, batch: int) -> int | None:
    """The largest batch whose booking fits, by replaying rescaled steps; None when not even a batch of 1 does."""
    free = case.device.capacity_bytes

    def fits(candidate: int) -> bool:
        need = case.device_bytes(with_batch(case.trace, candidate / batch))
        return need is not None and need * case.reserve_ratio <= free

    if not fits(1):
        return None
    low, high = 1, 1
    guess = _affine_guess(case, batch, free)
    if guess > 1 and fits(guess):
        low = guess
        high = guess + max(1, guess // 8)
    else:
        high = max(2, guess)
    while high <= batch * MAX_BATCH_RATIO and fits(high):
        low, high = high, high + max(1, high // 4)
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


def _affine_guess(case: Case, batch: int, free: int) -> int:
    """Where a straight line through two batches meets the device's memory."""
    one = case.device_bytes()
    two = case.device_bytes(with_batch(case.trace, 2.0))
    if one is None or two is None or two <= one:
        return batch
    slope = (two - one) / batch
    room = free / case.reserve_ratio - (one - slope * batch)
    return max(1, min(int(room / slope), batch * MAX_BATCH_RATIO))
