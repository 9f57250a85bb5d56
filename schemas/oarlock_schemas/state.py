"""The state of a task and the moves it may make."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from oarlock_schemas.array import ArrayMember
from oarlock_schemas.base import Message, Token
from oarlock_schemas.events import Outcome
from oarlock_schemas.task import TaskSubmitted

State = Literal[
    "submitted",
    "profiled",
    "queued",
    "placed",
    "launching",
    "running",
    "succeeded",
    "failed",
    "cancelled",
    "rejected",
]

FINAL: frozenset[str] = frozenset({"succeeded", "failed", "cancelled", "rejected"})

MOVES: dict[str, frozenset[str]] = {
    # An array's own record stays submitted until its tasks have ended, and then ends as they did.
    "submitted": frozenset({"profiled", "rejected", "cancelled", "succeeded", "failed"}),
    "profiled": frozenset({"queued", "placed", "rejected", "cancelled"}),
    "queued": frozenset({"placed", "rejected", "cancelled"}),
    # Back to queued: a refused fence, a container that never started, or a run that is given another attempt.
    "placed": frozenset({"launching", "running", "queued", "failed", "cancelled"}),
    "launching": frozenset({"running", "queued", "failed", "cancelled", "succeeded"}),
    "running": frozenset({"succeeded", "failed", "cancelled", "queued"}),
    "succeeded": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
    "rejected": frozenset(),
}


MAX_OOM_ATTEMPTS = 3
"""Runs of one task that may die of out-of-memory before it fails; each asks for a larger device than the last."""

MAX_REFUSALS = 10
"""Attempts that a launcher may refuse (their devices were taken meanwhile) before the task fails."""


class StateChange(Message):
    """One step of a task's history."""

    state: State
    at: str
    by: str
    note: str | None = None


class IllegalMove(ValueError):
    """A move that :data:`MOVES` does not allow; the message carries the task's history."""


class TaskRecord(Message):
    """A task's state (bucket `tasks`, key `{task_id}`), moved by compare-and-set only."""

    task_id: Token
    name: str | None = None
    owner: Token = "anonymous"
    priority: int = 50
    state: State = "submitted"
    attempt: int = 1
    outcome: Outcome | None = None
    message: str | None = None
    message_zh: str | None = None
    site: str | None = None
    device_uids: list[str] = Field(default_factory=list)
    device_kind: str | None = None
    predicted_bytes: int | None = None
    measured_bytes: int | None = None
    ran_out_of_bytes: int | None = Field(
        None, description="What the device could give when a run of the task ran out of memory; the next needs more."
    )
    simulated: bool = False
    trace_id: str | None = None
    array: str | None = Field(None, description="An array's own record: its tasks have ids and records of their own.")
    array_member: ArrayMember | None = None
    history: list[StateChange] = Field(default_factory=list)

    def move(self, state: State, *, at: str, by: str, note: str | None = None, **changes: object) -> TaskRecord:
        """The record in ``state``, with one more step of history and the fields of ``changes`` replaced.

        Raises:
            IllegalMove: the state machine has no such move.
        """
        if state not in MOVES[self.state]:
            steps = " → ".join(f"{step.state} ({step.by}, {step.at})" for step in self.history)
            raise IllegalMove(f"task {self.task_id} cannot go from {self.state} to {state}; its history: {steps}")
        step = StateChange(state=state, at=at, by=by, note=note)
        return self.model_copy(update={**changes, "state": state, "history": [*self.history, step]})

    @property
    def final(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state in FINAL


def after_run(task: TaskSubmitted, outcome: Outcome, attempt: int) -> State:
    """Where a task goes when run number ``attempt`` has ended: to an end, or back into the queue for another attempt.

    The launcher moves the record by this rule, and the matcher places the next attempt by the same one.
    """
    match outcome:
        case "ok":
            return "succeeded"
        case "cancelled":
            return "cancelled"
        case "oom":
            again = task.resource_policy.allow_retry_on_oom and attempt < MAX_OOM_ATTEMPTS
        case "preempted":
            again = True
        case "refused":
            again = attempt < MAX_REFUSALS
        case "error" | "lost":
            again = attempt <= task.retries
        case "timeout":
            again = False
    return "queued" if again else "failed"
