"""``python -m benchmarks.prediction_error.learning PREDICTIONS.json``: what calibration makes of the rows.

Reads what ``benchmarks.prediction_error --json`` wrote. In random order each row becomes a completed run: first it is
booked with what was learned so far, then it teaches. Printed: the share of fitting jobs that exceed their booking, and
the mean headroom, cold to warm; an SVG of the curve is written beside the input.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path
from typing import Any

from oarlock_profiler.core.calibration import Key, correction, empty, update

WINDOW = 200
WIDTH, HEIGHT, MARGIN = 720, 300, 40


def replayed(records: list[dict[str, Any]], seed: int) -> list[tuple[str, float]]:
    """Family, and booked over measured, of every run in the order drawn by ``seed``."""
    drawn = list(records)
    random.Random(seed).shuffle(drawn)
    state, found = empty(), []
    for number, record in enumerate(drawn):
        key = Key("pytorch", record["family"], "float32", "A100-PCIE-40GB")
        now = correction(state, key)
        booked = record["predicted_bytes"] * now.factor * now.reserve_ratio
        found.append((record["family"], booked / record["measured_bytes"]))
        state, _ = update(
            state,
            key,
            owner=f"owner{number % 7}",
            raw_bytes=record["predicted_bytes"],
            measured_bytes=record["measured_bytes"],
        )
    return found


def main() -> int:
    """Replay with a few seeds and print the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("predictions", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    records = [
        record
        for record in json.loads(options.predictions.read_text())
        if record["kind"] == "device" and record["scored"] and not record["out_of_memory"]
    ]
    runs = [replayed(records, seed) for seed in range(options.seeds)]
    _line("all runs", [pair for run in runs for pair in run])
    for family in sorted({record["family"] for record in records}):
        _line(family, [pair for run in runs for pair in run if pair[0] == family])
    _line("first 200", [pair for run in runs for pair in run[:WINDOW]])
    _line("after 1000", [pair for run in runs for pair in run[1000:]])
    curve = options.predictions.with_suffix(".svg")
    curve.write_text(_svg([ratio for _, ratio in runs[0]]))
    print(f"curve of the first seed: {curve}")
    return 0


def _line(name: str, pairs: list[tuple[str, float]]) -> None:
    if not pairs:
        return
    missed = sum(ratio < 1 for _, ratio in pairs) / len(pairs)
    headroom = sum(ratio - 1 for _, ratio in pairs) / len(pairs)
    print(f"{name}: {len(pairs)} runs, {missed:.2%} exceed their booking, mean headroom {headroom:.1%}")


def _svg(ratios: list[float]) -> str:
    """Share of misses and mean headroom over a sliding window."""
    windows = [ratios[max(0, end - WINDOW) : end] for end in range(20, len(ratios) + 1, 10)]
    misses = [sum(ratio < 1 for ratio in window) / len(window) for window in windows]
    headroom = [sum(ratio - 1 for ratio in window) / len(window) for window in windows]
    top = max(*misses, *headroom, 0.01)

    def points(values: list[float]) -> str:
        across = (WIDTH - 2 * MARGIN) / max(1, len(values) - 1)
        scale = (HEIGHT - 2 * MARGIN) / top
        return " ".join(f"{MARGIN + i * across:.1f},{HEIGHT - MARGIN - v * scale:.1f}" for i, v in enumerate(values))

    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
        f'<polyline fill="none" stroke="#c0392b" stroke-width="2" points="{points(misses)}"/>'
        f'<polyline fill="none" stroke="#2471a3" stroke-width="2" points="{points(headroom)}"/>'
        f'<text x="{MARGIN}" y="20" fill="#c0392b">share that exceeds its booking</text>'
        f'<text x="{MARGIN + 220}" y="20" fill="#2471a3">mean headroom</text>'
        f'<text x="{MARGIN}" y="{HEIGHT - 12}">completed runs, window of {WINDOW}; top {top:.1%}</text></svg>\n'
    )


if __name__ == "__main__":
    sys.exit(main())
