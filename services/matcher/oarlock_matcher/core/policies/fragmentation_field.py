"""How much of each node's free devices the expected demand could not use, kept up to date row by row.

F = Σ_m p_m · frag_m (Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
Gradient Descent", USENIX ATC'23). frag_m of a spec m: all idle milli of the node if m needs no device,
cannot use this model or does not fit the node; else the sum of the leftovers that are too small for m's share.

To find F after a placement for many rows at once without looking at every device again: specs that ask for the same
devices form a group; for each row and group the field keeps how many devices could serve it and with how many milli.
A placement changes those by a table look-up. The processors that the specs of a group need only decide which of them
count, so their weights are summed up by processors beforehand.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oarlock_matcher.core.devices import WHOLE_MILLI
from oarlock_matcher.core.filters.base import Mask
from oarlock_matcher.core.fleet import FleetTable, Rows
from oarlock_matcher.core.policies.demand_mix import MixTable
from oarlock_matcher.core.shapes import Shape

Floats = NDArray[np.float64]

KNOWN_CPU_LIMIT = 2**40
"""Free processors are capped here, so that "unlimited" stays a number that arithmetic can bear."""

STRANDING_STEPS = np.array([0.7, 0.85, 1.0, 1.15, 1.3])
"""Shares of a node's free processors that are counted on for its idle devices; averaged, so that the warning that a
node runs short of processors comes gradually. Compared on six of the public traces, then looked at on the four others
and on resampled ones; see `benchmarks/placement`."""

TRUST_WITHOUT_DEVICES = 0.5
"""A task that takes processors only is asked to leave this much more of them beside idle devices: it has the choice."""


class FragmentationField:
    """F of every row for one demand mix, and how a placement would change it.

    `stranding`: weight of idle device milli that the node's free processors cannot feed, at the mean need of processors
    per milli of the demand seen. 0 leaves the published measure.
    """

    def __init__(self, mix: MixTable, models: int, stranding: float = 0.0) -> None:
        groups = sorted({(int(n), int(m)) for n, m in zip(mix.count, mix.milli, strict=True) if n > 0})
        self._count = np.array([n for n, _ in groups], dtype=np.int64)
        self._milli = np.array([m for _, m in groups], dtype=np.int64)
        self._cpu_steps = np.unique(mix.cpu_milli)
        self._weight = np.zeros((models, len(self._cpu_steps) + 1, len(groups)))
        number = {group: i for i, group in enumerate(groups)}
        for cpu, n, milli, able, share in zip(mix.cpu_milli, mix.count, mix.milli, mix.models, mix.share, strict=True):
            if n:
                first = int(np.searchsorted(self._cpu_steps, cpu)) + 1
                for model in range(models) if able is None else able:
                    if model < models:
                        self._weight[model, first:, number[(int(n), int(milli))]] += share
        value = np.arange(WHOLE_MILLI + 1)[:, np.newaxis]
        self._can = (value >= self._milli).astype(np.int64)
        self._served = value * self._can
        asks = mix.count > 0
        device_milli = float((mix.share * mix.count * mix.milli)[asks].sum())
        cpu_milli = float((mix.share * mix.cpu_milli)[asks].sum())
        self._fed_per_cpu = device_milli / cpu_milli if cpu_milli > 0 else 0.0
        self._stranding = stranding if self._fed_per_cpu else 0.0
        self._position = -1
        self._inventory_version = -1
        self._can_serve: NDArray[np.int64] = np.zeros((0, len(groups)), dtype=np.int64)
        self._serves: NDArray[np.int64] = np.zeros((0, len(groups)), dtype=np.int64)
        self._total: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._potential: Floats = np.zeros(0)

    def follow(self, fleet: FleetTable) -> None:
        """Take over what has changed in the fleet."""
        if self._position == fleet.touched_end and len(self._total) == fleet.size:
            return
        changed = None if len(self._total) != fleet.size else fleet.changed_since(self._position)
        if changed is None:
            rows = fleet.all_rows()
            shape = (fleet.size, len(self._count))
            self._can_serve, self._serves = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
            self._total, self._potential = np.zeros(fleet.size, dtype=np.int64), np.zeros(fleet.size)
        else:
            rows = np.array(changed, dtype=np.intp)
        free = fleet.milli_free[rows]
        self._can_serve[rows] = self._can[free].sum(axis=1)
        self._serves[rows] = self._served[free].sum(axis=1)
        self._total[rows] = free.sum(axis=1)
        self._potential[rows] = self._of(
            self._total[rows],
            self._can_serve[rows],
            self._serves[rows],
            free_cpu_milli(fleet, rows),
            fleet.row_model[rows],
        )
        self._position = fleet.touched_end

    def _of(
        self,
        total: NDArray[np.int64],
        can_serve: NDArray[np.int64],
        serves: NDArray[np.int64],
        cpu: NDArray[np.int64],
        model: NDArray[np.intp],
    ) -> Floats:
        """F of states given by their idle milli, groups and free processors."""
        wasted = total.astype(np.float64)
        if len(self._count):
            weight = self._weight[model, np.searchsorted(self._cpu_steps, cpu, side="right")]
            wasted -= np.einsum("st,st->s", weight, serves * (can_serve >= self._count))
        return wasted

    def _stranded(self, total: NDArray[np.int64], cpu: NDArray[np.int64], trust: float) -> Floats:
        """Idle milli beyond what `trust` in the free processors can feed, weighted."""
        fed = cpu * (self._fed_per_cpu * trust)
        over = np.maximum(total[:, np.newaxis] - fed[:, np.newaxis] * STRANDING_STEPS, 0.0)
        stranded: Floats = self._stranding * (over.sum(axis=1) / len(STRANDING_STEPS))
        return stranded

    def _gain(
        self,
        fleet: FleetTable,
        shape: Shape,
        rows: Rows,
        taken: int,
        can_serve: NDArray[np.int64],
        serves: NDArray[np.int64],
    ) -> Floats:
        """F before − F after for states that lose `taken` milli and the shape's processors; groups as given."""
        total, cpu = self._total[rows], free_cpu_milli(fleet, rows)
        after = self._of(total - taken, can_serve, serves, cpu - shape.cpu_milli, fleet.row_model[rows])
        gain: Floats = self._potential[rows] - after
        if self._stranding:
            gain += self.stranding_gain(fleet, shape, rows, taken)
        return gain

    def stranding_gain(self, fleet: FleetTable, shape: Shape, rows: Rows, taken: int) -> Floats:
        """The part of the gain that is about stranded devices, weighted, when `taken` milli are placed on each row."""
        total, cpu = self._total[rows], free_cpu_milli(fleet, rows)
        trust = 1.0 if shape.count else TRUST_WITHOUT_DEVICES
        return self._stranded(total, cpu, trust) - self._stranded(total - taken, cpu - shape.cpu_milli, trust)

    @property
    def device_milli_per_cpu_milli(self) -> float:
        """Device milli that the expected demand asks for with each processor milli; 0 while it is unknown."""
        return self._fed_per_cpu

    def gain_whole(self, fleet: FleetTable, shape: Shape, rows: Rows) -> Floats:
        """F before − F after placing a shape that takes whole devices, or none, on each row."""
        self.follow(fleet)
        taken = shape.count * WHOLE_MILLI
        return self._gain(fleet, shape, rows, taken, self._can_serve[rows] - shape.count, self._serves[rows] - taken)

    def gain_shared(
        self, fleet: FleetTable, shape: Shape, rows: Rows, fits: Mask
    ) -> tuple[Floats, NDArray[np.intp], NDArray[np.intp]]:
        """F before − F after for each different device of each row: (gain, index into `rows`, device column). Devices
        with equally much left are interchangeable: the first stands for them."""
        self.follow(fleet)
        which, slots = different_devices(fleet.milli_free[rows], fits)
        at = rows[which]
        left = fleet.milli_free[at, slots]
        can_serve = self._can_serve[at] - self._can[left] + self._can[left - shape.milli]
        serves = self._serves[at] - self._served[left] + self._served[left - shape.milli]
        gain = self._gain(fleet, shape, at, shape.milli, can_serve, serves)
        return gain, which, slots

    def wasted_milli(self, fleet: FleetTable) -> float:
        """F of the whole fleet: idle milli that the expected demand could not use."""
        self.follow(fleet)
        return float(self._potential.sum())

    def total_free(self, rows: Rows) -> NDArray[np.int64]:
        """Idle milli of each row."""
        return self._total[rows]


