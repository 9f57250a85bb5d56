"""The experiments side by side: the published fill-up, and arrivals with durations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from oarlock_matcher.core.devices import WHOLE_MILLI, Node
from oarlock_matcher.core.effects import Reserve
from oarlock_matcher.core.events import TaskArrived
from oarlock_matcher.core.machine import decide
from oarlock_matcher.core.policy_settings import PolicySettings
from oarlock_matcher.simulator.arrivals import ArrivalsResult, arrivals_run
from oarlock_matcher.simulator.causes import Tally
from oarlock_matcher.simulator.closer_look import CloserLook
from oarlock_matcher.simulator.files import Job
from oarlock_matcher.simulator.policies import POLICY_NAMES, start
from oarlock_matcher.simulator.workload import asked_milli, capacity_milli, fill_up

QUIET = PolicySettings(explain_limit=0, sharers_per_device=WHOLE_MILLI, reject_impossible=False)
"""Settings of a simulation: nobody reads its explanations, and sharing is limited by compute alone as in the traces."""

EXPLAINED = 16
"""Reasons kept where charts tell them, as served."""


@dataclass(frozen=True, slots=True)
class FillResult:
    """One fill-up run. `allocation_percent`: mean allocated share of the fleet's device milli while the arrived share,
    rounded to whole percent, was the key. The rest only of a run in detail: `fragmentation_percent`, the share of the
    fleet's device milli that was idle but of no use to the workload's mix of tasks when that percent was reached
    (Weng et al.'s F); `kinds_percent`, the allocated share of each kind then; `left_out`, how many tasks found no
    place, by what they asked for and the cause."""

    allocation_percent: dict[int, float]
    arrived: int
    placed: int
    fragmentation_percent: dict[int, float] = field(default_factory=dict)
    kinds_percent: dict[str, dict[int, float]] = field(default_factory=dict)
    left_out: Tally = field(default_factory=dict)


def fill_run(
    nodes: Sequence[Node],
    trace: Sequence[Job],
    policy: str,
    seed: int,
    settings: PolicySettings = QUIET,
    watch: Callable[[int, int], None] | None = None,
    detail: bool = False,
) -> FillResult:
    """Tasks arrive one by one and stay; those that do not fit are not tried again, but count as arrived."""
    settings = replace(settings, explain_limit=EXPLAINED) if detail else settings
    state = start(nodes, trace, policy, seed, settings, publish=True)
    capacity = capacity_milli(nodes)
    workload = fill_up(trace, capacity, seed)
    arrived = allocated = placed = 0
    sums: dict[int, list[float]] = {}
    closer = CloserLook(state.fleet, workload) if detail else None
    for number, job in enumerate(workload):
        demand = replace(job.demand, task_id=str(number), timeout_seconds=0.0, expected_seconds=None)
        state, effects = decide(state, TaskArrived(demand), float(number))
        arrived += asked_milli(job)
        if effects and isinstance(effects[0], Reserve):
            placed += 1
            allocated += sum(share.milli for share in effects[0].shares)
        percent = round(100.0 * arrived / capacity) if capacity else 0
        if closer is not None:
            closer.look(percent, demand, effects)
        sums.setdefault(percent, []).append(100.0 * allocated / capacity if capacity else 0.0)
        if watch is not None and number % 256 == 0:
            watch(number, len(workload))
    found = FillResult(_without_gaps(sums), len(workload), placed)
    if closer is None:
        return found
    return replace(
        found, fragmentation_percent=closer.fragmentation, kinds_percent=closer.kinds, left_out=closer.left_out
    )


def _without_gaps(sums: dict[int, list[float]]) -> dict[int, float]:
    """The mean of each percent; one that a small fleet's arrivals jumped over has what was allocated before it."""
    filled: dict[int, float] = {}
    last = 0.0
    for key in range(max(sums, default=-1) + 1):
        if key in sums:
            filled[key] = sum(sums[key]) / len(sums[key])
            last = sums[key][-1]
        else:
            filled[key] = last
    return filled


def simulate(
    nodes: Sequence[Node],
    jobs: Sequence[Job],
    seeds: Sequence[int],
    policies: Sequence[str] = POLICY_NAMES,
    experiment: str = "fill",
    settings: PolicySettings = QUIET,
    watch: Callable[[str, int, int, int], None] | None = None,
    detail: bool = False,
) -> dict[str, list[FillResult] | list[ArrivalsResult]]:
    """Each policy on each seed; results by policy, in the order of the seeds.

    `watch(policy, seed, done, total)` is called now and then. `detail`: the first seed's runs keep what charts show.

    Raises:
        KeyError: no such policy.
        ValueError: no such experiment, or no seeds.
    """
    if experiment not in ("fill", "arrivals"):
        raise ValueError(f"there is no experiment {experiment!r}: it is `fill` or `arrivals`")
    if not seeds:
        raise ValueError("no seeds given")
    for name in policies:
        if name not in POLICY_NAMES:
            raise KeyError(f"no policy {name!r}; there are {', '.join(POLICY_NAMES)}")
    results: dict[str, list[FillResult] | list[ArrivalsResult]] = {}
    for name in policies:
        fills: list[FillResult] = []
        timed: list[ArrivalsResult] = []
        for seed in seeds:
            report = None if watch is None else _watching(watch, name, seed)
            closely = detail and seed == seeds[0]
            if experiment == "arrivals":
                explained = replace(settings, explain_limit=EXPLAINED) if closely else settings
                timed.append(arrivals_run(nodes, jobs, name, seed, explained, report))
            else:
                fills.append(fill_run(nodes, jobs, name, seed, settings, report, closely))
        results[name] = timed if experiment == "arrivals" else fills
    return results


def _watching(watch: Callable[[str, int, int, int], None], name: str, seed: int) -> Callable[[int, int], None]:
    return lambda done, total: watch(name, seed, done, total)
