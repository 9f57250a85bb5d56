"""Following a task: each event as it comes, in words, to the run record."""

from __future__ import annotations

import asyncio
import sys
from functools import singledispatchmethod
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from oarlock import render
from oarlock.cli.options import print_json_line
from oarlock.terminal import plain
from oarlock_schemas import (
    InvalidMessage,
    Message,
    TaskFinished,
    TaskLaunched,
    TaskPlaced,
    TaskProfiled,
    TaskQueued,
    TaskRejected,
    read,
)

if TYPE_CHECKING:
    from oarlock.sdk import AsyncClient

RECORD_SECONDS = 15.0
"""How long after a run's end its record is waited for."""


async def follow(client: AsyncClient, task_id: str, *, as_json: bool) -> int:
    """Show the task's events and output until it has ended; the exit code: 0 when it succeeded, else 1."""
    screen = Screen(render.console())
    output = asyncio.create_task(_output(client, task_id, as_json=as_json))
    async for event in client.events(task_id):
        if as_json:
            print_json_line({"event": event.name, **event.body})
        else:
            screen.event(event.name, event.body)
    record = await client.wait(task_id)
    await asyncio.wait({output}, timeout=2)
    output.cancel()
    ran = record.state in {"succeeded", "failed"}
    run = await client.run_record(task_id, timeout_seconds=RECORD_SECONDS) if ran else None
    if as_json:
        print_json_line(
            {"event": "ended", "task": record.model_dump(mode="json"), "run": run and run.model_dump(mode="json")}
        )
    else:
        if run is not None:
            screen.console.print(render.runs([run]))
        screen.say("ended", record.state + (f": {record.message}" if record.message else ""))
    return 0 if record.state == "succeeded" else 1


async def _output(client: AsyncClient, task_id: str, *, as_json: bool) -> None:
    async for line in client.logs(task_id, follow=True):
        if as_json:
            print_json_line({"event": "log", **line.model_dump(mode="json")})
        else:
            sys.stdout.write(f"  │ {plain(line.line)}\n")
            sys.stdout.flush()


_MODELS: dict[str, type[Message]] = {
    "profiled": TaskProfiled,
    "queued": TaskQueued,
    "rejected": TaskRejected,
    "placed": TaskPlaced,
    "launched": TaskLaunched,
    "finished": TaskFinished,
}


class Screen:
    """Events in words on one console."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def say(self, name: str, text: str) -> None:
        """One line: the event's name, then what it says."""
        line = Text(f"{name:>10}  ", style="bold cyan")
        line.append(text, style="default not bold")
        self.console.print(line)

    def event(self, name: str, body: dict[str, Any]) -> None:
        """Show one event; one that is not known is named only."""
        model = _MODELS.get(name)
        if model is None:
            self.say(name, "")
            return
        try:
            event = read(model, body)[0]
        except InvalidMessage as error:
            self.say(name, f"(somebody published what cannot be read: {error.faults[0]})")
            return
        self.show(event)

    @singledispatchmethod
    def show(self, event: Message) -> None:
        """Show one event, by its type."""
        raise NotImplementedError(type(event).__name__)

    @show.register
    def _profiled(self, event: TaskProfiled) -> None:
        p = event.portrait
        self.say("profiled", f"{p.framework or 'unknown framework'}, {p.method}, confidence {p.confidence:.0%}")
        self.console.print(render.portrait(p, evidence_limit=10, model_depth=1))

    @show.register
    def _queued(self, event: TaskQueued) -> None:
        self.say("queued", "; ".join(event.would_free) or "waiting")
        self.console.print(render.reasons(event.reasons))

    @show.register
    def _rejected(self, event: TaskRejected) -> None:
        self.say("rejected", f"{event.code}: {event.message}" + (f"  {event.message_zh}" if event.message_zh else ""))
        if event.faults:
            self.console.print(render.faults(event.faults))
        if event.reasons:
            self.console.print(render.reasons(event.reasons))
        if event.advice:
            self.console.print(render.advice(event.advice))

    @show.register
    def _placed(self, event: TaskPlaced) -> None:
        kinds = ", ".join(f"{d.kind} on {d.node}" + (" (simulated)" if d.simulated else "") for d in event.devices)
        note = f" ({event.algorithm_reason})" if event.algorithm_reason else ""
        reserved = render.size(event.devices[0].reserved_bytes)
        self.say("placed", f"{kinds}; {reserved} reserved; by {event.algorithm}{note}")
        self.console.print(render.candidates(event.candidates[:6]))
        if event.rejected:
            self.console.print(render.reasons(event.rejected))

    @show.register
    def _launched(self, event: TaskLaunched) -> None:
        simulated = " (simulated: nothing is executed)" if event.simulated else ""
        self.say("launched", f"{event.runtime} {event.run_id} on {event.node}{simulated}")
        self.console.print(Text(f"            {event.docker_command}", style="dim"), soft_wrap=True)

    @show.register
    def _finished(self, event: TaskFinished) -> None:
        code = "" if event.exit_code is None else f", exit code {event.exit_code}"
        simulated = " (simulated)" if event.simulated else ""
        self.say("finished", f"{event.outcome}{code}{simulated}" + (f": {event.message}" if event.message else ""))
