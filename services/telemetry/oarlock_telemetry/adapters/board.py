"""What Prometheus is shown, in base units. Values come from the last sample, so that nothing stale is ever shown.

A device or run without a value has no line at all: absence is not zero.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from oarlock_schemas import DeviceSample, NodeMetrics, RunRecord

_DEVICE_LABELS = ("site", "node", "uid", "kind", "vendor", "simulated")
_RUN_LABELS = ("task_id", "attempt", "kind", "simulated")
_RUNS_SHOWN = 500

_DEVICE: tuple[tuple[str, str, Callable[[DeviceSample], float | None]], ...] = (
    ("oarlock_device_memory_used_bytes", "Memory in use by anybody.", lambda s: s.used_bytes),
    ("oarlock_device_memory_total_bytes", "Memory of the device.", lambda s: s.total_bytes),
    ("oarlock_device_utilization_ratio", "Share of time the device was busy, 0 to 1.", lambda s: s.utilization_ratio),
    ("oarlock_device_temperature_celsius", "Temperature.", lambda s: s.temperature_celsius),
    ("oarlock_device_power_watts", "Power drawn.", lambda s: s.power_watts),
    ("oarlock_device_errors", "Faults the device reports now.", lambda s: float(len(s.errors))),
    ("oarlock_device_runs", "Runs with a process on the device.", lambda s: float(len(_tasks(s)))),
)
_RUN: tuple[tuple[str, str, Callable[[RunRecord], float | None]], ...] = (
    (
        "oarlock_run_peak_memory_bytes",
        "Peak memory of the run's own processes.",
        lambda r: r.measured.peak_process_bytes,
    ),
    ("oarlock_run_predicted_memory_bytes", "Predicted peak of the same run.", lambda r: r.predicted.device_bytes),
    (
        "oarlock_run_mean_utilization_ratio",
        "Mean share of time its devices were busy.",
        lambda r: r.measured.mean_utilization_ratio,
    ),
    ("oarlock_run_energy_joules", "Energy its devices took.", lambda r: r.measured.energy_joules),
    ("oarlock_run_duration_seconds", "Time from start to end.", lambda r: r.measured.duration_seconds),
)


class PrometheusBoard(Collector):
    """See ``ports.Board``. The last runs are shown, not all: a label per task grows without end."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._nodes: Mapping[str, NodeMetrics] = {}
        self._runs: OrderedDict[tuple[str, int], RunRecord] = OrderedDict()
        self._completed = Counter(
            "oarlock_runs_completed", "Runs recorded, by outcome.", ["outcome", "simulated"], registry=registry
        )
        registry.register(self)

    def show(self, metrics: Mapping[str, NodeMetrics]) -> None:
        """The last sample of each node."""
        self._nodes = metrics

    def show_run(self, record: RunRecord) -> None:
        """One more run has been recorded."""
        self._completed.labels(record.outcome, _yes(record.simulated)).inc()
        self._runs[record.task_id, record.attempt] = record
        while len(self._runs) > _RUNS_SHOWN:
            self._runs.popitem(last=False)

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Called by prometheus-client at each scrape."""
        yield from self._devices()
        yield from self._recorded()

    def _devices(self) -> Iterator[GaugeMetricFamily]:
        nodes = list(self._nodes.values())
        for name, text, value_of in _DEVICE:
            family = GaugeMetricFamily(name, text, labels=_DEVICE_LABELS)
            for node in nodes:
                for sample in node.devices:
                    value = value_of(sample)
                    if value is not None:
                        labels = [node.site, node.node, sample.uid, sample.kind, sample.vendor, _yes(sample.simulated)]
                        family.add_metric(labels, value)
            yield family

    def _recorded(self) -> Iterator[GaugeMetricFamily]:
        for name, text, value_of in _RUN:
            family = GaugeMetricFamily(name, text, labels=_RUN_LABELS)
            for record in list(self._runs.values()):
                value = value_of(record)
                if value is not None:
                    labels = [record.task_id, str(record.attempt), record.device_kind, _yes(record.simulated)]
                    family.add_metric(labels, value)
            yield family


def _tasks(sample: DeviceSample) -> set[str]:
    return {process.task_id for process in sample.processes if process.task_id is not None}


def _yes(value: bool) -> str:
    return "true" if value else "false"
