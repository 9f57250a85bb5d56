"""Results as SVG line charts, written by hand: no plotting library, the same bytes for the same results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import floor, log10
from pathlib import Path

import numpy as np

from oarlock_matcher.core.devices import WHOLE_MILLI, Node
from oarlock_matcher.simulator.arrivals import ArrivalsResult, busy_percent
from oarlock_matcher.simulator.experiments import FillResult

Series = Mapping[str, Sequence[tuple[float, float]]]

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 40, 50
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999", "#882255")
"""Okabe and Ito's palette, which people with any kind of colour vision can tell apart, and one more."""
DASHES = ("", "6 3", "2 2")
TIME_BINS = 60
QUANTILES = np.linspace(0.0, 100.0, 101)


def line_chart(title: str, x_label: str, y_label: str, series: Series) -> str:
    """An SVG document with one line for each series of (x, y) points; axes start at zero."""
    points = [point for line in series.values() for point in line]
    x_most = _round_up(max((x for x, _ in points), default=1.0))
    y_most = _round_up(max((y for _, y in points), default=1.0))
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(x: float, y: float) -> str:
        return f"{LEFT + wide * x / x_most:.1f},{TOP + high * (1.0 - y / y_most):.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
    ]
    for fifth in range(6):
        x, y = LEFT + wide * fifth / 5, TOP + high * (1.0 - fifth / 5)
        parts += [
            f'<line x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + wide}" y2="{y:.1f}" stroke="#dddddd"/>',
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{y_most * fifth / 5:g}</text>',
            f'<text x="{x:.1f}" y="{TOP + high + 18}" text-anchor="middle">{x_most * fifth / 5:g}</text>',
        ]
    parts += [
        f'<text x="{LEFT + wide / 2:.1f}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x_label)}</text>',
        f'<text x="16" y="{TOP + high / 2:.1f}" text-anchor="middle" '
        f'transform="rotate(-90 16 {TOP + high / 2:.1f})">{escape(y_label)}</text>',
    ]
    for number, (name, line) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        dash = DASHES[number // len(COLOURS) % len(DASHES)]
        style = f'stroke="{colour}" stroke-width="2" fill="none"' + (f' stroke-dasharray="{dash}"' if dash else "")
        y = TOP + 10 + 18 * number
        parts += [
            f'<polyline points="{" ".join(place(x, y_) for x, y_ in line)}" {style}/>',
            f'<line x1="{WIDTH - RIGHT + 12}" y1="{y}" x2="{WIDTH - RIGHT + 34}" y2="{y}" {style}/>',
            f'<text x="{WIDTH - RIGHT + 40}" y="{y + 4}">{escape(name)}</text>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _round_up(value: float) -> float:
    """The next of 1, 2, 2.5, 5 × a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log10(value))
    return power * next(step for step in (1.0, 2.0, 2.5, 5.0, 10.0) if value <= step * power * (1.0 + 1e-9))


def charts(
    results: Mapping[str, Sequence[FillResult] | Sequence[ArrivalsResult]], nodes: Sequence[Node]
) -> dict[str, str]:
    """SVG documents by file name: allocation over arrival for a fill-up; for arrivals the waits of all policies, and
    each policy's use of each kind over time (first seed)."""
    fills = {name: [run for run in runs if isinstance(run, FillResult)] for name, runs in results.items()}
    timed = {name: [run for run in runs if isinstance(run, ArrivalsResult)] for name, runs in results.items()}
    found: dict[str, str] = {}
    if any(fills.values()):
        lines = {name: _mean_allocation(runs) for name, runs in fills.items() if runs}
        found["allocation.svg"] = line_chart(
            "Allocated share of the fleet", "arrived, % of the fleet's devices", "allocated, %", lines
        )
    if any(timed.values()):
        found["waits.svg"] = line_chart(
            "Waits: how many tasks started within what time",
            "tasks, % (shortest wait first)",
            "wait, seconds",
            {name: _wait_quantiles(runs) for name, runs in timed.items() if runs},
        )
    for name, runs in timed.items():
        if runs:
            lines = use_by_kind(runs[0], nodes)
            found[f"utilisation-{name}.svg"] = line_chart(f"Busy devices by kind: {name}", "hours", "busy, %", lines)
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
    capacity: dict[str, int] = {}
    for node in nodes:
        for device in node.devices:
            capacity[device.model.kind] = capacity.get(device.model.kind, 0) + WHOLE_MILLI
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
