"""The Python SDK: the verbs of the command line, for programs. Async here; :mod:`oarlock.sync` wraps it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import BaseModel

from oarlock.bundle import Packed, load
from oarlock.connection import Connection
from oarlock_runtime import CORDONS_KEY, Bus, BusMessage, InvalidPayload, RemoteError
from oarlock_schemas import (
    FINAL,
    DeviceState,
    Fault,
    InvalidMessage,
    LeaseBook,
    LogLine,
    RunRecord,
    SubmitReply,
    TaskCancel,
    TaskRecord,
    TaskSubmitted,
    Window,
    array_spec,
    read,
)

M = TypeVar("M", bound=BaseModel)

CONNECT_SECONDS = 5.0
"""How long a client waits for a server before it says that there is none."""

SUBMIT_REPEAT_SECONDS = 3.0
"""How long the profiler's answer is awaited before another one is asked: the first may have died over it."""


class TaskNotFound(LookupError):
    """No task has this id."""


class DeviceNotFound(LookupError):
    """No device and no node has this name."""


class WindowNotFound(LookupError):
    """No reservation and no maintenance window has this name."""


class WindowExists(ValueError):
    """The name of a reservation or maintenance window is taken."""


@dataclass(frozen=True, slots=True)
class TaskEvent:
    """One event of a task: ``name`` is the subject's verb (``profiled``, ``placed``…), ``body`` its JSON."""

    name: str
    task_id: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class FleetDevice:
    """A device and who holds what on it."""

    state: DeviceState
    leases: LeaseBook

    @property
    def booked_bytes(self) -> int:
        """Memory that leases have booked, in bytes."""
        return sum(lease.bytes for lease in self.leases.leases)


