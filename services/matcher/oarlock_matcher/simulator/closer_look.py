"""What a fill-up run's charts show beside its allocation: fragmentation, use of each kind, and who was left out."""

from __future__ import annotations

from collections.abc import Sequence

from oarlock_matcher.core.able_models import AbleModels
from oarlock_matcher.core.demand import Demand
from oarlock_matcher.core.devices import WHOLE_MILLI
from oarlock_matcher.core.effects import Effect, Queued, Rejected
from oarlock_matcher.core.fleet import FleetTable
from oarlock_matcher.core.policies.demand_mix import DemandMix
from oarlock_matcher.core.policies.fragmentation_field import FragmentationField
from oarlock_matcher.core.shapes import ShapeTable
from oarlock_matcher.simulator.causes import Tally, cause_of, class_of
from oarlock_matcher.simulator.files import Job


class CloserLook:
    """Watches one run. Fragmentation is measured by the whole workload's mix, whatever the policy knows of it."""

    def __init__(self, fleet: FleetTable, workload: Sequence[Job]) -> None:
        self.fragmentation: dict[int, float] = {}
        self.kinds: dict[str, dict[int, float]] = {}
        self.left_out: Tally = {}
        self._fleet = fleet
        self._rows: dict[str, list[int]] = {}
        self._capacity: dict[str, int] = {}
        for row in range(fleet.size):
            kind = fleet.model_of(row).kind
            self._rows.setdefault(kind, []).append(row)
            self._capacity[kind] = self._capacity.get(kind, 0) + WHOLE_MILLI * int(fleet.present[row].sum())
        mix, shapes, able = DemandMix(half_life=1e18), ShapeTable(), AbleModels()
        for job in workload:
            count = job.demand.device_count
            shape = shapes.of(job.demand, 1 if count == "auto" else count)
            mix.note((shape.cpu_milli, shape.count, shape.milli if shape.count else 0, able.of(fleet, shape)))
        self._field = FragmentationField(mix.table(), len(fleet.models))

    def look(self, percent: int, demand: Demand, effects: Sequence[Effect]) -> None:
        """After each arrival; `percent` of the fleet have been asked for."""
        for effect in effects:
            if isinstance(effect, Rejected | Queued):
                key = (class_of(demand), cause_of(effect.reasons))
                self.left_out[key] = self.left_out.get(key, 0.0) + 1.0
        if percent in self.fragmentation:
            return
        whole = sum(self._capacity.values())
        self.fragmentation[percent] = 100.0 * self._field.wasted_milli(self._fleet) / whole if whole else 0.0
        for kind, capacity in self._capacity.items():
            if capacity:
                free = int(self._fleet.milli_free[self._rows[kind]].sum())
                self.kinds.setdefault(kind, {})[percent] = 100.0 * (1.0 - free / capacity)
