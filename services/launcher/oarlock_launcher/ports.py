"""What the launcher needs of the world; ``adapters`` provide it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from oarlock_accelerators import Device
from oarlock_launcher.core.logs import Line
from oarlock_launcher.core.record import Step
from oarlock_launcher.core.run import Ending, Key, Run
from oarlock_schemas import GangBook, LogLine, Source, TaskFinished, TaskLaunched, TaskPlaced


class CannotStart(Exception):
    """This run cannot be started here; trying again would not help. Nothing of it is left running."""


class RuntimeUnavailable(Exception):
    """The site's runtime does not answer now (its daemon is down); trying again later helps."""


@dataclass(frozen=True, slots=True)
class Handle:
    """A run that the runtime has started."""

    run_id: str
    pid: int | None
    command: tuple[str, ...]
    docker_command: str


@dataclass(frozen=True, slots=True)
class Stored:
    """A run as it was last written down, with the placement it came from (None where it was found by its labels)."""

    run: Run
    placed: TaskPlaced | None


class Runtime(Protocol):
    """How runs are started on this site. Every method is safe to call again."""

    name: str

    async def prepare(self, run: Run, placed: TaskPlaced) -> None:
        """Fetch its code and image, unless it has been started already. May take minutes and may be cancelled.

        Raises:
            CannotStart: it will never be startable here.
            RuntimeUnavailable: try again later.
        """
        ...

    async def start(self, run: Run, placed: TaskPlaced) -> Handle:
        """Start what was prepared, or find it started already. Must not be cancelled.

        Raises:
            CannotStart: and nothing is left running of it.
            RuntimeUnavailable: nothing was started.
        """
        ...

    def follow(self, run: Run) -> AsyncIterator[Line]:
        """Its output from the first line on, until it has ended and nothing is left to read."""
        ...

    async def wait(self, run: Run) -> Ending:
        """Await its end."""
        ...

    async def stop(self, run: Run) -> None:
        """Ask all its processes to end, and after a grace make them."""
        ...

    async def discard(self, run: Run) -> None:
        """Remove container and working folder."""
        ...

    async def find(self, known: Collection[Run]) -> dict[Key, Run]:
        """The runs that are here, running or ended: those of ``known``, and any others that name this site."""
        ...


class RunStore(Protocol):
    """Where runs are written down; survives this process."""

    def load(self) -> tuple[list[Stored], dict[str, float]]:
        """Every run, and the cancelled tasks with the time of their cancellation."""
        ...

    def save(self, run: Run) -> None: ...

    def save_placement(self, placed: TaskPlaced) -> None: ...

    def forget(self, key: Key) -> None: ...

    def remember_cancel(self, task_id: str, at_seconds: float) -> None: ...

    def forget_cancel(self, task_id: str) -> None: ...

    def log_position(self, key: Key) -> int:
        """Number of the last log line known to be published."""
        ...

    def save_log_position(self, key: Key, number: int) -> None: ...


class Channel(Protocol):
    """What is told to, and asked of, the rest of Oarlock."""

    async def launched(self, event: TaskLaunched, member: str | None) -> None:
        """``member``: the node, where only its part of a gang is meant; each is told and measured by itself."""
        ...

    async def finished(self, event: TaskFinished, peak_process_bytes: int | None) -> None: ...

    async def log(self, line: LogLine, member: str | None) -> None: ...

    async def unheld(self, run: Run) -> tuple[str, ...]:
        """The devices whose lease book does not hold this attempt."""
        ...

    async def task_state(self, task_id: str) -> tuple[str, int] | None:
        """Recorded state and attempt; None where there is no record."""
        ...

    async def move(self, run: Run, step: Step) -> None:
        """Move the task's record by compare-and-set."""
        ...

    async def join(self, run: Run, address: str, ports: tuple[int, ...]) -> GangBook:
        """Say that this member is ready, unless its part was closed; the last of ``ports`` is the master's."""
        ...

    async def end_member(self, run: Run, started_at: str | None, finished_at: str) -> GangBook | None:
        """Write down how this member of a gang ended; None where the gang was told of long ago."""
        ...

    async def gang_told(self, run: Run) -> None:
        """Write down that the end of the gang has been published."""
        ...

    async def forget_gang(self, run: Run) -> None:
        """Remove its book, once its end has been told."""
        ...

    def gangs(self) -> AsyncIterator[tuple[Key, GangBook]]:
        """Every book of a gang as it stands, then as it changes."""
        ...

    async def ask_member(self, key: Key, node: str) -> None:
        """Ask whether the launcher of a node is there."""
        ...

    async def answer_gang(self, key: Key) -> None:
        """Say that ours is."""
        ...

    async def lose_member(self, key: Key, node: str, message: str) -> None:
        """Give up a node's part of a gang, unless it has answered."""
        ...

    async def nodes(self, site: str) -> set[str]:
        """The nodes of a site that report devices."""
        ...


class Meeting(Protocol):
    """Where other nodes reach this one."""

    @property
    def address(self) -> str: ...

    def free_ports(self, count: int) -> tuple[int, ...]:
        """Ports that nothing listens on now."""
        ...


class Code(Protocol):
    """Fetches a task's code."""

    async def fetch(self, source: Source, folder: Path) -> None:
        """Put the code into the empty ``folder``.

        Raises:
            CannotStart: there is none, it is damaged, too large, or tries to leave the folder.
            RuntimeUnavailable: the store does not answer now.
        """
        ...


class Devices(Protocol):
    """The accelerators of this node."""

    async def find(self, vendor: str, uids: Sequence[str]) -> list[Device]:
        """These devices, in the order asked for.

        Raises:
            CannotStart: one of them is not here.
        """
        ...
