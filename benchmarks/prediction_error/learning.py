"""``python -m benchmarks.prediction_error.learning PREDICTIONS.json``: what calibration makes of the rows.

Reads what ``benchmarks.prediction_error --json`` wrote. In random order each row becomes a completed run: first it is
booked with what was learned so far, then it teaches. Printed: the share of fitting jobs that exceed their booking, and
the mean headroom, cold to warm; the curve goes to ``--plot``. Then the same rows again with the truth of one family
shifted by 20 %: what 50 of its runs leave of the error on its next ones, and what they do to the other families.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from pathlib import Path
from typing import Any

from oarlock_profiler.core.calibration import Key, correction, empty, update

WINDOW = 200
SHIFT, TAUGHT, LEAST_NEXT = 1.2, 50, 5
WIDTH, HEIGHT, MARGIN = 720, 300, 40


def replayed(records: list[dict[str, Any]], seed: int) -> list[tuple[str, float]]:
    """Family, and booked over measured, of every run in the order drawn by ``seed``."""
    drawn = list(records)
    random.Random(seed).shuffle(drawn)
    state, found = empty(), []
    for number, record in enumerate(drawn):
        key = _key(record["family"])
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
    parser.add_argument("--plot", type=Path, default=Path(__file__).with_name("cold_to_warm.svg"))
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
    options.plot.write_text(_svg([ratio for _, ratio in runs[0]]))
    print(f"curve of the first seed: {options.plot}")
    for family in sorted({record["family"] for record in records}):
        tried = (shifted(records, family, seed) for seed in range(options.seeds))
        found = [item for item in tried if item is not None]
        if not found:
            print(f"{family}: too few runs to shift")
            continue
        before, after, others = (statistics.mean(item[i] for item in found) for i in range(3))
        print(
            f"{family} shifted by {SHIFT - 1:.0%}: error on the next runs {before:.1%} before, {after:.1%} after "
            f"{TAUGHT} runs; estimates of other families moved by {others:.2%}"
        )
    return 0


def shifted(records: list[dict[str, Any]], family: str, seed: int) -> tuple[float, float, float] | None:
    """Median error of ``family`` before and after :data:`TAUGHT` shifted runs, and how far other families moved.

    None when the family has too few rows.
    """
    own = [record for record in records if record["family"] == family]
    random.Random(seed).shuffle(own)
    if len(own) < TAUGHT + LEAST_NEXT:
        return None
    state = empty()
    for number, record in enumerate(own[:TAUGHT]):
        raw, measured = record["predicted_bytes"], round(SHIFT * record["measured_bytes"])
        state, _ = update(state, _key(family), owner=f"owner{number % 7}", raw_bytes=raw, measured_bytes=measured)

    def error(factor: float) -> float:
        ratios = (record["predicted_bytes"] / (SHIFT * record["measured_bytes"]) for record in own[TAUGHT:])
        return float(statistics.median(abs(factor * ratio - 1) for ratio in ratios))

    others = {record["family"] for record in records} - {family}
    moved = max((abs(correction(state, _key(other)).factor - 1) for other in others), default=0.0)
    return error(1.0), error(correction(state, _key(family)).factor), moved


def _key(family: str) -> Key:
    return Key("pytorch", family, "float32", "A100-PCIE-40GB")


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
