"""Arrivals with durations: tasks come when the workload says, wait in the core's queue, run, and end."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from oarlock_matcher.core.devices import Node
from oarlock_matcher.core.effects import Effect, Queued, Rejected, Reserve
from oarlock_matcher.core.events import TaskArrived, TaskFinished, Tick
from oarlock_matcher.core.machine import decide
from oarlock_matcher.core.policy_settings import PolicySettings
from oarlock_matcher.simulator.causes import Tally, WaitLedger
from oarlock_matcher.simulator.files import Job
from oarlock_matcher.simulator.policies import start
from oarlock_matcher.simulator.workload import capacity_milli, milli_by_kind


@dataclass(frozen=True, slots=True)
class Run:
    """One task's run: `job` is its number in the workload, `milli` what it held of devices of `kind`."""

    job: int
    kind: str
    milli: int
    arrived_at: float
    started_at: float
    ended_at: float


@dataclass(frozen=True, slots=True)
class ArrivalsResult:
    """One run with arrivals and durations. Waits are of tasks that were placed, in arrival order; `runs` are in the
    order of their starts. `waited_seconds`: by owner and by the cause that the core told (told in full only where the
    settings keep explanations). `kinds_percent`: how busy each kind was, as `utilisation_percent` says of all."""

    utilisation_percent: float
    waits_seconds: tuple[float, ...]
    makespan_seconds: float
    placed: int
    rejected: int
    never_placed: int
    runs: tuple[Run, ...] = ()
    waited_seconds: Tally = field(default_factory=dict)
    kinds_percent: dict[str, float] = field(default_factory=dict)


def arrivals_run(
    nodes: Sequence[Node],
    jobs: Sequence[Job],
    policy: str,
    seed: int,
    settings: PolicySettings,
    watch: Callable[[int, int], None] | None = None,
) -> ArrivalsResult:
    """Tasks arrive when the file says and run as long as it says; those that find no room wait in the core's queue."""
    state = start(nodes, jobs, policy, seed, settings, publish=False)
    ordered = sorted(range(len(jobs)), key=lambda i: (jobs[i].arrival_seconds or 0.0, i))
    events = [(jobs[i].arrival_seconds or 0.0, 0, "arrive", i) for i in ordered]
    runs: dict[int, Run] = {}
    waits = WaitLedger()
    rejected = arrived = 0
    now = began = last_tick = events[0][0] if events else 0.0

    def apply(effects: Sequence[Effect]) -> int:
        for effect in effects:
            if isinstance(effect, Queued):
                waits.told(effect.task_id, jobs[int(effect.task_id)].demand.owner, effect.reasons, now)
            elif isinstance(effect, Rejected):
                waits.ended(effect.task_id, now)
            elif isinstance(effect, Reserve):
                waits.ended(effect.task_id, now)
                i, kind = int(effect.task_id), effect.placed.kind
                ends = now + jobs[i].seconds_on(kind)
                milli = sum(share.milli for share in effect.shares)
                runs[i] = Run(i, kind, milli, now - effect.placed.waited_seconds, now, ends)
                heapq.heappush(events, (ends, 1, "finish", i))
        return sum(isinstance(effect, Rejected) for effect in effects)

    while events:
        now, _, what, i = heapq.heappop(events)
        if what == "arrive":
            arrived += 1
            if watch is not None and arrived % 64 == 0:
                watch(arrived, len(jobs))
            demand = jobs[i].demand
            expected = jobs[i].duration_seconds if demand.expected_seconds is None else demand.expected_seconds
            demand = replace(demand, task_id=str(i), expected_seconds=expected)
            state, effects = decide(state, TaskArrived(demand), now)
        else:
            state, effects = decide(state, TaskFinished(str(i), 1, "succeeded"), now)
        rejected += apply(effects)
        if now - last_tick >= state.settings.hold_after_seconds:
            last_tick = now
            state, effects = decide(state, Tick(), now)
            rejected += apply(effects)
    return ArrivalsResult(
        utilisation_percent=busy_percent(tuple(runs.values()), capacity_milli(nodes), began, now),
        waits_seconds=tuple(runs[i].started_at - runs[i].arrived_at for i in ordered if i in runs),
        makespan_seconds=now - began,
        placed=len(runs),
        rejected=rejected,
        never_placed=len(state.queue),
        runs=tuple(runs.values()),
        waited_seconds=waits.close(now),
        kinds_percent={
            kind: busy_percent(tuple(runs.values()), milli, began, now, kind)
            for kind, milli in milli_by_kind(nodes).items()
        },
    )


def busy_percent(runs: Sequence[Run], capacity: int, begins: float, ends: float, kind: str | None = None) -> float:
    """Leased share of `capacity` device milli from `begins` to `ends`, of one kind's runs or of all."""
    if not capacity or ends <= begins:
        return 0.0
    chosen = (run for run in runs if kind is None or run.kind == kind)
    leased = sum(r.milli * max(0.0, min(r.ended_at, ends) - max(r.started_at, begins)) for r in chosen)
    return 100.0 * leased / (capacity * (ends - begins))
