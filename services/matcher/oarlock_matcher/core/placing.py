"""Choosing devices for one task: quota, then each device count that it allows, then a gang over several nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oarlock_matcher.core import costs
from oarlock_matcher.core.deadlines import promptness
from oarlock_matcher.core.devices import NodeShare, Share
from oarlock_matcher.core.effects import Candidate, Placed, Reason, Shadow
from oarlock_matcher.core.explain import closed_devices, rejections
from oarlock_matcher.core.gangs import pick_slots, span
from oarlock_matcher.core.holds import closed_rows
from oarlock_matcher.core.matching import ShapeView
from oarlock_matcher.core.policies.base import INFEASIBLE
from oarlock_matcher.core.policies.registry import BUILDERS

if TYPE_CHECKING:
    from oarlock_matcher.core.shapes import Shape
    from oarlock_matcher.core.state import MatcherState
    from oarlock_matcher.core.tasks import TaskRecord


@dataclass(frozen=True, slots=True)
class Chosen:
    """A shape and where it goes: (row, device columns) for one or more rows. `prompt`: what each model's score gains
    by the task's deadline."""

    shape: Shape
    view: ShapeView
    picks: tuple[tuple[int, tuple[int, ...]], ...]
    prompt: NDArray[np.float64] | None = None


def find_place(state: MatcherState, record: TaskRecord, now: float) -> Chosen | Reason | None:
    """Where the task can go now; a `Reason` when a rule of the queue (its quota) forbids it; `None` when no device
    is free."""
    demand = record.demand
    if demand.array is not None and demand.array_at_once is not None:
        running = state.arrays.get(demand.array, 0)
        if running >= demand.array_at_once:
            text = f"{running} of array {demand.array} hold devices, and {demand.array_at_once} may at a time"
            return Reason("array_limit", text)
    closed = closed_rows(state, record, now)
    quota = state.settings.quota_of(record.demand.owner)
    usage = state.usage_of(record.demand.owner)
    name, _ = state.answering(record.demand.algorithm)
    policy = state.policy(name)
    closure = state.calendar.closure(state.fleet, state.settings, record.demand, now)
    prompt = promptness(demand, state.fleet.models, state.settings.weights.deadline, now)
    over: str | None = None
    best: Chosen | None = None
    for shape in record.shapes:
        over = usage.over(quota, shape)
        if over is not None:
            break
        if best is not None and not _more_pays(state, record, best.shape, shape):
            break
        view = state.views.of(shape, policy, state.settings, state.fleet, closure)
        row = view.best(state.fleet, closed, prompt)
        if row is not None:
            best = Chosen(shape, view, (_pick(state, view, row),), prompt)
        elif best is None and shape.span_nodes and shape.count > 1:
            picks = _span(state, view, closed, prompt)
            if picks is not None:
                best = Chosen(shape, view, picks, prompt)
    if best is None and over is not None:
        return Reason("quota", f"{record.demand.owner} {over}")
    return best


def _more_pays(state: MatcherState, record: TaskRecord, less: Shape, more: Shape) -> bool:
    """Whether `num_gpus: auto` should go from `less` to `more` devices: nobody else waits, and each device keeps
    enough of its speed."""
    others = len(state.queue) - (1 if record.demand.task_id in state.queue else 0)
    speedups = record.demand.speedup_by_count
    if others or more.count not in speedups:
        return False
    gained = speedups[more.count] / speedups.get(less.count, 1.0 if less.count == 1 else float("inf"))
    return gained >= state.settings.auto_efficiency * more.count / less.count


def _pick(state: MatcherState, view: ShapeView, row: int) -> tuple[int, tuple[int, ...]]:
    shape = view.shape
    if shape.count == 0:
        return row, ()
    if not shape.whole:
        return row, (int(view.slot[row]),)
    fits = view.devices_of(state.fleet, np.array([row], dtype=np.intp))[0]
    return row, pick_slots(state.fleet, row, fits, shape.count)


def _span(
    state: MatcherState, view: ShapeView, closed: NDArray[np.intp] | None, prompt: NDArray[np.float64] | None
) -> tuple[tuple[int, tuple[int, ...]], ...] | None:
    fitting = view.fitting.copy()
    if closed is not None:
        fitting[closed] = 0
    models = state.fleet.models
    cost = [costs.step_cost(view.shape, m) or costs.step_seconds(view.shape, m) for m in models]
    ranked = np.array([-r for r in costs.relative(cost)])
    if prompt is not None:
        ranked -= prompt
    chosen = span(state.fleet, view.shape, fitting, ranked)
    if chosen is None:
        return None
    picks: list[tuple[int, tuple[int, ...]]] = []
    for row, count in chosen:
        fits = view.devices_of(state.fleet, np.array([row], dtype=np.intp))[0]
        picks.append((row, pick_slots(state.fleet, row, fits, count)))
    return tuple(picks)


