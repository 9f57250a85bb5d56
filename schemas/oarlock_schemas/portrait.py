"""The portrait: what the profiler says a task needs. Every number names its evidence; what is unknown is null."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from oarlock_schemas.base import Message

How = Literal["interpreted", "declared", "zoo", "config", "calibrated", "cold_start", "assumed", "table"]


class Parameters(Message):
    """Parameter elements of the model on one device before any sharding."""

    total: int | None = None
    trainable: int | None = None


class BatchInput(Message):
    """One tensor of a batch."""

    shape: list[int]
    dtype: str


class Batch(Message):
    """The batch one device works on."""

    size_per_device: int | None = None
    inputs: list[BatchInput] = Field(default_factory=list)


class Distributed(Message):
    """How the script spreads its work. ``devices`` is what the script itself fixes, if anything."""

    strategy: str | None = None
    devices: int | None = None


class MemoryParts(Message):
    """What holds the device's memory at its peak, by kind, in bytes."""

    weights_bytes: int | None = None
    gradients_bytes: int | None = None
    optimizer_bytes: int | None = None
    activations_bytes: int | None = None
    inputs_bytes: int | None = None
    workspace_bytes: int | None = None
    communication_bytes: int | None = None
    context_bytes: int | None = None
    allocator_bytes: int | None = Field(None, description="Reserved by the allocator beyond what is allocated.")
    other_bytes: int | None = None


class MemoryPeak(Message):
    """The peaks of one device, in bytes; never mixed.

    ``allocated``: what tensors hold. ``reserved``: what the framework's allocator took for them. ``device``: what the
    vendor's tool shows, context included. ``low``/``high``: interval of ``device``. ``reserve``: what to book so that
    the run fits with the chosen probability (99 % unless told otherwise).
    """

    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    device_bytes: int | None = None
    raw_device_bytes: int | None = Field(None, description="`device_bytes` before calibration corrected it.")
    low_bytes: int | None = None
    high_bytes: int | None = None
    reserve_bytes: int | None = None


class Memory(Message):
    """Memory of one device."""

    parts: MemoryParts = Field(default_factory=MemoryParts)
    peak: MemoryPeak = Field(default_factory=MemoryPeak)
    first_step_allocated_bytes: int | None = None
    steady_allocated_bytes: int | None = None
    host_bytes: int | None = Field(None, description="Main memory that the process needs.")


class Compute(Message):
    """Work of one training step on one device, and its time by device kind."""

    flops_per_step: int | None = None
    bytes_per_step: int | None = None
    launches_per_step: int | None = None
    communication_bytes_per_step: int | None = None
    step_seconds: dict[str, float | None] = Field(default_factory=dict)
    busy_share: dict[str, float | None] = Field(
        default_factory=dict, description="Share of a step in which the device computes, by kind; the rest it waits."
    )
    steps_per_epoch: int | None = None
    epochs: int | None = None
    duration_seconds: dict[str, float | None] = Field(default_factory=dict)
    price: dict[str, float | None] = Field(
        default_factory=dict, description="Of the whole job on one device, in the fleet's currency; null: not known."
    )


class Kernel(Message):
    """How often a kernel runs in one step."""

    name: str
    dtype: str
    count: int


class Evidence(Message):
    """One fact: ``value`` was read at ``file``:``line``, and ``how``."""

    fact: str
    value: Any = None
    file: str | None = None
    line: int | None = None
    how: How


class UnknownFact(Message):
    """What could not be read, why, and what was assumed in its place (null: nothing could be)."""

    what: str
    file: str | None = None
    line: int | None = None
    why: str
    assumed: Any = None
    settle: str | None = Field(None, description="What would settle it: what to add, to give or to declare.")


class StepLine(Message):
    """What one line of the script does in one training step, in the order the lines are first reached.

    ``allocated_bytes`` is the most that tensors hold while it runs. The backward pass is one line: the call that
    started it.
    """

    phase: str = Field(examples=["forward", "backward", "optimizer"])
    file: str | None = None
    line: int | None = None
    launches: int
    flops: int
    bytes_moved: int
    allocated_bytes: int


class Fit(Message):
    """Whether the task fits one device kind."""

    device: str
    verdict: Literal["fits", "tight", "oom", "unknown"]
    free_bytes: int | None = None
    needed_bytes: int | None = None


class Advice(Message):
    """A change that would make the task fit, with the number it leads to."""

    change: str = Field(description="Machine name: batch_size, amp, recompute, sharding, optimizer_8bit, lora, device…")
    device_bytes: int | None = None
    reserve_bytes: int | None = None
    value: Any = Field(None, description="The new setting: a batch size, a number of devices, a device name…")
    text: str
    text_zh: str
    effect: str | None = Field(None, description="What it does to the training, if anything.")


class ModelNode(Message):
    """One layer of the model."""

    path: str
    type: str
    parameters: int = 0
    trainable: int = 0
    output_shapes: list[list[int]] = Field(default_factory=list)
    saved_bytes: int = 0
    flops: int = 0
    file: str | None = None
    line: int | None = None
    children: list[ModelNode] = Field(default_factory=list)


class Portrait(Message):
    """What a task needs, as read from its code."""

    framework: str | None = Field(None, examples=["paddlepaddle"])
    kind: str = Field("training", examples=["training", "inference", "other"])
    method: How = Field(description="How the memory figure was got.")
    confidence: float = Field(ge=0, le=1)
    parameters: Parameters = Field(default_factory=Parameters)
    batch: Batch = Field(default_factory=Batch)
    precision: str | None = Field(None, examples=["float32", "amp_float16", "bfloat16"])
    optimizer: str | None = Field(None, examples=["AdamW"])
    distributed: Distributed = Field(default_factory=Distributed)
    memory: Memory = Field(default_factory=Memory)
    compute: Compute = Field(default_factory=Compute)
    kernels: list[Kernel] = Field(default_factory=list)
    flags: list[str] = Field(default_factory=list)
    evidence: list[Evidence] = Field(default_factory=list)
    unknowns: list[UnknownFact] = Field(default_factory=list)
    model: list[ModelNode] = Field(default_factory=list)
    step: list[StepLine] = Field(default_factory=list, description="One training step as read, steady state.")
    family: str | None = Field(None, description="What calibration learns by: transformer, cnn, mlp, rnn, numpy…")
    source_digest: str | None = None
    fit: Fit | None = None
    advice: list[Advice] = Field(default_factory=list)
