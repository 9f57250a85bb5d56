"""What ended runs say about kinds of devices: a bounded correction of what was predicted.

A run that lasted longer than its kind's predicted step time lets expect speaks against the kind; so does one that ran
out of memory there. Old runs fade, few runs count little, and no correction exceeds its bound: a policy that learns
from a stream of unusual runs must not be able to run away.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oarlock_matcher.core.policies.base import EndedRun

PRIOR_RUNS = 20.0
"""Runs as predicted that are thought to have been seen before the first."""
KEEP = 0.5 ** (1.0 / 200.0)
"""What an earlier run still counts after one more of its kind: half after 200."""
LARGEST_FACTOR = 1.5
LARGEST_CAUTION = 0.3
WEIRD_RATIO = 20.0
"""Runs this many times longer or shorter than predicted ended for other reasons than the kind's speed."""


@dataclass(slots=True)
class _Kind:
    runs: float = 0.0
    log_ratios: float = 0.0
    timed: float = 0.0
    out_of_memory: float = 0.0


class Experience:
    """`version` counts the changes that matter to scores."""

    def __init__(self) -> None:
        self.version = 0
        self._kinds: dict[str, _Kind] = {}
        self._told: dict[str, tuple[float, float]] = {}

    def note(self, run: EndedRun) -> None:
        """A run has ended. Those that were cancelled, pre-empted or failed by themselves say nothing of the kind."""
        if run.kind is None or run.outcome not in ("succeeded", "oom"):
            return
        kind = self._kinds.setdefault(run.kind, _Kind())
        kind.runs = KEEP * kind.runs + 1.0
        kind.out_of_memory = KEEP * kind.out_of_memory + (run.outcome == "oom")
        ratio = _log_ratio(run) if run.outcome == "succeeded" else None
        if ratio is not None:
            kind.timed = KEEP * kind.timed + 1.0
            kind.log_ratios = KEEP * kind.log_ratios + ratio
        told = {name: (round(self.factor(name), 2), round(self.caution(name), 2)) for name in self._kinds}
        if told != self._told:
            self._told = told
            self.version += 1

    def numbers(self) -> dict[str, tuple[float, ...]]:
        """What has been noted, by kind: runs, sum of log ratios, timed runs, runs out of memory; all faded."""
        return {name: (k.runs, k.log_ratios, k.timed, k.out_of_memory) for name, k in sorted(self._kinds.items())}

    def recall(self, numbers: Mapping[str, Sequence[float]]) -> None:
        """Begin with what `numbers` gave."""
        self._kinds = {name: _Kind(*values) for name, values in numbers.items()}
        self.version += 1

    def lasts(self, kind: str) -> float:
        """Factor on a time or cost that was predicted for this kind: runs that take longer, runs that die and must be
        run again. 1 when nothing is known."""
        return self.factor(kind) / (1.0 - self.caution(kind))

    def factor(self, kind: str) -> float:
        """By how much runs on this kind last longer than predicted, compared with the mean of all kinds: predictions
        that are wrong by the same factor everywhere say nothing about the choice. 1 when nothing is known."""
        if kind not in self._kinds:
            return 1.0
        surplus = {name: k.log_ratios / (k.timed + PRIOR_RUNS) for name, k in self._kinds.items()}
        limit = math.log(LARGEST_FACTOR)
        return math.exp(min(limit, max(-limit, surplus[kind] - sum(surplus.values()) / len(surplus))))

    def caution(self, kind: str) -> float:
        """Share of runs that died of memory on this kind beyond that on the kind with the smallest; 0 when unknown."""
        if kind not in self._kinds:
            return 0.0
        shares = {name: k.out_of_memory / (k.runs + PRIOR_RUNS) for name, k in self._kinds.items()}
        return min(LARGEST_CAUTION, shares[kind] - min(shares.values()))


def _log_ratio(run: EndedRun) -> float | None:
    """Logarithm of how long the run took ÷ how long it was expected to; `None` when nothing was."""
    if not run.expected_seconds or run.seconds <= 0:
        return None
    ratio = run.seconds / run.expected_seconds
    return math.log(ratio) if 1.0 / WEIRD_RATIO < ratio < WEIRD_RATIO else None
