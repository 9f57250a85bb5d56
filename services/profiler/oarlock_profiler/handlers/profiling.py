"""From a submitted task to its portrait, or to the reason why it has none."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

from oarlock_profiler.adapters.devices import spec_named
from oarlock_profiler.core.calibration import State, empty
from oarlock_profiler.core.devices import DeviceSpec
from oarlock_profiler.handlers.submission import ensure_record, id_of
from oarlock_profiler.ports import CannotRead, Reader
from oarlock_runtime import Bus, Context
from oarlock_schemas import DeviceState, TaskProfiled, TaskRecord, TaskRejected, TaskSubmitted, array_spec

BY = "profiler"
CALIBRATION_KEY = "factors"
MAX_FLEET_KINDS = 64
SHARED_SOURCE_CHARACTERS = 8192
"""A longer script of an array is stored as a bundle that its tasks share."""


class Profiling:
    """Handles `tasks.submitted`."""

    def __init__(self, bus: Bus, reader: Reader, now: Callable[[], str]) -> None:
        self._bus = bus
        self._reader = reader
        self._now = now
        self._records = bus.bucket("tasks", TaskRecord)

    async def submitted(self, event: TaskSubmitted, context: Context) -> None:
        """Read the script and publish the portrait. A second delivery reads again and publishes the same event."""
        task_id = event.task_id or id_of(context.message)
        task = event.model_copy(update={"task_id": task_id, "submitted_at": event.submitted_at or self._now()})
        record = await ensure_record(
            self._bus,
            task,
            at=self._now(),
            by=str(context.headers.get("ce-source") or "bus"),
            trace_id=context.trace_id,
        )
        if record.state != "submitted":
            return
        if task.array is not None:
            await self._spread(task, context)
            return
        if task.array_member is not None and await self._array_is_over(task.array_member.of):
            await self._records.change(task_id, lambda old: _cancelled(old, self._now()))
            return
        try:
            portrait = await self._reader.read(task, await self._fleet(), await self._calibration())
        except CannotRead as error:
            await self._reject(task_id, error, context)
            return
        profiled = TaskProfiled(task_id=task_id, task=task, portrait=portrait, at=self._now())
        await context.publish(self._bus.subjects.profiled(task_id), profiled, msg_id=f"{task_id}:profiled:1")

    async def _spread(self, array: TaskSubmitted, context: Context) -> None:
        """Submit each task of an array; a second delivery submits the same tasks, which then are there already."""
        array_id = str(array.task_id)
        spec = array_spec(array.array or "")
        source = array.source
        if source.inline is not None and len(source.inline) > SHARED_SOURCE_CHARACTERS:
            # Stored once, and not with every task of the array.
            key = await self._bus.bundles.put(archive_of(source.entry, source.inline))
            source = source.model_copy(update={"inline": None, "bundle": key})
        for index, task_id in zip(spec.indices, spec.ids(array_id), strict=True):
            changes = {
                "task_id": task_id,
                "array": None,
                "array_member": spec.member(array_id, index),
                "source": source,
            }
            task = array.model_copy(update=changes)
            await ensure_record(self._bus, task, at=self._now(), by=BY, trace_id=context.trace_id)
            await context.publish(self._bus.subjects.submitted(task_id), task, msg_id=f"{task_id}:submitted:1")

    async def _array_is_over(self, array_id: str) -> bool:
        entry = await self._records.get(array_id)
        return entry is not None and entry.value.final

    async def _reject(self, task_id: str, error: CannotRead, context: Context) -> None:
        rejected = TaskRejected(
            task_id=task_id,
            by="profiler",
            code=error.code,
            message=str(error),
            message_zh="无法读取任务代码。",
            at=self._now(),
        )
        await context.publish(self._bus.subjects.rejected(task_id), rejected, msg_id=f"{task_id}:rejected:1")

        def move(record: TaskRecord | None) -> TaskRecord | None:
            if record is None or record.state != "submitted":
                return None
            return record.move("rejected", at=rejected.at, by=BY, note=error.code, message=rejected.message)

        await self._records.change(task_id, move)

    async def _fleet(self) -> list[DeviceSpec]:
        """The device kinds that are here now, largest memory first."""
        specs: dict[str, DeviceSpec] = {}
        for entry in (await self._bus.bucket("devices", DeviceState).items()).values():
            state = entry.value
            spec = spec_named(state.kind, memory_bytes=state.memory_bytes, price_per_hour=state.price_per_hour)
            if spec is not None:
                specs.setdefault(spec.name, spec)
        return sorted(specs.values(), key=lambda spec: -spec.memory_bytes)[:MAX_FLEET_KINDS]

    async def _calibration(self) -> State:
        entry = await self._bus.bucket("calibration").get(CALIBRATION_KEY)
        return entry.value if entry is not None else empty()


def archive_of(entry: str, text: str) -> bytes:
    """A zip of one script, the same for the same text."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(entry), text, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _cancelled(record: TaskRecord | None, at: str) -> TaskRecord | None:
    if record is None or record.state != "submitted":
        return None
    return record.move("cancelled", at=at, by=BY, note="its array was cancelled")
