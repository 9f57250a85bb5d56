"""The fleet, the queue and the calibration as Prometheus sees them: computed from the board at each scrape.

Every copy of the gateway shows the same numbers, so a query over several copies takes `max`, never `sum`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from oarlock_gateway.core.board import Board
from oarlock_schemas import MOVES, StateChange

WAITING = ("submitted", "profiled", "queued")
"""States in which a task has no device yet."""

_CELL = ["framework", "family", "precision", "device_kind"]
_DEVICE = ["site", "node", "uid", "kind", "vendor", "simulated"]


class BoardCollector(Collector):
    """Reads ``board`` when asked; ``now`` gives seconds since the epoch."""

    def __init__(self, board: Board, now: Callable[[], float]) -> None:
        self._board = board
        self._now = now

    def describe(self) -> Iterable[Metric]:
        """Names only, so that registering does not read the board."""
        return self._families()

    def collect(self) -> Iterable[Metric]:
        """The board as it is now."""
        tasks, oldest, memory, booked, healthy, cordoned, factor, runs = families = self._families()
        states: Counter[str] = Counter(record.state for record in self._board.tasks.values())
        for state in MOVES:
            tasks.add_metric([state], states[state])
        oldest.add_metric([], self._oldest_wait_seconds())
        for device in self._board.devices.values():
            labels = [device.site, device.node, device.uid, device.kind, device.vendor, str(device.simulated).lower()]
            book = self._board.leases.get(device.uid)
            memory.add_metric(labels, device.memory_bytes)
            booked.add_metric(labels, sum(lease.bytes for lease in book.leases) if book else 0)
            healthy.add_metric(labels, device.healthy)
            cordoned.add_metric(labels, device.cordoned)
        for event in self._board.calibration.values():
            cell = [event.cell.get(name) or "" for name in _CELL]
            factor.add_metric(cell, event.factor_after)
            runs.add_metric(cell, event.observations)
        return families

    @staticmethod
    def _families() -> tuple[GaugeMetricFamily, ...]:
        return (
            GaugeMetricFamily("oarlock_tasks", "Tasks that are remembered, by state.", labels=["state"]),
            GaugeMetricFamily(
                "oarlock_queue_oldest_wait_seconds",
                "How long the task has waited that waits longest; 0 when none does.",
                labels=[],
            ),
            GaugeMetricFamily("oarlock_fleet_memory_bytes", "Memory of a device that reports.", labels=_DEVICE),
            GaugeMetricFamily("oarlock_fleet_booked_bytes", "Memory of a device that leases hold.", labels=_DEVICE),
            GaugeMetricFamily("oarlock_fleet_healthy", "1 when the device's node calls it healthy.", labels=_DEVICE),
            GaugeMetricFamily("oarlock_fleet_cordoned", "1 when the device takes no new tasks.", labels=_DEVICE),
            GaugeMetricFamily(
                "oarlock_calibration_factor", "What the estimate was last multiplied by in this cell.", labels=_CELL
            ),
            GaugeMetricFamily("oarlock_calibration_runs", "Runs behind that factor.", labels=_CELL),
        )

    def _oldest_wait_seconds(self) -> float:
        # From when it last began to wait: a second attempt has not waited while the first one ran.
        since = [
            datetime.fromisoformat(begun).timestamp()
            for record in self._board.tasks.values()
            if record.state in WAITING and (begun := _waits_since(record.history))
        ]
        return max(0.0, self._now() - min(since)) if since else 0.0


def _waits_since(history: list[StateChange]) -> str | None:
    begun = None
    for step in reversed(history):
        if step.state not in WAITING:
            break
        begun = step.at
    return begun
