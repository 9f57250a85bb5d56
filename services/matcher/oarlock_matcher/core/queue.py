"""The waiting tasks, ordered once and for all when they arrive.

Ageing raises a task's priority by one level per `ageing_seconds` of waiting. As all waiting tasks age alike, their
order
never changes: it is that of `arrived_at − priority × ageing_seconds`. So nothing has to be re-sorted, and a task can
only be passed by tasks that arrive within a bounded time after it.

Tasks that are alike for placement wait in one group; only the head of a group can be next, so that looking for work
costs by the number of groups looked at, never by the length of the queue.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import NamedTuple

GroupKey = tuple[object, ...]


class Turn(NamedTuple):
    """A task's place in the order: `due` (lower is earlier), then the sequence of arrival. A tuple, because turns are
    compared far more often than anything else is."""

    due: float
    sequence: int
    task_id: str


class WaitingQueue:
    """Tasks ready to be placed (those that wait for other tasks are not here)."""

    def __init__(self) -> None:
        self._order: list[Turn] = []
        self._groups: dict[GroupKey, list[Turn]] = {}
        self._heads: list[tuple[Turn, GroupKey]] = []
        self._where: dict[str, tuple[Turn, GroupKey]] = {}
        self._window = 0

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._where

    def add(self, turn: Turn, group: GroupKey) -> None:
        insort(self._order, turn)
        self._where[turn.task_id] = (turn, group)
        waiting = self._groups.get(group)
        if waiting is None:
            self._groups[group] = [turn]
            insort(self._heads, (turn, group), key=_turn)
        else:
            if turn < waiting[0]:
                self._drop_head(waiting[0])
                insort(self._heads, (turn, group), key=_turn)
            insort(waiting, turn)

    def remove(self, task_id: str) -> None:
        """Take a task out; unknown ones are ignored."""
        found = self._where.pop(task_id, None)
        if found is None:
            return
        turn, group = found
        del self._order[bisect_left(self._order, turn)]
        waiting = self._groups[group]
        at = bisect_left(waiting, turn)
        del waiting[at]
        if at == 0:
            self._drop_head(turn)
            if waiting:
                insort(self._heads, (waiting[0], group), key=_turn)
            else:
                del self._groups[group]

    def _drop_head(self, turn: Turn) -> None:
        del self._heads[bisect_left(self._heads, turn, key=_turn)]

    def position(self, task_id: str) -> int:
        """How many tasks come before it."""
        return bisect_left(self._order, self._where[task_id][0])

    def turn_of(self, task_id: str) -> Turn:
        return self._where[task_id][0]

    def group_waits_before(self, turn: Turn, group: GroupKey) -> bool:
        """Whether a task alike, with an earlier turn, is waiting already."""
        waiting = self._groups.get(group)
        return bool(waiting) and waiting[0] < turn  # type: ignore[index]

    def first(self) -> Iterator[str]:
        """Task ids in order; the queue must not change meanwhile."""
        return (turn.task_id for turn in self._order)

    def heads(self, depth: int) -> list[str]:
        """Group heads to try now: the first half of `depth` in order, then a window that moves on with every call,
        so that every group is tried sooner or later however many there are."""
        heads = self._heads
        if len(heads) <= depth:
            return [turn.task_id for turn, _ in heads]
        first = depth // 2
        rest = len(heads) - first
        start = self._window % rest
        self._window = (start + depth - first) % rest
        picked = [heads[first + (start + i) % rest][0] for i in range(depth - first)]
        picked.sort()
        return [turn.task_id for turn, _ in heads[:first]] + [turn.task_id for turn in picked]

    def following(self, turn: Turn | None, count: int) -> list[Turn]:
        """The `count` turns after `turn` (from the first on when it is `None`), going round at the end."""
        order = self._order
        start = 0 if turn is None else bisect_left(order, turn) + (turn.task_id in self._where)
        return [order[(start + i) % len(order)] for i in range(min(count, len(order)))]

    def next_in_group(self, group: GroupKey) -> str | None:
        waiting = self._groups.get(group)
        return waiting[0].task_id if waiting else None


def _turn(head: tuple[Turn, GroupKey]) -> Turn:
    return head[0]
