"""Drives the core through a workload and measures: the published fill-up, and arrivals with durations."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from oarlock_matcher.core.devices import WHOLE_MILLI, Node
from oarlock_matcher.core.effects import Effect, Rejected, Reserve
from oarlock_matcher.core.events import NodeSeen, TaskArrived, TaskFinished, Tick
from oarlock_matcher.core.machine import decide
from oarlock_matcher.core.policy_settings import DEFAULT_POLICY, PolicySettings
from oarlock_matcher.core.state import MatcherState
from oarlock_matcher.simulator.files import Job
from oarlock_matcher.simulator.policies import POLICY_NAMES, make_policy
from oarlock_matcher.simulator.workload import asked_milli, capacity_milli, fill_up, node_order

QUIET = PolicySettings(explain_limit=0, sharers_per_device=WHOLE_MILLI, reject_impossible=False)
"""Settings of a simulation: nobody reads its explanations, and sharing is limited by compute alone as in the traces."""


@dataclass(frozen=True, slots=True)
class FillResult:
    """One fill-up run. `allocation_percent`: mean allocated share of the fleet's device milli while the arrived share,
    rounded to whole percent, was the key."""

    allocation_percent: dict[int, float]
    arrived: int
    placed: int


@dataclass(frozen=True, slots=True)
class ArrivalsResult:
    """One run with arrivals and durations. Waits are of tasks that were placed, in arrival order."""

    utilisation_percent: float
    waits_seconds: tuple[float, ...]
    makespan_seconds: float
    placed: int
    rejected: int
    never_placed: int


def start(
    nodes: Sequence[Node], jobs: Sequence[Job], policy: str, seed: int, settings: PolicySettings, publish: bool
) -> MatcherState:
    """A state whose fleet is `nodes` in the seed's order, and whose policy is `policy`."""
    state = MatcherState(settings=replace(settings, policy=policy if policy != "random" else DEFAULT_POLICY))
    for node in node_order(nodes, seed):
        state, _ = decide(state, NodeSeen(node), 0.0)
    made = make_policy(policy, state.settings, state.fleet, jobs, seed, publish)
    # `random` is unknown to the core's registry: it answers under the name that the settings ask for.
    state.policies[state.settings.policy] = made
    return state


def fill_run(
    nodes: Sequence[Node],
    trace: Sequence[Job],
    policy: str,
    seed: int,
    settings: PolicySettings = QUIET,
    watch: Callable[[int, int], None] | None = None,
) -> FillResult:
    """Tasks arrive one by one and stay; those that do not fit are not tried again, but count as arrived."""
    state = start(nodes, trace, policy, seed, settings, publish=True)
    capacity = capacity_milli(nodes)
    workload = fill_up(trace, capacity, seed)
    arrived = allocated = placed = 0
    sums: dict[int, list[float]] = {}
    for number, job in enumerate(workload):
        demand = replace(job.demand, task_id=str(number), timeout_seconds=0.0, expected_seconds=None)
        state, effects = decide(state, TaskArrived(demand), float(number))
        arrived += asked_milli(job)
        if effects and isinstance(effects[0], Reserve):
            placed += 1
            allocated += sum(share.milli for share in effects[0].shares)
        sums.setdefault(round(100.0 * arrived / capacity), []).append(100.0 * allocated / capacity)
        if watch is not None and number % 256 == 0:
            watch(number, len(workload))
    return FillResult(_without_gaps(sums), len(workload), placed)


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


def arrivals_run(
    nodes: Sequence[Node], jobs: Sequence[Job], policy: str, seed: int, settings: PolicySettings = QUIET
) -> ArrivalsResult:
    """Tasks arrive when the file says and run as long as it says; those that find no room wait in the core's queue."""
    state = start(nodes, jobs, policy, seed, settings, publish=False)
    capacity = capacity_milli(nodes)
    events: list[tuple[float, int, str, int]] = []
    ordered = sorted(range(len(jobs)), key=lambda i: (jobs[i].arrival_seconds or 0.0, i))
    for i in ordered:
        events.append((jobs[i].arrival_seconds or 0.0, 0, "arrive", i))
    heapq.heapify(events)
    job_of: dict[str, int] = {}
    waits: dict[int, float] = {}
    rejected = 0
    busy = busy_seconds = 0.0
    now = began = events[0][0] if events else 0.0
    last_tick = now
    milli_of: dict[str, int] = {}

    def apply(effects: Sequence[Effect]) -> int:
        nonlocal busy
        turned_away = 0
        for effect in effects:
            if isinstance(effect, Reserve):
                i = job_of[effect.task_id]
                milli_of[effect.task_id] = sum(share.milli for share in effect.shares)
                busy += milli_of[effect.task_id]
                waits[i] = effect.placed.waited_seconds
                ends = now + (jobs[i].duration_seconds or 0.0)
                heapq.heappush(events, (ends, 1, "finish", i))
            elif isinstance(effect, Rejected):
                turned_away += 1
        return turned_away

    while events:
        when, _, what, i = heapq.heappop(events)
        busy_seconds += busy * (when - now)
        now = when
        task_id = str(i)
        if what == "arrive":
            job_of[task_id] = i
            demand = replace(jobs[i].demand, task_id=task_id, expected_seconds=jobs[i].duration_seconds)
            state, effects = decide(state, TaskArrived(demand), now)
        else:
            busy -= milli_of.pop(task_id)
            state, effects = decide(state, TaskFinished(task_id, 1, "succeeded"), now)
        rejected += apply(effects)
        if now - last_tick >= state.settings.hold_after_seconds:
            last_tick = now
            state, effects = decide(state, Tick(), now)
            rejected += apply(effects)
    span = now - began
    return ArrivalsResult(
        utilisation_percent=100.0 * busy_seconds / (capacity * span) if span and capacity else 0.0,
        waits_seconds=tuple(waits[i] for i in ordered if i in waits),
        makespan_seconds=span,
        placed=len(waits),
        rejected=rejected,
        never_placed=len(state.queue),
    )


def simulate(
    nodes: Sequence[Node],
    jobs: Sequence[Job],
    seeds: Sequence[int],
    policies: Sequence[str] = POLICY_NAMES,
    experiment: str = "fill",
    settings: PolicySettings = QUIET,
    watch: Callable[[str, int, int, int], None] | None = None,
) -> dict[str, list[FillResult] | list[ArrivalsResult]]:
    """Each policy on each seed; results by policy, in the order of the seeds.

    `watch(policy, seed, done, total)` is called now and then.

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
        if experiment == "arrivals":
            results[name] = [arrivals_run(nodes, jobs, name, seed, settings) for seed in seeds]
            continue
        runs: list[FillResult] = []
        for seed in seeds:
            report = None if watch is None else _watching(watch, name, seed)
            runs.append(fill_run(nodes, jobs, name, seed, settings, report))
        results[name] = runs
    return results


def _watching(watch: Callable[[str, int, int, int], None], name: str, seed: int) -> Callable[[int, int], None]:
    return lambda done, total: watch(name, seed, done, total)
