"""Keeps the board from the buckets and the metrics, and hands its patches to every open page."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from oarlock_gateway.core.board import Board
from oarlock_runtime import Bus, BusMessage
from oarlock_schemas import DeviceState, EstimatorRecalibrated, InvalidMessage, LeaseBook, NodeMetrics, TaskRecord, read

QUEUE_LENGTH = 1000
"""Patches a slow page may lag behind; past that it is sent a fresh snapshot instead."""


class BusFeed:
    """Implements :class:`oarlock_gateway.ports.Feed`; :meth:`run` is a background loop of the service."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.board = Board()
        self._pages: set[asyncio.Queue[dict[str, Any]]] = set()

    async def run(self) -> None:
        """Follow the buckets and the metrics until cancelled."""
        subscription = await self._bus.subscribe(self._bus.subjects.metrics(), self._sampled)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow_tasks())
                group.create_task(self._follow_devices())
                group.create_task(self._follow_leases())
                group.create_task(self._follow_calibration())
        finally:
            with contextlib.suppress(Exception):
                await subscription.unsubscribe()

    async def _follow_tasks(self) -> None:
        async for change in self._bus.bucket("tasks", TaskRecord).watch():
            self._send(self.board.task(change.key, change.value))

    async def _follow_devices(self) -> None:
        async for change in self._bus.bucket("devices", DeviceState).watch():
            self._send(self.board.device(change.key, change.value))

    async def _follow_leases(self) -> None:
        async for change in self._bus.bucket("leases", LeaseBook).watch():
            self._send(self.board.lease(change.key, change.value))

    async def _follow_calibration(self) -> None:
        async for message in self._bus.watch(self._bus.subjects.estimator_recalibrated(), start="all"):
            with contextlib.suppress(InvalidMessage):
                self.board.recalibrated(read(EstimatorRecalibrated, message.data)[0])

    async def _sampled(self, message: BusMessage) -> None:
        try:
            metrics, _ = read(NodeMetrics, message.data)
        except InvalidMessage:
            # Core NATS: anyone may publish there. A sample that cannot be read says nothing; the next comes in 1 s.
            return
        self._send(self.board.metrics(metrics))

    def _send(self, patch: dict[str, Any]) -> None:
        for page in self._pages:
            if page.full():
                while not page.empty():
                    page.get_nowait()
                page.put_nowait(self.board.snapshot())
            else:
                page.put_nowait(patch)

    def snapshot(self) -> dict[str, Any]:
        """The board as it is now."""
        return self.board.snapshot()

    async def patches(self) -> AsyncIterator[dict[str, Any]]:
        """A snapshot, then every patch."""
        page: asyncio.Queue[dict[str, Any]] = asyncio.Queue(QUEUE_LENGTH)
        self._pages.add(page)
        try:
            yield self.board.snapshot()
            while True:
                yield await page.get()
        finally:
            self._pages.discard(page)
