"""Every subject of the bus, who publishes on it, who listens, and the model of its body."""

from __future__ import annotations

from dataclasses import dataclass

from oarlock_schemas.base import Message
from oarlock_schemas.dead import DeadReason
from oarlock_schemas.events import (
    EstimatorRecalibrated,
    LogLine,
    PolicyUpdated,
    RunRecord,
    SubmitReply,
    TaskCancel,
    TaskFinished,
    TaskLaunched,
    TaskPlaced,
    TaskProfiled,
    TaskQueued,
    TaskRejected,
)
from oarlock_schemas.fleet import DeviceState, LeaseBook, NodeMetrics
from oarlock_schemas.gang import GangBook
from oarlock_schemas.portrait import Portrait
from oarlock_schemas.state import TaskRecord
from oarlock_schemas.task import TaskSubmitted
from oarlock_schemas.window import Window


@dataclass(frozen=True, slots=True)
class Channel:
    """One subject after the prefix; ``{name}`` marks a token. ``stream`` is None on core NATS (not stored)."""

    name: str
    subject: str
    model: type[Message]
    publishers: tuple[str, ...]
    consumers: tuple[str, ...]
    stream: str | None = "TASKS"
    reply: type[Message] | None = None
    header: str | None = None
    """Where the model travels when it is not the body (a dead letter's body is the original message's)."""


CHANNELS: tuple[Channel, ...] = (
    Channel("submit", "submit", TaskSubmitted, ("anyone",), ("gateway", "profiler"), None, SubmitReply),
    Channel("taskSubmitted", "tasks.submitted", TaskSubmitted, ("anyone",), ("profiler",)),
    Channel("taskSubmittedById", "tasks.submitted.{task_id}", TaskSubmitted, ("anyone",), ("profiler",)),
    Channel("taskProfiled", "tasks.profiled.{task_id}", TaskProfiled, ("profiler",), ("matcher",)),
    Channel("taskQueued", "tasks.queued.{task_id}", TaskQueued, ("matcher",), ()),
    Channel("taskRejected", "tasks.rejected.{task_id}", TaskRejected, ("profiler", "matcher"), ()),
    Channel("taskPlaced", "tasks.placed.{site}.{task_id}", TaskPlaced, ("matcher",), ("launcher",)),
    Channel("taskLaunched", "tasks.launched.{task_id}", TaskLaunched, ("launcher",), ("telemetry", "matcher")),
    Channel("taskFinished", "tasks.finished.{task_id}", TaskFinished, ("launcher",), ("telemetry", "matcher")),
    Channel("taskCancel", "tasks.cancel.{task_id}", TaskCancel, ("anyone",), ("matcher", "launcher")),
    Channel("runCompleted", "runs.completed.{task_id}", RunRecord, ("telemetry",), ("profiler", "matcher"), "RUNS"),
    Channel("estimatorRecalibrated", "estimator.recalibrated", EstimatorRecalibrated, ("profiler",), (), "RUNS"),
    Channel("policyUpdated", "policy.updated", PolicyUpdated, ("matcher",), ("matcher",), "RUNS"),
    Channel("nodeMetrics", "metrics.{site}.{node}", NodeMetrics, ("telemetry",), ("matcher", "gateway"), None),
    Channel("logLine", "logs.{task_id}", LogLine, ("launcher",), (), "LOGS"),
    Channel("deadLetter", "dead.{service}", DeadReason, ("runtime",), (), "DEAD", header="Oarlock-Dead"),
)

STATES: tuple[type[Message], ...] = (TaskRecord, DeviceState, LeaseBook, GangBook, Portrait, Window)
"""What the key-value buckets hold, and the portrait by itself (`oarlock explain --format json`)."""
