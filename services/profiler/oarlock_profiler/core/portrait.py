"""Puts a reading into words and numbers: the portrait. Every number names its evidence; what is unknown is null."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oarlock_profiler.core import calibration as learning
from oarlock_profiler.core import cost
from oarlock_profiler.core.cold_start import ColdStart, cold_start
from oarlock_profiler.core.family import HIGH_MEMORY_SEQUENCE, family_of, sequence_length
from oarlock_profiler.core.notes import Notes, place
from oarlock_profiler.core.reading import ModuleNode, Reading
from oarlock_profiler.core.setting import Setting
from oarlock_profiler.core.sizing import doubt_of, fit_of, memory_of, sized
from oarlock_profiler.core.step_lines import step_lines
from oarlock_schemas import (
    Batch,
    BatchInput,
    Compute,
    Distributed,
    Kernel,
    ModelNode,
    Parameters,
    Portrait,
)

__all__ = ["Setting", "build"]

MAX_MODEL_NODES = 2000


_NO_SETTING = Setting()


def build(reading: Reading, setting: Setting = _NO_SETTING) -> Portrait:
    """The portrait of ``reading`` under ``setting``."""
    notes = Notes(reading)
    framework = _declared(notes, setting, "framework", reading.framework)
    batch = _declared(notes, setting, "batch_size_per_gpu", reading.batch_size)
    strategy = _declared(notes, setting, "distributed_strategy", reading.distributed.strategy)
    devices = setting.devices or reading.distributed.devices or 1
    work = cost.work_of(reading.trace, devices=devices)
    family = family_of(reading, work.ops)
    sequence = _declared(notes, setting, "sequence_length", sequence_length(reading))
    cold = _unreadable(reading, framework)
    peaks = None if cold else sized(reading, setting, framework, devices, strategy)
    guess: ColdStart | None = None
    if peaks is None:
        guess = cold_start(setting.declared, batch, sequence, cold or "the script uses no tensors")
        notes.unknowns += guess.unknowns
        notes.evidence += guess.evidence
    elif devices > 1:
        work = cost.work_of(
            reading.trace, devices=devices, gradient_bytes=cost.gradient_bytes(reading.trace, peaks.traced_device)
        )
    on_host = peaks is not None and peaks.on_host
    device_kind = "cpu" if on_host else setting.target.name if setting.target else None
    key = learning.Key(framework, family, reading.precision, device_kind, setting.source_digest)
    memory, calibrated = memory_of(peaks, guess, setting, key, notes)
    flags = _flags(reading, family, sequence, devices, strategy, on_host)
    fit, advice = fit_of(reading, setting, memory, key, on_host, guess is not None, family, batch, devices, strategy)
    return Portrait(
        framework=framework,
        kind=reading.kind,
        method=calibrated,
        confidence=_confidence(reading, guess),
        parameters=Parameters(total=reading.parameters_total, trainable=reading.parameters_trainable),
        batch=Batch(
            size_per_device=batch,
            inputs=[BatchInput(shape=list(spec.shape), dtype=spec.dtype) for spec in reading.inputs[:64]],
        ),
        precision=reading.precision,
        optimizer=reading.optimizer.name if reading.optimizer else None,
        distributed=Distributed(strategy=strategy, devices=reading.distributed.devices),
        memory=memory,
        compute=_compute(reading, setting, framework, work, on_host, notes),
        kernels=[
            Kernel(name=name, dtype=dtype, count=count)
            for (name, dtype), count in sorted(cost.kernels_of(work.ops).items(), key=lambda item: (-item[1], item[0]))
        ],
        flags=flags,
        evidence=notes.evidence,
        unknowns=notes.unknowns,
        model=_model(reading.roots),
        step=step_lines(reading.trace, reading.backward_where),
        family=family,
        source_digest=setting.source_digest,
        fit=fit,
        advice=advice,
    )


def _declared(notes: Notes, setting: Setting, name: str, read: Any) -> Any:
    """What the script says, else what the task file declares (noted as such)."""
    if read is not None:
        return read
    value = setting.declared.get(name)
    if value is not None:
        notes.fact(name, value, "declared")
    return value


def _unreadable(reading: Reading, framework: str | None) -> str | None:
    """Why the trace says nothing of the memory, or None when it does."""
    if not reading.trace.events:
        return "nothing that uses memory could be read"
    if framework in {"pytorch", "paddlepaddle"} and reading.kind == "training" and not reading.parameters_total:
        return "no model could be read"
    return None


def _confidence(reading: Reading, guess: ColdStart | None) -> float:
    if guess is not None:
        return guess.confidence
    return round(max(0.3, 0.97 - 1.2 * doubt_of(reading)), 2)


def _compute(
    reading: Reading, setting: Setting, framework: str | None, work: cost.Work, on_host: bool, notes: Notes
) -> Compute:
    if not work.ops:
        notes.unknown("compute of one step", "no operator of a step was read")
        return Compute(steps_per_epoch=reading.steps_per_epoch, epochs=reading.epochs)
    fleet = {spec.name: spec for spec in (*setting.fleet, *([setting.target] if setting.target else []))}
    seconds: dict[str, float | None] = {}
    busy: dict[str, float | None] = {}
    for name, spec in fleet.items():
        if spec.is_host != on_host:
            continue
        timed = cost.timed_step(work, spec, framework)
        seconds[name] = None if timed is None else timed.seconds
        busy[name] = None if timed is None else timed.busy_share
        if timed is None:
            notes.unknown(f"step time on {name}", "the catalogue has no arithmetic rate or bandwidth of this kind")
    durations = {
        name: cost.duration_seconds(value, reading.steps_per_epoch, reading.epochs) for name, value in seconds.items()
    }
    return Compute(
        flops_per_step=work.flops,
        bytes_per_step=work.bytes_moved,
        launches_per_step=work.launches,
        communication_bytes_per_step=work.communication_bytes,
        step_seconds=seconds,
        busy_share=busy,
        steps_per_epoch=reading.steps_per_epoch,
        epochs=reading.epochs,
        duration_seconds=durations,
        price={
            name: cost.price_of(durations[name], fleet[name])
            for name in seconds
            if fleet[name].price_per_hour is not None
        },
    )


def _flags(
    reading: Reading, family: str | None, sequence: int | None, devices: int, strategy: str | None, on_host: bool
) -> list[str]:
    flags = set(reading.flags)
    if family == "transformer" and sequence is not None and sequence > HIGH_MEMORY_SEQUENCE:
        flags.add("high_memory")
    if devices > 1 or strategy not in {None, "none"}:
        flags.add("distributed")
    if on_host:
        flags.add("cpu_only")
    if reading.recompute:
        flags.add("recompute")
    if reading.precision and "amp" in reading.precision:
        flags.add("mixed_precision")
    if reading.accumulation_steps > 1:
        flags.add("gradient_accumulation")
    return sorted(flags)


def _model(roots: Sequence[ModuleNode]) -> list[ModelNode]:
    """The model tree, cut after :data:`MAX_MODEL_NODES` nodes."""
    left = MAX_MODEL_NODES

    def convert(node: ModuleNode, depth: int) -> ModelNode:
        nonlocal left
        children = []
        if depth < 64:
            for child in node.children:
                if left <= 0:
                    break
                left -= 1
                children.append(convert(child, depth + 1))
        return ModelNode(
            path=node.path,
            type=node.cls,
            parameters=node.parameters,
            trainable=node.trainable,
            output_shapes=[list(shape) for shape in node.output_shapes[:4]],
            saved_bytes=node.saved_bytes,
            flops=node.flops,
            children=children,
            **place(node.where),
        )

    return [convert(root, 0) for root in roots[:64]]
