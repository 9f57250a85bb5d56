"""Taking a task in: an id, a record in the `tasks` bucket, and the event that starts the flow."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable

from oarlock_runtime import Bus, BusMessage, Context, InvalidPayload
from oarlock_schemas import (
    InvalidMessage,
    StateChange,
    SubmitReply,
    TaskRecord,
    TaskRejected,
    TaskSubmitted,
    read,
)

Clock = Callable[[], str]
"""Returns the time as RFC 3339 text."""

BY = "profiler"


async def ensure_record(bus: Bus, task: TaskSubmitted, *, at: str, by: str, trace_id: str | None) -> TaskRecord:
    """The task's record, made when it is not there yet (many may try: the first one wins).

    Raises:
        ValueError: the task has no id.
    """
    if task.task_id is None:
        raise ValueError("the task has no id yet")
    fresh = TaskRecord(
        task_id=task.task_id,
        name=task.name,
        owner=task.owner,
        priority=task.priority,
        trace_id=trace_id,
        array=task.array,
        array_member=task.array_member,
        history=[StateChange(state="submitted", at=at, by=by)],
    )
    entry = await bus.bucket("tasks", TaskRecord).change(task.task_id, lambda old: None if old else fresh)
    return entry.value if entry is not None else fresh


class Submission:
    """Answers requests on `submit`: the id, or every fault with its JSON path."""

    def __init__(self, bus: Bus, now: Clock) -> None:
        self._bus = bus
        self._now = now

    async def submit(self, body: object, context: Context) -> SubmitReply:
        """Read tolerantly, record, publish `tasks.submitted.{id}`; a repeated request is the same task."""
        del body
        try:
            task, ignored = read(TaskSubmitted, context.message.data)
        except InvalidMessage as error:
            return SubmitReply(faults=[{"path": f.path, "message": f.message} for f in error.faults])
        task = task.model_copy(
            update={
                "task_id": task.task_id or uuid.uuid4().hex[:12],
                "submitted_at": task.submitted_at or self._now(),
                "array_member": None,
            }
        )
        await ensure_record(self._bus, task, at=self._now(), by="submit", trace_id=context.trace_id)
        subject = self._bus.subjects.submitted(task.task_id)
        await context.publish(subject, task, msg_id=f"{task.task_id}:submitted:1")
        return SubmitReply(task_id=task.task_id, ignored=ignored)

    async def refuse(self, message: BusMessage, error: InvalidPayload, context: Context) -> None:
        """Announce a malformed task on `tasks.rejected.{id}`, under an id that its delivery gives it."""
        task_id = id_of(message)
        rejected = TaskRejected(
            task_id=task_id,
            by="profiler",
            code="invalid_task",
            message=f"the task is malformed: {error}",
            message_zh="任务格式有误, 已转入死信队列。",
            faults=[{"path": str(f["path"]), "message": str(f["message"])} for f in error.faults],
            at=self._now(),
        )
        await context.publish(self._bus.subjects.rejected(task_id), rejected, msg_id=f"{task_id}:rejected:1")


def id_of(message: BusMessage) -> str:
    """An id for a task that came without one: the subject's, else one that every redelivery gives again."""
    parts = message.subject.split(".")
    if len(parts) == 4:
        return parts[3]
    cause = message.message_id or f"{message.subject}:{message.sequence}"
    return hashlib.sha256(cause.encode()).hexdigest()[:12]
