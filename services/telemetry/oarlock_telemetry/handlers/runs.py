"""Follows the runs of this telemetry's nodes from launch to record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, RootModel

from oarlock_accelerators import Device
from oarlock_runtime import Context, PermanentError
from oarlock_schemas import InvalidMessage, TaskFinished, TaskLaunched, read
from oarlock_telemetry.core import follow
from oarlock_telemetry.core.runs import Facts, Followed, Key, Reading
from oarlock_telemetry.handlers.records import facts_of, finish_of, record_of
from oarlock_telemetry.ports import Board, Channel, StateStore

M = TypeVar("M", bound=BaseModel)

PEAK_HEADER = "Oarlock-Peak-Process-Bytes"
"""On ``tasks.finished``: the kernel's own count of the run's largest process."""


class AnyObject(RootModel[dict[str, Any]]):
    """A JSON object, to be read tolerantly: a newer launcher may say more than we know."""


class RunFollower:
    """The runs of ``nodes``.

    Args:
        nodes: names of the nodes we speak for; runs elsewhere are another telemetry's.
        channel: the bus.
        store: where followed runs are written down.
        board: what Prometheus is shown.
        clock: seconds since the epoch.
    """

    def __init__(
        self, nodes: Collection[str], channel: Channel, store: StateStore, board: Board, clock: Callable[[], float]
    ) -> None:
        self._nodes = frozenset(nodes)
        self._channel = channel
        self._store = store
        self._board = board
        self._clock = clock
        self._state = store.load()
        self.devices: dict[str, Device] = {}
        """The inventory as last probed, by id."""
        self.began = asyncio.Event()
        """Set when a run was launched, so that it is sampled at once."""

    @property
    def going_on(self) -> list[Followed]:
        """The runs that have not ended."""
        return self._state.going_on

    async def on_launched(self, message: AnyObject, context: Context) -> None:
        """`tasks.launched.{task_id}`."""
        del context
        event = _read(TaskLaunched, message)
        if event.node in self._nodes and (event.task_id, event.attempt) not in self._state.runs:
            self._happened(follow.Launched(await self._facts(event)))
            self.began.set()

    async def on_finished(self, message: AnyObject, context: Context) -> None:
        """`tasks.finished.{task_id}`. Returns when the record is stored."""
        event = _read(TaskFinished, message)
        key = (event.task_id, event.attempt)
        facts = None
        if key not in self._state.runs:
            launched = await self._channel.launch_of(key, self._nodes)
            if launched is None:
                return
            facts = await self._facts(launched)
        finish = finish_of(event, _bytes(context.headers.get(PEAK_HEADER)))
        for effect in self._happened(follow.Finished(key, finish, facts)):
            record = record_of(effect.run, self._total_bytes(effect.run.facts))
            await self._channel.completed(record)
            self._board.show_run(record)
            self._happened(follow.Recorded(key))

    def sampled(self, readings: Mapping[Key, Reading]) -> None:
        """Readings of the runs that go on."""
        self._happened(follow.Sampled(readings))

    def save(self) -> None:
        """Write the tallies down; done every few seconds, so that a crash loses no more than that."""
        self._store.save(self._state)

    def _happened(self, event: follow.Event) -> list[follow.Write]:
        self._state, effects = follow.decide(self._state, event, self._clock())
        if any(isinstance(effect, follow.Save) for effect in effects):
            self._store.save(self._state)
        return [effect for effect in effects if isinstance(effect, follow.Write)]

    async def _facts(self, event: TaskLaunched) -> Facts:
        placed = await self._channel.placement_of(event.site, (event.task_id, event.attempt))
        device = self.devices.get(event.device_uids[0]) if event.device_uids else None
        known = None if device is None else (device.kind.name if device.kind else device.name, device.vendor)
        return facts_of(event, placed, known)

    def _total_bytes(self, facts: Facts) -> int | None:
        """Memory of the smallest of its devices."""
        totals = [self.devices[uid].total_bytes for uid in facts.device_uids if uid in self.devices]
        known = [total for total in totals if total is not None]
        return min(known, default=None)


def _read(model: type[M], message: AnyObject) -> M:
    try:
        return read(model, message.root)[0]
    except InvalidMessage as error:
        raise PermanentError(f"not a {model.__name__}: {error}") from error


def _bytes(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() and int(text) > 0 else None
