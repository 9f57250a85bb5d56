"""Packing with learned weights: ⌊Σ wᵢ · featureᵢ / quantum⌋, then the rules' tie-breakers.

Like the rules it learns the demand mix and the scarcity of kinds online; the weights themselves come from training.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oarlock_matcher.core.filters.base import Mask
from oarlock_matcher.core.fleet import FleetTable, Rows
from oarlock_matcher.core.policies.base import Slots
from oarlock_matcher.core.policies.demand_mix import DemandMix
from oarlock_matcher.core.policies.fragmentation import QUANTUM_MILLI, FragmentationAwarePolicy
from oarlock_matcher.core.policies.fragmentation_field import Floats
from oarlock_matcher.core.policies.packing_features import FEATURES, Sight, class_of
from oarlock_matcher.core.policy_settings import LearnedWeights
from oarlock_matcher.core.shapes import Shape


class LearnedPacking(FragmentationAwarePolicy):
    """Each class of shapes has its own weights; features without weight are not worked out."""

    name = "learned_packing"

    def __init__(self, weights: LearnedWeights, mix: DemandMix | None = None) -> None:
        super().__init__(mix)
        self._weights = weights

    def reweigh(self, weights: LearnedWeights) -> None:
        """Other weights from now on; what has been learned of the demand is kept."""
        if weights != self._weights:
            self._weights = weights
            self.epoch += 1

    def _weighed(
        self, fleet: FleetTable, shape: Shape, rows: Rows, slots: Slots, gain: Floats
    ) -> list[tuple[str, Floats]]:
        """Each feature that counts for this shape, times its weight. [candidates], in milli."""
        sight = Sight(fleet, self._field, shape, rows, slots, gain, self._scarcity.of(fleet, rows))
        weights = self._weights.weights.get(class_of(shape), {})
        return [(name, weight * FEATURES[name](sight)) for name, weight in weights.items() if weight]

    def _graded(self, fleet: FleetTable, shape: Shape, rows: Rows, slots: Slots, gain: Floats) -> Floats:
        # Added one by one: the sum must be the same, bit for bit, however many candidates are looked at together.
        total = np.zeros(len(rows))
        for _, part in self._weighed(fleet, shape, rows, slots, gain):
            total += part
        return self._quantised(fleet, shape, rows, total)

    def shares(self, fleet: FleetTable, shape: Shape, rows: Rows, fits: Mask) -> list[Mapping[str, float]]:
        """What each feature adds to the packing score of each row, in quanta, by feature name."""
        slots = self.score(fleet, shape, rows, fits)[1]
        if shape.count == 0 or shape.whole:
            gain = self._field.gain_whole(fleet, shape, rows)
        else:
            only = np.zeros_like(fits)
            only[np.arange(len(rows)), slots] = True
            gain = self._field.gain_shared(fleet, shape, rows, only)[0]
        weighed = self._weighed(fleet, shape, rows, slots, gain)
        columns = {name: (part / QUANTUM_MILLI).tolist() for name, part in weighed}
        return [{name: column[at] for name, column in columns.items()} for at in range(len(rows))]
