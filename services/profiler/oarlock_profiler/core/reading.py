"""What one reading of a script yields, before it is turned into a portrait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from oarlock_profiler.core.engine.trace import Trace
from oarlock_profiler.core.findings import Findings, Where

if TYPE_CHECKING:
    from oarlock_profiler.core.interpreter.trail import Step


class Sources(Protocol):
    """The bundle, and the library path, as the reader may see them: text by relative path, nothing else."""

    def read(self, path: str) -> bytes | None:
        """The file's bytes (bounded), or None when it is not in the bundle. Never leaves the bundle."""

    def exists(self, path: str) -> bool: ...

    def listdir(self, path: str) -> Sequence[str]: ...

    def library(self, module: str) -> tuple[str, bytes] | None:
        """The source of a library module found on the library path: (display path, bytes), or None."""

    def library_file(self, package: str, path: str) -> bytes | None:
        """A file that lies in the folder of a package on the library path (bounded), or None. Never leaves it."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to read: entry file (relative), its arguments, environment given with the task, and what was declared.

    ``declared`` holds the task file's fields (framework, model_name, sequence_length, batch_size_per_gpu, num_gpus,
    allow_mixed_precision, distributed_strategy); they win only where the script is silent.
    """

    entry: str
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    declared: Mapping[str, Any] = field(default_factory=dict)
    world_size: int = 1


@dataclass(slots=True)
class ModuleNode:
    """One layer of the model tree: its class, parameters and what a forward pass showed."""

    path: str
    cls: str
    parameters: int
    trainable: int
    output_shapes: list[tuple[int, ...]] = field(default_factory=list)
    saved_bytes: int = 0
    flops: int = 0
    where: Where | None = None
    children: list[ModuleNode] = field(default_factory=list)


@dataclass(slots=True)
class TensorSpec:
    """Shape and dtype (``float32``…) of one batch input, per device."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(slots=True)
class OptimizerInfo:
    """The optimiser as read: name (``AdamW``), how many elements it updates, state tensors per element, flags."""

    name: str
    elements: int
    foreach: bool = False
    fused: bool = False
    master_weights: bool = False
    eight_bit: bool = False


@dataclass(slots=True)
class DistributedInfo:
    """How the script spreads work: ``strategy`` (none, ddp, fsdp, zero1..3, tensor, pipeline, hybrid…)."""

    strategy: str | None = None
    devices: int | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Reading:
    """Everything the reader knows after walking the script.

    ``framework`` is ``paddlepaddle``, ``pytorch``, ``numpy`` or None; ``kind`` is ``training``, ``inference`` or
    ``other``; ``precision`` is the compute precision (float32, float16, bfloat16; ``amp_float16``…).
    """

    framework: str | None
    kind: str
    trace: Trace
    findings: Findings
    parameters_total: int | None = None
    parameters_trainable: int | None = None
    roots: list[ModuleNode] = field(default_factory=list)
    inputs: list[TensorSpec] = field(default_factory=list)
    batch_size: int | None = None
    precision: str | None = None
    optimizer: OptimizerInfo | None = None
    distributed: DistributedInfo = field(default_factory=DistributedInfo)
    steps_per_epoch: int | None = None
    epochs: int | None = None
    accumulation_steps: int = 1
    recompute: bool = False
    flags: set[str] = field(default_factory=set)
    stopped: str | None = None
    backward_where: Where | None = None
    """The line that starts the backward pass."""
    path: list[tuple[Where, str]] = field(default_factory=list)
    trail: Step | None = None
    """What the reader did, step by step, when it was asked to keep it."""
