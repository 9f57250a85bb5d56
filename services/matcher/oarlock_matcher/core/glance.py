"""Telling at a glance that a waiting task still cannot be placed, so that an event that frees one device does not
cost a full look for every shape that waits.

A task that was tried in vain can only have become placeable on rows touched since. For those rows a few numbers bound
what they could take; where every bound fails, trying would fail too. When in doubt the answer is "try".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oarlock_matcher.core.fleet import FleetTable
from oarlock_matcher.core.tasks import Blocked, TaskRecord

if TYPE_CHECKING:
    from oarlock_matcher.core.shapes import Shape
    from oarlock_matcher.core.state import MatcherState

LOOK_BACK = 64
"""Changes looked through; a task that missed more of them is simply tried."""


class Glance:
    """Bounds of touched rows, worked out once per pass over the queue and forgotten when a row changes again."""

    def __init__(self, fleet: FleetTable) -> None:
        self._fleet = fleet
        self._end = -1
        self._bounds: dict[int, tuple[int, int, int, int, int, int]] = {}

    def still_blocked(self, state: MatcherState, record: TaskRecord) -> bool:
        """Whether trying this task would certainly fail for want of devices again."""
        blocked, fleet = record.blocked, self._fleet
        if blocked is None or blocked.hold is not state.hold or blocked.inventory_version != fleet.inventory_version:
            return False
        if fleet.touched_end - blocked.position > LOOK_BACK:
            return False
        changed = fleet.changed_since(blocked.position)
        if changed is None or any(shape.span_nodes for shape in record.shapes):
            return False
        if self._end != fleet.touched_end:
            self._bounds.clear()
            self._end = fleet.touched_end
        return not any(self._might_take(row, shape) for row in changed for shape in record.shapes)

    def _might_take(self, row: int, shape: Shape) -> bool:
        bounds = self._bounds.get(row)
        if bounds is None:
            fleet = self._fleet
            node = int(fleet.row_node[row])
            bounds = self._bounds[row] = (
                int(fleet.node_up[node]),
                int(fleet.idle[row].sum()),
                int(fleet.milli_free[row].max()),
                int(fleet.bytes_free[row].max()),
                int(fleet.cpu_free[node]),
                int(fleet.memory_free[node]),
            )
        up, idle, milli, device_bytes, cpu, memory = bounds
        if not up or cpu < shape.cpu_milli or memory < shape.memory_bytes:
            return False
        if not shape.count:
            return True
        enough = idle >= shape.count if shape.whole else milli >= shape.milli
        return enough and device_bytes >= shape.lease_bytes


def note_blocked(state: MatcherState, record: TaskRecord) -> None:
    """The task has just been tried in vain."""
    record.blocked = Blocked(state.fleet.touched_end, state.hold, state.fleet.inventory_version)
