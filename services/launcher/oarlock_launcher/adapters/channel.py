"""The launcher's side of the bus: events out, leases and task records read and moved."""

from __future__ import annotations

from collections.abc import Callable

from oarlock_launcher.core.record import Step, move
from oarlock_launcher.core.run import Run
from oarlock_launcher.ports import CannotStart, RuntimeUnavailable
from oarlock_runtime import Bus, BusUnavailable, PermanentError, get_logger
from oarlock_schemas import MOVES, LeaseBook, LogLine, TaskFinished, TaskLaunched, TaskRecord

PEAK_HEADER = "Oarlock-Peak-Process-Bytes"
"""On ``tasks.finished``: the kernel's own count of the run's largest process, for runs too short to be sampled."""

_BY = "launcher"

log = get_logger("launcher")


class BusChannel:
    """See ``ports.Channel``. ``now`` gives the time as RFC 3339."""

    def __init__(self, bus: Bus, now: Callable[[], str]) -> None:
        self._bus = bus
        self._now = now
        self._tasks = bus.bucket("tasks", TaskRecord)
        self._leases = bus.bucket("leases", LeaseBook)

    async def launched(self, event: TaskLaunched) -> None:
        msg_id = f"{event.task_id}:launched:{event.attempt}"
        await self._bus.publish(self._bus.subjects.launched(event.task_id), event, msg_id=msg_id)

    async def finished(self, event: TaskFinished, peak_process_bytes: int | None) -> None:
        headers = None if peak_process_bytes is None else {PEAK_HEADER: str(peak_process_bytes)}
        msg_id = f"{event.task_id}:finished:{event.attempt}"
        await self._bus.publish(self._bus.subjects.finished(event.task_id), event, msg_id=msg_id, headers=headers)

    async def log(self, line: LogLine) -> None:
        msg_id = f"{line.task_id}:log:{line.attempt}:{line.number}:{line.stream == 'oarlock'}"
        await self._bus.publish(self._bus.subjects.logs(line.task_id), line, msg_id=msg_id)

    async def unheld(self, run: Run) -> tuple[str, ...]:
        missing = []
        for device in run.devices:
            entry = await self._leases.get(device.uid)
            held = entry is not None and any(
                lease.task_id == run.task_id and lease.attempt == run.attempt for lease in entry.value.leases
            )
            if not held:
                missing.append(device.uid)
        return tuple(missing)

    async def task_state(self, task_id: str) -> tuple[str, int] | None:
        entry = await self._tasks.get(task_id)
        return None if entry is None else (entry.value.state, entry.value.attempt)

    async def move(self, run: Run, step: Step) -> None:
        """Make the step unless the record is past it. A task placed by hand has no record to move."""
        at = self._now()

        def change(record: TaskRecord | None) -> TaskRecord | None:
            if record is None or move(record.state, record.attempt, run.attempt, step) != "apply":
                return None
            if step not in MOVES[record.state]:
                # The step to launching was missed while the bus was away.
                record = record.move("launching", at=at, by=_BY)
            return record.move(step, at=at, by=_BY, note=run.message, **_fields(run, step))

        await self._tasks.change(run.task_id, change)

    async def bundle(self, key: str) -> bytes:
        """A code bundle.

        Raises:
            CannotStart: there is none, or it is damaged.
            RuntimeUnavailable: the store does not answer.
        """
        try:
            return await self._bus.bundles.get(key)
        except BusUnavailable as error:
            raise RuntimeUnavailable(str(error)) from error
        except PermanentError as error:
            raise CannotStart(str(error)) from error


def _fields(run: Run, step: Step) -> dict[str, object]:
    changes: dict[str, object] = {
        "attempt": run.attempt,
        "device_uids": [device.uid for device in run.devices],
        "device_kind": run.devices[0].kind,
        "simulated": run.simulated,
    }
    if step in ("succeeded", "failed", "cancelled"):
        changes |= {"outcome": run.outcome, "message": run.message}
    return changes
