"""A cluster over days: the matcher against first-in-first-out with kinds that users declare, at the same arrivals.

    python -m benchmarks.placement.arrivals [--seeds 1-5] [--days 7] [--load 1.0] [--format table|json] [--check]

The fleet is `deploy/fleets/seed.yaml` (24 devices of four kinds), the workload `simulator.generated.philly_like`.
"Before": a queue for each kind, in the order of arrival; a task waits for the kind that its user declared, and whoever
is first in a queue holds up the rest of it. "After": the matcher's core as it serves, with predicted step times and
durations (wrong by a factor of exp(±0.3)), priorities and a quota for each owner. Both get the same tasks; a run's
length depends on the kind it got. Busy is the share of device-seconds leased between the end of the first half day and
the last arrival.
"""

from __future__ import annotations

import argparse
import heapq
import json
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from oarlock_accelerators.fleet import Fleet
from oarlock_matcher.core.devices import Device, DeviceModel, Node
from oarlock_matcher.core.policy_settings import PolicySettings, Quota
from oarlock_matcher.simulator.arrivals import Run, arrivals_run, busy_percent
from oarlock_matcher.simulator.cli import seeds_of
from oarlock_matcher.simulator.generated import DAY_SECONDS, UNSUPPORTED, DeclaredJob, Habits, philly_like
from oarlock_matcher.simulator.workload import capacity_milli

SEED_FLEET = Path(__file__).resolve().parents[2] / "deploy" / "fleets" / "seed.yaml"
STEP_FACTOR = {"A100-SXM4-40GB": 1.0, "Ascend 910A": 1.3, "V100-PCIE-32GB": 1.7, "RTX 3090": 1.8}
DECLARES = {"A100-SXM4-40GB": 0.5, "V100-PCIE-32GB": 0.3, "RTX 3090": 0.15, "Ascend 910A": 0.05}
"""Users ask for what they know and what is fastest; few ask for a domestic device of their own accord."""
QUOTA_DEVICES = 12
WARM_UP_SECONDS = DAY_SECONDS / 2
BUSY_FLOOR_PERCENT = 83.0


@dataclass(frozen=True, slots=True)
class Figures:
    """What one way of placing did to one workload. Waits are in seconds, over all tasks that started."""

    busy_percent: float
    busy_percent_by_kind: dict[str, float]
    finished_before_last_arrival: int
    wait_mean: float
    wait_p99: float
    wait_longest: float
    wait_mean_by_priority: dict[int, float]
    most_devices_of_one_owner: int
    turnaround_mean: float
    never_started: int


def seed_fleet(path: Path = SEED_FLEET) -> list[Node]:
    """The nodes of a fleet file as the matcher's core knows them.

    Raises:
        ValueError: a device of no known kind.
    """
    nodes: list[Node] = []
    for node in Fleet.load(path).nodes:
        devices = []
        for number, found in enumerate(node.devices):
            if found.kind is None or found.total_bytes is None:
                raise ValueError(f"{path}: {found.name} is of no known kind")
            domestic = found.kind.domestic
            model = DeviceModel(
                found.kind.name,
                found.vendor,
                found.total_bytes,
                price_per_hour=found.price_per_hour,
                domestic=domestic,
                unsupported_kernels=frozenset({UNSUPPORTED}) if domestic else frozenset(),
                simulated=True,
            )
            devices.append(Device(f"{node.name}/{number}", node.name, model))
        cpu = None if node.cpu_cores is None else int(1000 * node.cpu_cores)
        nodes.append(Node(node.name, node.site, cpu, node.memory_bytes, tuple(devices)))
    return nodes


def first_in_first_out(nodes: Sequence[Node], jobs: Sequence[DeclaredJob]) -> list[Run]:
    """Whole devices of the declared kind, on one node, in strict order of arrival among those that declared it."""
    free: dict[tuple[str, str], int] = {}
    for node in nodes:
        for device in node.devices:
            key = (device.model.kind, node.name)
            free[key] = free.get(key, 0) + 1
    waiting: dict[str, deque[int]] = {kind: deque() for kind, _ in free}
    events = [(declared.job.arrival_seconds or 0.0, 0, i) for i, declared in enumerate(jobs)]
    held: dict[int, tuple[tuple[str, str], int]] = {}
    runs: list[Run] = []
    while events:
        now, ends, i = heapq.heappop(events)
        if ends:
            key, count = held.pop(i)
            free[key] += count
        else:
            waiting[jobs[i].declared_kind].append(i)
        line = waiting[jobs[i].declared_kind]
        while line:
            job = jobs[line[0]].job
            count = int(job.demand.device_count)
            home = next((k for k, n in free.items() if k[0] == jobs[line[0]].declared_kind and n >= count), None)
            if home is None:
                break
            started = line.popleft()
            free[home] -= count
            held[started] = (home, count)
            end = now + job.seconds_on(home[0])
            runs.append(Run(started, home[0], 1000 * count, job.arrival_seconds or 0.0, now, end))
            heapq.heappush(events, (end, 1, started))
    return runs