def different_devices(free: NDArray[np.int64], fits: Mask) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(row index, column) of the first fitting device of each different free share in each row."""
    value = np.where(fits, free, -1)
    order = np.argsort(value, axis=1, kind="stable")
    ranked = np.take_along_axis(value, order, axis=1)
    first = ranked >= 0
    first[:, 1:] &= ranked[:, 1:] != ranked[:, :-1]
    which, at = np.nonzero(first)
    slots: NDArray[np.intp] = order[which, at]
    return which, slots


def free_cpu_milli(fleet: FleetTable, rows: Rows) -> NDArray[np.int64]:
    free: NDArray[np.int64] = np.minimum(fleet.cpu_free[fleet.row_node[rows]], KNOWN_CPU_LIMIT)
    return free


def best_of(
    scores: Floats, which: NDArray[np.intp], slots: NDArray[np.intp], rows: int
) -> tuple[Floats, NDArray[np.intp]]:
    """The best score of each row among its devices, and its device (ties to the first column)."""
    order = np.lexsort((slots, -scores, which))
    head = np.ones(len(order), dtype=np.bool_)
    head[1:] = which[order][1:] != which[order][:-1]
    chosen = order[head]
    best = np.full(rows, -np.inf)
    slot = np.zeros(rows, dtype=np.intp)
    best[which[chosen]] = scores[chosen]
    slot[which[chosen]] = slots[chosen]
    return best, slot
