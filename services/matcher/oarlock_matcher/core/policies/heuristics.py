"""The published packing heuristics, as the "fragmentation gradient descent" paper (Weng et al., USENIX ATC'23) compares
them. Scores are whole numbers of 0..100 there, and coarse scores decide by the order of the rows, so they are here
too."""
# ruff: noqa: ARG002 - one signature for all, whatever each needs of it

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oarlock_matcher.core.filters.base import Mask
from oarlock_matcher.core.fleet import UNLIMITED, FleetTable, Rows
from oarlock_matcher.core.policies.base import BasePolicy, Scores, Slots, fullest_slot
from oarlock_matcher.core.shapes import Shape

LARGEST_NODE_CPU_MILLI = 128_000.0
LARGEST_NODE_GPU_MILLI = 8_000.0
"""Capacities that the published scores are normalised by."""


class FirstFitPolicy(BasePolicy):
    """The first row that fits."""

    name = "first_fit"

    def score(self, fleet: FleetTable, shape: Shape, rows: Rows, fits: Mask) -> tuple[Scores, Slots]:
        return np.zeros(len(rows)), fits.argmax(axis=1)


class BestFitPolicy(BasePolicy):
    """The row with the least left after the placement: 100 (1 − ½ (cpu left / 128 + GPUs left / 8))."""

    name = "best_fit"

    def score(self, fleet: FleetTable, shape: Shape, rows: Rows, fits: Mask) -> tuple[Scores, Slots]:
        cpu = free_cpu(fleet, rows) - shape.cpu_milli
        gpu = fleet.milli_free[rows].sum(axis=1) - shape.count * shape.milli
        left = 0.5 * (cpu / LARGEST_NODE_CPU_MILLI + gpu / LARGEST_NODE_GPU_MILLI)
        return np.floor(100.0 * (1.0 - left)), fullest_slot(fleet, rows, fits)

    def parts(self, fleet: FleetTable, shape: Shape, row: int) -> Mapping[str, float]:
        return {
            "cpu_milli_free": float(fleet.cpu_free[fleet.row_node[row]]),
            "gpu_milli_free": float(fleet.milli_free[row].sum()),
        }


class DotProductPolicy(BasePolicy):
    """The row whose free capacity is least aligned with the request: 100 (1 − ½ free·request)."""

    name = "dot_product"

    def score(self, fleet: FleetTable, shape: Shape, rows: Rows, fits: Mask) -> tuple[Scores, Slots]:
        cpu = free_cpu(fleet, rows) / LARGEST_NODE_CPU_MILLI * (shape.cpu_milli / LARGEST_NODE_CPU_MILLI)
        asked = shape.count * shape.milli / LARGEST_NODE_GPU_MILLI
        gpu = fleet.milli_free[rows].sum(axis=1) / LARGEST_NODE_GPU_MILLI * asked
        return np.floor(100.0 * (1.0 - 0.5 * (cpu + gpu))), fullest_slot(fleet, rows, fits)


def free_cpu(fleet: FleetTable, rows: Rows) -> Scores:
    """Free processors in milli; nodes that do not say count as the largest node, not as endless ones."""
    free = fleet.cpu_free[fleet.row_node[rows]]
    return np.where(free >= UNLIMITED // 2, LARGEST_NODE_CPU_MILLI, free).astype(np.float64)
