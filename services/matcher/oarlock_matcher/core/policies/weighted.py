"""`rule_based`: a weighted sum of explainable terms, each in 0..1.

The terms that are the same for all devices of a model (cost, speed, preference, origin) are worked out once per shape;
fragmentation and interference belong to a row and are kept until that row changes; the balance between sites changes
with every placement and is added last. Terms about which nothing is known are equal everywhere and decide nothing.
"""
# ruff: noqa: ARG002 - one signature for all, whatever each needs of it

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from oarlock_matcher.core import costs
from oarlock_matcher.core.devices import DeviceModel
from oarlock_matcher.core.filters.base import Mask
from oarlock_matcher.core.fleet import FleetTable, Rows
from oarlock_matcher.core.interference import speed_together
from oarlock_matcher.core.policies.base import INFEASIBLE, BasePolicy, PlacementPolicy, Scores, Slots
from oarlock_matcher.core.policies.fragmentation import FragmentationAwarePolicy
from oarlock_matcher.core.policy_settings import PolicySettings, Weights
from oarlock_matcher.core.shapes import Shape

PACKING_SCALE = 25.0
"""Quanta of packing score (40 milli each) that make one whole device."""
FAST_LINKS = frozenset({"nvlink", "hccs"})


class RuleBasedPolicy(BasePolicy):
    """Weighted sum of cost-performance, energy, fragmentation, balance, domestic, interference, preference, speed and
    link."""

    name = "rule_based"

    def __init__(self, weights: Weights, packing: PlacementPolicy | None = None) -> None:
        super().__init__()
        self._weights = weights
        self._packing = FragmentationAwarePolicy() if packing is None else packing
        self._model_terms: OrderedDict[tuple[int, int], tuple[NDArray[np.float64], Mapping[str, list[float]]]] = (
            OrderedDict()
        )

    def retune(self, settings: PolicySettings) -> None:
        self._weights = settings.weights
        self._model_terms.clear()
        self._packing.retune(settings)
        self._follow()

    def arrived(self, fleet: FleetTable, shape: Shape, now: float) -> None:
        self._packing.arrived(fleet, shape, now)
        self._follow()

    def _follow(self) -> None:
        self.epoch = self._packing.epoch

    def score(self, fleet: FleetTable, shape: Shape, rows: Rows, fits: Mask) -> tuple[Scores, Slots]:
        packing, slots = self._packing.score(fleet, shape, rows, fits)
        total = self._weights.fragmentation * squash(packing)
        by_model, _ = self._terms_of_models(fleet, shape)
        total += by_model[fleet.row_model[rows]]
        if self._weights.interference and shape.busy_milli is not None and not shape.whole:
            total += self._weights.interference * self._calm(fleet, shape, rows, slots)
        return total, slots

    def weigh(self, fleet: FleetTable, shape: Shape, scores: Scores) -> Scores:
        weight = self._weights.balance
        if not weight or not fleet.several_sites():
            return scores
        idle = site_idle_share(fleet)
        bonus = np.fromiter((idle[entry.node.site] for entry in fleet.nodes), np.float64, len(fleet.nodes))
        return np.where(scores > INFEASIBLE, scores + weight * bonus[fleet.row_node], scores)

    def parts(self, fleet: FleetTable, shape: Shape, rows: Rows) -> list[Mapping[str, float]]:
        if not len(rows):
            return []
        packing, slots = self._packing.score(fleet, shape, rows, self._fits(fleet, shape, rows))
        _, terms = self._terms_of_models(fleet, shape)
        weights = self._weights
        fragmentation = (weights.fragmentation * squash(packing)).tolist()
        found: list[Mapping[str, float]] = []
        sharing = shape.busy_milli is not None and not shape.whole
        calm = (weights.interference * self._calm(fleet, shape, rows, slots)).tolist() if sharing else None
        idle = site_idle_share(fleet) if weights.balance and fleet.several_sites() else None
        for at, (row, model) in enumerate(zip(rows.tolist(), fleet.row_model[rows].tolist(), strict=True)):
            parts = {name: getattr(weights, name) * values[model] for name, values in terms.items()}
            parts["fragmentation"] = fragmentation[at]
            if calm is not None:
                parts["interference"] = calm[at]
            if idle is not None:
                parts["balance"] = weights.balance * idle[fleet.site_of(row)]
            found.append(parts)
        return found

    def _terms_of_models(
        self, fleet: FleetTable, shape: Shape
    ) -> tuple[NDArray[np.float64], Mapping[str, list[float]]]:
        key = (shape.number, len(fleet.models))
        found = self._model_terms.get(key)
        if found is not None:
            return found
        seconds = [self._corrected(costs.step_seconds(shape, m), m) for m in fleet.models]
        prices = [self._corrected(costs.step_cost(shape, m), m) for m in fleet.models]
        # Without prices the cheapest step is the shortest one that does not waste a faster device: speed alone decides.
        preferred = shape.preferred
        terms: dict[str, list[float]] = {
            "cost_performance": costs.relative(prices if any(p is not None for p in prices) else seconds),
            "speed": costs.relative(seconds),
            "energy": costs.relative([costs.step_joules(shape, m) for m in fleet.models]),
            "preferred": [
                1.0 - preferred.index(m.kind) / (2.0 * len(preferred)) if m.kind in preferred else 0.0
                for m in fleet.models
            ],
            "domestic": [float(m.domestic) for m in fleet.models],
            "link": [float(shape.count > 1 and m.link in FAST_LINKS) for m in fleet.models],
        }
        total = np.zeros(len(fleet.models))
        for name, values in terms.items():
            total += getattr(self._weights, name) * np.array(values)
        self._model_terms[key] = (total, terms)
        if len(self._model_terms) > 4096:
            self._model_terms.popitem(last=False)
        return total, terms

    def _corrected(self, predicted: float | None, model: DeviceModel) -> float | None:
        """A predicted time or cost on this model, as far as it is known better than its prediction: here it is not."""
        return predicted

    @staticmethod
    def _fits(fleet: FleetTable, shape: Shape, rows: Rows) -> Mask:
        """Devices with compute enough, for rows that have already been found to take the shape."""
        fits: Mask = fleet.milli_free[rows] >= (shape.milli if shape.count else 0)
        return fits

    @staticmethod
    def _calm(fleet: FleetTable, shape: Shape, rows: Rows, slots: Slots) -> NDArray[np.float64]:
        """Predicted speed of the sharers of the chosen devices, relative to running alone."""
        return speed_together(fleet.busy[rows, slots] + (shape.busy_milli or 0))


def squash(packing: Scores) -> Scores:
    """Packing scores (any range) into 0..1, keeping their order; a quarter of a device more or less moves by ~0.1."""
    scaled = packing / PACKING_SCALE
    return 0.5 + 0.5 * scaled / (1.0 + np.abs(scaled))


def site_idle_share(fleet: FleetTable) -> dict[str, float]:
    """Share of each site's devices that are idle; 0 for a site without devices."""
    present: dict[str, int] = {}
    idle: dict[str, int] = {}
    per_node = np.bincount(fleet.row_node, fleet.present.sum(axis=1), len(fleet.nodes))
    idle_per_node = np.bincount(fleet.row_node, fleet.idle.sum(axis=1), len(fleet.nodes))
    for number, entry in enumerate(fleet.nodes):
        site = entry.node.site
        present[site] = present.get(site, 0) + int(per_node[number])
        idle[site] = idle.get(site, 0) + int(idle_per_node[number])
    return {site: idle[site] / present[site] if present[site] else 0.0 for site in present}
