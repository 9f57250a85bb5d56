"""The board: the fleet, the tasks and who holds what, kept from the changes of the buckets.

``apply`` takes one change and returns the patch that a page needs to follow it; ``snapshot`` is what a page that has
just opened needs. Both are plain JSON values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from oarlock_schemas import FINAL, DeviceState, EstimatorRecalibrated, LeaseBook, NodeMetrics, TaskRecord

Kind = Literal["task", "device", "lease", "sample"]

ENDED_KEPT = 200
"""How many ended tasks a page is shown; older ones are found by their id."""

CELLS_KEPT = 4096
"""Calibration cells that are remembered; the one that has not moved for longest leaves first."""


@dataclass(slots=True)
class Board:
    """Everything the page shows, by key."""

    tasks: dict[str, TaskRecord] = field(default_factory=dict)
    devices: dict[str, DeviceState] = field(default_factory=dict)
    leases: dict[str, LeaseBook] = field(default_factory=dict)
    samples: dict[str, dict[str, Any]] = field(default_factory=dict)
    calibration: dict[tuple[tuple[str, str], ...], EstimatorRecalibrated] = field(default_factory=dict)

    def task(self, key: str, record: TaskRecord | None) -> dict[str, Any]:
        """A task changed, or its record is gone."""
        if record is None:
            self.tasks.pop(key, None)
            return {"kind": "task", "key": key, "value": None}
        self.tasks[key] = record
        return {"kind": "task", "key": key, "value": task_view(record)}

    def device(self, key: str, state: DeviceState | None) -> dict[str, Any]:
        """A device reported, or its node's heartbeat stopped."""
        if state is None:
            gone = self.devices.pop(key, None)
            if gone is not None:
                self.samples.pop(gone.uid, None)
            return {"kind": "device", "key": key, "value": None}
        self.devices[key] = state
        return {"kind": "device", "key": key, "value": state.model_dump(mode="json")}

    def lease(self, key: str, book: LeaseBook | None) -> dict[str, Any]:
        """Who holds a device changed."""
        if book is None:
            self.leases.pop(key, None)
        else:
            self.leases[key] = book
        held = [] if book is None else [lease.model_dump(mode="json") for lease in book.leases]
        return {"kind": "lease", "key": key, "value": held}

    def metrics(self, metrics: NodeMetrics) -> dict[str, Any]:
        """A node's samples of this second."""
        fresh = {
            sample.uid: {
                "used_bytes": sample.used_bytes,
                "total_bytes": sample.total_bytes,
                "utilization_ratio": sample.utilization_ratio,
                "temperature_celsius": sample.temperature_celsius,
                "power_watts": sample.power_watts,
                "simulated": sample.simulated,
            }
            for sample in metrics.devices
        }
        self.samples.update(fresh)
        return {"kind": "sample", "key": metrics.node, "value": fresh}

    def recalibrated(self, event: EstimatorRecalibrated) -> None:
        """The estimator learned; kept for the metrics, the page does not show it."""
        cell = tuple(sorted((name, value or "") for name, value in event.cell.items()))
        self.calibration.pop(cell, None)
        self.calibration[cell] = event
        if len(self.calibration) > CELLS_KEPT:
            del self.calibration[next(iter(self.calibration))]

    def snapshot(self) -> dict[str, Any]:
        """The whole board: every open task, the last ended ones, every device."""
        ended = [r for r in self.tasks.values() if r.state in FINAL]
        ended.sort(key=lambda r: r.history[-1].at if r.history else "")
        shown = [r for r in self.tasks.values() if r.state not in FINAL] + ended[-ENDED_KEPT:]
        return {
            "kind": "snapshot",
            "tasks": {r.task_id: task_view(r) for r in shown},
            "devices": {key: d.model_dump(mode="json") for key, d in self.devices.items()},
            "leases": {key: [x.model_dump(mode="json") for x in b.leases] for key, b in self.leases.items()},
            "samples": dict(self.samples),
        }


def task_view(record: TaskRecord) -> dict[str, Any]:
    """A task's row."""
    view = record.model_dump(mode="json")
    view["submitted_at"] = record.history[0].at if record.history else None
    view["changed_at"] = record.history[-1].at if record.history else None
    return view
