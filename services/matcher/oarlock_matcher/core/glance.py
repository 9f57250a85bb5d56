"""Telling at a glance that waiting tasks still cannot be placed, so that an event that frees one device does not cost
a full look for every shape that waits.

A task that was tried in vain can only have become placeable on rows touched since, or held for another task then. For
those rows a few numbers bound what they could take, for all tasks at once; where every bound fails, trying would fail
too. When in doubt the answer is "try".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oarlock_matcher.core.able_models import CACHED_SHAPES, admitted_models
from oarlock_matcher.core.fleet import FleetTable
from oarlock_matcher.core.tasks import Blocked, TaskRecord

if TYPE_CHECKING:
    from oarlock_matcher.core.shapes import Shape
    from oarlock_matcher.core.state import MatcherState

LOOK_BACK = 1024
"""Changes looked through; a task that missed more of them is simply tried."""


class Glance:
    """One pass over the queue's heads, in which rows only fill up: what they could not take at its start they cannot
    take later in it either."""

    def __init__(self, state: MatcherState, heads: Sequence[TaskRecord]) -> None:
        self._state = state
        self._heads = heads
        self._position = state.fleet.touched_end
        self._begin()

    def _begin(self) -> None:
        fleet = self._state.fleet
        self._hold = self._state.hold
        self._version = fleet.inventory_version
        self._oldest = max(fleet.touched_base, self._position - LOOK_BACK)
        self._judged_at = -1
        self._hopeless: set[str] = set()
        self._asked: list[TaskRecord] = []
        self._pairs: Pairs | None = None
        self._hopeful = [record for record in self._heads if self._can_judge(record)]
        self.blocked_now = Blocked(self._position, self._hold, self._version)
        """What to note of a task that is blocked at this moment."""

    def follow_hold(self) -> None:
        """Begin anew if other rows are held for another task now, or none."""
        if self._hold is not self._state.hold:
            self._begin()

    def still_blocked(self, record: TaskRecord) -> bool:
        """Whether trying this task would certainly fail for want of devices again."""
        if self._hold is not self._state.hold:
            self._begin()
        task_id = record.turn.task_id
        if task_id in self._hopeless:
            return True
        end = self._state.fleet.touched_end
        if self._judged_at == end or not self._can_judge(record):
            return False
        self._judged_at = end
        if self._pairs is None:
            # Those that were placed or met a quota in this pass are not blocked any more.
            self._asked = [record for record in self._hopeful if record.blocked is not None]
            self._pairs = self._begin_pairs(self._asked)
            if self._pairs is None:
                return False
        else:
            self._pairs = self._pairs.that_fit(self._state.fleet, self._state.settings.sharers_per_device)
        left = {self._asked[number].turn.task_id for number in set(self._pairs.record.tolist())}
        self._hopeless = {record.turn.task_id for record in self._asked} - left
        return task_id in self._hopeless

    def _can_judge(self, record: TaskRecord) -> bool:
        blocked = record.blocked
        return (
            blocked is not None
            and blocked.position >= self._oldest
            and blocked.inventory_version == self._version
            and not record.spans
        )

    def _rows_in_question(self, records: Sequence[TaskRecord]) -> list[int] | None:
        """Rows touched since the first of these was tried, or held then but not now; `None`: too many to tell."""
        changed = self._state.fleet.changed_since(min(r.blocked.position for r in records if r.blocked is not None))
        if changed is None:
            return None
        holds = {id(r.blocked.hold): r.blocked.hold for r in records if r.blocked is not None}
        for hold in holds.values():
            if hold is not None and hold is not self._hold:
                changed += hold.rows.tolist()
        return list(dict.fromkeys(changed))

    def _begin_pairs(self, records: list[TaskRecord]) -> Pairs | None:
        """Which of the records which of the rows in question have devices, processors and memory enough for; `None`:
        too many rows to tell."""
        if not records:
            return Pairs.none()
        changed = self._rows_in_question(records)
        if changed is None:
            return None
        fleet, bounds = self._state.fleet, self._state.bounds
        whose = np.array([number for number, record in enumerate(records) for _ in record.shapes], dtype=np.intp)
        needs, models = bounds.of(fleet, [shape for record in records for shape in record.shapes])
        milli, cpu, memory = (needs[:, i, np.newaxis] for i in (1, 3, 4))
        rows = np.array(changed, dtype=np.intp)
        nodes = fleet.row_node[rows]
        most, processors = fleet.milli_free[rows].max(axis=1), fleet.cpu_free[nodes]
        # Most rows of a full fleet are too full for every one of the tasks.
        open_ = np.flatnonzero((most >= milli.min()) & (processors >= cpu.min()) & fleet.node_up[nodes])
        if not len(open_):
            return Pairs.none()
        rows, nodes = rows[open_], nodes[open_]
        room = (most[open_] >= milli) & (processors[open_] >= cpu) & (fleet.memory_free[nodes] >= memory)
        room &= models[:, fleet.row_model[rows]]
        which, at = np.nonzero(room)
        pairs = Pairs(whose[which], rows[at], nodes[at], needs[which])
        return pairs.that_fit(fleet, self._state.settings.sharers_per_device)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Tasks and rows that might take them: numbers of records, rows, their nodes, and what the task needs [pairs, 5].

    Within a pass rows only fill up, so that a pair that does not fit any more need never be looked at again.
    """

    record: NDArray[np.intp]
    row: NDArray[np.intp]
    node: NDArray[np.intp]
    needs: NDArray[np.int64]

    @staticmethod
    def none() -> Pairs:
        empty = np.zeros(0, dtype=np.intp)
        return Pairs(empty, empty, empty, np.zeros((0, 5), dtype=np.int64))

    def that_fit(self, fleet: FleetTable, sharers: int) -> Pairs:
        """Those whose row still has devices, processors and memory enough."""
        if not len(self.record):
            return self
        count, milli, device_bytes, cpu, memory = self.needs.T
        fits = fleet.milli_free[self.row] >= milli[:, np.newaxis]
        fits &= fleet.bytes_free[self.row] >= device_bytes[:, np.newaxis]
        fits &= fleet.sharers[self.row] < sharers
        good = np.count_nonzero(fits, axis=1) >= count
        good &= (fleet.cpu_free[self.node] >= cpu) & (fleet.memory_free[self.node] >= memory)
        if good.all():
            return self
        return Pairs(self.record[good], self.row[good], self.node[good], self.needs[good])


