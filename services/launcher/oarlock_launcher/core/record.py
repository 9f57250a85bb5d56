"""Which move of the task's record an effect makes, if any.

The launcher moves a task to launching, running, succeeded, cancelled, and to failed when no other attempt can follow.
A failure that another attempt may follow is left as it stands: the matcher, which counts attempts and knows the fleet,
moves it on when it hears ``tasks.finished``.
"""

from __future__ import annotations

from typing import Literal

Step = Literal["launching", "running", "succeeded", "failed", "cancelled"]

_ORDER = ("submitted", "profiled", "queued", "placed", "launching", "running")
_FINAL = frozenset({"succeeded", "failed", "cancelled", "rejected"})


def final_if_failed(*, attempt: int, retries: int) -> bool:
    """Whether an ordinary failure of this attempt ends the task."""
    return attempt > retries


def closing_step(outcome: str, *, ends_task: bool, retry_on_oom: bool) -> Step | None:
    """The move that an end makes; None leaves it to the matcher (another attempt, or a refused placement)."""
    if outcome == "ok":
        return "succeeded"
    if outcome == "cancelled":
        return "cancelled"
    if outcome == "timeout":
        return "failed"
    if outcome == "error":
        return "failed" if ends_task else None
    if outcome == "oom":
        return None if retry_on_oom else "failed"
    # lost: nobody knows what it had done, and the matcher may place it anew; refused: it never began.
    return "failed" if outcome == "lost" and ends_task else None


def move(state: str, attempt: int, run_attempt: int, step: Step) -> Literal["apply", "done", "early", "stale"]:
    """What to do with a record in ``state``: apply the step, nothing (it is done), wait (it is early) or drop it."""
    if attempt > run_attempt:
        return "stale"
    if state == step or state in _FINAL:
        return "done"
    if state in ("submitted", "profiled", "queued"):
        return "early"
    if step in _ORDER and _ORDER.index(state) > _ORDER.index(step):
        return "done"
    return "apply"
