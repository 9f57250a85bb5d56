"""Moves of the task's record that are the matcher's to make."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from oarlock_runtime import Bucket, Bus, Context, StaleRevision
from oarlock_schemas import FINAL, MOVES, RunRecord, State, TaskRecord

BY = "matcher"


class Records:
    """The bucket `tasks`, moved by compare-and-set."""

    def __init__(self, bus: Bus) -> None:
        self._bucket: Bucket[TaskRecord] = bus.bucket("tasks", TaskRecord)

    async def get(self, task_id: str) -> TaskRecord | None:
        """The record, None when there is none."""
        entry = await self._bucket.get(task_id)
        return None if entry is None else entry.value

    async def completed(self, run: RunRecord, context: Context) -> None:
        """Write what a run really used into its task's record; any copy of the matcher may."""
        del context
        measured = run.measured.peak_process_bytes or run.measured.peak_device_bytes

        def step(record: TaskRecord | None) -> TaskRecord | None:
            if record is None or record.attempt != run.attempt or record.measured_bytes == measured:
                return None
            return record.model_copy(update={"measured_bytes": measured})

        await self._bucket.change(run.task_id, step)

    async def say(self, task_id: str, message: str | None) -> None:
        """Replace what a waiting task's record says of why it waits."""

        def step(record: TaskRecord | None) -> TaskRecord | None:
            if record is None or record.state != "queued" or record.message == message:
                return None
            return record.model_copy(update={"message": message})

        await self._bucket.change(task_id, step)

    async def end_array(self, array_id: str, state: State, at: str, message: str | None) -> None:
        """An array's own record ends, as its tasks did or because it was cancelled."""

        def step(record: TaskRecord | None) -> TaskRecord | None:
            if record is None or record.array is None or record.final:
                return None
            return record.move(state, at=at, by=BY, note=message, message=message)

        await self._bucket.change(array_id, step)

    async def prune(self, keep: int) -> int:
        """Forget the ended tasks beyond the ``keep`` that ended last; returns how many were forgotten."""
        ended = [e for e in (await self._bucket.items()).values() if e.value.state in FINAL and e.value.history]
        ended.sort(key=lambda entry: entry.value.history[-1].at)
        old = ended[: max(0, len(ended) - keep)]
        for entry in old:
            with suppress(StaleRevision):
                await self._bucket.delete(entry.key, entry.revision)
        return len(old)

    async def open(self) -> list[TaskRecord]:
        """Every task that has not ended."""
        entries = (await self._bucket.items()).values()
        return [entry.value for entry in entries if entry.value.state not in FINAL]

    async def move(
        self, task_id: str, state: State, at: str, note: str | None = None, **changes: Any
    ) -> TaskRecord | None:
        """Move the record unless it is there already, has ended, or has gone further; returns how it stands."""

        def step(record: TaskRecord | None) -> TaskRecord | None:
            if record is None or record.state == state or state not in MOVES[record.state]:
                return None
            return record.move(state, at=at, by=BY, note=note, **changes)

        entry = await self._bucket.change(task_id, step)
        return None if entry is None else entry.value
