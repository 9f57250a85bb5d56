"""Oarlock's side: `oarlock up` with runs as processes on this machine, and tiny tasks through the whole loop."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path

from benchmarks.latency.figures import Figures
from oarlock import AsyncClient
from oarlock.up import Up
from oarlock_schemas import DeviceState, LogLine, read

SCRIPT = "import time\nprint(time.time(), flush=True)\n"
"""A task that does nothing but say when it began."""

_PATIENCE_SECONDS = 60.0
_AT_ONCE = 16


class _Watcher:
    """Hears of everything that happens to tasks, and when."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self.heard: dict[tuple[str, str], float] = {}
        self.began: dict[str, float] = {}
        self._changed = asyncio.Condition()

    async def follow_events(self, listening: asyncio.Event) -> None:
        subjects = self._client.bus.subjects
        async for message in self._client.bus.watch(subjects.all_tasks(), start="new", caught_up=listening):
            now = time.time()
            _, _, event, *_, task_id = message.subject.split(".")
            async with self._changed:
                self.heard.setdefault((event, task_id), now)
                self._changed.notify_all()

    async def follow_logs(self, listening: asyncio.Event) -> None:
        subjects = self._client.bus.subjects
        async for message in self._client.bus.watch(subjects.logs(), start="new", caught_up=listening):
            line, _ = read(LogLine, message.data)
            if line.stream == "stdout":
                async with self._changed:
                    self.began.setdefault(line.task_id, float(line.line))
                    self._changed.notify_all()

    async def ended(self, task_id: str) -> None:
        """Wait until the task's end has been told, and its own line has come."""
        async with asyncio.timeout(_PATIENCE_SECONDS), self._changed:
            await self._changed.wait_for(lambda: ("finished", task_id) in self.heard and task_id in self.began)


async def _measure(up: Up, tasks: int, burst: int) -> Figures:
    figures = Figures("oarlock")
    async with await AsyncClient.connect(up.connection) as client, asyncio.TaskGroup() as group:
        watcher = _Watcher(client)
        listening = [asyncio.Event(), asyncio.Event()]
        followers = [
            group.create_task(watcher.follow_events(listening[0])),
            group.create_task(watcher.follow_logs(listening[1])),
        ]
        for event in listening:
            await event.wait()
        async for change in client.bus.bucket("devices", DeviceState).watch():
            if change.value is not None:
                break

        async def one() -> str:
            task_id = await client.submit({"source": {"inline": SCRIPT}})
            await watcher.ended(task_id)
            return task_id

        await one()  # not counted: the first reading starts the profiler's worker
        for _ in range(tasks):
            begun = time.time()
            task_id = await one()
            figures.read_seconds.append(watcher.heard["profiled", task_id] - begun)
            figures.placed_seconds.append(watcher.heard["placed", task_id] - begun)
            figures.launched_seconds.append(watcher.heard["launched", task_id] - begun)
            figures.running_seconds.append(watcher.began[task_id] - begun)

        slots = asyncio.Semaphore(_AT_ONCE)

        async def submitted() -> str:
            async with slots:
                return await client.submit({"source": {"inline": SCRIPT}})

        begun = time.time()
        identities = await asyncio.gather(*(submitted() for _ in range(burst)))
        await asyncio.gather(*(watcher.ended(task_id) for task_id in identities))
        figures.burst_tasks = burst
        figures.burst_seconds = max((watcher.heard["finished", i] for i in identities), default=begun) - begun
        for follower in followers:
            follower.cancel()
    return figures


def measure(folder: Path, tasks: int, burst: int) -> Figures:
    """Start everything in ``folder``, measure ``tasks`` one by one and ``burst`` at once, stop everything."""
    up = Up(folder / "oarlock", environment={"OARLOCK_LOG_LINES_PER_SECOND": "1000"})
    up.start()
    try:
        with contextlib.suppress(asyncio.CancelledError):
            return asyncio.run(_measure(up, tasks, burst))
        raise RuntimeError("the measurement was interrupted")
    finally:
        up.stop()
