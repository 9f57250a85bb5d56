"""Which kind the matcher gives a job when all are free, and the speed that this loses against the fastest kind.

    python -m benchmarks.placement.kinds [--data DIR] [--preset throughput] [--check]

The jobs are those of Gavel's table (Narayanan et al., OSDI'20) whose model is public, on one K80, P100 or V100. The
table is looked for in --data, then $OARLOCK_DATA/traces/throughput, then beside the checkout. The profiler reads a
script of each job and predicts its step times from data sheets; the matcher's core places it with the weights of the
preset on a fleet that has one idle node of each kind. Nothing measured goes in.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.placement.sharing import table_folder
from benchmarks.prediction_error.step_time import GavelJob, gavel_jobs
from oarlock_matcher.core.demand import Demand
from oarlock_matcher.core.devices import Device, DeviceModel, Node
from oarlock_matcher.core.effects import Reserve
from oarlock_matcher.core.events import NodeSeen, TaskArrived
from oarlock_matcher.core.machine import decide
from oarlock_matcher.core.policy_settings import PRESETS, PolicySettings
from oarlock_matcher.core.state import MatcherState

REGRET_CEILING = 0.05


def chosen(job: GavelJob, preset: str) -> str:
    """The GPU that the matcher gives the job.

    Raises:
        RuntimeError: it gives none.
    """
    state = MatcherState(settings=PolicySettings().with_preset(preset))
    for gpu in job.measured:
        model = DeviceModel(gpu, "nvidia", 16 * 2**30)
        state, _ = decide(state, NodeSeen(Node(gpu, "lab", None, None, (Device(f"{gpu}/0", gpu, model),))), 0.0)
    steps = {gpu: seconds for gpu, seconds in job.predicted.items() if seconds is not None}
    state, effects = decide(state, TaskArrived(Demand(job.name, step_seconds=steps)), 0.0)
    placed = next((effect.placed for effect in effects if isinstance(effect, Reserve)), None)
    if placed is None or placed.kind is None:
        raise RuntimeError(f"{job.name} was not placed")
    return placed.kind


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--preset", choices=sorted(PRESETS), default="throughput")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args(arguments)
    folder = table_folder(args.data, "gavel_steps_per_second.csv")
    if folder is None:
        print("Gavel's table is not on this machine: give --data or OARLOCK_DATA. Nothing was measured.")
        return 1
    print("| job | chosen | fastest | speed lost |\n|---|---|---|---|")
    lost = []
    for job in gavel_jobs(folder):
        gpu = chosen(job, args.preset)
        lost.append(job.regret(gpu))
        print(f"| {job.name} | {gpu} | {max(job.measured, key=job.measured.__getitem__)} | {lost[-1]:.1%} |")
    mean = sum(lost) / len(lost)
    print(
        f"\n{len(lost)} jobs, preset {args.preset}: {mean:.1%} of the speed lost on average, at worst {max(lost):.1%}"
    )
    return int(args.check and mean > REGRET_CEILING)


if __name__ == "__main__":
    raise SystemExit(main())
