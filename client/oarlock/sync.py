"""The SDK for programs that do not use asyncio: the same verbs, each waiting for its answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

from oarlock.bundle import Packed
from oarlock.connection import Connection
from oarlock.sdk import AsyncClient, FleetDevice, TaskEvent
from oarlock_schemas import LogLine, RunRecord, TaskRecord, TaskSubmitted, Window

T = TypeVar("T")


class Client:
    """``with Client.connect() as client: ...``. A loop of its own runs in a thread; any thread may call."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="oarlock-client", daemon=True)
        self._thread.start()
        self._client: AsyncClient | None = None

    @classmethod
    def connect(cls, connection: Connection | None = None) -> Self:
        """See :meth:`AsyncClient.connect`."""
        self = cls()
        try:
            self._client = self._run(AsyncClient.connect(connection))
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """End the connection and the thread."""
        if self._client is not None:
            self._run(self._client.close())
            self._client = None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _async(self) -> AsyncClient:
        if self._client is None:
            raise RuntimeError("the client is closed; use Client.connect()")
        return self._client

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _each(self, items: AsyncIterator[T]) -> Iterator[T]:
        async def following() -> tuple[bool, T | None]:
            try:
                return True, await anext(items)
            except StopAsyncIteration:
                return False, None

        while (step := self._run(following()))[0]:
            yield step[1]  # type: ignore[misc]

    def submit(
        self, task: TaskSubmitted | Packed | Path | str | Mapping[str, Any], *, timeout_seconds: float = 10.0
    ) -> str:
        """See :meth:`AsyncClient.submit`."""
        return self._run(self._async.submit(task, timeout_seconds=timeout_seconds))

    def tasks(self) -> list[TaskRecord]:
        """See :meth:`AsyncClient.tasks`."""
        return self._run(self._async.tasks())

    def task(self, task_id: str) -> TaskRecord:
        """See :meth:`AsyncClient.task`."""
        return self._run(self._async.task(task_id))

    def events(self, task_id: str, *, follow: bool = True) -> Iterator[TaskEvent]:
        """See :meth:`AsyncClient.events`."""
        return self._each(self._async.events(task_id, follow=follow))

    def wait(self, task_id: str) -> TaskRecord:
        """See :meth:`AsyncClient.wait`."""
        return self._run(self._async.wait(task_id))

    def run_record(self, task_id: str, *, timeout_seconds: float = 15.0) -> RunRecord | None:
        """See :meth:`AsyncClient.run_record`."""
        return self._run(self._async.run_record(task_id, timeout_seconds=timeout_seconds))

    def logs(self, task_id: str, *, follow: bool = False) -> Iterator[LogLine]:
        """See :meth:`AsyncClient.logs`."""
        return self._each(self._async.logs(task_id, follow=follow))

    def cancel(self, task_id: str, *, reason: str | None = None) -> None:
        """See :meth:`AsyncClient.cancel`."""
        self._run(self._async.cancel(task_id, reason=reason))

    def fleet(self) -> list[FleetDevice]:
        """See :meth:`AsyncClient.fleet`."""
        return self._run(self._async.fleet())

    def cordon(self, name: str, *, cordoned: bool = True) -> list[str]:
        """See :meth:`AsyncClient.cordon`."""
        return self._run(self._async.cordon(name, cordoned=cordoned))

    def policy(self, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """See :meth:`AsyncClient.policy`."""
        return self._run(self._async.policy(changes))

    def policy_standing(self) -> dict[str, Any] | None:
        """See :meth:`AsyncClient.policy_standing`."""
        return self._run(self._async.policy_standing())

    def windows(self) -> dict[str, Window]:
        """See :meth:`AsyncClient.windows`."""
        return self._run(self._async.windows())

    def add_window(self, name: str, window: Window) -> None:
        """See :meth:`AsyncClient.add_window`."""
        self._run(self._async.add_window(name, window))

    def remove_window(self, name: str) -> None:
        """See :meth:`AsyncClient.remove_window`."""
        self._run(self._async.remove_window(name))

    def history(self, *, limit: int = 50) -> list[RunRecord]:
        """See :meth:`AsyncClient.history`."""
        return self._run(self._async.history(limit=limit))