class Bounds:
    """What a row must at least have to take a shape, as a table that is looked up for many shapes at once."""

    def __init__(self) -> None:
        self._line_of: dict[int, int] = {}
        self._models = -1
        self._begin(0)

    def _begin(self, models: int) -> None:
        self._line_of.clear()
        self._models = models
        self._needs = np.zeros((64, 5), dtype=np.int64)
        self._admitted = np.zeros((64, models), dtype=np.bool_)

    def of(self, fleet: FleetTable, shapes: Sequence[Shape]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """(needs [shapes, 5]: devices, milli and bytes on each, cpu milli, main memory; admitted [shapes, models])."""
        if self._models != len(fleet.models) or len(self._line_of) > CACHED_SHAPES:
            self._begin(len(fleet.models))
        lines = [self._line_of.get(shape.number, -1) for shape in shapes]
        for at, line in enumerate(lines):
            if line < 0:
                lines[at] = self._add(fleet, shapes[at])
        return self._needs[lines], self._admitted[lines]

    def _add(self, fleet: FleetTable, shape: Shape) -> int:
        line = self._line_of.setdefault(shape.number, len(self._line_of))
        if line == len(self._needs):
            self._needs = np.concatenate((self._needs, np.zeros_like(self._needs)))
            self._admitted = np.concatenate((self._admitted, np.zeros_like(self._admitted)))
        milli = shape.milli if shape.count else 0
        self._needs[line] = (shape.count, milli, shape.bytes_at_least, shape.cpu_milli, shape.memory_bytes)
        self._admitted[line] = admitted_models(fleet, shape)
        return line
