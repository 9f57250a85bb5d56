"""What the core wants done, in the order given. What comes of it returns as an event."""

from __future__ import annotations

from dataclasses import dataclass

from oarlock_launcher.core.run import Key, Run


@dataclass(frozen=True, slots=True)
class Save:
    """Write the run down before going on, so that it survives this process."""

    run: Run


@dataclass(frozen=True, slots=True)
class Start:
    """Fetch its code and start it."""

    run: Run


@dataclass(frozen=True, slots=True)
class Join:
    """Tell the other members of its gang that it is ready; answer with ``GangSeen``."""

    run: Run


@dataclass(frozen=True, slots=True)
class Follow:
    """Publish its output and await its end."""

    run: Run


@dataclass(frozen=True, slots=True)
class Stop:
    """Ask it to end, then make it end."""

    key: Key


@dataclass(frozen=True, slots=True)
class TellLaunched:
    """Publish ``tasks.launched`` and move the task's record to running."""

    run: Run


@dataclass(frozen=True, slots=True)
class TellFinished:
    """Publish ``tasks.finished``, move the task's record, and answer with ``Reported``.

    The end of a gang's member is told to the other members; ``tasks.finished`` is published by the last.
    """

    run: Run


@dataclass(frozen=True, slots=True)
class Discard:
    """Remove what the runtime keeps of it (container, working folder)."""

    key: Key


@dataclass(frozen=True, slots=True)
class Forget:
    """Remove its record; a placement of it this old is no longer redelivered."""

    run: Run


@dataclass(frozen=True, slots=True)
class RememberCancel:
    """Write down that the task was cancelled, in case its placement is still on its way."""

    task_id: str


@dataclass(frozen=True, slots=True)
class ForgetCancel:
    """The placement will not come any more."""

    task_id: str


@dataclass(frozen=True, slots=True)
class Defer:
    """Give the message back; it can be handled after ``delay_seconds``."""

    delay_seconds: float
    why: str


Effect = (
    Save
    | Start
    | Join
    | Follow
    | Stop
    | TellLaunched
    | TellFinished
    | Discard
    | Forget
    | RememberCancel
    | ForgetCancel
    | Defer
)
