"""Train the learned policy and write its weights into the matcher's package.

    make train-policy            or: python -m benchmarks.placement.train [--rounds 20] [--jobs 2] [--out FILE]

Trains on two of the public traces (default, gpuspec10) and variations of them, never on the others; what comes out is
compared with the rules on traces and seeds that training has not seen by `python -m benchmarks.placement.learned`.
The same seed gives the same weights. --log keeps each round.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import oarlock_matcher
from benchmarks.placement.run import data_folder
from oarlock_matcher.core.devices import Node
from oarlock_matcher.core.policies.learned_weights import FILE
from oarlock_matcher.core.policies.packing_features import FEATURES
from oarlock_matcher.core.policy_settings import LearnedWeights
from oarlock_matcher.simulator.files import Job, read_jobs, read_nodes
from oarlock_matcher.simulator.training import Plan, Scenario, scenario_seed, score, search, train, variations

TRACES = ("default", "gpuspec10")

_nodes: list[Node] = []
_workloads: dict[str, list[Job]] = {}


def _load(folder: str) -> None:
    """In each process once; where processes are forked, only in the first."""
    if _nodes:
        return
    _nodes[:] = read_nodes(Path(folder) / "openb_node_list_gpu_node.csv")
    plain, constrained = (read_jobs(Path(folder) / f"openb_pod_list_{trace}.csv") for trace in TRACES)
    _workloads.update(variations(plain, constrained))


def _score(pair: tuple[LearnedWeights, Scenario]) -> float:
    return score(_nodes, _workloads, *pair)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rounds", type=int, default=Plan().rounds)
    parser.add_argument("--seed", type=int, default=Plan().seed)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--out", type=Path, default=Path(oarlock_matcher.__file__).parent / "core" / "policies" / FILE)
    args = parser.parse_args()
    folder = data_folder(args.data)
    if folder is None:
        print("The openb traces are not on this machine: give --data or OARLOCK_DATA. Nothing was trained.")
        return 1
    plan = Plan(rounds=args.rounds, seed=args.seed)
    _load(str(folder))
    with ProcessPoolExecutor(args.jobs, initializer=_load, initargs=(str(folder),)) as pool:

        def evaluate(pairs: Sequence[tuple[LearnedWeights, Scenario]]) -> list[float]:
            return list(pool.map(_score, pairs, chunksize=4))

        for found in train(evaluate, list(_workloads), plan):
            print(f"round {found.number + 1} of {plan.rounds}: expects {found.expected_gain:+.3f}", file=sys.stderr)
            if args.log is not None:
                with args.log.open("a", encoding="utf-8") as log:
                    log.write(json.dumps(asdict(found)) + "\n")
        chosen, by_step = search(evaluate, ("plain", "constrained"), found.weights)
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    document = {
        "version": f"{today}.{chosen.version}",
        "date": today,
        "features": list(FEATURES),
        "weights": chosen.weights,
        "training": {
            "traces": [f"openb {trace}" for trace in TRACES],
            "variations": list(_workloads),
            "seeds": [scenario_seed(plan, 0), scenario_seed(plan, plan.rounds * plan.scenarios - 1)],
            "plan": asdict(plan),
            "score": {"expected_gain_points": round(found.expected_gain, 3), "whole_fleet_by_step": by_step},
        },
    }
    text = json.dumps(document, indent=2) + "\n"
    args.out.write_text(text, encoding="utf-8")
    print(f"wrote {args.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
