"""What the gateway's HTTP side asks of the bus side."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol

from oarlock_schemas import SubmitReply, TaskRecord


class Desk(Protocol):
    """Tasks, as an HTTP client may handle them."""

    async def submit(self, body: bytes) -> SubmitReply:
        """Hand a task in.

        Raises:
            oarlock_runtime.BusUnavailable: nobody answers.
        """

    async def tasks(self) -> list[TaskRecord]:
        """Every task that is remembered, oldest first."""

    async def task(self, task_id: str) -> TaskRecord | None:
        """One task, None when there is none of this id."""

    async def history(self, task_id: str) -> list[dict[str, Any]]:
        """The events of one task so far: ``event`` (its verb) and the event's fields."""

    async def cancel(self, task_id: str, reason: str | None) -> None:
        """Ask that it be stopped."""

    def events(self, task_id: str | None) -> AsyncIterator[dict[str, Any]]:
        """Events from now on, of one task (then from its first) or of all."""

    def logs(self, task_id: str) -> AsyncIterator[dict[str, Any]]:
        """The output of one task from its first line on."""


class Feed(Protocol):
    """The board, live."""

    def patches(self) -> AsyncIterator[dict[str, Any]]:
        """A snapshot, then every patch."""

    def snapshot(self) -> dict[str, Any]:
        """The board as it is now."""
