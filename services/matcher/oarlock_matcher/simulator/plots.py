"""Which charts show the results of a simulation, and what stands in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from oarlock_matcher.core.devices import Node
from oarlock_matcher.simulator.arrivals import ArrivalsResult, busy_percent
from oarlock_matcher.simulator.causes import most
from oarlock_matcher.simulator.drawing import bar_chart, line_chart
from oarlock_matcher.simulator.experiments import FillResult
from oarlock_matcher.simulator.workload import milli_by_kind

TIME_BINS = 60
QUANTILES = np.linspace(0.0, 100.0, 101)


def charts(
    results: Mapping[str, Sequence[FillResult] | Sequence[ArrivalsResult]], nodes: Sequence[Node]
) -> dict[str, str]:
    """SVG documents by file name. For a fill-up: allocation and fragmentation over arrival, each policy's use of each
    kind, and who was left out and why. For arrivals: the waits of all policies, each policy's use of each kind over
    time, and who waited and why. Means over the seeds where all have the figure, else of the first seed."""
    found: dict[str, str] = {}
    fills = {name: [run for run in runs if isinstance(run, FillResult)] for name, runs in results.items()}
    timed = {name: [run for run in runs if isinstance(run, ArrivalsResult)] for name, runs in results.items()}
    if any(fills.values()):
        found |= _fill_charts({name: runs for name, runs in fills.items() if runs})
    if any(timed.values()):
        found |= _arrivals_charts({name: runs for name, runs in timed.items() if runs}, nodes)
    return found


def _fill_charts(results: Mapping[str, Sequence[FillResult]]) -> dict[str, str]:
    arrived = "arrived, % of the fleet's devices"
    lines = {name: _mean_allocation(runs) for name, runs in results.items()}
    found = {"allocation.svg": line_chart("Allocated share of the fleet", arrived, "allocated, %", lines)}
    wasted = {name: _points(runs[0].fragmentation_percent) for name, runs in results.items()}
    title = "Fragmentation: idle, but of no use to the workload's tasks"
    found["fragmentation.svg"] = line_chart(title, arrived, "of the fleet, %", wasted)
    for name, runs in results.items():
        kinds = {kind: _points(line) for kind, line in runs[0].kinds_percent.items()}
        found[f"utilisation-{name}.svg"] = line_chart(f"Allocated by kind: {name}", arrived, "allocated, %", kinds)
        title = f"Who was left out and why: {name}"
        found[f"waiting-{name}.svg"] = bar_chart(title, "tasks", most(runs[0].left_out))
    return found


def _arrivals_charts(results: Mapping[str, Sequence[ArrivalsResult]], nodes: Sequence[Node]) -> dict[str, str]:
    title = "Waits: how many tasks started within what time"
    lines = {name: _wait_quantiles(runs) for name, runs in results.items()}
    found = {"waits.svg": line_chart(title, "tasks, % (shortest wait first)", "wait, seconds", lines)}
    for name, runs in results.items():
        kinds = use_by_kind(runs[0], nodes)
        found[f"utilisation-{name}.svg"] = line_chart(f"Busy devices by kind: {name}", "hours", "busy, %", kinds)
        hours = {key: seconds / 3600.0 for key, seconds in runs[0].waited_seconds.items()}
        found[f"waiting-{name}.svg"] = bar_chart(f"Who waited and why: {name}", "hours waited", most(hours))
    return found


def write_charts(
    results: Mapping[str, Sequence[FillResult] | Sequence[ArrivalsResult]], nodes: Sequence[Node], folder: Path
) -> list[Path]:
    """Write all charts into `folder`, which is made if need be; the files written.

    Raises:
        OSError: the folder cannot be made or written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name, document in charts(results, nodes).items():
        (folder / name).write_text(document, encoding="utf-8")
        written.append(folder / name)
    return written


def _points(by_percent: Mapping[int, float]) -> list[tuple[float, float]]:
    return [(float(percent), value) for percent, value in sorted(by_percent.items())]


def _mean_allocation(runs: Sequence[FillResult]) -> list[tuple[float, float]]:
    keys = sorted(set.intersection(*(set(run.allocation_percent) for run in runs)))
    return [(float(key), float(np.mean([run.allocation_percent[key] for run in runs]))) for key in keys]


def _wait_quantiles(runs: Sequence[ArrivalsResult]) -> list[tuple[float, float]]:
    waits = [wait for run in runs for wait in run.waits_seconds]
    if not waits:
        return []
    return list(zip(QUANTILES.tolist(), np.percentile(waits, QUANTILES).tolist(), strict=True))


def use_by_kind(result: ArrivalsResult, nodes: Sequence[Node]) -> dict[str, list[tuple[float, float]]]:
    """Busy percent of each kind of device in equal spans of time; hours on the x axis."""
    capacity = milli_by_kind(nodes)
    if not result.runs:
        return {kind: [] for kind in capacity}
    begins = min(run.arrived_at for run in result.runs)
    width = (max(run.ended_at for run in result.runs) - begins) / TIME_BINS
    return {
        kind: [
            (
                (at + 0.5) * width / 3600.0,
                busy_percent(result.runs, milli, begins + at * width, begins + (at + 1) * width, kind),
            )
            for at in range(TIME_BINS)
        ]
        for kind, milli in capacity.items()
    }
