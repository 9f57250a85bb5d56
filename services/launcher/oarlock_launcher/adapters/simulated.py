"""Runs on simulated devices: nothing is executed. They take their time, write a few lines, and say what they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass

from oarlock_launcher.adapters import plan
from oarlock_launcher.adapters.devices import described, framework_environment
from oarlock_launcher.core.command import NothingToRun, command_line
from oarlock_launcher.core.logs import Line
from oarlock_launcher.core.run import Ending, Key, Run
from oarlock_launcher.core.simulation import duration_seconds, log_lines
from oarlock_launcher.ports import Handle
from oarlock_schemas import TaskPlaced


@dataclass(frozen=True, slots=True)
class SimulationPolicy:
    """Bounds of a simulated run's duration, in seconds."""

    shortest_seconds: float = 1.0
    longest_seconds: float = 5.0


@dataclass(slots=True)
class _Going:
    lines: list[str]
    ends_at_seconds: float
    stopped: asyncio.Event


class SimulatedRuntime:
    """See ``ports.Runtime``. After a restart of the launcher a run begins its time anew; nothing is lost by that."""

    name = "process"

    def __init__(self, policy: SimulationPolicy, containers: plan.ContainerPolicy, clock: Callable[[], float]) -> None:
        self._policy = policy
        self._containers = containers
        self._clock = clock
        self._going: dict[Key, _Going] = {}

    async def prepare(self, run: Run, placed: TaskPlaced) -> None:
        """Nothing is needed."""

    async def start(self, run: Run, placed: TaskPlaced) -> Handle:
        """Begin the run's time."""
        devices = described(run.devices)
        vendor, framework = run.devices[0].vendor, plan.framework_of(placed)
        entry = None if placed.task.source.empty else placed.task.source.entry
        try:
            what = plan.program(run, placed, entry, framework_environment(vendor, framework, len(devices)), None)
            command = command_line(what, "python")
        except NothingToRun:
            command = ()
        seconds = self._seconds(run, placed)
        lines = log_lines([d.kind for d in run.devices], command, seconds, run.predicted_bytes)
        self._going.setdefault(run.key, _Going(lines, self._clock() + seconds, asyncio.Event()))
        return Handle(
            f"simulated-{run.task_id}-{run.attempt}",
            None,
            command,
            plan.shown_line(run, placed, devices, self._containers),
        )

    async def follow(self, run: Run) -> AsyncIterator[Line]:
        """The lines that say what is simulated."""
        going = self._of(run)
        for number, text in enumerate(going.lines, start=1):
            yield Line("stdout", text, number)

    async def wait(self, run: Run) -> Ending:
        """Until its time is over or it is stopped."""
        going = self._of(run)
        left = going.ends_at_seconds - self._clock()
        try:
            async with asyncio.timeout(max(0.0, left)):
                await going.stopped.wait()
        except TimeoutError:
            return Ending(exit_code=0, ended_at_seconds=self._clock(), log_tail=tuple(going.lines))
        return Ending(signal=15, ended_at_seconds=self._clock(), log_tail=tuple(going.lines))

    async def stop(self, run: Run) -> None:
        """End its time now."""
        self._of(run).stopped.set()

    async def discard(self, run: Run) -> None:
        """Nothing is kept of it."""
        self._going.pop(run.key, None)

    async def find(self, known: Collection[Run]) -> dict[Key, Run]:
        """All that had begun: they exist only in the record."""
        return {run.key: run for run in known if run.started_at_seconds is not None}

    def _of(self, run: Run) -> _Going:
        """The run's time; one that was begun by an earlier launcher gets the longest."""
        if run.key not in self._going:
            lines = log_lines(
                [d.kind for d in run.devices], run.command, self._policy.longest_seconds, run.predicted_bytes
            )
            self._going[run.key] = _Going(lines, self._clock() + self._policy.longest_seconds, asyncio.Event())
        return self._going[run.key]

    def _seconds(self, run: Run, placed: TaskPlaced) -> float:
        predicted = placed.portrait.compute.duration_seconds.get(run.devices[0].kind)
        return duration_seconds(
            predicted, run.predicted_step_seconds, self._policy.shortest_seconds, self._policy.longest_seconds
        )
