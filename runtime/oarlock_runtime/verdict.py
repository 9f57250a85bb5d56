"""What becomes of a message after its handler: a pure decision, kept apart from the loop that carries it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oarlock_runtime.errors import PermanentError, TemporaryError

DEFAULT_BACKOFF_SECONDS = (1.0, 5.0, 15.0, 60.0)
"""Pauses between retries; the last one repeats. They sum to more than a dependency takes to restart."""

DEFAULT_MAX_DELIVER = 5
CRASH_FACTOR = 3
"""A message that comes back this many times ``max_deliver`` without any result kills its handler's process: it is put
away before it is tried again."""


@dataclass(frozen=True)
class Ack:
    """Done."""


@dataclass(frozen=True)
class GiveBack:
    """Comes again after ``delay_seconds``. ``on_purpose`` ones do not count as failures."""

    delay_seconds: float
    on_purpose: bool


@dataclass(frozen=True)
class Bury:
    """To the dead letters, then terminated. ``kind`` is why."""

    kind: str


Verdict = Ack | GiveBack | Bury


def judge(error: BaseException | None, failures: int, *, max_deliver: int, backoff_seconds: Sequence[float]) -> Verdict:
    """Decide.

    Args:
        error: what the handler raised; None if it returned.
        failures: failed deliveries including this one; those given back on purpose are not among them.
        max_deliver: bound of ``failures``.
        backoff_seconds: pause after the n-th failure.
    """
    if error is None:
        return Ack()
    if isinstance(error, PermanentError):
        return Bury("permanent")
    if isinstance(error, TemporaryError):
        return GiveBack(error.delay_seconds, on_purpose=True)
    if failures >= max_deliver:
        return Bury("exhausted")
    return GiveBack(
        backoff_seconds[min(failures, len(backoff_seconds)) - 1] if backoff_seconds else 0.0, on_purpose=False
    )


def kills_its_handler(failures: int, max_deliver: int) -> bool:
    """True for a message whose earlier deliveries ended without any verdict far too often."""
    return failures > CRASH_FACTOR * max_deliver
