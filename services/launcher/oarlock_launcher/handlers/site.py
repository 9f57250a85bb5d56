"""One site's runs as they go on: takes events one by one, keeps the core's state, carries out its effects.

Everything that takes time (fetching code, following output, telling the bus) is a task of its own that ends in another
event, so one slow run never holds up another. What must be told is tried until it is told.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from oarlock_launcher.core import effects as do
from oarlock_launcher.core import events as on
from oarlock_launcher.core import gang
from oarlock_launcher.core.decide import decide
from oarlock_launcher.core.logs import LogLimits, admit, close, open_flow
from oarlock_launcher.core.outcome import out_of_memory_line
from oarlock_launcher.core.record import closing_step
from oarlock_launcher.core.run import Ending, Key, Run, SiteState
from oarlock_launcher.handlers.telling import finished_event, gang_times, launched_event, log_event, times_of
from oarlock_launcher.ports import CannotStart, Channel, Handle, Meeting, RunStore, Runtime, RuntimeUnavailable
from oarlock_runtime import OarlockError, get_logger
from oarlock_schemas import TaskPlaced

log = get_logger("launcher")

_RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
_START_PATIENCE_SECONDS = 300.0
_LOG_DRAIN_SECONDS = 30.0
_TAIL_LINES = 200
_POSITION_EVERY_LINES = 100


class Site:
    """The runs of one site.

    Args:
        name: the site.
        runtime: where real runs go.
        simulated: where runs on simulated devices go.
        store: where runs are written down.
        channel: the bus.
        meeting: where members of a gang on other nodes reach this one.
        clock: seconds since the epoch.
        limits: of what goes to the bus of a run's output.
    """

    def __init__(
        self,
        name: str,
        runtime: Runtime,
        simulated: Runtime,
        store: RunStore,
        channel: Channel,
        meeting: Meeting,
        clock: Callable[[], float],
        limits: LogLimits | None = None,
    ) -> None:
        self.name = name
        self._real = runtime
        self._simulated = simulated
        self._store = store
        self._channel = channel
        self._meeting = meeting
        self._clock = clock
        self._limits = limits or LogLimits()
        self._state = SiteState()
        self._placements: dict[Key, TaskPlaced] = {}
        self._stops: dict[Key, asyncio.Event] = {}
        self._telling: dict[Key, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._recovered = asyncio.Event()

    @property
    def state(self) -> SiteState:
        """What the core believes."""
        return self._state

    async def ready(self, seconds: float) -> bool:
        """Whether, within ``seconds``, what an earlier launcher left behind has been taken over."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._recovered.wait(), seconds)
        return self._recovered.is_set()

    async def recovered(self) -> None:
        """Return when what an earlier launcher left behind has been taken over."""
        await self._recovered.wait()

    async def recover(self) -> None:
        """Take over what an earlier launcher left. Placements are taken only after that."""
        if self._recovered.is_set():
            return
        stored, cancelled = self._store.load()
        self._state = SiteState(cancelled=cancelled)
        for each in stored:
            if each.placed is not None:
                self._placements[each.run.key] = each.placed
        runs = {each.run.key: each.run for each in stored}
        found = await self._find(self._real, [run for run in runs.values() if not run.simulated])
        found |= await self._find(self._simulated, [run for run in runs.values() if run.simulated])
        for key, run in {**found, **runs}.items():
            if key not in runs:
                self._store.save(run)
            if run.phase == "reported" and key in found:
                self._spawn(self._discard(run))
            self.happened(on.Recovered(run, present=key in found))
        if found:
            log.info("took over runs", runs=len(found))
        self._recovered.set()

    def placed(self, placed: TaskPlaced, event: on.Placed) -> do.Defer | None:
        """A placement came in; what is returned asks to have the message back later."""
        if event.run.key not in self._state.runs:
            self._store.save_placement(placed)
            self._placements[event.run.key] = placed
        return self.happened(event)

    def happened(self, event: on.Event) -> do.Defer | None:
        """Decide, and set everything going that follows. Does not wait, so events are handled in order."""
        self._state, effects = decide(self._state, event, self._clock())
        deferred = None
        for effect in effects:
            if isinstance(effect, do.Defer):
                deferred = effect
            else:
                self._carry_out(effect)
        return deferred

    async def stop(self) -> None:
        """Let go: runs go on without us."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5.0)

    async def settled(self) -> None:
        """Return when nothing is being done (for orderly ends and tests)."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _carry_out(self, effect: do.Effect) -> None:
        match effect:
            case do.Save(run):
                self._store.save(run)
            case do.Start(run):
                self._stops.setdefault(run.key, asyncio.Event())
                self._spawn(self._begin(run))
            case do.Join(run):
                self._spawn(self._insist(partial(self._join, run)))
            case do.Follow(run):
                self._spawn(self._watch(run))
            case do.Stop(key):
                self._spawn(self._end(key))
            case do.TellLaunched(run):
                self._spawn(self._tell(run.key, lambda: self._tell_launched(run)))
            case do.TellFinished(run):
                self._spawn(self._tell(run.key, lambda: self._tell_finished(run)))
            case do.Discard(key):
                self._spawn(self._discard(self._state.runs[key]))
            case do.Forget(run):
                self._store.forget(run.key)
                if run.gang is not None:
                    self._spawn(self._insist(partial(self._channel.forget_gang, run)))
            case do.RememberCancel(task_id):
                self._store.remember_cancel(task_id, self._clock())
            case do.ForgetCancel(task_id):
                self._store.forget_cancel(task_id)

    async def _join(self, run: Run) -> None:
        ports = self._meeting.free_ports(len(run.devices) + 1)
        self.happened(on.GangSeen(run.key, await self._channel.join(run, self._meeting.address, ports)))

    def _runtime(self, run: Run) -> Runtime:
        return self._simulated if run.simulated else self._real

    async def _begin(self, run: Run) -> None:
        """Prepare and start; ends in Started or StartFailed."""
        placed = self._placements.get(run.key)
        if placed is None:
            self.happened(on.StartFailed(run.key, "its placement was lost with the launcher's records"))
            return
        moving = self._spawn(self._tell(run.key, lambda: self._move(run, "launching")))
        deadline = self._clock() + _START_PATIENCE_SECONDS
        try:
            handle = await self._start(run, placed, deadline, moving)
        except CannotStart as error:
            self.happened(on.StartFailed(run.key, str(error)))
        except RuntimeUnavailable as error:
            self.happened(on.StartFailed(run.key, f"given up after {_START_PATIENCE_SECONDS:g} s: {error}"))
        except Exception as error:
            log.exception("start failed", task_id=run.task_id)
            self.happened(on.StartFailed(run.key, f"the launcher failed to start it: {error!r}"))
        else:
            self.happened(on.Started(run.key, handle.run_id, handle.pid, handle.command, handle.docker_command))

    async def _start(self, run: Run, placed: TaskPlaced, deadline: float, moving: asyncio.Task[None]) -> Handle:
        """Prepare while the record moves to launching, then start."""
        runtime = self._runtime(run)
        attempt = 0
        while True:
            try:
                await self._unless_stopped(run.key, runtime.prepare(run, placed))
                await moving
                return await runtime.start(run, placed)
            except RuntimeUnavailable:
                pause = _RETRY_SECONDS[min(attempt, len(_RETRY_SECONDS) - 1)]
                attempt += 1
                if self._clock() + pause > deadline:
                    raise
                await self._unless_stopped(run.key, asyncio.sleep(pause))

    async def _unless_stopped(self, key: Key, work: Coroutine[Any, Any, None]) -> None:
        """Do ``work``; leave it where the run is to be stopped before it began.

        Raises:
            CannotStart: it is to be stopped.
        """
        working = asyncio.ensure_future(work)
        asked = asyncio.ensure_future(self._stops[key].wait())
        try:
            await asyncio.wait({working, asked}, return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                raise CannotStart("stopped before it was started")
            await working
        finally:
            for task in (working, asked):
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError, CannotStart, RuntimeUnavailable):
                await working

    async def _watch(self, run: Run) -> None:
        """Publish its output and await its end."""
        runtime = self._runtime(run)
        tail: deque[str] = deque(maxlen=_TAIL_LINES)
        pump = asyncio.create_task(self._pump(run, tail))
        try:
            ending = await runtime.wait(run)
            # The end is told after the last line, unless the lines cannot be had.
            await asyncio.wait({pump}, timeout=_LOG_DRAIN_SECONDS)
        finally:
            pump.cancel()
        lines = ending.log_tail or tuple(tail)
        ending = Ending(
            exit_code=ending.exit_code,
            signal=ending.signal,
            memory_killed=ending.memory_killed,
            ended_at_seconds=ending.ended_at_seconds or self._clock(),
            peak_process_bytes=ending.peak_process_bytes,
            log_tail=lines,
            note=ending.note,
        )
        self.happened(on.Exited(run.key, ending, out_of_memory_line(lines)))

    async def _pump(self, run: Run, tail: deque[str]) -> None:
        published = self._store.log_position(run.key)
        member = None if run.gang is None else run.gang.node
        flow = open_flow(self._limits, self._clock())
        number = 0
        async for line in self._runtime(run).follow(run):
            number = line.number
            tail.append(line.text)
            if number <= published:
                continue
            flow, out = admit(flow, line, self._limits, self._clock())
            for each in out:
                await self._insist(partial(self._channel.log, log_event(run, each, self._clock()), member))
            if number % _POSITION_EVERY_LINES == 0:
                self._store.save_log_position(run.key, number)
        for each in close(flow, number):
            await self._insist(partial(self._channel.log, log_event(run, each, self._clock()), member))
        self._store.save_log_position(run.key, number)

    async def _end(self, key: Key) -> None:
        """Stop a run: its preparation where it has not begun, else its processes."""
        if key in self._stops:
            self._stops[key].set()
        run = self._state.runs.get(key)
        if run is not None and run.started_at_seconds is not None:
            await self._runtime(run).stop(run)

    async def _tell_launched(self, run: Run) -> None:
        await self._move(run, "running")
        member = None if run.gang is None else run.gang.node
        await self._channel.launched(launched_event(run, self.name_of(run), self._runtime(run).name), member)
        self.happened(on.LaunchTold(run.key))

    async def _tell_finished(self, run: Run) -> None:
        times = times_of(run, self._clock())
        if run.gang is None:
            await self._tell_end(run, times)
        else:
            # The book may have been written by an earlier try, or by another member for us.
            book = await self._channel.end_member(run, *times)
            if book is not None and book.closed_by == run.gang.node and not book.told:
                await self._tell_end(gang.whole(book, run), gang_times(book))
                await self._channel.gang_told(run)
        self.happened(on.Reported(run.key))

    async def _tell_end(self, run: Run, times: tuple[str | None, str]) -> None:
        step = closing_step(str(run.outcome), ends_task=run.final_if_failed, retry_on_oom=run.retry_on_oom)
        if step is not None:
            await self._move(run, step)
        peak = run.ending.peak_process_bytes if run.ending else None
        await self._channel.finished(finished_event(run, self.name_of(run), times), peak)

    def name_of(self, run: Run) -> str:
        """The site a run was placed on: ours, or a simulated one that we serve."""
        placed = self._placements.get(run.key)
        return self.name if placed is None else placed.site

    async def _move(self, run: Run, step: Any) -> None:
        """Move the record; where it cannot be moved the event still goes out, and says what happened."""
        try:
            await self._channel.move(run, step)
        except (OarlockError, ValueError) as error:
            if getattr(error, "delay_seconds", None) is not None:
                raise
            log.exception("task record cannot be moved", task_id=run.task_id, step=step)

    async def _tell(self, key: Key, tell: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Tell one thing of a run after the other, in order."""
        async with self._telling.setdefault(key, asyncio.Lock()):
            await self._insist(tell)

    async def _insist(self, tell: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Try until the bus has it."""
        attempt = 0
        while True:
            try:
                await tell()
                return
            except OarlockError as error:
                pause = _RETRY_SECONDS[min(attempt, len(_RETRY_SECONDS) - 1)]
                attempt += 1
                log.warning("not told yet", error=str(error), again_in_seconds=pause)
                await asyncio.sleep(pause)

    async def _discard(self, run: Run) -> None:
        try:
            await self._runtime(run).discard(run)
        except RuntimeUnavailable as error:
            # What is left is found and removed at the next start.
            log.warning("could not clean up yet", task_id=run.task_id, error=str(error))
        for kept in (self._stops, self._telling, self._placements):
            kept.pop(run.key, None)

    async def _find(self, runtime: Runtime, runs: list[Run]) -> dict[Key, Run]:
        attempt = 0
        while True:
            try:
                return await runtime.find(runs)
            except RuntimeUnavailable as error:
                pause = _RETRY_SECONDS[min(attempt, len(_RETRY_SECONDS) - 1)]
                attempt += 1
                log.warning("the site's runtime does not answer", error=str(error), again_in_seconds=pause)
                await asyncio.sleep(pause)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a run's task failed", error=repr(task.exception()), exc_info=task.exception())
