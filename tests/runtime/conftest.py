"""A service under test: what it was given, as events to await."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from oarlock_runtime import BusMessage, Context

Behaviour = Callable[[Any, Context], Awaitable[None]]


async def _nothing(event: Any, context: Context) -> None:
    """Handled at once."""


@dataclass
class Recorder:
    """A handler that records what it is given, then behaves as told."""

    behave: Behaviour = _nothing
    calls: asyncio.Queue[tuple[int, int]] = field(default_factory=asyncio.Queue)
    messages: list[BusMessage] = field(default_factory=list)

    async def __call__(self, event: Any, context: Context) -> None:
        self.messages.append(context.message)
        self.calls.put_nowait((event.n, context.delivery_count))
        await self.behave(event, context)

    async def next(self, timeout_seconds: float = 20.0) -> tuple[int, int]:
        """The next call as (n, delivery count)."""
        return await asyncio.wait_for(self.calls.get(), timeout_seconds)

    async def take(self, count: int, timeout_seconds: float = 30.0) -> list[int]:
        """The numbers of the next ``count`` calls."""
        async with asyncio.timeout(timeout_seconds):
            return [(await self.calls.get())[0] for _ in range(count)]


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()
