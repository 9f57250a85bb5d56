"""A number of bytes with the interval it is believed to lie in."""

from __future__ import annotations

from typing import NamedTuple


class Interval(NamedTuple):
    """``low`` ≤ ``value`` ≤ ``high``, in bytes."""

    low: int
    value: int
    high: int

    def plus(self, other: Interval) -> Interval:
        """Sum, ends added to ends (the errors may well share a cause)."""
        return Interval(self.low + other.low, self.value + other.value, self.high + other.high)

    def scaled(self, factor: float) -> Interval:
        """Every end times ``factor``."""
        return Interval(round(self.low * factor), round(self.value * factor), round(self.high * factor))


def exactly(nbytes: int) -> Interval:
    """A number that is certain."""
    return Interval(nbytes, nbytes, nbytes)


def around(nbytes: int, below: float, above: float) -> Interval:
    """``nbytes`` with relative errors ``below`` and ``above`` (0.02 is 2 %)."""
    return Interval(round(nbytes * (1 - below)), nbytes, round(nbytes * (1 + above)))
