"""What kinds of demands arrive, learned online: a histogram whose old entries fade.

Demands that ask for the same processors, number of devices, compute share and device models count as one spec. The
weight of a new arrival grows by a constant factor, which is the same as letting all earlier ones decay.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SpecKey = tuple[int, int, int, frozenset[int] | None]
"""(cpu milli, devices, milli on each, numbers of the device models that could take it; `None`: any)."""


@dataclass(frozen=True, slots=True)
class MixTable:
    """The most frequent specs, as columns. `share` sums to 1."""

    cpu_milli: NDArray[np.int64]
    count: NDArray[np.int64]
    milli: NDArray[np.int64]
    models: tuple[frozenset[int] | None, ...]
    share: NDArray[np.float64]


class DemandMix:
    """Decaying histogram of arrivals. `half_life`: arrivals after which an entry counts half."""

    def __init__(self, half_life: float = 20_000.0, coverage: float = 0.95, limit: int = 1024) -> None:
        self._growth = 2.0 ** (1.0 / half_life)
        self._coverage = coverage
        self._limit = limit
        self._weight: dict[SpecKey, float] = {}
        self._unit = 1.0
        self.arrivals = 0

    def note(self, key: SpecKey) -> None:
        """One demand of this spec has arrived."""
        self.arrivals += 1
        self._unit *= self._growth
        self._weight[key] = self._weight.get(key, 0.0) + self._unit
        if self._unit > 1e12 or len(self._weight) > 16 * self._limit:
            self._fade()

    def _fade(self) -> None:
        """Rescale before numbers grow too large, and drop what is too rare to matter."""
        kept = sorted(self._weight.items(), key=lambda item: -item[1])[: 4 * self._limit]
        self._weight = {key: weight / self._unit for key, weight in kept}
        self._unit = 1.0

    def table(self) -> MixTable:
        """The most frequent specs that together cover its `coverage` of the arrivals."""
        ranked = sorted(self._weight.items(), key=lambda item: -item[1])
        total = sum(self._weight.values())
        chosen: list[tuple[SpecKey, float]] = []
        covered = 0.0
        for key, weight in ranked[: self._limit]:
            chosen.append((key, weight))
            covered += weight
            if covered >= self._coverage * total:
                break
        share = np.array([weight for _, weight in chosen])
        return MixTable(
            cpu_milli=np.array([key[0] for key, _ in chosen], dtype=np.int64),
            count=np.array([key[1] for key, _ in chosen], dtype=np.int64),
            milli=np.array([key[2] for key, _ in chosen], dtype=np.int64),
            models=tuple(key[3] for key, _ in chosen),
            share=share / share.sum() if chosen else share,
        )