def figures(nodes: Sequence[Node], jobs: Sequence[DeclaredJob], runs: Sequence[Run]) -> Figures:
    """The figures of one way of placing."""
    last = jobs[-1].job.arrival_seconds or 0.0
    of_kind: dict[str, int] = {}
    for node in nodes:
        for device in node.devices:
            of_kind[device.model.kind] = of_kind.get(device.model.kind, 0) + 1000
    waits = np.array([run.started_at - run.arrived_at for run in runs])
    priorities = np.array([jobs[run.job].job.demand.priority for run in runs])
    return Figures(
        busy_percent=busy_percent(runs, capacity_milli(nodes), WARM_UP_SECONDS, last),
        busy_percent_by_kind={k: busy_percent(runs, milli, WARM_UP_SECONDS, last, k) for k, milli in of_kind.items()},
        finished_before_last_arrival=sum(run.ended_at <= last for run in runs),
        wait_mean=float(waits.mean()),
        wait_p99=float(np.percentile(waits, 99)),
        wait_longest=float(waits.max()),
        wait_mean_by_priority={int(p): float(waits[priorities == p].mean()) for p in np.unique(priorities)},
        most_devices_of_one_owner=most_at_once(jobs, runs),
        turnaround_mean=float(np.mean([run.ended_at - run.arrived_at for run in runs])),
        never_started=len(jobs) - len(runs),
    )


def most_at_once(jobs: Sequence[DeclaredJob], runs: Sequence[Run]) -> int:
    """The most devices that any owner held at one time."""
    changes: dict[str, list[tuple[float, int]]] = {}
    for run in runs:
        of_owner = changes.setdefault(jobs[run.job].job.demand.owner, [])
        of_owner += [(run.started_at, run.milli // 1000), (run.ended_at, -(run.milli // 1000))]
    most = 0
    for of_owner in changes.values():
        held = 0
        for _, change in sorted(of_owner):
            held += change
            most = max(most, held)
    return most


def compare(seed: int, habits: Habits) -> dict[str, Figures]:
    """Before and after on one workload."""
    nodes = seed_fleet()
    jobs = philly_like(nodes, STEP_FACTOR, habits, seed)
    settings = PolicySettings(explain_limit=0, default_quota=Quota(devices=QUOTA_DEVICES), hold_after_seconds=600.0)
    after = arrivals_run(nodes, [declared.job for declared in jobs], settings.policy, seed, settings)
    return {
        "fifo_declared_kinds": figures(nodes, jobs, first_in_first_out(nodes, jobs)),
        settings.policy: figures(nodes, jobs, after.runs),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1-5")
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--load", type=float, default=1.0)
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args(arguments)
    habits = Habits(load=args.load, days=args.days, declares=DECLARES)
    found = {seed: compare(seed, habits) for seed in seeds_of(args.seeds)}
    if args.format == "json":
        print(json.dumps({s: {name: asdict(f) for name, f in by.items()} for s, by in found.items()}, indent=2))
    else:
        print("| seed | placed by | busy % | wait mean s | p99 s | longest s | by priority | turnaround s | finished |")
        print("|---" * 9 + "|")
        for seed, by_name in found.items():
            for name, f in by_name.items():
                levels = " / ".join(f"{wait:.0f}" for wait in f.wait_mean_by_priority.values())
                waits = f"{f.wait_mean:.0f} | {f.wait_p99:.0f} | {f.wait_longest:.0f} | {levels}"
                print(
                    f"| {seed} | {name} | {f.busy_percent:.1f} | {waits} | {f.turnaround_mean:.0f} | "
                    f"{f.finished_before_last_arrival} |"
                )
    broken = []
    for seed, by_name in found.items():
        ours = by_name[PolicySettings().policy]
        if ours.busy_percent < BUSY_FLOOR_PERCENT:
            broken.append(f"seed {seed}: busy {ours.busy_percent:.1f} %, aimed at {BUSY_FLOOR_PERCENT:.0f} %")
        if ours.never_started or ours.most_devices_of_one_owner > QUOTA_DEVICES:
            broken.append(f"seed {seed}: {ours.never_started} never started, {ours.most_devices_of_one_owner} at once")
    for line in broken:
        print("BROKEN:", line)
    return int(args.check and bool(broken))


if __name__ == "__main__":
    raise SystemExit(main())
