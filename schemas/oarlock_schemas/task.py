"""What a user submits: the code, what was declared about it, and how it may run."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field, field_validator, model_validator

from oarlock_schemas.array import MAX_ID_LENGTH, ArrayMember, array_spec
from oarlock_schemas.base import Message, Token

Framework = Literal["paddlepaddle", "pytorch", "numpy"]

_FRAMEWORKS = {
    "paddle": "paddlepaddle",
    "paddlepaddle": "paddlepaddle",
    "paddlepaddle-gpu": "paddlepaddle",
    "torch": "pytorch",
    "pytorch": "pytorch",
    "numpy": "numpy",
}

MAX_INLINE_BYTES = 512 * 1024


class Source(Message):
    """Where the code is. Exactly one of ``inline``, ``bundle``, ``path`` and ``git`` is given, or none.

    With none, the task is sized from what ``task`` declares (a known ``model_name``), and cannot be started unless
    an ``image`` with its own command is given.
    """

    inline: Annotated[str, Field(max_length=MAX_INLINE_BYTES)] | None = Field(
        None, description="The script's text.", examples=["import paddle\n..."]
    )
    bundle: str | None = Field(
        None,
        description="Key of a zip or tar archive in the object store `bundles`.",
        examples=["sha256-1f3a…"],
    )
    path: str | None = Field(None, description="A file or folder that profiler and launcher both can read.")
    git: str | None = Field(None, description="A git repository (`url[@revision]`) to check out.")
    entry: str = Field("main.py", description="The script to run, relative to the bundle's root.", max_length=1024)

    @field_validator("entry")
    @classmethod
    def _inside(cls, entry: str) -> str:
        parts = entry.replace("\\", "/").split("/")
        if entry.startswith(("/", "~", "-")) or ".." in parts or not entry or "\0" in entry:
            raise ValueError("must be a path inside the bundle, relative and without '..'")
        return entry

    @model_validator(mode="after")
    def _one(self) -> Source:
        given = [name for name in ("inline", "bundle", "path", "git") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"give one of inline, bundle, path and git, not {' and '.join(given)}")
        return self

    @property
    def empty(self) -> bool:
        """Whether no code was given."""
        return self.inline is None and self.bundle is None and self.path is None and self.git is None


class TaskSpec(Message):
    """What the user declares of the job; these fields win where the script is silent."""

    type: Literal["training", "finetuning", "inference", "evaluation", "other"] = "training"
    framework: Framework | None = Field(None, examples=["paddlepaddle"])
    model_name: str | None = Field(None, max_length=256, examples=["ernie-gram"])
    sequence_length: int | None = Field(None, ge=1, le=100_000_000)
    batch_size_per_gpu: int | None = Field(None, ge=1, le=100_000_000)
    num_gpus_estimate: int | Literal["auto"] = Field(
        "auto", description="Devices wanted; `auto` takes the fewest that fit.", examples=["auto", 4]
    )

    @field_validator("framework", mode="before")
    @classmethod
    def _framework(cls, value: Any) -> Any:
        return _FRAMEWORKS.get(value.strip().lower(), value) if isinstance(value, str) else value

    @field_validator("num_gpus_estimate")
    @classmethod
    def _gpus(cls, value: int | str) -> int | str:
        if isinstance(value, int) and not 1 <= value <= 65_536:
            raise ValueError("must be 'auto' or a number of devices from 1 to 65536")
        return value


class ResourcePolicy(Message):
    """What the user allows and prefers of devices."""

    memory_threshold: float = Field(
        0.85, gt=0, le=1, description="Share of a device's free memory that may be planned."
    )
    allow_mixed_precision: bool = True
    distributed_strategy: str | None = Field(None, max_length=64, examples=["ddp"])
    preferred_devices: list[str] = Field(default_factory=list, max_length=64)
    required_devices: list[str] = Field(default_factory=list, max_length=64, description="Only these kinds.")
    forbidden_devices: list[str] = Field(default_factory=list, max_length=64)
    exclusive: bool = Field(False, description="Share no device with another task.")
    shared: bool = Field(
        False,
        description="A single device may compute for others that allow it too, while none is slowed too much "
        "(`least_shared_speed` of the fleet's policy).",
    )
    several_nodes: bool = Field(
        False,
        description="Its devices may be of several nodes of one site, where no single node has enough of them free.",
    )
    domestic_first: bool | None = Field(None, description="Overrides the fleet's policy for this task.")
    allow_retry_on_oom: bool = True

    @model_validator(mode="after")
    def _one_or_the_other(self) -> ResourcePolicy:
        if self.exclusive and self.shared:
            raise ValueError("`exclusive` and `shared` exclude each other: a device is shared or it is not")
        return self


class SchedulerSpec(Message):
    """How the task waits and is chosen."""

    algorithm: str | None = Field(
        None,
        max_length=64,
        examples=["rule_based", "rl_based"],
        description="The policy that chooses the devices; null: the one that operators have set, or the default.",
    )
    timeout_seconds: float | None = Field(
        None,
        gt=0,
        validation_alias=AliasChoices("timeout_seconds", "timeout"),
        description="Longest wait for a device, in seconds; then the task is rejected. The seed's `timeout`.",
    )
    run_timeout_seconds: float | None = Field(None, gt=0, description="Longest run, in seconds; then it is stopped.")
    deadline: str | None = Field(None, description="RFC 3339 time by which it should be done (a score, no promise).")


class Mount(Message):
    """A host folder the run may see."""

    source: str = Field(max_length=4096)
    target: str = Field(max_length=4096, pattern=r"^/")
    read_only: bool = True


class TaskSubmitted(Message):
    """A task, as submitted. A file of just ``task``, ``resource_policy`` and ``scheduler`` is valid."""

    task_id: Token | None = Field(None, description="Given by the submitter, or assigned on arrival.")
    name: str | None = Field(None, max_length=256)
    source: Source = Field(default_factory=Source)
    arguments: list[str] = Field(default_factory=list, max_length=1024, description="The script's command line.")
    environment: dict[str, str] = Field(default_factory=dict, max_length=256)
    task: TaskSpec = Field(default_factory=TaskSpec)
    resource_policy: ResourcePolicy = Field(default_factory=ResourcePolicy)
    scheduler: SchedulerSpec = Field(default_factory=SchedulerSpec)
    mounts: list[Mount] = Field(default_factory=list, max_length=64)
    image: str | None = Field(None, max_length=512, description="Container image; else the catalogue's choice.")
    command: list[str] | None = Field(None, max_length=64, description="In place of `python ENTRY`.")
    priority: int = Field(50, ge=0, le=100, description="Higher runs earlier.")
    owner: Token = Field("anonymous", description="Who is charged by quotas.")
    retries: int = Field(0, ge=0, le=10, description="Runs to start again after a failure that is not out-of-memory.")
    after: list[Token] = Field(
        default_factory=list, max_length=64, description="Tasks (or whole arrays) that must succeed first."
    )
    array: str | None = Field(
        None,
        max_length=4096,
        description="Many tasks at once, as Slurm writes them: indices, and after % how many may run at a time. "
        "Each finds its own in `OARLOCK_ARRAY_INDEX` and has the id `{task_id}-{index}`.",
        examples=["0-9%2", "1,3,5-7"],
    )
    array_member: ArrayMember | None = Field(None, description="Filled on arrival in each task of an array.")
    submitted_at: str | None = Field(None, description="RFC 3339; filled on arrival.")

    @field_validator("arguments", "command")
    @classmethod
    def _no_nul(cls, values: list[str] | None) -> list[str] | None:
        if values and any("\0" in value or len(value) > 65_536 for value in values):
            raise ValueError("an argument may hold no null byte and at most 65536 characters")
        return values

    @field_validator("array")
    @classmethod
    def _array(cls, text: str | None) -> str | None:
        if text is not None:
            array_spec(text)
        return text

    @model_validator(mode="after")
    def _no_nesting(self) -> TaskSubmitted:
        if self.array is not None and self.array_member is not None:
            raise ValueError("a task of an array is no array")
        if self.array is not None and self.task_id is not None and len(self.task_id) > MAX_ID_LENGTH:
            raise ValueError(f"the id of an array has at most {MAX_ID_LENGTH} characters")
        return self

    @property
    def run_variables(self) -> dict[str, str]:
        """The environment that the script is given: the task's own, and which task of its array it is."""
        return {**self.environment, **(self.array_member.variables if self.array_member else {})}
