"""Which devices are scarce: what part of the demand could go nowhere else, learned online.

price of a row = Σ_d share_d · (1 / K_d  +  w · (1 / H_d − 1 / K_d))     over the demands d that the row could take

K_d: share of the fleet's devices whose kind d could use (the first term is left out where that is all of them).
H_d: the part of K_d on nodes that are large enough, with processors and main memory for d. A demand that any node
of its kinds could take adds nothing by its size, one that only the few largest could take adds much. A price of 1 is
what a demand for everything would put on the whole fleet.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oarlock_matcher.core.devices import WHOLE_MILLI
from oarlock_matcher.core.fleet import FleetTable, Rows
from oarlock_matcher.core.shapes import Shape

Floats = NDArray[np.float64]
Able = frozenset[int] | None
NodeClass = tuple[int, int, int]
"""(model number, processors in milli, main memory in bytes) of a row's node: what decides whom it could ever take."""

SIZE_WEIGHT = 0.3
"""Being bound by a node's size counts for less than being bound to a kind: large nodes left idle for a task that may
come cost more than its refusal. Compared with 0.1 and 1 on seven public traces; see `benchmarks/placement`."""
LIMIT = 1024


class Scarcity:
    """Decaying record of the demand by what binds it. `half_life`: arrivals after which an entry counts half."""

    def __init__(self, half_life: float = 20_000.0) -> None:
        self._growth = 2.0 ** (1.0 / half_life)
        self._unit = 1.0
        self._asked: dict[tuple[Able, int, int], float] = {}
        self._by_kind: Floats = np.zeros(0)
        self._by_class: dict[NodeClass, float] = {}
        self._of_row: Floats = np.zeros(0)
        self._inventory_version = -1

    def note(self, shape: Shape, able: Able) -> None:
        """A demand of this shape has arrived; `able`: models that could take it, `None` for all."""
        self._unit *= self._growth
        asked = shape.count * shape.milli
        if not asked:
            return
        key = (able, shape.cpu_milli, shape.memory_bytes)
        self._asked[key] = self._asked.get(key, 0.0) + self._unit * asked
        if self._unit > 1e12 or len(self._asked) > 16 * LIMIT:
            self._asked = {key: weight / self._unit for key, weight in self._most(4 * LIMIT)}
            self._unit = 1.0

    def _most(self, number: int) -> list[tuple[tuple[Able, int, int], float]]:
        return sorted(self._asked.items(), key=lambda item: -item[1])[:number]

    def relearn(self, fleet: FleetTable) -> None:
        """Work out the prices anew from what has been noted."""
        classes, at = _classes(fleet)
        models = classes[:, 0]
        devices = np.bincount(at, fleet.present.sum(axis=1), len(classes)) * float(WHOLE_MILLI)
        fleet_milli = float(devices.sum())
        asked = self._most(LIMIT)
        total = sum(weight for _, weight in asked)
        by_kind, by_class = np.zeros(len(fleet.models)), np.zeros(len(classes))
        for (able, cpu, memory), weight in asked:
            usable = np.ones(len(classes), dtype=np.bool_) if able is None else np.isin(models, list(able))
            home = usable & (classes[:, 1] >= cpu) & (classes[:, 2] >= memory)
            of_kind, large = float(devices[usable].sum()), float(devices[home].sum())
            if able is not None and of_kind:
                by_kind[[m for m in able if m < len(by_kind)]] += weight / total * fleet_milli / of_kind
            if 0.0 < large < of_kind:
                by_class[home] += SIZE_WEIGHT * weight / total * (fleet_milli / large - fleet_milli / of_kind)
        self._by_kind = by_kind
        self._by_class = {(m, c, b): p for (m, c, b), p in zip(classes.tolist(), by_class.tolist(), strict=True) if p}
        self._spread(fleet, classes, at)

    def of(self, fleet: FleetTable, rows: Rows) -> Floats:
        """The price of each row as of the last `relearn`; nodes of a size not known then are priced by kind alone."""
        if self._inventory_version != fleet.inventory_version or len(self._of_row) != fleet.size:
            self._spread(fleet, *_classes(fleet))
        prices: Floats = self._of_row[rows]
        return prices

    def _spread(self, fleet: FleetTable, classes: NDArray[np.int64], at: NDArray[np.intp]) -> None:
        kinds = np.zeros(len(fleet.models))
        kinds[: len(self._by_kind)] = self._by_kind
        sizes = [self._by_class.get((m, c, b), 0.0) for m, c, b in classes.tolist()]
        self._of_row = (kinds[classes[:, 0]] + np.array(sizes))[at]
        self._inventory_version = fleet.inventory_version


def _classes(fleet: FleetTable) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """The different `NodeClass`es of the fleet [classes, 3], and the class of each row."""
    node = fleet.row_node
    columns = (fleet.row_model.astype(np.int64), fleet.cpu_total[node], fleet.memory_total[node])
    classes, at = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return classes, at.reshape(-1)
