"""Fragmentation gradient descent exactly as published (Weng et al., USENIX ATC'23)."""
# ruff: noqa: ARG002 - one signature for all, whatever each needs of it

from __future__ import annotations

import numpy as np

from oarlock_matcher.core.able_models import AbleModels
from oarlock_matcher.core.filters.base import Mask
from oarlock_matcher.core.fleet import FleetTable, Rows
from oarlock_matcher.core.policies.base import BasePolicy, Scores, Slots
from oarlock_matcher.core.policies.demand_mix import DemandMix
from oarlock_matcher.core.policies.fragmentation_field import FragmentationField, best_of
from oarlock_matcher.core.shapes import Shape


class FgdPolicy(BasePolicy):
    """⌊100 · sigmoid((F before − F after) / 1000)⌋, the device chosen by the same score.

    The published experiment tells the policy the whole trace's mix beforehand: give such a mix and `learns=False`.
    Otherwise it is learned as demands arrive.
    """

    name = "fgd"

    def __init__(self, mix: DemandMix | None = None, learns: bool = True) -> None:
        super().__init__()
        self._mix = DemandMix() if mix is None else mix
        self._learns = learns
        self._able = AbleModels()
        self._models = -1
        self._next_refresh = 1
        self._field = FragmentationField(self._mix.table(), 0)

    def arrived(self, fleet: FleetTable, shape: Shape, now: float) -> None:
        if not self._learns:
            return
        able = self._able.of(fleet, shape)
        self._mix.note((shape.cpu_milli, shape.count, shape.milli if shape.count else 0, able))
        if self._mix.arrivals >= self._next_refresh:
            self._next_refresh = max(self._mix.arrivals + 16, 2 * self._mix.arrivals)
            self._relearn(fleet)

    def _relearn(self, fleet: FleetTable) -> None:
        self._models = len(fleet.models)
        self._field = FragmentationField(self._mix.table(), self._models)
        self.epoch += 1

    def score(self, fleet: FleetTable, shape: Shape, rows: Rows, fits: Mask) -> tuple[Scores, Slots]:
        if self._models != len(fleet.models):
            self._relearn(fleet)
        if shape.count == 0 or shape.whole:
            return coarse(self._field.gain_whole(fleet, shape, rows)), fits.argmax(axis=1)
        gain, which, slots = self._field.gain_shared(fleet, shape, rows, fits)
        return best_of(coarse(gain), which, slots, len(rows))


def coarse(gain: Scores) -> Scores:
    """The published whole-number score. Its coarseness matters: near ties go to the first row, which packs."""
    scores: Scores = np.floor(100.0 / (1.0 + np.exp(-gain / 1000.0)))
    return scores
