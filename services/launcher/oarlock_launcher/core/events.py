"""What happens to a site's runs. Every event may come twice; the second time changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from oarlock_launcher.core.run import Ending, Key, Run
from oarlock_schemas import GangBook


@dataclass(frozen=True, slots=True)
class Placed:
    """A placement came in. ``run`` is what would be started.

    ``foreign``: why it cannot be started by this launcher at all. ``unheld``: the devices whose lease book no longer
    holds this attempt. ``final``: the task's recorded state, when it is one from which nothing starts.
    ``newer_attempt``: the recorded attempt, when it is later than this one.
    """

    run: Run
    foreign: str | None = None
    unheld: tuple[str, ...] = ()
    final: str | None = None
    newer_attempt: int | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """The runtime has it running."""

    key: Key
    run_id: str
    pid: int | None
    command: tuple[str, ...]
    docker_command: str


@dataclass(frozen=True, slots=True)
class StartFailed:
    """The runtime could not start it; nothing is left running. ``ending`` holds what is known, as a log's tail."""

    key: Key
    message: str


@dataclass(frozen=True, slots=True)
class Exited:
    """It is no longer running. ``oom_line`` is an out-of-memory message found in its last output."""

    key: Key
    ending: Ending
    oom_line: str | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """Somebody wants the task stopped; with ``preempt_attempt``, only that run of it, to make room for another task."""

    task_id: str
    by: str
    reason: str | None = None
    preempt_attempt: int | None = None


@dataclass(frozen=True, slots=True)
class GangSeen:
    """What the members of a gang have written down."""

    key: Key
    book: GangBook


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """After a restart of the launcher: a run that was not yet reported, and whether the runtime still has it.

    ``present``: running or ended, to be followed again; otherwise nothing of it was found.
    """

    run: Run
    present: bool


@dataclass(frozen=True, slots=True)
class LaunchTold:
    """Its launch has been told on the bus and recorded."""

    key: Key


@dataclass(frozen=True, slots=True)
class Reported:
    """Its end has been told on the bus and recorded."""

    key: Key


Event = Placed | Started | StartFailed | Exited | Cancel | GangSeen | Tick | Recovered | LaunchTold | Reported
