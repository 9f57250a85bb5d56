"""Decisions per second and their latency, on one core, for fleets of several sizes and queues of several lengths.

    python -m benchmarks.decision_rate.run [--decisions 6000] [--policy NAME] [--large] [--explain N] [--best-of N]
                                           [--check]

A decision is one call of `core.machine.decide`: an arrival, or an end together with what it frees. Arrivals of a mix
of shared, single and gang tasks fill the fleet; from then on one random run ends for each that arrives. Fleet and tasks
are made by the seed; no data is needed. Times are the thread's own processor time, so that other programs on the
machine do not count as long as they leave the processor's caches alone. --best-of repeats each row and keeps the
fastest run, which is the one least disturbed (as `timeit` does it). --large adds 100,000 devices. --check exits 1
where a promise is broken, by the best of three unless --best-of says otherwise.
"""

from __future__ import annotations

import argparse
import random
import resource
import time
from collections.abc import Sequence

import numpy as np

from oarlock_matcher.core.demand import Demand
from oarlock_matcher.core.devices import Device, DeviceModel, Node
from oarlock_matcher.core.effects import Reserve
from oarlock_matcher.core.events import NodeSeen, TaskArrived, TaskFinished
from oarlock_matcher.core.machine import decide
from oarlock_matcher.core.policy_settings import DEFAULT_POLICY, PolicySettings
from oarlock_matcher.core.state import MatcherState

GIB = 2**30
# Nodes, devices on each, processors: a fleet of 1,213 nodes and 6,242 devices of seven kinds.
GROUPS = (
    ("G2", 549, 8, 96),
    ("T4", 387, 2, 104),
    ("T4", 17, 4, 96),
    ("P100", 134, 2, 64),
    ("V100M16", 53, 4, 32),
    ("G3", 39, 8, 128),
    ("V100M32", 26, 8, 96),
    ("A10", 8, 1, 128),
)
RATE_FLOOR = 2000.0
P99_CEILING_SECONDS = 0.005
P99_CEILING_LARGE_SECONDS = 0.050
QUEUE_FACTOR_CEILING = 1.5


def fleet(copies: int) -> list[Node]:
    """`copies` times the fleet above."""
    nodes: list[Node] = []
    for copy in range(copies):
        for kind, count, devices, cpus in GROUPS:
            model = DeviceModel(kind, "bench", 32 * GIB, fp32_flops=1e13, price_per_hour=1.0 + len(kind))
            for i in range(count):
                name = f"{kind}-{devices}-{copy}-{i}"
                held = tuple(Device(f"{name}/{d}", name, model) for d in range(devices))
                nodes.append(Node(name, "bench", cpus * 1000, 512 * GIB, held))
    return nodes


def demand(rng: random.Random, number: int) -> Demand:
    """One task: half of them share a device, a tenth are gangs, some name kinds, some need no device."""
    pick = rng.random()
    count = 0 if pick < 0.1 else 1 if pick < 0.9 else rng.choice((2, 4, 8))
    shared = count == 1 and rng.random() < 0.55
    size = rng.choice((4, 8, 12, 16)) * GIB
    return Demand(
        f"t{number}",
        owner=f"o{number % 20}",
        device_count=count,
        compute_milli=rng.choice((200, 300, 500, 700)) if shared else 1000,
        device_bytes=size // 2 if shared else size,
        reserve_bytes=size // 2 if shared else size,
        cpu_milli=1000 * rng.choice((2, 4, 6, 8)) * max(1, count),
        memory_bytes=8 * GIB,
        required_kinds=frozenset(rng.choice((("G2",), ("T4",), ("P100", "V100M16"))))
        if rng.random() < 0.1
        else frozenset(),
    )