class AsyncClient:
    """A connection to Oarlock. ``async with await AsyncClient.connect() as client: ...``"""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus

    @classmethod
    async def connect(cls, connection: Connection | None = None) -> Self:
        """Connect where ``connection`` says, else where :meth:`Connection.discover` finds a bus.

        Raises:
            oarlock_runtime.BusUnavailable: no server answers.
        """
        to = connection or Connection.discover()
        bus = await Bus.connect(
            to.url,
            prefix=to.prefix,
            name="client",
            token=to.token,
            user=to.user,
            password=to.password,
            creds=to.creds,
            timeout_seconds=CONNECT_SECONDS,
        )
        return cls(bus)

    async def close(self) -> None:
        """End the connection."""
        await self.bus.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def submit(
        self, task: TaskSubmitted | Packed | Path | str | Mapping[str, Any], *, timeout_seconds: float = 10.0
    ) -> str:
        """Submit a task, a task file or a script; returns the task's id once the profiler has taken it.

        Raises:
            InvalidMessage: it does not fit the schema; holds every fault with its JSON path.
            oarlock.bundle.BundleError: the code cannot be packed.
            oarlock_runtime.BusUnavailable: nobody answers.
        """
        packed = self._packed(task)
        ready = packed.task
        if packed.archive is not None:
            key = await self.bus.bundles.put(packed.archive)
            ready = ready.model_copy(update={"source": ready.source.model_copy(update={"bundle": key})})
        if ready.task_id is None:
            # Chosen here, so that a repeated request is the same task.
            ready = ready.model_copy(update={"task_id": uuid.uuid4().hex[:12]})
        try:
            answer = await self.bus.request(
                self.bus.subjects.submit(), ready, timeout_seconds, repeat_seconds=SUBMIT_REPEAT_SECONDS
            )
            reply, _ = read(SubmitReply, answer.data)
        except RemoteError as error:
            reply, _ = read(SubmitReply, error.reply)
        if reply.task_id is None:
            raise InvalidMessage([Fault(f.get("path", "$"), f.get("message", "")) for f in reply.faults])
        return reply.task_id

    @staticmethod
    def _packed(task: TaskSubmitted | Packed | Path | str | Mapping[str, Any]) -> Packed:
        if isinstance(task, Packed):
            return task
        if isinstance(task, TaskSubmitted):
            return Packed(task)
        if isinstance(task, Mapping):
            ready, ignored = read(TaskSubmitted, task)
            return Packed(ready, ignored=tuple(ignored))
        return load(Path(task))

    async def tasks(self) -> list[TaskRecord]:
        """Every task that is remembered, oldest first."""
        entries = await self.bus.bucket("tasks", TaskRecord).items()
        return [entry.value for entry in sorted(entries.values(), key=_first_seen)]

    async def task(self, task_id: str) -> TaskRecord:
        """One task's record.

        Raises:
            TaskNotFound: there is none of this id.
        """
        entry = await self.bus.bucket("tasks", TaskRecord).get(task_id)
        if entry is None:
            raise TaskNotFound(f"no task {task_id!r}; `oarlock ps` lists them")
        return entry.value

    async def tasks_of(self, array: TaskRecord) -> list[TaskRecord]:
        """The records of an array's tasks that there are, by index; none where it is no array."""
        if array.array is None:
            return []
        bucket = self.bus.bucket("tasks", TaskRecord)
        entries = [await bucket.get(task_id) for task_id in array_spec(array.array).ids(array.task_id)]
        return [entry.value for entry in entries if entry is not None]

    async def events(self, task_id: str, *, follow: bool = True) -> AsyncIterator[TaskEvent]:
        """The task's events from its first on. With ``follow`` it goes on until the run record or a final state."""
        known = asyncio.Event()
        stream = self.bus.watch(self.bus.subjects.of_task(task_id), start="all", caught_up=known)
        queue: asyncio.Queue[TaskEvent] = asyncio.Queue()

        async def pump() -> None:
            async for message in stream:
                if (body := _object(message)) is not None:
                    queue.put_nowait(TaskEvent(message.subject.split(".")[2], task_id, body))

        pumping = asyncio.create_task(pump())
        try:
            while True:
                if not follow and known.is_set() and queue.empty():
                    return
                try:
                    event = await asyncio.wait_for(queue.get(), 0.5)
                except TimeoutError:
                    if pumping.done():
                        pumping.result()
                    if follow and known.is_set() and (await self.task(task_id)).final:
                        return
                    continue
                yield event
        finally:
            await _ended(pumping)

    async def wait(self, task_id: str) -> TaskRecord:
        """Wait until the task has ended, and return its record."""
        async for change in self.bus.bucket("tasks", TaskRecord).watch(task_id):
            if change.value is not None and change.value.state in FINAL:
                return change.value
        raise TaskNotFound(f"task {task_id!r} went away")

    async def run_record(self, task_id: str, *, timeout_seconds: float = 15.0) -> RunRecord | None:
        """The task's last run record; None when none arrives in time."""
        stream = self.bus.watch(self.bus.subjects.completed(task_id), start="last")
        try:
            async with asyncio.timeout(timeout_seconds):
                async for message in stream:
                    if (record := _readable(RunRecord, message)) is not None:
                        return record
        except TimeoutError:
            return None
        return None

    async def logs(self, task_id: str, *, follow: bool = False) -> AsyncIterator[LogLine]:
        """The task's output, line by line. With ``follow`` it goes on until the task has ended."""
        caught_up = asyncio.Event()
        stream = self.bus.watch(self.bus.subjects.logs(task_id), start="all", caught_up=caught_up)
        pending: asyncio.Task[Any] | None = None
        try:
            while True:
                pending = pending or asyncio.ensure_future(anext(aiter(stream)))
                done, _ = await asyncio.wait({pending}, timeout=0.3)
                if done:
                    message, pending = pending.result(), None
                    if (line := _readable(LogLine, message)) is not None:
                        yield line
                elif caught_up.is_set() and (not follow or (await self.task(task_id)).final):
                    return
        finally:
            if pending is not None:
                await _ended(pending)

    async def cancel(self, task_id: str, *, reason: str | None = None, by: str = "anonymous") -> None:
        """Ask that the task be stopped, wherever it is.

        Raises:
            TaskNotFound: there is none of this id.
        """
        await self.task(task_id)
        body = TaskCancel(task_id=task_id, by=by, reason=reason)
        await self.bus.publish(self.bus.subjects.cancel(task_id), body, msg_id=f"{task_id}:cancel")

    async def fleet(self) -> list[FleetDevice]:
        """Every device that its node reports now, with its leases, by site, node and kind."""
        devices = await self.bus.bucket("devices", DeviceState).items()
        books = {key: e.value for key, e in (await self.bus.bucket("leases", LeaseBook).items()).items()}
        cordons = await self.bus.bucket("policy").get(CORDONS_KEY)
        off = cordons.value if cordons is not None else {}
        states = sorted(
            (
                e.value.model_copy(update={"cordoned": True}) if {e.value.uid, e.value.node} & off.keys() else e.value
                for e in devices.values()
            ),
            key=lambda d: (d.site, d.node, d.kind, d.uid),
        )
        return [FleetDevice(s, books.get(s.uid, LeaseBook(device_uid=s.uid))) for s in states]

    async def cordon(self, name: str, *, cordoned: bool = True) -> list[str]:
        """Keep new tasks off a device (by uid) or off every device of a node, or let them on again; runs go on.

        It lasts while the node is away, until somebody lifts it.

        Returns:
            The uids that were changed.

        Raises:
            DeviceNotFound: neither a device nor a node of this name reports now.
        """
        bucket = self.bus.bucket("devices", DeviceState)
        all_ = {key: entry.value for key, entry in (await bucket.items()).items()}
        matching = {key: state for key, state in all_.items() if name in {state.uid, state.node}}
        policy = self.bus.bucket("policy")
        stored = await policy.get(CORDONS_KEY)
        away = not cordoned and stored is not None and name in stored.value
        if not matching and not away:
            raise DeviceNotFound(f"no device or node {name!r} reports now; `oarlock fleet` lists them")

        def change(state: DeviceState | None) -> DeviceState | None:
            return None if state is None else state.model_copy(update={"cordoned": cordoned})

        now = datetime.now(UTC).isoformat(timespec="seconds")
        await policy.change(CORDONS_KEY, lambda off: _cordons(off or {}, name, cordoned, list(all_.values()), now))
        for key in matching:
            await bucket.change(key, change)
        return sorted(state.uid for state in matching.values())

    async def policy(self, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The matcher's policy document; with ``changes`` merged into it first (None removes a field)."""

        def change(document: dict[str, Any] | None) -> dict[str, Any] | None:
            if changes is None:
                return None
            merged = {**(document or {}), **changes}
            return {name: value for name, value in merged.items() if value is not None}

        entry = await self.bus.bucket("policy").change("matcher", change)
        return {} if entry is None else dict(entry.value)

    async def policy_standing(self) -> dict[str, Any] | None:
        """How the learned policy stands beside the rules, as the leading matcher wrote it after a rehearsal, and under
        ``owners`` how each stands in the fair share, where that is on; None when neither has been written."""
        policy = self.bus.bucket("policy")
        learned, shares = await policy.get("standing"), await policy.get("shares")
        if learned is None and shares is None:
            return None
        told = {} if learned is None else dict(learned.value)
        if shares is not None:
            told |= {"owners": shares.value["owners"], "owners_at": shares.value["at"]}
        return told

    async def windows(self) -> dict[str, Window]:
        """Reservations and maintenance by name, by their beginning."""
        stored = _windows(await self.policy()).items()
        found = {name: window for name, document in stored if (window := _window(document)) is not None}
        return dict(sorted(found.items(), key=lambda item: (item[1].begins, item[0])))

    async def add_window(self, name: str, window: Window) -> None:
        """Reserve devices, or plan maintenance (a window without an owner). Ended windows are cleared away.

        Raises:
            WindowExists: there is one of this name that has not ended.
        """
        now = datetime.now(UTC).timestamp()

        def change(document: dict[str, Any] | None) -> dict[str, Any]:
            known = {key: value for key, value in _windows(document).items() if not _ended_before(value, now)}
            if name in known:
                raise WindowExists(f"there is a window {name!r} already; remove it first, or choose another name")
            known[name] = window.model_dump(mode="json", exclude_defaults=True)
            return {**(document or {}), "windows": known}

        await self.bus.bucket("policy").change("matcher", change)

    async def remove_window(self, name: str) -> None:
        """Take a reservation or a maintenance window back.

        Raises:
            WindowNotFound: there is none of this name.
        """

        def change(document: dict[str, Any] | None) -> dict[str, Any]:
            known = _windows(document)
            if known.pop(name, None) is None:
                raise WindowNotFound(
                    f"no window {name!r}; `oarlock reserve list` and `oarlock maintenance list` show them"
                )
            kept = {key: value for key, value in (document or {}).items() if key != "windows"}
            return {**kept, "windows": known} if known else kept

        await self.bus.bucket("policy").change("matcher", change)

    async def history(self, *, limit: int = 50) -> list[RunRecord]:
        """The last run records, oldest first: predicted and measured side by side."""
        messages = await self.bus.stored(self.bus.subjects.completed())
        records = [record for message in messages if (record := _readable(RunRecord, message)) is not None]
        return records[-limit:]


async def _ended(*tasks: asyncio.Future[Any]) -> None:
    """Cancel, and wait until what they held has been given back."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _readable(model: type[M], message: BusMessage) -> M | None:
    """The message as ``model``; None where it is none.

    Whoever may publish on a subject may leave anything there. The service that consumes it buries what it cannot read
    and announces it (``oarlock dead list``); a reader passes over it, or one message would hide all after it.
    """
    try:
        return read(model, message.data)[0]
    except InvalidMessage:
        return None


def _object(message: BusMessage) -> dict[str, Any] | None:
    """The message as a JSON object; None where it is none (see :func:`_readable`)."""
    try:
        body = message.json()
    except InvalidPayload:
        return None
    return body if isinstance(body, dict) else None


def _cordons(
    off: Mapping[str, Any], name: str, cordoned: bool, states: Sequence[DeviceState], now: str
) -> dict[str, Any]:
    """What is kept off tasks, by uid or node, after ``name`` was cordoned or let on again."""
    if cordoned:
        return {**off, name: {"since": now}}
    known = dict(off)
    lifted = {name} | {state.uid for state in states if state.node == name}
    for state in states:
        if state.uid == name and state.node in known:
            # The rest of its node stays off.
            since = known.pop(state.node)
            known.update({other.uid: since for other in states if other.node == state.node})
    return {key: value for key, value in known.items() if key not in lifted}


def _windows(document: Mapping[str, Any] | None) -> dict[str, Any]:
    stored = (document or {}).get("windows")
    return dict(stored) if isinstance(stored, Mapping) else {}


def _window(document: Any) -> Window | None:
    """None for what is no window: written by another hand; the matcher leaves it out as well, and logs why."""
    try:
        return read(Window, document if isinstance(document, Mapping) else "")[0]
    except InvalidMessage:
        return None


def _ended_before(document: Any, now: float) -> bool:
    window = _window(document)
    return window is not None and window.ends <= now


def _first_seen(entry: Any) -> str:
    history = entry.value.history
    return history[0].at if history else ""
