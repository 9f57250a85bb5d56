"""`oarlock simulate`: arguments in; a table or JSON out, and charts if asked for."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oarlock_matcher.core.policy_settings import DEFAULT_POLICY
from oarlock_matcher.simulator.arrivals import ArrivalsResult
from oarlock_matcher.simulator.experiments import FillResult, simulate
from oarlock_matcher.simulator.files import BadFile, read_jobs, read_nodes
from oarlock_matcher.simulator.plots import write_charts
from oarlock_matcher.simulator.policies import POLICY_NAMES

SHOWN_PERCENTS = (80, 90, 95, 100, 110, 120, 130)


def parser() -> argparse.ArgumentParser:
    """The command's arguments."""
    found = argparse.ArgumentParser(
        prog="oarlock simulate", description="Try placement policies on a fleet and a workload."
    )
    found.add_argument("--experiment", choices=("fill", "arrivals"), default="fill")
    found.add_argument("--nodes", type=Path, required=True, help="fleet file (openb CSV, own CSV or YAML)")
    found.add_argument("--tasks", type=Path, required=True, help="workload file (openb CSV, own CSV or YAML)")
    found.add_argument("--seeds", default="42-51", help="e.g. 42-51 or 1,2,3")
    found.add_argument(
        "--policy", action="append", nargs="+", help=f"one or more of {', '.join(POLICY_NAMES)}; all if none"
    )
    found.add_argument("--format", choices=("table", "json"), default="table")
    found.add_argument("--plot", type=Path, metavar="DIR", help="write charts (SVG) into this folder")
    return found


def seeds_of(text: str) -> list[int]:
    """`42-51`, `1,2,3` or a mixture.

    Raises:
        ValueError: anything else.
    """
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        seeds += range(int(first), int(last) + 1) if dash else [int(first)]
    if not seeds or len(seeds) > 10_000:
        raise ValueError(f"{text!r} names no seeds, or too many")
    return seeds


def run(args: Sequence[str]) -> int:
    """Run `oarlock simulate` with these arguments; progress and errors go to stderr. Exit code 0 or 2."""
    try:
        given = parser().parse_args(list(args))
    except SystemExit as stop:
        return int(stop.code or 0)
    policies = [name for group in given.policy or () for part in group for name in part.split(",")] or list(
        POLICY_NAMES
    )
    show = _progress if sys.stderr.isatty() else None
    try:
        seeds = seeds_of(given.seeds)
        nodes, jobs = read_nodes(given.nodes), read_jobs(given.tasks)
        results = simulate(nodes, jobs, seeds, policies, given.experiment, watch=show)
    except (BadFile, ValueError, KeyError) as error:
        sys.stderr.write(f"oarlock simulate: {error.args[0] if error.args else error}\n")
        return 2
    if given.plot is not None:
        try:
            written = write_charts(results, nodes, given.plot)
        except OSError as error:
            sys.stderr.write(f"oarlock simulate: charts cannot be written to {given.plot}: {error.strerror or error}\n")
            return 2
        sys.stderr.write("".join(f"wrote {path}\n" for path in written))
    summary = summarise(results, given.experiment, seeds)
    sys.stdout.write(json.dumps(summary, indent=2) + "\n" if given.format == "json" else table(summary))
    return 0


def summarise(
    results: dict[str, list[FillResult] | list[ArrivalsResult]], experiment: str, seeds: Sequence[int]
) -> dict[str, Any]:
    """Means over the seeds, as plain values for JSON."""
    summary: dict[str, Any] = {
        "experiment": experiment,
        "seeds": list(seeds),
        "default_policy": DEFAULT_POLICY,
        "policies": {name: _means(runs) for name, runs in results.items()},
    }
    return summary


def _means(runs: Sequence[FillResult | ArrivalsResult]) -> dict[str, Any]:
    fills = [run for run in runs if isinstance(run, FillResult)]
    if fills:
        keys = sorted(set.intersection(*(set(run.allocation_percent) for run in fills)))
        allocation = {str(key): float(np.mean([run.allocation_percent[key] for run in fills])) for key in keys}
        deviation = {str(key): float(np.std([run.allocation_percent[key] for run in fills])) for key in keys}
        return {
            "allocation_percent": allocation,
            "allocation_std": deviation,
            "arrived": float(np.mean([run.arrived for run in fills])),
            "placed": float(np.mean([run.placed for run in fills])),
        }
    timed = [run for run in runs if isinstance(run, ArrivalsResult)]
    waits = np.array([wait for run in timed for wait in run.waits_seconds])
    return {
        "utilisation_percent": float(np.mean([run.utilisation_percent for run in timed])),
        "wait_mean_seconds": float(waits.mean()) if len(waits) else None,
        "wait_p99_seconds": float(np.percentile(waits, 99)) if len(waits) else None,
        "makespan_seconds": float(np.mean([run.makespan_seconds for run in timed])),
        "placed": float(np.mean([run.placed for run in timed])),
        "rejected": float(np.mean([run.rejected for run in timed])),
        "never_placed": float(np.mean([run.never_placed for run in timed])),
    }


def table(summary: dict[str, Any]) -> str:
    """The summary as text."""
    lines: list[str] = []
    if summary["experiment"] == "fill":
        lines.append(f"{'allocated % at arrived %':24s}" + "".join(f"{p:>8d}" for p in SHOWN_PERCENTS))
        for name, values in summary["policies"].items():
            shown = (values["allocation_percent"].get(str(p)) for p in SHOWN_PERCENTS)
            cells = "".join("       –" if v is None else f"{v:8.2f}" for v in shown)
            lines.append(f"{_marked(name, summary):24s}{cells}")
    else:
        lines.append(
            f"{'policy':24s}{'busy %':>10s}{'mean wait s':>14s}{'p99 wait s':>14s}{'placed':>10s}{'unplaced':>10s}"
        )
        for name, v in summary["policies"].items():
            waits = [v["wait_mean_seconds"], v["wait_p99_seconds"]]
            cells = "".join("             –" if w is None else f"{w:14.1f}" for w in waits)
            unplaced = v["rejected"] + v["never_placed"]
            numbers = f"{v['utilisation_percent']:14.2f}{cells}{v['placed']:14.1f}{unplaced:14.1f}"
            lines.append(f"{_marked(name, summary):24s}{numbers}")
    return "\n".join(lines) + "\n"


def _marked(name: str, summary: dict[str, Any]) -> str:
    return f"{name} (default)" if name == summary["default_policy"] else name


def _progress(policy: str, seed: int, done: int, total: int) -> None:
    filled = int(30 * done / total) if total else 30
    sys.stderr.write(f"\r{policy:20s} seed {seed:<6d} [{'#' * filled}{'.' * (30 - filled)}]")
    sys.stderr.flush()
