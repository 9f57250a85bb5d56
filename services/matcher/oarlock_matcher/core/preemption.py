"""Ending runs of lower priority for the task at the head of the queue. Off unless operators switch it on.

The victims are asked to end and to save a checkpoint; their leases stay until their runs have really ended, and the
rows are held for the task meanwhile. The service resubmits the victims as new attempts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oarlock_matcher.core.effects import Preempt
from oarlock_matcher.core.holds import Hold

if TYPE_CHECKING:
    from oarlock_matcher.core.state import MatcherState
    from oarlock_matcher.core.tasks import TaskRecord


def preempt(state: MatcherState, head: TaskRecord, now: float) -> list[Preempt]:
    """Victims for `head`: on one row, the lowest priorities, then the latest started, the fewest that suffice. Nothing
    while earlier victims of its are still ending."""
    settings, fleet = state.settings, state.fleet
    if any(record.preempting for record in state.tasks.values() if record.preempting):
        return []
    shape = head.shapes[0]
    if shape.count == 0:
        return []
    could = state.ever.of(fleet, shape, settings)
    closure = state.calendar.closure(fleet, settings, head.demand, now)
    open_ = fleet.available if closure is None else fleet.available & ~closure.mask
    best: tuple[tuple[int, int, float], int, list[TaskRecord]] | None = None
    for row in range(fleet.size):
        if could[row] < shape.count or not fleet.node_up[fleet.row_node[row]]:
            continue
        victims = _victims(state, head, row, open_[row])
        if victims:
            rank = (max(v.demand.priority for v in victims), len(victims), -min(v.placed_at or 0.0 for v in victims))
            if best is None or rank < best[0]:
                best = (rank, row, victims)
    if best is None:
        return []
    _, row, victims = best
    rows = fleet.all_rows()[row : row + 1]
    starts = now + settings.preemption_grace_seconds
    state.hold = Hold(head.demand.task_id, rows, starts, fleet.inventory_version)
    effects: list[Preempt] = []
    for victim in victims:
        victim.preempting = True
        effects.append(
            Preempt(
                victim.demand.task_id,
                victim.demand.attempt,
                settings.preemption_grace_seconds,
                head.demand.task_id,
                f"{head.demand.task_id} has priority {head.demand.priority}, this has {victim.demand.priority}",
            )
        )
    return effects


def _victims(state: MatcherState, head: TaskRecord, row: int, open_: NDArray[np.bool_]) -> list[TaskRecord]:
    """The runs to end on this row's `open_` devices so that `head` can start there; empty when that cannot be
    reached."""
    fleet, shape = state.fleet, head.shapes[0]
    gap = state.settings.preemption_priority_gap
    usable = 0
    options: list[tuple[int, float, set[str]]] = []
    for slot, uid in enumerate(fleet.uids[row]):
        if uid is None or not open_[slot]:
            continue
        held = fleet.holders.get(uid, {})
        if not held:
            usable += 1
            continue
        records = [state.tasks.get(task) for task, attempt in held]
        if any(r is None or r.demand.priority + gap > head.demand.priority for r in records):
            continue
        known = [r for r in records if r is not None]
        options.append(
            (
                max(r.demand.priority for r in known),
                -min(r.placed_at or 0.0 for r in known),
                {r.demand.task_id for r in known},
            )
        )
    options.sort(key=lambda option: (option[0], option[1], sorted(option[2])))
    chosen: set[str] = set()
    for _, _, tasks in options:
        if usable >= shape.count:
            break
        chosen |= tasks
        usable += 1
    if usable < shape.count:
        return []
    victims = [state.tasks[task] for task in sorted(chosen)]
    node = int(fleet.row_node[row])
    cpu = int(fleet.cpu_free[node]) + sum(s.cpu_milli for v in victims for s in v.node_shares)
    memory = int(fleet.memory_free[node]) + sum(s.memory_bytes for v in victims for s in v.node_shares)
    return victims if cpu >= shape.cpu_milli and memory >= shape.memory_bytes else []
