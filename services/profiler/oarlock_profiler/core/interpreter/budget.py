"""What a reading may cost: steps, wall time, call depth and the size of any one value.

User code is hostile until proved otherwise, so everything that could grow without bound is charged or measured here.
The clock is passed in; it is read only every few hundred steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


class BudgetExceeded(BaseException):
    """The reading has used up its budget. Not an ``Exception``: neither user code nor a native may catch it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one reading. ``size`` bounds the items of a container and the characters of a string.

    ``readings``: how often at most a script is read again to measure the other side of a branch on an unknown.
    """

    steps: int = 20_000_000
    seconds: float = 30.0
    depth: int = 250
    size: int = 1_000_000
    bits: int = 1 << 16
    source_bytes: int = 4_000_000
    loop: int = 20_000
    path: int = 2_000
    readings: int = 4


class Budget:
    """Counts steps and asks ``clock`` (seconds, monotonic) now and then."""

    __slots__ = ("_check", "_deadline", "_every", "clock", "limits", "used")

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self.limits = limits
        self.clock = clock
        self.used = 0
        self._every = 500
        self._check = self._every
        self._deadline = clock() + limits.seconds

    def spend(self, steps: int = 1) -> None:
        """Charge ``steps``.

        Raises:
            BudgetExceeded: steps or seconds are used up.
        """
        self.used += steps
        if self.used < self._check:
            return
        self._check = self.used + self._every
        if self.used > self.limits.steps:
            raise BudgetExceeded(f"stopped after {self.limits.steps:,} interpreted steps")
        if self.clock() > self._deadline:
            raise BudgetExceeded(f"stopped after {self.limits.seconds:g} s of reading")
