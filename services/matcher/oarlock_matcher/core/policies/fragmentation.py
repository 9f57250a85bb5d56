"""Ours: fragmentation, stranded devices and scarce kinds, all learned online.

score = ⌊(ΔF + w · Δstranded − a · r_k · milli) / quantum⌋, then the fewest device milli and processors left.

ΔF is the published fragmentation gradient, for the demand mix seen so far. `stranded` are idle devices that their
node's free processors could not feed: a shadow price of processors, high where a node is short of them. r_k, the
scarcity of a row, is the demand that is bound to its kind or to nodes as large as its own, per capacity of those: what
others could only find there is given last to those who could go elsewhere (`scarcity`).
"""
# ruff: noqa: ARG002 - one signature for all, whatever each needs of it

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oarlock_matcher.core.able_models import AbleModels
from oarlock_matcher.core.filters.base import Mask
from oarlock_matcher.core.fleet import FleetTable, Rows
from oarlock_matcher.core.policies.base import BasePolicy, Scores, Slots
from oarlock_matcher.core.policies.demand_mix import DemandMix
from oarlock_matcher.core.policies.fragmentation_field import Floats, FragmentationField, best_of, free_cpu_milli
from oarlock_matcher.core.policies.scarcity import Scarcity
from oarlock_matcher.core.shapes import Shape

STRANDING_WEIGHT = 0.7
SCARCITY_WEIGHT = 1.0
QUANTUM_MILLI = 40.0
"""Differences below this do not decide; what is left on the row does. (Finer and coarser were tried; see
`benchmarks/placement`.)"""
TIE_PER_DEVICE_MILLI = 1e-5
TIE_PER_CPU_MILLI = 1e-8
TIE_PER_SLOT_MILLI = 1e-7
COVERAGE = 0.995


class FragmentationAwarePolicy(BasePolicy):
    """Puts a task where it leaves the least capacity that the expected demand could not use."""

    name = "fragmentation_aware"

    def __init__(self, mix: DemandMix | None = None) -> None:
        super().__init__()
        self._mix = DemandMix(coverage=COVERAGE) if mix is None else mix
        self._able = AbleModels()
        self._models = -1
        self._next_refresh = 1
        self._field = FragmentationField(self._mix.table(), 0)
        self._scarcity = Scarcity()

    def arrived(self, fleet: FleetTable, shape: Shape, now: float) -> None:
        able = self._able.of(fleet, shape)
        self._mix.note((shape.cpu_milli, shape.count, shape.milli if shape.count else 0, able))
        self._scarcity.note(shape, able)
        if self._mix.arrivals >= self._next_refresh:
            self._next_refresh = max(self._mix.arrivals + 16, int(1.5 * self._mix.arrivals))
            self._relearn(fleet)

    def _relearn(self, fleet: FleetTable) -> None:
        table = self._mix.table()
        self._models = len(fleet.models)
        self._field = FragmentationField(table, self._models, STRANDING_WEIGHT)
        self._scarcity.relearn(fleet)
        self.epoch += 1

    def score(self, fleet: FleetTable, shape: Shape, rows: Rows, fits: Mask) -> tuple[Scores, Slots]:
        if self._models != len(fleet.models):
            self._relearn(fleet)
        if shape.count == 0 or shape.whole:
            gain, first = self._field.gain_whole(fleet, shape, rows), fits.argmax(axis=1)
            return self._graded(fleet, shape, rows, first, gain), first
        gain, which, slots = self._field.gain_shared(fleet, shape, rows, fits)
        at = rows[which]
        scores = self._graded(fleet, shape, at, slots, gain) - TIE_PER_SLOT_MILLI * fleet.milli_free[at, slots]
        return best_of(scores, which, slots, len(rows))

    def _graded(self, fleet: FleetTable, shape: Shape, rows: Rows, slots: Slots, gain: Floats) -> Floats:
        """Scores of candidates: rows with the device that a sharing shape would get there, and the gain of each."""
        asked = shape.count * shape.milli
        price = SCARCITY_WEIGHT * asked * self._scarcity.of(fleet, rows)
        return self._quantised(fleet, shape, rows, gain - price)

    def _quantised(self, fleet: FleetTable, shape: Shape, rows: Rows, milli: Floats) -> Floats:
        """Whole quanta, less far less than one of them: among equals the row with less left is taken."""
        left = self._field.total_free(rows) - shape.count * shape.milli
        cpu_left = free_cpu_milli(fleet, rows) - shape.cpu_milli
        scores: Floats = np.floor(milli / QUANTUM_MILLI)
        return scores - TIE_PER_DEVICE_MILLI * left - TIE_PER_CPU_MILLI * np.minimum(cpu_left, 10**7)

    def parts(self, fleet: FleetTable, shape: Shape, rows: Rows) -> list[Mapping[str, float]]:
        asked = shape.count * shape.milli
        scarcity = self._scarcity.of(fleet, rows).tolist()
        return [{"scarcity_price": -SCARCITY_WEIGHT * asked * r, "quantum": QUANTUM_MILLI} for r in scarcity]
