"""Writes the dashboard "Oarlock": ``python deploy/grafana/dashboard.py``; with ``--check``, exit 1 when it is stale.

Panels are made of the rows below; every expression is proved against a real Prometheus in ``tests/deploy``. Several
copies of a gateway or telemetry tell the same, so gauges are taken by ``max``, never summed over copies.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement

FILE = Path(__file__).parent / "dashboards" / "oarlock.json"
_DATASOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
_ROW_WIDTH = 24
_HEIGHT = 8


@dataclass(frozen=True)
class Graph:
    """One panel. ``lines`` are expressions with the legend of each; ``unit`` is Grafana's name of it."""

    title: str
    lines: tuple[tuple[str, str], ...]
    unit: str = "short"
    width: int = 8
    text: str = ""
    now: bool = False
    """Show the last value as a number, not the course of it."""


_BY_DEVICE = "{{node}} {{kind}} {{uid}}"
_DEVICE = "site, node, uid, kind"
_ERROR = "abs(oarlock_run_predicted_memory_bytes / oarlock_run_peak_memory_bytes - 1)"


def _device(metric: str) -> tuple[tuple[str, str], ...]:
    return ((f"max by ({_DEVICE}) ({metric})", _BY_DEVICE),)


def _quantiles(histogram: str, *, by: str = "") -> tuple[tuple[str, str], ...]:
    labels, legend = (f"{by}, le", f"{{{{{by}}}}} ") if by else ("le", "")
    rate = f"sum by ({labels}) (rate({histogram}_bucket[$__rate_interval]))"
    return tuple((f"histogram_quantile({q}, {rate})", f"{legend}p{round(q * 100)}") for q in (0.5, 0.99))


ROWS: dict[str, tuple[Graph, ...]] = {
    "Now": (
        Graph("Services that answer", (('sum(up{job="oarlock"})', "up"),), width=4, now=True),
        Graph("Devices", (("count(max by (uid) (oarlock_fleet_memory_bytes))", "devices"),), width=4, now=True),
        Graph(
            "Memory booked",
            (
                (
                    "sum(max by (uid) (oarlock_fleet_booked_bytes)) / sum(max by (uid) (oarlock_fleet_memory_bytes))",
                    "booked",
                ),
            ),
            "percentunit",
            4,
            now=True,
        ),
        Graph("Running", (('max(oarlock_tasks{state="running"})', "running"),), width=4, now=True),
        Graph(
            "Waiting",
            (('sum(max by (state) (oarlock_tasks{state=~"submitted|profiled|queued"}))', "waiting"),),
            width=4,
            now=True,
        ),
        Graph("Dead letters", (("sum(oarlock_messages_dead_total)", "dead"),), width=4, now=True),
    ),
    "Fleet": (
        Graph("Memory used", _device("oarlock_device_memory_used_bytes"), "bytes"),
        Graph("Memory booked", _device("oarlock_fleet_booked_bytes"), "bytes", text="What leases hold."),
        Graph(
            "Memory free to book",
            ((f"max by ({_DEVICE}) (oarlock_fleet_memory_bytes - oarlock_fleet_booked_bytes)", _BY_DEVICE),),
            "bytes",
        ),
        Graph("Utilisation", _device("oarlock_device_utilization_ratio"), "percentunit"),
        Graph("Temperature", _device("oarlock_device_temperature_celsius"), "celsius"),
        Graph("Power", _device("oarlock_device_power_watts"), "watt"),
        Graph("Runs on each device", _device("oarlock_device_runs")),
        Graph("Faults the device reports", _device("oarlock_device_errors")),
        Graph(
            "Healthy and taking tasks",
            (
                (
                    f"min by ({_DEVICE}) (oarlock_fleet_healthy) * (1 - max by ({_DEVICE}) (oarlock_fleet_cordoned))",
                    _BY_DEVICE,
                ),
            ),
            text="0: unhealthy or cordoned.",
        ),
    ),
    "Queue": (
        Graph("Tasks by state", (("max by (state) (oarlock_tasks)", "{{state}}"),)),
        Graph("Longest wait", (("max(oarlock_queue_oldest_wait_seconds)", "waits"),), "s"),
        Graph("Wait of placed tasks", _quantiles("oarlock_placement_wait_seconds"), "s"),
        Graph("Placements", (("sum by (policy, kind) (oarlock_placements_total)", "{{policy}} {{kind}}"),)),
        Graph("Rejections", (("sum by (code) (oarlock_rejections_total)", "{{code}}"),)),
        Graph("Time to decide", _quantiles("oarlock_matcher_decision_seconds"), "s"),
        Graph("Queue of the leader", (("max(oarlock_matcher_waiting_tasks)", "tasks"),)),
        Graph("Matchers that lead", (("sum(oarlock_matcher_leading)", "leading"),), text="Must be 1."),
        Graph("Reservations lost to others", (("sum(oarlock_reservation_conflicts_total)", "conflicts"),)),
    ),
    "Flow": (
        Graph(
            "Messages handled",
            (("sum by (service) (rate(oarlock_messages_handled_total[$__rate_interval]))", "{{service}}"),),
            "cps",
        ),
        Graph(
            "Deliveries failed",
            (("sum by (service, kind) (oarlock_messages_failed_total)", "{{service}} {{kind}}"),),
        ),
        Graph("Dead letters", (("sum by (service, consumer) (oarlock_messages_dead_total)", "{{consumer}}"),)),
        Graph("Time in the handler", _quantiles("oarlock_handler_seconds", by="service"), "s"),
        Graph("Not yet delivered", (("max by (consumer) (oarlock_messages_pending)", "{{consumer}}"),)),
        Graph("In hand", (("sum by (consumer) (oarlock_messages_in_flight)", "{{consumer}}"),)),
        Graph(
            "Requests",
            (("sum by (subject, outcome) (oarlock_requests_total)", "{{subject}} {{outcome}}"),),
        ),
        Graph("In touch with the bus", (("min by (service) (oarlock_bus_connected)", "{{service}}"),)),
        Graph("Reconnections", (("sum by (service) (oarlock_bus_reconnects_total)", "{{service}}"),)),
    ),
    "Runs": (
        Graph("Runs ended", (("sum by (outcome) (oarlock_runs_completed_total)", "{{outcome}}"),)),
        Graph(
            "Predicted and measured peak",
            (
                ("max by (task_id) (oarlock_run_predicted_memory_bytes)", "{{task_id}} predicted"),
                ("max by (task_id) (oarlock_run_peak_memory_bytes)", "{{task_id}} measured"),
            ),
            "bytes",
        ),
        Graph(
            "Prediction error",
            (
                (f"quantile by (kind) (0.5, {_ERROR})", "{{kind}} median"),
                (f"quantile by (kind) (0.9, {_ERROR})", "{{kind}} p90"),
            ),
            "percentunit",
            text="Of the peak, over the last runs that telemetry recorded.",
        ),
        Graph("Duration", (("max by (task_id, kind) (oarlock_run_duration_seconds)", "{{task_id}} {{kind}}"),), "s"),
        Graph(
            "Mean utilisation",
            (("max by (task_id) (oarlock_run_mean_utilization_ratio)", "{{task_id}}"),),
            "percentunit",
        ),
        Graph("Energy", (("max by (task_id) (oarlock_run_energy_joules)", "{{task_id}}"),), "joule"),
    ),
    "Calibration": (
        Graph(
            "Factor",
            (
                (
                    "max by (framework, family, precision, device_kind) (oarlock_calibration_factor)",
                    "{{framework}} {{family}} {{precision}} {{device_kind}}",
                ),
            ),
            width=12,
            text="What estimates of this cell are multiplied by, as last learned.",
        ),
        Graph(
            "Runs behind it",
            (
                (
                    "max by (framework, family, precision, device_kind) (oarlock_calibration_runs)",
                    "{{framework}} {{family}} {{precision}} {{device_kind}}",
                ),
            ),
            width=12,
        ),
    ),
}


