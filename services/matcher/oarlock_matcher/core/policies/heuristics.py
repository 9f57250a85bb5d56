"""The published packing heuristics, as the "fragmentation gradient descent" paper (Weng et al., USENIX ATC'23) compares
them. Scores are whole numbers of 0..100 there, and coarse scores decide by the order of the rows, so they are here
too."""
# ruff: noqa: ARG002 - one signature for all, whatever each needs of it

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from oarlock_matcher.core.devices import WHOLE_MILLI
from oarlock_matcher.core.filters.base import Mask
from oarlock_matcher.core.fleet import UNLIMITED, FleetTable, Rows
from oarlock_matcher.core.policies.base import INFEASIBLE, BasePolicy, Scores, Slots, fullest_slot
from oarlock_matcher.core.shapes import Shape

LARGEST_NODE_CPU_MILLI = 128_000.0
LARGEST_NODE_GPU_MILLI = 8_000.0
"""Capacities that the published scores are normalised by."""


class FirstFitPolicy(BasePolicy):
    """The first row that fits."""

    name = "first_fit"

    def score(self, fleet: FleetTable, shape: Shape, rows: Rows, fits: Mask) -> tuple[Scores, Slots]:
        return np.zeros(len(rows)), fits.argmax(axis=1)


class RandomPolicy(BasePolicy):
    """Any row that fits, and any device of it, each with the same chance. `draw(n)` gives n numbers in 0..1."""

    name = "random"

    def __init__(self, draw: Callable[[int], Scores]) -> None:
        super().__init__()
        self._draw = draw

    def score(self, fleet: FleetTable, shape: Shape, rows: Rows, fits: Mask) -> tuple[Scores, Slots]:
        drawn = self._draw(fits.size).reshape(fits.shape)
        return np.zeros(len(rows)), np.where(fits, drawn, -1.0).argmax(axis=1)

    def weigh(self, fleet: FleetTable, shape: Shape, scores: Scores) -> Scores:
        return np.where(scores > INFEASIBLE, self._draw(len(scores)), INFEASIBLE)


class PackingPolicy(BasePolicy):
    """A device already shared first, then nodes in use, then empty ones; among them those with fewer idle devices."""

    name = "packing"

    def score(self, fleet: FleetTable, shape: Shape, rows: Rows, fits: Mask) -> tuple[Scores, Slots]:
        slots = fullest_slot(fleet, rows, fits)
        if shape.count == 0:
            return np.zeros(len(rows)), slots
        idle = fleet.idle[rows].sum(axis=1)
        in_use = idle < fleet.present[rows].sum(axis=1)
        scores = np.where(in_use, 50.0, 20.0) - idle
        if not shape.whole:
            scores[fleet.milli_free[rows, slots] < WHOLE_MILLI] = 100.0
        return scores, slots


class ClusteringPolicy(BasePolicy):
    """Nodes that run tasks of the same class only (a share, or the same number of devices), then nodes that run some,
    then other nodes in use, then empty ones; among them those with fewer idle devices."""

    name = "clustering"

    def score(self, fleet: FleetTable, shape: Shape, rows: Rows, fits: Mask) -> tuple[Scores, Slots]:
        slots = fullest_slot(fleet, rows, fits)
        if shape.count == 0:
            return np.zeros(len(rows)), slots
        mine = (shape.count, shape.whole)
        idle = fleet.idle[rows].sum(axis=1)
        scores = np.empty(len(rows))
        for i, row in enumerate(rows.tolist()):
            classes = _classes(fleet, row)
            scores[i] = (100.0 if classes == {mine} else 80.0 if mine in classes else 50.0 if classes else 20.0) - idle[
                i
            ]
        return scores, slots


def _classes(fleet: FleetTable, row: int) -> set[tuple[int, bool]]:
    """The classes of tasks that hold devices of the row: (devices, whole)."""
    devices: dict[tuple[str, int], tuple[int, bool]] = {}
    for uid in fleet.uids[row]:
        if uid is not None:
            for holder, share in fleet.holders.get(uid, {}).items():
                count, _ = devices.get(holder, (0, False))
                devices[holder] = (count + 1, share.milli >= WHOLE_MILLI)
    return set(devices.values())


class BestFitPolicy(BasePolicy):
    """The row with the least left after the placement: 100 (1 − ½ (cpu left / 128 + GPUs left / 8))."""

    name = "best_fit"

    def score(self, fleet: FleetTable, shape: Shape, rows: Rows, fits: Mask) -> tuple[Scores, Slots]:
        cpu = free_cpu(fleet, rows) - shape.cpu_milli
        gpu = fleet.milli_free[rows].sum(axis=1) - shape.count * shape.milli
        left = 0.5 * (cpu / LARGEST_NODE_CPU_MILLI + gpu / LARGEST_NODE_GPU_MILLI)
        return np.floor(100.0 * (1.0 - left)), fullest_slot(fleet, rows, fits)

    def parts(self, fleet: FleetTable, shape: Shape, rows: Rows) -> list[Mapping[str, float]]:
        cpu, gpu = fleet.cpu_free[fleet.row_node[rows]].tolist(), fleet.milli_free[rows].sum(axis=1).tolist()
        return [{"cpu_milli_free": float(c), "gpu_milli_free": float(g)} for c, g in zip(cpu, gpu, strict=True)]


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
