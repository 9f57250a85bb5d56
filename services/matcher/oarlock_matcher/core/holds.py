"""Keeping devices for the task at the head of the queue, so that backfill cannot starve it.

When the head has waited `hold_after_seconds`, the rows where it can start soonest are held for it: they take no other
task, except one that is expected to end before the head could start. Running tasks on them end sooner or later, so
the head's wait is bounded by the longest of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oarlock_matcher.core.matching import fitting_devices
from oarlock_matcher.core.shapes import Shape

if TYPE_CHECKING:
    from oarlock_matcher.core.state import MatcherState
    from oarlock_matcher.core.tasks import TaskRecord

ROWS_LOOKED_AT = 64


@dataclass(frozen=True, slots=True)
class Hold:
    """`rows` are kept for `task_id`. `starts_at`: when it is expected to start there; `None` when that is unknown."""

    task_id: str
    rows: NDArray[np.intp]
    starts_at: float | None
    inventory_version: int


def closed_rows(state: MatcherState, record: TaskRecord, now: float) -> NDArray[np.intp] | None:
    """Rows that `record` may not use because they are held for another task that comes before it."""
    hold = state.hold
    if hold is None or hold.task_id == record.demand.task_id:
        return None
    holding = state.tasks.get(hold.task_id)
    if holding is None or holding.turn > record.turn:
        return None
    expected = record.demand.expected_seconds
    if expected is not None and hold.starts_at is not None and now + expected <= hold.starts_at:
        return None
    return hold.rows


def choose_hold(state: MatcherState, record: TaskRecord, now: float) -> Hold | None:
    """The rows to keep for `record`: where it can start soonest; `None` when nothing can take it as long as windows
    and health are what they are."""
    best: tuple[tuple[float, int, int], Hold] | None = None
    closure = state.calendar.closure(state.fleet, state.settings, record.demand, now)
    open_ = state.fleet.available if closure is None else state.fleet.available & ~closure.mask
    for shape in record.shapes:
        could = state.ever.of(state.fleet, shape, state.settings)
        up = state.fleet.node_up[state.fleet.row_node]
        could = np.where(up, could, -1)
        healthy = np.where(could >= 0, open_.sum(axis=1), 0)
        for rows, missing in _row_sets(state, shape, could, healthy):
            starts = _starts_at(state, rows, missing)
            rank = (float("inf") if starts is None else starts, missing, int(rows[0]))
            if best is None or rank < best[0]:
                hold = Hold(record.demand.task_id, rows, starts, state.fleet.inventory_version)
                best = (rank, hold)
        if best is not None:
            break
    return None if best is None else best[1]


def _row_sets(
    state: MatcherState, shape: Shape, could: NDArray[np.intp], healthy: NDArray[np.intp]
) -> list[tuple[NDArray[np.intp], int]]:
    """Single rows that could take the shape, the fullest of free devices first; or one set of rows for a gang that
    has to span nodes. Each with the number of devices that are missing there now."""
    need = max(shape.count, 0)
    able = np.flatnonzero((could >= need) & ((healthy >= need) if need else could >= 0))
    if len(able):
        free = fitting_devices(state.fleet, shape, state.settings, able).sum(axis=1)
        order = np.argsort(-free, kind="stable")[:ROWS_LOOKED_AT]
        return [(able[i : i + 1], max(0, need - int(free[i])) if need else 0) for i in order]
    if not shape.span_nodes:
        return []
    homes: dict[tuple[str, int], list[int]] = {}
    for row in np.flatnonzero(np.minimum(could, healthy) > 0).tolist():
        homes.setdefault((state.fleet.site_of(row), int(state.fleet.row_model[row])), []).append(row)
    sets: list[tuple[NDArray[np.intp], int]] = []
    for rows in homes.values():
        rows.sort(key=lambda r: (-int(healthy[r]), r))
        total, chosen = 0, []
        for row in rows:
            chosen.append(row)
            total += int(min(could[row], healthy[row]))
            if total >= need:
                together = np.array(chosen, dtype=np.intp)
                fits = fitting_devices(state.fleet, shape, state.settings, together)
                sets.append((together, max(0, need - int(fits.sum()))))
                break
    return sets


def _holders(state: MatcherState, rows: NDArray[np.intp]) -> set[str]:
    """Tasks that hold something on these rows, or processors of their nodes."""
    tasks: set[str] = set()
    for row in rows:
        for uid in state.fleet.uids[int(row)]:
            if uid is not None:
                tasks.update(task for task, _ in state.fleet.holders.get(uid, ()))
        tasks.update(task for task, _ in state.fleet.node_holders.get(state.fleet.node_name(int(row)), ()))
    return tasks


def _starts_at(state: MatcherState, rows: NDArray[np.intp], missing: int) -> float | None:
    """When enough of the rows' holders are expected to have ended; `None` when a duration is unknown. An upper bound:
    it waits for as many of them as devices are missing, in the order of their ends."""
    ends: list[float] = []
    for task in _holders(state, rows):
        record = state.tasks.get(task)
        end = None if record is None else record.ends_at()
        if end is None:
            return None
        ends.append(end)
    ends.sort()
    if not ends:
        return None
    return ends[min(len(ends), max(1, missing)) - 1]