def _panel(graph: Graph, number: int, place: models.GridPos) -> timeseries.Panel | stat.Panel:
    panel: timeseries.Panel | stat.Panel
    if graph.now:
        panel = stat.Panel().reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    else:
        legend = common.VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM)
        panel = timeseries.Panel().legend(legend.show_legend(True))
    panel = panel.id(number).title(graph.title).unit(graph.unit).datasource(_DATASOURCE).grid_pos(place).min(0)
    if graph.text:
        panel = panel.description(graph.text)
    for letter, (expression, legend_text) in zip("ABCD", graph.lines, strict=False):
        query = prometheus.Dataquery().ref_id(letter).expr(expression).legend_format(legend_text)
        panel = panel.with_target(query)
    return panel


def built() -> str:
    """The dashboard as Grafana reads it."""
    board = (
        dashboard.Dashboard("Oarlock")
        .uid("oarlock")
        .tags(["oarlock"])
        .refresh("10s")
        .time("now-1h", "now")
        .timezone("browser")
        .readonly()
        .with_variable(dashboard.DatasourceVariable("datasource").type("prometheus").label("Prometheus"))
    )
    y = 0
    numbers = count(1)
    for title, graphs in ROWS.items():
        place = models.GridPos(h=1, w=_ROW_WIDTH, x=0, y=y)
        board = board.with_row(dashboard.Row(title).id(next(numbers)).grid_pos(place))
        y += 1
        x = 0
        for graph in graphs:
            height = _HEIGHT // 2 if graph.now else _HEIGHT
            if x + graph.width > _ROW_WIDTH:
                x, y = 0, y + height
            place = models.GridPos(h=height, w=graph.width, x=x, y=y)
            board = board.with_panel(_panel(graph, next(numbers), place))
            x += graph.width
        y += height
    return JSONEncoder(sort_keys=True, indent=2).encode(board.build()) + "\n"


def main(arguments: list[str]) -> int:
    """Write or check; returns the exit status."""
    text = built()
    if "--check" in arguments:
        stale = not FILE.exists() or FILE.read_text(encoding="utf-8") != text
        sys.stdout.write(f"stale: {FILE}\n" if stale else "")
        return int(stale)
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