def leases_of(state: MatcherState, chosen: Chosen) -> tuple[tuple[Share, ...], tuple[NodeShare, ...]]:
    """The leases that the choice needs, devices sorted by uid and nodes by name."""
    fleet, shape = state.fleet, chosen.shape
    shares: list[Share] = []
    nodes: list[NodeShare] = []
    left_cpu, left_memory, left_count = shape.cpu_milli, shape.memory_bytes, max(1, shape.count)
    for row, slots in chosen.picks:
        node = fleet.node_name(row)
        for slot in slots:
            uid = fleet.uids[row][slot] or ""
            known = shape.device_bytes is not None or shape.reserve_bytes is not None
            leased = shape.lease_bytes if known else (int(fleet.bytes_free[row, slot]) if shape.whole else 0)
            shares.append(Share(uid, node, leased, shape.milli, shape.exclusive, shape.busy_milli))
        # The last node of a gang takes what rounding left over, so that the parts add up to what was asked for.
        part = min(left_count, max(1, len(slots)))
        cpu = left_cpu * part // left_count
        memory = left_memory * part // left_count
        left_cpu, left_memory, left_count = left_cpu - cpu, left_memory - memory, left_count - part
        nodes.append(NodeShare(node, cpu, memory))
    shares.sort(key=lambda share: share.device_uid)
    nodes.sort(key=lambda share: share.node)
    return tuple(shares), tuple(nodes)


def describe(
    state: MatcherState,
    record: TaskRecord,
    chosen: Chosen,
    shares: tuple[Share, ...],
    node_shares: tuple[NodeShare, ...],
    now: float,
) -> Placed:
    """The placement with what led to it: every candidate's score, the best in detail, why the others were out."""
    fleet, view, shape = state.fleet, chosen.view, chosen.shape
    row = chosen.picks[0][0]
    name, note = state.answering(record.demand.algorithm)
    scores = view.weighed
    limit = state.settings.explain_limit
    node_scores: tuple[tuple[str, float], ...] = ()
    candidates: tuple[Candidate, ...] = ()
    out: tuple[Reason, ...] = ()
    if limit > 0:
        able = np.flatnonzero(scores > INFEASIBLE)
        order = able[np.argsort(-scores[able], kind="stable")]
        names = [fleet.row_names[r] for r in order.tolist()]
        node_scores = tuple(zip(names, scores[order].tolist(), strict=True))
        best = order[:limit]
        candidates = tuple(
            Candidate(fleet.row_names[r], fleet.model_of(r).kind, float(scores[r]), _parts(state, chosen, r, parts))
            for r, parts in zip(best.tolist(), view.policy.parts(fleet, shape, best), strict=True)
        )
        if len(fleet.devices) <= limit:
            out = rejections(fleet, shape, state.settings, closed=closed_devices(state, record, now))
    score = float(scores[row])
    return Placed(
        task_id=record.demand.task_id,
        attempt=record.demand.attempt,
        site=fleet.site_of(row),
        shares=shares,
        node_shares=node_shares,
        kind=fleet.model_of(row).kind,
        policy=name,
        policy_note=note,
        score=score if score > INFEASIBLE else 0.0,
        node_scores=node_scores,
        candidates=candidates,
        rejections=out,
        waited_seconds=max(0.0, now - record.arrived_at),
        step_seconds=costs.step_seconds(shape, fleet.model_of(row)),
        shadow=_shadow(state, record, chosen, name, now),
    )


def _parts(state: MatcherState, chosen: Chosen, row: int, parts: Mapping[str, float]) -> Mapping[str, float]:
    if chosen.prompt is None:
        return parts
    return {**parts, "deadline": float(chosen.prompt[state.fleet.row_model[row]])}


def _shadow(state: MatcherState, record: TaskRecord, chosen: Chosen, answering: str, now: float) -> Shadow | None:
    """What the policy in the shadow would have chosen; `None` when there is none, or it is the one that answers."""
    name = state.settings.shadow_policy
    if name not in BUILDERS or name == answering:
        return None
    closure = state.calendar.closure(state.fleet, state.settings, record.demand, now)
    view = state.views.of(chosen.shape, state.policy(name), state.settings, state.fleet, closure)
    row = view.best(state.fleet, closed_rows(state, record, now), chosen.prompt)
    if row is None:
        return None
    return Shadow(name, state.fleet.node_name(row), state.fleet.model_of(row).kind, row == chosen.picks[0][0])
