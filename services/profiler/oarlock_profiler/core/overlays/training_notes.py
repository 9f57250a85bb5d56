"""What the overlays of the training side noted while the script was read, and how a reading is filled from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from oarlock_profiler.core.engine.dtypes import is_floating
from oarlock_profiler.core.findings import Where
from oarlock_profiler.core.interpreter.values import Context
from oarlock_profiler.core.reading import DistributedInfo, OptimizerInfo, Reading, TensorSpec


@dataclass(slots=True)
class Batch:
    """One batch that a loader gave: samples per device, the tensors in it, and how many such batches an epoch has."""

    size: int | None
    inputs: list[TensorSpec]
    count: int | None
    where: Where | None


@dataclass(slots=True)
class TrainingNotes:
    """Kept under ``context.state["training"]``. ``batch`` is the last one given; ``trained`` the one a step used."""

    batch: Batch | None = None
    trained: Batch | None = None
    optimizer: OptimizerInfo | None = None
    steps: int = 0
    batches: int = 0
    batches_per_step: int = 1
    amp_dtype: str | None = None
    amp_level: str | None = None
    recompute: bool = False
    epochs: int | None = None
    accumulation_steps: int | None = None
    batch_size: int | None = None
    distributed: DistributedInfo = field(default_factory=DistributedInfo)
    flags: set[str] = field(default_factory=set)


def notes(context: Context) -> TrainingNotes:
    """The notes of this reading."""
    found = context.state.get("training")
    if found is None:
        found = context.state["training"] = TrainingNotes()
    return found


def note_strategy(context: Context, strategy: str, **details: Any) -> None:
    """Record how work is spread; a more specific strategy replaces plain data parallelism."""
    info = notes(context).distributed
    if info.strategy in (None, "ddp") or strategy != "ddp":
        if info.strategy not in (None, "ddp", strategy):
            strategy = "hybrid"
        info.strategy = strategy
    info.details.update(details)
    notes(context).flags.add("distributed")
    context.findings.fact("distributed.strategy", strategy, context.where)


def fill(
    reading: Reading, state: dict[str, Any], engine: Any, loops: Sequence[tuple[Where | None, int | None]]
) -> None:
    """Put what was noted into ``reading`` where it is still silent.

    ``loops`` are those that trained, inner ones first.
    """
    found: TrainingNotes = state.get("training") or TrainingNotes()
    batch = found.trained or found.batch
    if batch is not None:
        reading.batch_size = reading.batch_size or batch.size
        reading.inputs = reading.inputs or batch.inputs
    reading.batch_size = found.batch_size or reading.batch_size
    reading.optimizer = reading.optimizer or found.optimizer
    reading.recompute = reading.recompute or found.recompute
    _count_steps(reading, found, list(dict(loops).values()), state.get("numpy"))
    # Without a loader that counts batches: backward passes between two steps, when one line of the script asks for all.
    # No more than there were backward passes: a worker may draw batches ahead of them.
    counted = min(found.batches_per_step, engine.accumulated) if found.batch is not None else engine.accumulated
    reading.accumulation_steps = found.accumulation_steps or max(reading.accumulation_steps, counted)
    reading.flags |= found.flags
    if reading.precision is None:
        reading.precision = f"amp_{found.amp_dtype}" if found.amp_dtype is not None else _widest(engine)
    if reading.distributed.strategy is None:
        reading.distributed = found.distributed
        if found.distributed.strategy is not None and found.distributed.devices is None:
            found.distributed.devices = state.get("world_size")
    program = state.get("static")
    if program is not None and program.parameters:
        within = {id(p) for root in engine.roots for _, p in root.named_parameters()}
        own = [p for p in program.parameters if id(p) not in within]
        reading.parameters_total = (reading.parameters_total or 0) + sum(math.prod(p.shape or ()) for p in own)
        learning = sum(math.prod(p.shape or ()) for p in own if p.requires_grad)
        reading.parameters_trainable = (reading.parameters_trainable or 0) + learning
        reading.precision = reading.precision or "float32"
    arrays = state.get("numpy")
    if reading.framework == "numpy" and arrays is not None and arrays.parameters:
        reading.kind = "training"
        reading.parameters_total = reading.parameters_trainable = sum(arrays.parameters.values())
        if arrays.inputs is not None and arrays.inputs[0]:
            reading.inputs = reading.inputs or [TensorSpec(*arrays.inputs)]
            reading.batch_size = reading.batch_size or arrays.inputs[0][0]
            reading.precision = arrays.inputs[1]


def _count_steps(reading: Reading, found: TrainingNotes, counts: list[int | None], arrays: Any) -> None:
    """Steps of an epoch from the loader or the innermost loop, epochs from the loops around it."""
    if arrays is not None and counts and (counts[0] or 0) <= len(arrays.parameters):
        counts = counts[1:]  # the loop over the parameters to be updated
    batch = found.trained
    if batch is not None and batch.count is not None:
        reading.steps_per_epoch = batch.count
        counts = counts[counts.index(batch.count) + 1 :] if batch.count in counts else counts[1:]
    elif counts:
        reading.steps_per_epoch, counts = counts[0], counts[1:]
    if found.epochs is not None:
        reading.epochs = found.epochs
    elif counts:
        # A short loop between the batches and the epochs runs over phases ("train", "val").
        reading.epochs = counts[1] if len(counts) > 1 and (counts[0] or 0) <= 3 else counts[0]


def _widest(engine: Any) -> str | None:
    """The type that most of the model's parameters have."""
    elements: dict[str, int] = {}
    for root in getattr(engine, "roots", ()):
        for _, parameter in root.named_parameters():
            if is_floating(parameter.dtype):
                elements[parameter.dtype] = elements.get(parameter.dtype, 0) + math.prod(parameter.shape or ())
    return max(elements, key=lambda dtype: elements[dtype]) if elements else None
