"""The published fill-up experiment on the ten openb traces: every policy beside its published figure.

    python -m benchmarks.placement.run [--data DIR] [--seeds 42-51] [--traces default,cpu250] [--policies fgd]
                                       [--jobs 2] [--out results.jsonl] [--any-code] [--check]

The traces are looked for in --data, then $OARLOCK_DATA/traces/openb, then ../shared/traces/openb beside the checkout.
They are public (the "openb" traces of Weng et al., USENIX ATC'23, github.com/alibaba/clusterdata) and not in this
repository. With --out each run is written down as it ends, so that a benchmark broken off goes on where it stopped:
runs that the file holds are not repeated, unless the matcher's code has changed since (--any-code takes those as well).
--check exits 1 where a promise is broken.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from pathlib import Path

import numpy as np

import oarlock_matcher
from oarlock_matcher.core.devices import Node
from oarlock_matcher.simulator.cli import seeds_of
from oarlock_matcher.simulator.experiments import fill_run
from oarlock_matcher.simulator.files import Job, read_jobs, read_nodes

TRACES = (
    "default",
    "cpu050",
    "cpu100",
    "cpu250",
    "gpushare40",
    "gpushare80",
    "gpuspec10",
    "gpuspec25",
    "multigpu20",
    "multigpu40",
)
PUBLISHED = {
    "random": "01-Random",
    "dot_product": "02-DotProd",
    "clustering": "03-GpuClustering",
    "packing": "04-GpuPacking",
    "best_fit": "05-BestFit",
    "fgd": "06-FGD",
}
OURS = "rule_based"
FLOORS = {("default", 100): 95.3, ("gpuspec10", 100): 94.9, ("gpuspec25", 100): 94.6, ("gpuspec25", 90): 88.5}
FLOORS |= {("cpu250", 100): 94.0}
PERCENTS = (90, 100)
TOLERANCE = 0.5


def data_folder(given: Path | None) -> Path | None:
    """Where the traces are, or `None`."""
    here = Path(__file__).resolve().parents[2]
    base = os.environ.get("OARLOCK_DATA")
    options = [given, Path(base) / "traces" / "openb" if base else None, here.parent / "shared" / "traces" / "openb"]
    return next((p for p in options if p is not None and (p / "openb_node_list_gpu_node.csv").is_file()), None)


@lru_cache(maxsize=1)
def fleet(folder: str) -> list[Node]:
    """The fleet of the experiment."""
    return read_nodes(Path(folder) / "openb_node_list_gpu_node.csv")


@lru_cache(maxsize=len(TRACES))
def workload(folder: str, trace: str) -> list[Job]:
    """One trace."""
    return read_jobs(Path(folder) / f"openb_pod_list_{trace}.csv")


def code() -> str:
    """A short digest of what decides: the matcher's core and simulator."""
    package = Path(oarlock_matcher.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(p for part in ("core", "simulator") for p in (package / part).rglob("*") if p.is_file()):
        if path.suffix in (".py", ".json"):
            digest.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def one(task: tuple[str, str, str, int]) -> tuple[tuple[str, str, int], dict[str, float]]:
    """Allocation of one run, by arrived percent."""
    folder, trace, policy, seed = task
    allocation = fill_run(fleet(folder), workload(folder, trace), policy, seed).allocation_percent
    return (trace, policy, seed), {str(p): allocation[p] for p in PERCENTS}


def published(folder: Path) -> dict[tuple[str, str, int], float]:
    """Published means by (trace, policy, arrived percent)."""
    by_label = {label: policy for policy, label in PUBLISHED.items()}
    found: dict[tuple[str, str, int], float] = {}
    with (folder / "published_allocation.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            for percent in PERCENTS:
                key = (row["workload"].removeprefix("openb_pod_list_"), by_label[row["sc_policy"]], percent)
                found[key] = float(row[f"{percent}_mean"])
    return found


def report(
    results: dict[tuple[str, str, int], dict[str, float]],
    theirs: dict[tuple[str, str, int], float],
    traces: list[str],
    policies: list[str],
) -> Iterator[str]:
    """Markdown tables of the means over the seeds, and what was promised but not kept (lines with `BROKEN`)."""
    for percent in reversed(PERCENTS):
        yield f"\nAllocated % of the fleet at {percent} % arrived (in brackets: difference to the published mean)\n"
        yield "| trace | " + " | ".join(policies) + " | FGD published | ours − FGD |"
        yield "|---" * (len(policies) + 3) + "|"
        for trace in traces:
            cells, ours = [], None
            for policy in policies:
                runs = [r[str(percent)] for (t, p, _), r in results.items() if (t, p) == (trace, policy)]
                if not runs:
                    cells.append("–")
                    continue
                mean = float(np.mean(runs))
                known = theirs.get((trace, policy, percent))
                seeds = "" if len(runs) == 10 else f", {len(runs)} seeds"
                cells.append(f"{mean:.2f}" + (seeds if known is None else f" ({mean - known:+.2f}{seeds})"))
                if policy == OURS:
                    ours = mean
                elif known is not None and percent == 100 and abs(mean - known) > TOLERANCE:
                    cells[-1] += " BROKEN"
            fgd = theirs[trace, "fgd", percent]
            gain = "–" if ours is None else f"**{ours - fgd:+.2f}**"
            if ours is not None:
                floor = FLOORS.get((trace, percent), 0.0)
                if ours < floor or (percent == 100 and ours < fgd - 0.1):
                    gain += " BROKEN"
            yield f"| {trace} | " + " | ".join(cells) + f" | {fgd:.2f} | {gain} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", default="42-51")
    parser.add_argument("--traces", default=",".join(TRACES))
    parser.add_argument("--policies", default=",".join((OURS, *reversed(PUBLISHED))))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--any-code", action="store_true")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    folder = data_folder(args.data)
    if folder is None:
        print("The openb traces are not on this machine: give --data or OARLOCK_DATA. Nothing was measured.")
        return 1
    traces, policies = args.traces.split(","), args.policies.split(",")
    results: dict[tuple[str, str, int], dict[str, float]] = {}
    version = code()
    if args.out is not None and args.out.is_file():
        for line in args.out.read_text(encoding="utf-8").splitlines():
            trace, policy, seed, allocation, measured_with = json.loads(line)
            if args.any_code or measured_with == version:
                results[trace, policy, seed] = allocation
    # Seed by seed, the slowest policy last: what is there when it is broken off is comparable.
    wanted = [(t, p, s) for p in policies for t in traces for s in seeds_of(args.seeds)]
    tasks = [(str(folder), *key) for key in sorted(wanted, key=lambda key: (key[1] == OURS, key[2]))]
    tasks = [task for task in tasks if task[1:] not in results]
    if args.out is not None:
        args.out.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(args.jobs) as pool:
        for done, ended in enumerate(as_completed([pool.submit(one, task) for task in tasks]), 1):
            key, allocation = ended.result()
            results[key] = allocation
            if args.out is not None:
                with args.out.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps([*key, allocation, version]) + "\n")
            print(f"\r{done} of {len(tasks)} runs", end="", file=sys.stderr, flush=True)
    chosen = {key: results[key] for key in wanted}
    lines_out = list(report(chosen, published(folder), traces, policies))
    print("\n".join(lines_out))
    return int(args.check and any("BROKEN" in line for line in lines_out))


if __name__ == "__main__":
    raise SystemExit(main())
