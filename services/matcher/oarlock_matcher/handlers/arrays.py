"""Arrays, as far as task records tell of them: an array's own record ends when all of its tasks have."""

from __future__ import annotations

from collections.abc import Iterable

from oarlock_matcher.handlers.records import Records
from oarlock_schemas import ArrayEnd, ArrayMember, TaskRecord, array_end, array_spec


class Arrays:
    """The arrays that have not ended, and which of their tasks are known to have."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._open: dict[str, set[str]] = {}
        self._due: set[str] = set()

    def noticed(self, member: ArrayMember | None) -> None:
        """A task of this array is there; it is looked through at the next chance."""
        if member is not None and member.of not in self._open:
            self._open[member.of] = set()
            self._due.add(member.of)

    def note(self, records: Iterable[TaskRecord]) -> None:
        """Arrays among these records are looked through at the next chance."""
        for record in records:
            if record.array is not None and not record.final and record.task_id not in self._open:
                self._open[record.task_id] = set()
                self._due.add(record.task_id)

    def ended(self, member: ArrayMember | None, task_id: str) -> None:
        """One of an array's tasks has ended."""
        if member is None:
            return
        self.noticed(member)
        waiting = self._open[member.of]
        waiting.discard(task_id)
        if not waiting:
            self._due.add(member.of)

    def all_due(self) -> None:
        """Look through every array again: a task may have ended where this leader does not hear of it."""
        self._due.update(self._open)

    async def settle(self, at: str) -> list[tuple[str, ArrayEnd]]:
        """Bring the records of arrays whose tasks have all ended to their end; those that did now, and how."""
        settled: list[tuple[str, ArrayEnd]] = []
        for array_id in sorted(self._due):
            self._due.discard(array_id)
            record = await self._records.get(array_id)
            if record is None or record.array is None or record.final:
                self._open.pop(array_id, None)
                continue
            ids = array_spec(record.array).ids(array_id)
            members = {task_id: await self._records.get(task_id) for task_id in self._open[array_id] or ids}
            waiting = {task_id for task_id, member in members.items() if member is None or not member.final}
            self._open[array_id] = waiting
            if waiting:
                continue
            states = [member.state for task_id in ids if (member := await self._records.get(task_id)) is not None]
            if (end := array_end(states)) is not None:
                state, words = end
                await self._records.end_array(array_id, state, at, words)
                self._open.pop(array_id, None)
                settled.append((array_id, state))
        return settled
