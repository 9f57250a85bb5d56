"""`rl_based`: the rules' weighted sum with a learned packing term, corrected by what runs have shown.

What operators weigh (cost, speed, preference, origin, balance, interference) stays theirs. Learned are the weights of
the packing features, by training in the simulator, and a bounded correction of each kind's predicted times, from the
runs that end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from oarlock_matcher.core.devices import DeviceModel
from oarlock_matcher.core.fleet import FleetTable, Rows
from oarlock_matcher.core.policies.base import EndedRun
from oarlock_matcher.core.policies.experience import Experience
from oarlock_matcher.core.policies.learned_packing import LearnedPacking
from oarlock_matcher.core.policies.learned_weights import SHIPPED
from oarlock_matcher.core.policies.weighted import PACKING_SCALE, RuleBasedPolicy, squash
from oarlock_matcher.core.policy_settings import LearnedWeights, PolicySettings, Weights
from oarlock_matcher.core.shapes import Shape


class LearnedPolicy(RuleBasedPolicy):
    """Weights: those of the settings, or those that this release ships."""

    name = "rl_based"

    def __init__(self, weights: Weights, learned: LearnedWeights | None) -> None:
        self._learned = LearnedPacking(SHIPPED if learned is None else learned)
        self._experience = Experience()
        super().__init__(weights, self._learned)

    def retune(self, settings: PolicySettings) -> None:
        self._learned.reweigh(SHIPPED if settings.learned is None else settings.learned)
        super().retune(settings)

    def ended(self, run: EndedRun) -> None:
        before = self._experience.version
        self._experience.note(run)
        if self._experience.version != before:
            self._model_terms.clear()
            self._follow()

    def remembers(self) -> dict[str, tuple[float, ...]]:
        """What ended runs have shown, for the next leader."""
        return self._experience.numbers()

    def recall(self, experience: Mapping[str, Sequence[float]]) -> None:
        """Begin with what another leader's runs have shown."""
        self._experience.recall(experience)
        self._model_terms.clear()
        self._follow()

    def _follow(self) -> None:
        self.epoch = self._packing.epoch + self._experience.version

    def _corrected(self, predicted: float | None, model: DeviceModel) -> float | None:
        return None if predicted is None else predicted * self._experience.lasts(model.kind)

    def parts(self, fleet: FleetTable, shape: Shape, rows: Rows) -> list[Mapping[str, float]]:
        """As the rules', with the packing term divided among its features in proportion. `packing` is what is left:
        rounding, and the middle of the term's range."""
        found: list[Mapping[str, float]] = []
        fits = self._fits(fleet, shape, rows)
        packing, _ = self._packing.score(fleet, shape, rows, fits)
        slope = self._weights.fragmentation * 0.5 / PACKING_SCALE / (1.0 + np.abs(packing / PACKING_SCALE))
        terms = self._weights.fragmentation * squash(packing)
        shares = self._learned.shares(fleet, shape, rows, fits)
        for at, rule in enumerate(super().parts(fleet, shape, rows)):
            parts = {name: value for name, value in rule.items() if name != "fragmentation"}
            features = {f"packing.{name}": float(slope[at]) * share for name, share in shares[at].items()}
            parts["packing"] = float(terms[at]) - sum(features.values())
            found.append(parts | features)
        return found
