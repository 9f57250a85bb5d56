"""Ours: fragmentation gradient descent with the demand mix learned online."""
# ruff: noqa: ARG002 - one signature for all, whatever each needs of it

from __future__ import annotations

import numpy as np

from oarlock_matcher.core.filters.base import Mask
from oarlock_matcher.core.fleet import FleetTable, Rows
from oarlock_matcher.core.matching_models import able_models
from oarlock_matcher.core.policies.base import BasePolicy, Scores, Slots
from oarlock_matcher.core.policies.demand_mix import DemandMix
from oarlock_matcher.core.policies.fragmentation_measure import FragmentationMeasure
from oarlock_matcher.core.policies.heuristics import free_cpu
from oarlock_matcher.core.shapes import Shape


class FragmentationAwarePolicy(BasePolicy):
    """Puts a task where it leaves the least capacity that the expected demand could not use."""

    name = "fragmentation_aware"

    def __init__(self, mix: DemandMix | None = None) -> None:
        super().__init__()
        self._mix = DemandMix() if mix is None else mix
        self._measure = FragmentationMeasure(self._mix.table(), 0)
        self._models = -1
        self._next_refresh = 1

    def arrived(self, fleet: FleetTable, shape: Shape, now: float) -> None:
        able = able_models(fleet, shape)
        self._mix.note((shape.cpu_milli, shape.count, shape.milli if shape.count else 0, able))
        if self._mix.arrivals >= self._next_refresh or self._models != len(fleet.models):
            self._next_refresh = max(self._mix.arrivals + 16, int(1.5 * self._mix.arrivals))
            self._relearn(fleet)

    def _relearn(self, fleet: FleetTable) -> None:
        self._models = len(fleet.models)
        self._measure = FragmentationMeasure(self._mix.table(), self._models)
        self.epoch += 1

    def score(self, fleet: FleetTable, shape: Shape, rows: Rows, fits: Mask) -> tuple[Scores, Slots]:
        if self._models != len(fleet.models):
            self._relearn(fleet)
        return fragmentation_scores(self._measure, fleet, shape, rows, fits)


def fragmentation_scores(
    measure: FragmentationMeasure, fleet: FleetTable, shape: Shape, rows: Rows, fits: Mask
) -> tuple[Scores, Slots]:
    """⌊100 · sigmoid((F before − F after) / 1000)⌋ and the device that gives it."""
    free = fleet.milli_free[rows]
    cpu = free_cpu(fleet, rows).astype(np.int64)
    model = fleet.row_model[rows]
    before = measure.of(free, cpu, model)
    if shape.count == 0 or shape.whole:
        after = free.copy()
        if shape.count:
            taken = fits & (fits.cumsum(axis=1) <= shape.count)
            after[taken] = 0
        gain = before - measure.of(after, cpu - shape.cpu_milli, model)
        return coarse(gain), fits.argmax(axis=1)
    # One state for each different leftover among a row's fitting devices: equal devices are interchangeable.
    order = np.argsort(np.where(fits, free, -1), axis=1, kind="stable")
    ranked = np.take_along_axis(np.where(fits, free, -1), order, axis=1)
    first = ranked >= 0
    first[:, 1:] &= ranked[:, 1:] != ranked[:, :-1]
    which, at = np.nonzero(first)
    slots = order[which, at]
    after = free[which]
    after[np.arange(len(which)), slots] -= shape.milli
    gain = before[which] - measure.of(after, cpu[which] - shape.cpu_milli, model[which])
    scores = coarse(gain)
    best = np.full(len(rows), -np.inf)
    np.maximum.at(best, which, scores)
    winners = np.flatnonzero(scores == best[which])
    chosen = np.full(len(rows), fleet.slots, dtype=np.intp)
    np.minimum.at(chosen, which[winners], slots[winners])
    return best, chosen


def coarse(gain: Scores) -> Scores:
    """The published whole-number score. Its coarseness matters: near ties go to the first row, which packs."""
    return np.floor(100.0 / (1.0 + np.exp(-gain / 1000.0)))
