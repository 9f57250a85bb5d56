"""Predicted against measured speed of two jobs on one device, folds by model.

    python -m benchmarks.placement.sharing [--data DIR] [--check]

Needs the co-location tables published with Lucid (Hu et al., ASPLOS'23): `lucid_single.csv` (each job alone) and
`lucid_colocation.csv` (pairs), looked for in --data, then $OARLOCK_DATA/traces/throughput, then beside the checkout.
For each model the constant of `core.interference` is fitted on the pairs without it and judged on the pairs with it.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from oarlock_matcher.core.interference import SLOWDOWN_PER_EXCESS, speed_together

ERROR_CEILING = 0.07
CANDIDATES = np.arange(0.2, 0.8, 0.005)

Key = tuple[str, str, str]


def table_folder(given: Path | None, name: str) -> Path | None:
    """Where the table is, or `None`."""
    base = os.environ.get("OARLOCK_DATA")
    beside = Path(__file__).resolve().parents[3] / "shared" / "traces" / "throughput"
    options = [given, Path(base) / "traces" / "throughput" if base else None, beside]
    return next((p for p in options if p is not None and (p / name).is_file()), None)


def pairs(folder: Path) -> list[tuple[str, str, float, float]]:
    """(model, the other's model, sum of both utilisations in milli, measured relative speed), one for each job of a
    pair."""
    busy: dict[Key, float] = {}
    with (folder / "lucid_single.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            busy[row["model"], row["batchsize"], row["amp"]] = 10.0 * float(row["gpu_util"])
    found: list[tuple[str, str, float, float]] = []
    with (folder / "lucid_colocation.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            keys = [(row[f"model{n}"], row[f"batchsize{n}"], row[f"amp{n}"]) for n in "12"]
            together = sum(busy[key] for key in keys)
            found.append((keys[0][0], keys[1][0], together, float(row["speed1"])))
            found.append((keys[1][0], keys[0][0], together, float(row["speed2"])))
    return found


def held_out(found: Sequence[tuple[str, str, float, float]]) -> dict[str, tuple[float, float, int]]:
    """For each model: (constant fitted without it, mean absolute error on the jobs of pairs with it, number)."""
    names = np.array([row[:2] for row in found])
    together = np.array([row[2] for row in found])
    speed = np.array([row[3] for row in found])
    results: dict[str, tuple[float, float, int]] = {}
    for model in sorted(set(names.ravel().tolist())):
        out = (names == model).any(axis=1)
        misses = [np.abs(speed_together(together[~out], k) - speed[~out]).mean() for k in CANDIDATES]
        chosen = float(CANDIDATES[int(np.argmin(misses))])
        error = np.abs(speed_together(together[out], chosen) - speed[out])
        results[model] = (chosen, float(error.mean()), int(out.sum()))
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args(arguments)
    folder = table_folder(args.data, "lucid_colocation.csv")
    if folder is None:
        print("The co-location tables are not on this machine: give --data or OARLOCK_DATA. Nothing was measured.")
        return 1
    found = pairs(folder)
    results = held_out(found)
    print("| model left out | constant | mean error | jobs |\n|---|---|---|---|")
    for model, (constant, error, number) in results.items():
        print(f"| {model} | {constant:.3f} | {error:.4f} | {number} |")
    mean = float(np.average([e for _, e, _ in results.values()], weights=[n for _, _, n in results.values()]))
    speeds = np.array([row[3] for row in found])
    constant_error = float(np.abs(speeds - speeds.mean()).mean())
    print(f"\nmean error with the model left out {mean:.4f}; of always saying the mean {constant_error:.4f}")
    print(f"constant in use {SLOWDOWN_PER_EXCESS}")
    return int(args.check and mean > ERROR_CEILING)


if __name__ == "__main__":
    raise SystemExit(main())
