"""The desk behind the routes: requests, buckets and streams of the bus."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from oarlock_runtime import Bus, BusMessage, InvalidPayload, RemoteError
from oarlock_schemas import InvalidMessage, LogLine, SubmitReply, TaskCancel, TaskRecord, read

SUBMIT_SECONDS = 10.0
_HISTORY_SECONDS = 5.0


class BusDesk:
    """Implements :class:`oarlock_gateway.ports.Desk`."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._tasks = bus.bucket("tasks", TaskRecord)

    async def submit(self, body: bytes) -> SubmitReply:
        """Ask on `submit`."""
        try:
            answer = await self._bus.request(self._bus.subjects.submit(), body, timeout_seconds=SUBMIT_SECONDS)
        except RemoteError as error:
            details = error.reply.get("error")
            faults = details.get("faults") if isinstance(details, dict) else None
            return SubmitReply(faults=faults or [{"path": "$", "message": str(error)}])
        return read(SubmitReply, answer.data)[0]

    async def tasks(self) -> list[TaskRecord]:
        """From the bucket, oldest first."""
        records = [entry.value for entry in (await self._tasks.items()).values()]
        return sorted(records, key=lambda r: r.history[0].at if r.history else "")

    async def task(self, task_id: str) -> TaskRecord | None:
        """From the bucket."""
        entry = await self._tasks.get(task_id)
        return None if entry is None else entry.value

    async def history(self, task_id: str) -> list[dict[str, Any]]:
        """Read the stream from the task's first event to now."""
        subjects = self._bus.subjects.of_task(task_id)
        messages = await self._bus.stored(subjects, timeout_seconds=_HISTORY_SECONDS)
        return [event for message in messages if (event := _event(message)) is not None]

    async def cancel(self, task_id: str, reason: str | None) -> None:
        """Publish `tasks.cancel.{id}`; asking twice is asking once."""
        body = TaskCancel(task_id=task_id, by="gateway", reason=reason)
        await self._bus.publish(self._bus.subjects.cancel(task_id), body, msg_id=f"{task_id}:cancel")

    async def events(self, task_id: str | None) -> AsyncIterator[dict[str, Any]]:
        """Follow the stream of tasks."""
        if task_id is None:
            stream = self._bus.watch(self._bus.subjects.all_tasks(), start="new")
        else:
            stream = self._bus.watch(self._bus.subjects.of_task(task_id), start="all")
        async for message in stream:
            if (event := _event(message)) is not None:
                yield event

    async def logs(self, task_id: str) -> AsyncIterator[dict[str, Any]]:
        """Follow the task's output."""
        async for message in self._bus.watch(self._bus.subjects.logs(task_id), start="all"):
            with suppress(InvalidMessage):
                yield read(LogLine, message.data)[0].model_dump(mode="json")


def _event(message: BusMessage) -> dict[str, Any] | None:
    """The event; None for what is no JSON object. Whoever may publish there may leave anything, and its consumer
    buries it; an observer passes over it, or one message would end every stream of events.
    """
    try:
        body = message.json()
    except InvalidPayload:
        return None
    return {"event": message.subject.split(".")[2], **body} if isinstance(body, dict) else None
