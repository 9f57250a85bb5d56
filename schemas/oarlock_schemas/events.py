"""The events that services publish, in the order of the flow."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from oarlock_schemas.base import Message, Token
from oarlock_schemas.portrait import Advice, Portrait
from oarlock_schemas.task import TaskSubmitted


class SubmitReply(Message):
    """The answer to a request on `submit`: the id, or every fault with its JSON path."""

    task_id: Token | None = None
    faults: list[dict[str, str]] = Field(default_factory=list, description="`path` and `message` of each fault.")
    ignored: list[str] = Field(default_factory=list, description="JSON paths of fields that are not known.")


class TaskProfiled(Message):
    """`tasks.profiled.{task_id}`: the portrait, with the task it is of."""

    task_id: Token
    task: TaskSubmitted
    portrait: Portrait
    attempt: int = Field(1, ge=1)
    at: str


class DeviceReason(Message):
    """Why one device was not taken (a filter's name, a sentence and its numbers)."""

    device_uid: Token | None = None
    kind: str | None = None
    reason: str = Field(examples=["memory"])
    message: str
    message_zh: str | None = None
    devices: int = Field(1, ge=1, description="How many devices share this reason.")


class Candidate(Message):
    """One candidate that could have been taken, with its score and the parts the score is made of."""

    device_uids: list[Token]
    kind: str
    node: Token
    score: float
    parts: dict[str, float] = Field(default_factory=dict)


class TaskQueued(Message):
    """`tasks.queued.{task_id}`: why it waits and what would free it."""

    task_id: Token
    reasons: list[DeviceReason]
    would_free: list[str] = Field(default_factory=list, description="What would let it start, in sentences.")
    position: int | None = None
    at: str


class TaskRejected(Message):
    """`tasks.rejected.{task_id}`: it will not run, why, and what would help."""

    task_id: Token
    by: Literal["profiler", "matcher", "launcher", "gateway"]
    code: str = Field(examples=["no_device_fits", "invalid_task", "queue_timeout"])
    message: str
    message_zh: str | None = None
    reasons: list[DeviceReason] = Field(default_factory=list)
    faults: list[dict[str, str]] = Field(default_factory=list)
    advice: list[Advice] = Field(default_factory=list)
    at: str


class PlacedDevice(Message):
    """One device of a placement."""

    uid: Token
    kind: str
    vendor: str
    node: Token
    index: int | None = None
    reserved_bytes: int = Field(ge=0)
    fence: int = Field(ge=0, description="Revision of the device's lease book that holds this booking.")
    simulated: bool = False


class TaskPlaced(Message):
    """`tasks.placed.{site}.{task_id}`: the devices a task gets. A launcher refuses a fence it has seen surpassed."""

    task_id: Token
    task: TaskSubmitted
    portrait: Portrait
    attempt: int = Field(ge=1)
    site: Token
    devices: list[PlacedDevice] = Field(min_length=1)
    exclusive: bool = False
    predicted_bytes: int | None = Field(None, description="Predicted device peak on each device.")
    predicted_step_seconds: float | None = None
    algorithm: str
    algorithm_reason: str | None = None
    score: float | None = None
    candidates: list[Candidate] = Field(default_factory=list, description="Best first; bounded.")
    rejected: list[DeviceReason] = Field(default_factory=list)
    at: str


class TaskLaunched(Message):
    """`tasks.launched.{task_id}`: the run has started."""

    task_id: Token
    attempt: int
    site: Token
    node: Token
    runtime: Literal["docker", "kubernetes", "slurm", "process"]
    run_id: str = Field(description="Container id, process id, job id.")
    pid: int | None = Field(None, description="Main process on the node, when it can be seen.")
    device_uids: list[Token]
    command: list[str]
    docker_command: str = Field(description="The equivalent `docker run …` line, for people.")
    simulated: bool = False
    predicted_bytes: int | None = None
    predicted_step_seconds: float | None = None
    at: str


Outcome = Literal["ok", "error", "oom", "cancelled", "timeout", "lost", "refused", "preempted"]


class TaskFinished(Message):
    """`tasks.finished.{task_id}`: the run has ended, and how."""

    task_id: Token
    attempt: int
    site: Token
    outcome: Outcome
    exit_code: int | None = None
    message: str | None = None
    device_uids: list[Token] = Field(default_factory=list)
    started_at: str | None = None
    finished_at: str
    log_tail: list[str] = Field(default_factory=list, max_length=50)
    simulated: bool = False


class TaskCancel(Message):
    """`tasks.cancel.{task_id}`: stop it, wherever it is."""

    task_id: Token
    by: Token = "anonymous"
    reason: str | None = Field(None, max_length=1024)
    preempt_attempt: int | None = Field(
        None, ge=1, description="End only this attempt, to make room; the task is placed again."
    )


class Measured(Message):
    """What a run really used, per device at most; null where it could not be seen, with the reason in ``absent``."""

    peak_device_bytes: int | None = None
    peak_process_bytes: int | None = None
    mean_utilization_ratio: float | None = None
    peak_temperature_celsius: float | None = None
    energy_joules: float | None = None
    duration_seconds: float | None = None
    samples: int = 0
    absent: dict[str, str] = Field(default_factory=dict)


class Predicted(Message):
    """What was predicted for the same run, before calibration (``raw``) and after."""

    device_bytes: int | None = None
    raw_device_bytes: int | None = None
    reserve_bytes: int | None = None
    step_seconds: float | None = None
    method: str | None = None


class RunRecord(Message):
    """`runs.completed.{task_id}`: predicted and measured side by side; what the estimator and the policy learn from."""

    task_id: Token
    attempt: int
    owner: Token = "anonymous"
    outcome: Outcome
    framework: str | None = None
    family: str | None = None
    precision: str | None = None
    device_kind: str
    device_uids: list[Token]
    source_digest: str | None = None
    predicted: Predicted
    measured: Measured
    device_total_bytes: int | None = None
    simulated: bool = False
    started_at: str | None = None
    finished_at: str


class EstimatorRecalibrated(Message):
    """`estimator.recalibrated`: a calibration cell moved."""

    cell: dict[str, str | None]
    factor_before: float
    factor_after: float
    observations: int
    task_id: Token
    at: str


class PolicyUpdated(Message):
    """`policy.updated`: the matcher's weights or settings changed."""

    policy: str
    version: int
    changes: dict[str, Any] = Field(default_factory=dict)
    at: str


class LogLine(Message):
    """`logs.{task_id}`: one line of a run's output (bounded)."""

    task_id: Token
    attempt: int
    stream: Literal["stdout", "stderr", "oarlock"]
    line: str = Field(max_length=8192)
    number: int
    at: str