def measure(
    copies: int, decisions: int, queue: int, explain: int, policy: str = DEFAULT_POLICY, seed: int = 1
) -> dict[str, float]:
    """Rates and latencies over `decisions` timed decisions, with at least `queue` tasks waiting."""
    rng = random.Random(seed)
    settings = PolicySettings(policy=policy, explain_limit=explain, reject_impossible=False)
    state = MatcherState(settings=settings)
    for node in fleet(copies):
        state, _ = decide(state, NodeSeen(node), 0.0)
    running: list[str] = []
    number, now = 0, 1.0
    times: list[float] = []

    def step(timed: bool, ending: bool) -> None:
        nonlocal state, number, now
        now += 0.01
        event: TaskArrived | TaskFinished
        if ending:
            at = rng.randrange(len(running))
            running[at], running[-1] = running[-1], running[at]
            event = TaskFinished(running.pop(), 1, "succeeded")
        else:
            event = TaskArrived(demand(rng, number))
            number += 1
        began = time.thread_time()
        state, effects = decide(state, event, now)
        if timed:
            times.append(time.thread_time() - began)
        running.extend(effect.task_id for effect in effects if isinstance(effect, Reserve))

    if queue:
        while len(state.queue) < queue:
            step(timed=False, ending=False)
        # One end for each arrival: the queue keeps its length.
        for i in range(decisions):
            step(timed=True, ending=i % 2 == 1)
    else:
        for _ in range(decisions):
            step(timed=True, ending=len(state.queue) > 0 and bool(running))
    took = np.array(times)
    return {
        "per_second": float(len(took) / took.sum()),
        "p50_seconds": float(np.percentile(took, 50)),
        "p99_seconds": float(np.percentile(took, 99)),
        "worst_seconds": float(took.max()),
        "queued": float(len(state.queue)),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=6000)
    parser.add_argument("--explain", type=int, default=0, help="candidates and reasons kept in detail (served: 16)")
    parser.add_argument("--policy", default=DEFAULT_POLICY)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--best-of", type=int, help="runs of each row, of which the fastest counts")
    args = parser.parse_args(arguments)
    best_of = max(1, args.best_of or (3 if args.check else 1))
    broken: list[str] = []
    print("| fleet | queue | decisions/s | p50 ms | p99 ms | worst ms |\n|---|---|---|---|---|---|")

    def show(name: str, copies: int, queue: int, decisions: int) -> dict[str, float]:
        runs = (measure(copies, decisions, queue, args.explain, args.policy) for _ in range(best_of))
        found = max(runs, key=lambda run: run["per_second"])
        cells = [found["per_second"], *(1000 * found[k] for k in ("p50_seconds", "p99_seconds", "worst_seconds"))]
        print(f"| {name} | {queue} | {cells[0]:.0f} | " + " | ".join(f"{c:.2f}" for c in cells[1:]) + " |", flush=True)
        return found

    found = show("1,213 nodes, 6,242 devices, filling up", 1, 0, args.decisions)
    if found["per_second"] < RATE_FLOOR or found["p99_seconds"] > P99_CEILING_SECONDS:
        broken.append(f"promised: {RATE_FLOOR:.0f} decisions/s with p99 of {1000 * P99_CEILING_SECONDS:.0f} ms")
    short = show("the same, full, one end per arrival", 1, 500, args.decisions // 3)
    if short["per_second"] < RATE_FLOOR or short["p99_seconds"] > P99_CEILING_SECONDS:
        broken.append(
            f"promised: {RATE_FLOOR:.0f} decisions/s with p99 of {1000 * P99_CEILING_SECONDS:.0f} ms when full"
        )
    long = show("the same, ten times the queue", 1, 5000, args.decisions // 3)
    if long["per_second"] * QUEUE_FACTOR_CEILING < short["per_second"]:
        broken.append(f"promised: ten times the queue costs at most {QUEUE_FACTOR_CEILING} times per decision")
    if args.large:
        found = show("19,408 nodes, 99,872 devices, filling up", 16, 0, args.decisions)
        if found["p99_seconds"] > P99_CEILING_LARGE_SECONDS:
            broken.append(f"promised: p99 of {1000 * P99_CEILING_LARGE_SECONDS:.0f} ms at 100,000 devices")
    print(f"\npeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    for line in broken:
        print("BROKEN:", line)
    return int(args.check and bool(broken))


if __name__ == "__main__":
    raise SystemExit(main())
