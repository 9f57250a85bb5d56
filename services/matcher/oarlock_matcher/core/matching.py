"""Which rows can take a shape, and how the policy scores them: kept by shape, brought up to date incrementally.

A view answers "where would this shape go now?" by recomputing the rows touched since it last answered. Only a change of
the inventory or of what the policy has learned makes it start afresh.
"""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from oarlock_matcher.core.filters import INTERFERENCE, SIZE_FILTERS, STATIC_FILTERS
from oarlock_matcher.core.filters.base import Mask
from oarlock_matcher.core.fleet import FleetTable, Rows
from oarlock_matcher.core.policies.base import INFEASIBLE, PlacementPolicy
from oarlock_matcher.core.policy_settings import PolicySettings
from oarlock_matcher.core.shapes import Shape
from oarlock_matcher.core.windows import Closure

CACHED_SHAPES = 256


def static_rows(fleet: FleetTable, shape: Shape, settings: PolicySettings, rows: Rows) -> NDArray[np.bool_]:
    """Rows that the inventory-only filters admit."""
    mask = np.ones((len(rows), 1), dtype=np.bool_)
    for rule in STATIC_FILTERS:
        if rule.concerns(shape):
            mask &= rule.admits(fleet, shape, rows, settings)
    return mask[:, 0]


def ever_rows(fleet: FleetTable, shape: Shape, settings: PolicySettings) -> NDArray[np.intp]:
    """How many devices of each row would take the shape if the whole row were idle and healthy; -1: never."""
    rows = fleet.all_rows()
    mask = fleet.present.copy()
    whole_row = static_rows(fleet, shape, settings, rows)
    for rule in SIZE_FILTERS:
        if rule.concerns(shape):
            admitted = rule.admits(fleet, shape, rows, settings)
            if admitted.shape[1] == 1:
                whole_row = whole_row & admitted[:, 0]
            else:
                mask &= admitted
    return np.where(whole_row, mask.sum(axis=1), -1)


def could_span(fleet: FleetTable, could: NDArray[np.intp], count: int) -> bool:
    """Whether `count` devices of one model at one site could serve together. `could`: as from `ever_rows`."""
    homes: dict[tuple[str, int], int] = {}
    for row in np.flatnonzero(could > 0).tolist():
        home = (fleet.site_of(row), int(fleet.row_model[row]))
        homes[home] = homes.get(home, 0) + int(could[row])
    return max(homes.values(), default=0) >= count


class ShapeView:
    """Feasibility and score of every row for one shape under one policy.

    `fitting`: devices of the row that admit the shape (0 where the row is ruled out). `score`: INFEASIBLE where the
    row alone cannot take the shape. `slot`: the device that a sharing shape would get there.
    `weighed`: the scores that the last choice was made by.
    """

    def __init__(
        self, shape: Shape, policy: PlacementPolicy, settings: PolicySettings, closure: Closure | None = None
    ) -> None:
        self.shape = shape
        self.closure = closure
        self.policy = policy
        self.settings = settings
        self._inventory_version = -1
        self._epoch = -1
        self._position = 0
        self._static: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self.fitting: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self.score: NDArray[np.float64] = np.zeros(0)
        self.slot: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self.weighed = self.score

    def refresh(self, fleet: FleetTable) -> None:
        """Bring the view up to date with the fleet and the policy."""
        if self._inventory_version != fleet.inventory_version or len(self.score) != fleet.size:
            self._inventory_version = fleet.inventory_version
            self._static = static_rows(fleet, self.shape, self.settings, fleet.all_rows())
            self.fitting = np.zeros(fleet.size, dtype=np.intp)
            self.score = np.full(fleet.size, INFEASIBLE)
            self.slot = np.zeros(fleet.size, dtype=np.intp)
            self._recompute(fleet, np.flatnonzero(self._static))
        elif self._epoch != self.policy.epoch:
            changed = fleet.changed_since(self._position)
            rows = np.array(changed, dtype=np.intp) if changed is not None else fleet.all_rows()
            standing = self.score > INFEASIBLE
            standing[rows] = self._static[rows]
            self._recompute(fleet, np.flatnonzero(standing))
        elif self._position != fleet.touched_end:
            changed = fleet.changed_since(self._position)
            rows = np.array(changed, dtype=np.intp) if changed is not None else fleet.all_rows()
            self._recompute(fleet, rows[self._static[rows]])
        self._position = fleet.touched_end
        self._epoch = self.policy.epoch

    def _recompute(self, fleet: FleetTable, rows: Rows) -> None:
        if not len(rows):
            return
        fits = self.devices_of(fleet, rows)
        fitting = fits.sum(axis=1)
        if self.shape.count == 0:
            feasible = fits[:, 0]
        else:
            feasible = fitting >= self.shape.count
        self.fitting[rows] = fitting
        self.score[rows] = INFEASIBLE
        able = rows[feasible]
        if len(able):
            self.score[able], self.slot[able] = self.policy.score(fleet, self.shape, able, fits[feasible])

    def devices_of(self, fleet: FleetTable, rows: Rows) -> Mask:
        """True for each device of `rows` that the shape may have now. [len(rows), slots]"""
        fits = fitting_devices(fleet, self.shape, self.settings, rows)
        if self.closure is None:
            return fits
        closed = self.closure.mask[rows]
        # A task for processors only takes no device: it may go where not all of the node is closed.
        return fits & ~(closed if self.shape.count else closed.all(axis=1, keepdims=True))

    def best(
        self, fleet: FleetTable, excluded: Rows | None = None, by_model: NDArray[np.float64] | None = None
    ) -> int | None:
        """The row that the policy prefers, ties to the first; `None` when no single row can take the shape.

        `by_model`: what each model's rows gain for this task alone."""
        score = self.policy.weigh(fleet, self.shape, self.score)
        if by_model is not None:
            score = score + by_model[fleet.row_model]
        self.weighed = score
        if excluded is not None and len(excluded):
            score = score.copy()
            score[excluded] = INFEASIBLE
        if not len(score):
            return None
        row = int(score.argmax())
        return row if score[row] > INFEASIBLE else None


