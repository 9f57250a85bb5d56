"""From a submitted task to its portrait, or to the reason why it has none."""

from __future__ import annotations

from collections.abc import Callable

from oarlock_profiler.adapters.devices import spec_named
from oarlock_profiler.core.calibration import State, empty
from oarlock_profiler.core.devices import DeviceSpec
from oarlock_profiler.handlers.submission import ensure_record, id_of
from oarlock_profiler.ports import CannotRead, Reader
from oarlock_runtime import Bus, Context
from oarlock_schemas import DeviceState, TaskProfiled, TaskRecord, TaskRejected, TaskSubmitted

BY = "profiler"
CALIBRATION_KEY = "factors"
MAX_FLEET_KINDS = 64


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
        try:
            portrait = await self._reader.read(task, await self._fleet(), await self._calibration())
        except CannotRead as error:
            await self._reject(task_id, error, context)
            return
        profiled = TaskProfiled(task_id=task_id, task=task, portrait=portrait, at=self._now())
        await context.publish(self._bus.subjects.profiled(task_id), profiled, msg_id=f"{task_id}:profiled:1")

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
