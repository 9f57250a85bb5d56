"""The launcher's side of the bus: events out, leases and task records read and moved."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from oarlock_launcher.core import gang
from oarlock_launcher.core.record import Step, move
from oarlock_launcher.core.run import Key, Run
from oarlock_launcher.ports import CannotStart, RuntimeUnavailable
from oarlock_runtime import DELETE, Bus, BusUnavailable, PermanentError, get_logger
from oarlock_schemas import MOVES, DeviceState, GangBook, LeaseBook, LogLine, TaskFinished, TaskLaunched, TaskRecord

PEAK_HEADER = "Oarlock-Peak-Process-Bytes"
"""On ``tasks.finished``: the kernel's own count of the run's largest process, for runs too short to be sampled."""

_BY = "launcher"

log = get_logger("launcher")


class BusChannel:
    """See ``ports.Channel``. ``now`` gives the time as RFC 3339; ``node`` is ours."""

    def __init__(self, bus: Bus, now: Callable[[], str], node: str) -> None:
        self._bus = bus
        self._node = node
        self._now = now
        self._tasks = bus.bucket("tasks", TaskRecord)
        self._leases = bus.bucket("leases", LeaseBook)
        self._gangs = bus.bucket("gangs", GangBook)
        self._devices = bus.bucket("devices", DeviceState)

    async def launched(self, event: TaskLaunched, member: str | None) -> None:
        msg_id = f"{event.task_id}:launched:{event.attempt}" + ("" if member is None else f":{member}")
        await self._bus.publish(self._bus.subjects.launched(event.task_id), event, msg_id=msg_id)

    async def finished(self, event: TaskFinished, peak_process_bytes: int | None) -> None:
        headers = None if peak_process_bytes is None else {PEAK_HEADER: str(peak_process_bytes)}
        msg_id = f"{event.task_id}:finished:{event.attempt}"
        await self._bus.publish(self._bus.subjects.finished(event.task_id), event, msg_id=msg_id, headers=headers)

    async def log(self, line: LogLine, member: str | None) -> None:
        msg_id = f"{line.task_id}:log:{line.attempt}:{line.number}:{line.stream == 'oarlock'}"
        msg_id += "" if member is None else f":{member}"
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

    async def join(self, run: Run, address: str, ports: tuple[int, ...]) -> GangBook:
        """See ``ports.Channel``."""
        entry = await self._gangs.change(_key(run), lambda book: gang.join(book, run, address, ports[:-1], ports[-1]))
        if entry is None:
            raise ValueError(f"the book of gang {_key(run)} vanished while it was joined")
        return entry.value

    async def end_member(self, run: Run, started_at: str | None, finished_at: str) -> GangBook | None:
        """See ``ports.Channel``."""
        entry = await self._gangs.change(_key(run), lambda book: gang.end(book, run, started_at, finished_at))
        return None if entry is None else entry.value

    async def gang_told(self, run: Run) -> None:
        """See ``ports.Channel``."""
        await self._gangs.change(
            _key(run), lambda book: None if book is None or book.told else book.model_copy(update={"told": True})
        )

    async def forget_gang(self, run: Run) -> None:
        """See ``ports.Channel``."""
        await self._gangs.change(_key(run), lambda book: DELETE if book is not None and book.told else None)

    async def gangs(self) -> AsyncIterator[tuple[Key, GangBook]]:
        """Every book of a gang as it stands, then as it changes."""
        async for change in self._gangs.watch():
            if change.value is not None:
                yield (change.value.task_id, change.value.attempt), change.value

    async def ask_member(self, key: Key, node: str) -> None:
        """See ``ports.Channel``."""
        at = self._now()
        await self._gangs.change(_key_of(key), lambda book: gang.ask(book, node, at))

    async def answer_gang(self, key: Key) -> None:
        """See ``ports.Channel``."""
        await self._gangs.change(_key_of(key), lambda book: gang.answer(book, self._node))

    async def lose_member(self, key: Key, node: str, message: str) -> None:
        """Give up a node's part of a gang."""
        at = self._now()
        await self._gangs.change(_key_of(key), lambda book: gang.lose(book, node, self._node, message, at))

    async def nodes(self, site: str) -> set[str]:
        """The nodes of a site that report devices."""
        return {key.split(".")[1] for key in await self._devices.keys(f"{site}.>")}

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


def _key_of(key: Key) -> str:
    return f"{key[0]}.{key[1]}"


def _key(run: Run) -> str:
    return _key_of(run.key)


def _fields(run: Run, step: Step) -> dict[str, object]:
    changes: dict[str, object] = {
        "attempt": run.attempt,
        "device_uids": run.all_device_uids,
        "device_kind": run.devices[0].kind,
        "simulated": run.simulated,
    }
    if step in ("succeeded", "failed", "cancelled"):
        changes |= {"outcome": run.outcome, "message": run.message}
    return changes
