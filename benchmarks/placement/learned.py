"""The learned policy against the rules, on traces and seeds that it was not trained on.

    python -m benchmarks.placement.learned [--data DIR] [--seeds 42-51] [--traces cpu050,…] [--jobs 2] [--out FILE]

The published fill-up experiment, paired: both policies play the same trace in the same order on the same fleet. For
each trace the mean difference over the seeds with its 95 % confidence interval (Student's t); over all unseen traces
the mean of theirs, with the interval that resampling traces and then seeds gives. The rules stay the default unless the
learned policy wins clearly: its interval at 100 % arrived lies above zero. With --out, runs that the file holds are not
repeated.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.placement.run import PERCENTS, TRACES, data_folder, one
from benchmarks.placement.train import TRACES as TRAINED_ON
from oarlock_matcher.core.policies.learned_weights import SHIPPED
from oarlock_matcher.core.policies.registry import LEARNED, RULES
from oarlock_matcher.simulator.cli import seeds_of

UNSEEN = tuple(trace for trace in TRACES if trace not in TRAINED_ON)
T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
"""Quantiles of Student's distribution for 1, 2, 3… degrees of freedom."""
RESAMPLES = 10_000

Results = Mapping[tuple[str, str, int], Mapping[str, float]]


def differences(results: Results, trace: str, percent: int) -> list[float]:
    """Learned minus rules, in points, for each seed that both have played."""
    seeds = sorted({seed for name, policy, seed in results if (name, policy) == (trace, LEARNED)})
    return [
        results[trace, LEARNED, seed][str(percent)] - results[trace, RULES, seed][str(percent)]
        for seed in seeds
        if (trace, RULES, seed) in results
    ]


def half_width(values: Sequence[float]) -> float | None:
    """Of the 95 % confidence interval of the mean; `None` for fewer than two values."""
    if len(values) < 2:
        return None
    quantile = T_975[min(len(values) - 1, len(T_975)) - 1]
    return quantile * float(np.std(values, ddof=1)) / math.sqrt(len(values))


def overall(by_trace: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """Mean of the traces' means, and its 95 % interval when traces and their seeds are drawn again with replacement."""
    rng = np.random.default_rng(0)
    means = np.empty(RESAMPLES)
    for i in range(RESAMPLES):
        drawn = [by_trace[t] for t in rng.integers(len(by_trace), size=len(by_trace))]
        means[i] = np.mean([np.mean(rng.choice(values, len(values))) for values in drawn])
    low, high = np.percentile(means, [2.5, 97.5])
    return float(np.mean([np.mean(values) for values in by_trace])), float(low), float(high)


def report(results: Results, traces: Sequence[str]) -> Iterator[str]:
    """A markdown table for each arrived share, and the verdict."""
    for percent in reversed(PERCENTS):
        yield f"\nAllocated % at {percent} % arrived, weights {SHIPPED.version}\n"
        yield f"| trace | seeds | {RULES} | {LEARNED} | difference, 95 % interval |\n|---|---|---|---|---|"
        unseen: list[list[float]] = []
        for trace in traces:
            found = differences(results, trace, percent)
            if not found:
                continue
            means = [
                np.mean([r[str(percent)] for (t, p, _), r in results.items() if (t, p) == (trace, policy)])
                for policy in (RULES, LEARNED)
            ]
            width = half_width(found)
            interval = "–" if width is None else f"{np.mean(found):+.2f} ± {width:.2f}"
            mark = " (trained on)" if trace in TRAINED_ON else ""
            yield f"| {trace}{mark} | {len(found)} | {means[0]:.2f} | {means[1]:.2f} | {interval} |"
            if trace not in TRAINED_ON:
                unseen.append(found)
        if unseen:
            mean, low, high = overall(unseen)
            winner = LEARNED if low > 0 else RULES if high < 0 else "neither clearly"
            yield f"\nUnseen traces together: {mean:+.3f} ({low:+.3f} to {high:+.3f}); better: {winner}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", default="42-51")
    parser.add_argument("--traces", default=",".join((*UNSEEN, *TRAINED_ON)))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    folder = data_folder(args.data)
    if folder is None:
        print("The openb traces are not on this machine: give --data or OARLOCK_DATA. Nothing was measured.")
        return 1
    traces = args.traces.split(",")
    results: dict[tuple[str, str, int], dict[str, float]] = {}
    if args.out is not None and args.out.is_file():
        for line in args.out.read_text(encoding="utf-8").splitlines():
            trace, policy, seed, allocation = json.loads(line)
            results[trace, policy, seed] = allocation
    # Seed by seed, so that what has been measured when it is stopped is spread over all traces.
    wanted = [(t, p, s) for s in seeds_of(args.seeds) for t in traces for p in (RULES, LEARNED)]
    tasks = [(str(folder), *key) for key in wanted if key not in results]
    with ProcessPoolExecutor(args.jobs) as pool:
        for done, (key, allocation) in enumerate(pool.map(one, tasks), 1):
            results[key] = allocation
            if args.out is not None:
                with args.out.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps([*key, allocation]) + "\n")
            print(f"\r{done} of {len(tasks)} runs", end="", file=sys.stderr, flush=True)
    print("\n".join(report({key: results[key] for key in wanted}, traces)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
