"""Telemetry's side of the bus."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from typing import TypeVar

from pydantic import BaseModel

from oarlock_runtime import Bus, BusMessage
from oarlock_schemas import (
    DeviceState,
    InvalidMessage,
    NodeMetrics,
    RunRecord,
    TaskLaunched,
    TaskPlaced,
    read,
)
from oarlock_telemetry.core.runs import Key

M = TypeVar("M", bound=BaseModel)

_LOOK_UP_SECONDS = 10.0


class BusChannel:
    """See ``ports.Channel``."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._devices = bus.bucket("devices", DeviceState)

    async def metrics(self, metrics: NodeMetrics) -> None:
        await self._bus.publish_core(self._bus.subjects.metrics(metrics.site, metrics.node), metrics)

    async def device(self, state: DeviceState, *, cordon: bool) -> None:
        """An operator's cordon, or one of ours for a failed device, stays until somebody lifts it."""

        def change(known: DeviceState | None) -> DeviceState:
            held = cordon or (known is not None and known.cordoned)
            return state.model_copy(update={"cordoned": held})

        await self._devices.change(f"{state.site}.{state.node}.{state.uid}", change)

    async def completed(self, record: RunRecord) -> None:
        """Once per attempt: by the message id within its window, and by looking after that."""
        subject = self._bus.subjects.completed(record.task_id)
        async for message in _stored(self._bus, subject):
            if _parsed(RunRecord, message, record.attempt) is not None:
                return
        await self._bus.publish(subject, record, msg_id=f"{record.task_id}:completed:{record.attempt}")

    async def launch_of(self, key: Key, nodes: Collection[str]) -> TaskLaunched | None:
        async for message in _stored(self._bus, self._bus.subjects.launched(key[0])):
            if (event := _parsed(TaskLaunched, message, key[1])) is not None and event.node in nodes:
                return event
        return None

    async def placement_of(self, site: str, key: Key) -> TaskPlaced | None:
        async for message in _stored(self._bus, self._bus.subjects.placed(site, key[0])):
            if (event := _parsed(TaskPlaced, message, key[1])) is not None:
                return event
        return None


async def _stored(bus: Bus, subject: str) -> AsyncIterator[BusMessage]:
    """What the stream holds under one task's subject now: a handful of messages."""
    caught_up = asyncio.Event()
    watching = bus.watch(subject, start="all", caught_up=caught_up)
    over = asyncio.ensure_future(caught_up.wait())
    try:
        async with asyncio.timeout(_LOOK_UP_SECONDS):
            while True:
                coming = asyncio.ensure_future(anext(watching))
                await asyncio.wait({coming, over}, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    # Nothing more was stored: what would come next is not there yet.
                    coming.cancel()
                    await asyncio.wait({coming})
                    return
                yield coming.result()
    finally:
        over.cancel()
        await watching.aclose()


def _parsed(model: type[M], message: BusMessage, attempt: int) -> M | None:
    """The event, if it can be read and is of this attempt."""
    try:
        event, _ = read(model, message.data)
    except InvalidMessage:
        return None
    return event if getattr(event, "attempt", None) == attempt else None
