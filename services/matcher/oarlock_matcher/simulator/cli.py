"""`oarlock simulate`: arguments in; a table or JSON out, and charts if asked for."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oarlock_matcher.core.devices import Node
from oarlock_matcher.core.policy_settings import DEFAULT_POLICY, PRESETS
from oarlock_matcher.simulator.arrivals import ArrivalsResult
from oarlock_matcher.simulator.experiments import QUIET, FillResult, simulate
from oarlock_matcher.simulator.files import MOST_NODES, Job, more_nodes, read_jobs, read_nodes
from oarlock_matcher.simulator.plots import write_charts
from oarlock_matcher.simulator.policies import POLICY_NAMES
from oarlock_matcher.simulator.rows import BadFile

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
    found.add_argument(
        "--add-nodes", action="append", default=[], metavar="NAME=COUNT", help="what if: COUNT more nodes like NAME"
    )
    found.add_argument("--preset", choices=sorted(PRESETS), help="what if: the weights of a preset (rule_based)")
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
    settings = QUIET if given.preset is None else QUIET.with_preset(given.preset)
    detail = given.plot is not None
    try:
        seeds = seeds_of(given.seeds)
        nodes, jobs = _with_more(read_nodes(given.nodes), given.add_nodes), read_jobs(given.tasks)
        if given.experiment == "arrivals":
            _check_durations(given.tasks, jobs)
        progress = Progress(len(policies) * len(seeds), sys.stderr.isatty())
        results = simulate(nodes, jobs, seeds, policies, given.experiment, settings, progress.show, detail)
        progress.end()
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
    kinds = timed[0].kinds_percent if timed else {}
    return {
        "utilisation_percent_by_kind": {
            kind: float(np.mean([run.kinds_percent[kind] for run in timed])) for kind in sorted(kinds)
        },
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


def _with_more(nodes: list[Node], additions: Sequence[str]) -> list[Node]:
    for text in additions:
        name, equals, count = text.rpartition("=")
        if not equals or not count.isdigit() or int(count) > MOST_NODES:
            raise ValueError(f"--add-nodes {text!r} is not NAME=COUNT")
        nodes = more_nodes(nodes, name, int(count))
    return nodes


def _check_durations(path: Path, jobs: Sequence[Job]) -> None:
    """Without durations nothing would ever be busy, and the figures would mean nothing."""
    lasting = sum(job.duration_seconds is not None for job in jobs)
    if not lasting:
        how = "Give `duration_seconds` (openb: `creation_time` and `deletion_time`), or use --experiment fill"
        raise BadFile(f"{path}: no task says how long it runs. {how}")
    if lasting < len(jobs):
        missing = len(jobs) - lasting
        sys.stderr.write(f"oarlock simulate: {missing} of {len(jobs)} tasks have no duration; they end at once\n")


class Progress:
    """A bar on stderr: redrawn on a terminal, elsewhere a line for each tenth of the way."""

    def __init__(self, runs: int, terminal: bool) -> None:
        self._runs = max(1, runs)
        self._terminal = terminal
        self._seen: dict[tuple[str, int], None] = {}
        self._shown = -1

    def show(self, policy: str, seed: int, done: int, total: int) -> None:
        """Somewhere in one policy's run on one seed; runs come one after the other."""
        self._seen[policy, seed] = None
        share = (len(self._seen) - 1 + (done / total if total else 1.0)) / self._runs
        self._draw(share, f"{policy} seed {seed}")

    def end(self) -> None:
        self._draw(1.0, "done")
        if self._terminal:
            sys.stderr.write("\n")

    def _draw(self, share: float, what: str) -> None:
        filled = int(30 * share)
        bar = f"[{'#' * filled}{'.' * (30 - filled)}] {100 * share:3.0f} %  {what}"
        if self._terminal:
            sys.stderr.write(f"\r{bar:79s}")
        elif int(10 * share) > self._shown:
            self._shown = int(10 * share)
            sys.stderr.write(f"{bar}\n")
        sys.stderr.flush()