def fitting_devices(fleet: FleetTable, shape: Shape, settings: PolicySettings, rows: Rows) -> Mask:
    """True for each device of `rows` that passes every dynamic filter. [len(rows), slots]; for a shape without devices
    every column says whether the node passes.

    This is what `DYNAMIC_FILTERS` say together, in as few steps as it takes, because everything waits for it.
    """
    nodes = fleet.row_node[rows]
    node_passes = fleet.node_up[nodes]
    if shape.cpu_milli > 0:
        node_passes &= fleet.cpu_free[nodes] >= shape.cpu_milli
    if shape.memory_bytes > 0:
        node_passes &= fleet.memory_free[nodes] >= shape.memory_bytes
    mask: Mask
    if shape.count == 0:
        mask = np.repeat(node_passes[:, np.newaxis], fleet.slots, axis=1)
        return mask
    # Nothing is free of a device that is not healthy, and it is not idle.
    mask = fleet.idle[rows] if shape.whole else fleet.milli_free[rows] >= shape.milli
    mask &= node_passes[:, np.newaxis]
    if shape.bytes_at_least > 0:
        mask &= fleet.bytes_free[rows] >= shape.bytes_at_least
    if not shape.whole:
        mask &= fleet.sharers[rows] < settings.sharers_per_device
        if INTERFERENCE.concerns(shape):
            mask &= INTERFERENCE.admits(fleet, shape, rows, settings)
    return mask


class EverRows:
    """`ever_rows`, remembered for shapes until the fleet's capacity changes."""

    def __init__(self) -> None:
        self._known: dict[int, NDArray[np.intp]] = {}
        self._version = (-1, -1)

    def of(self, fleet: FleetTable, shape: Shape, settings: PolicySettings) -> NDArray[np.intp]:
        """As `ever_rows`; not to be changed."""
        version = (fleet.inventory_version, fleet.capacity_version)
        if version != self._version or len(self._known) > CACHED_SHAPES:
            self._known.clear()
            self._version = version
        found = self._known.get(shape.number)
        if found is None:
            found = self._known[shape.number] = ever_rows(fleet, shape, settings)
        return found


class ViewCache:
    """Views by (policy, shape); the least recently used are dropped beyond `limit`."""

    def __init__(self, limit: int = 1024) -> None:
        self._views: OrderedDict[tuple[str, int, bytes], ShapeView] = OrderedDict()
        self._limit = limit

    def of(
        self,
        shape: Shape,
        policy: PlacementPolicy,
        settings: PolicySettings,
        fleet: FleetTable,
        closure: Closure | None = None,
    ) -> ShapeView:
        """An up-to-date view."""
        key = (policy.name, shape.number, b"" if closure is None else closure.key)
        view = self._views.get(key)
        if view is None:
            view = self._views[key] = ShapeView(shape, policy, settings, closure)
            if len(self._views) > self._limit:
                self._views.popitem(last=False)
        else:
            self._views.move_to_end(key)
            view.closure = closure
        view.refresh(fleet)
        return view

    def clear(self) -> None:
        self._views.clear()
