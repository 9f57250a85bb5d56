"""Puts a reading into words and numbers: the portrait. Every number names its evidence; what is unknown is null."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oarlock_profiler.core import calibration as learning
from oarlock_profiler.core import cost
from oarlock_profiler.core.advice import advise, largest_batch_advice
from oarlock_profiler.core.cold_start import ColdStart, cold_start
from oarlock_profiler.core.devices import DeviceSpec
from oarlock_profiler.core.family import HIGH_MEMORY_SEQUENCE, family_of, sequence_length
from oarlock_profiler.core.findings import Where
from oarlock_profiler.core.fit import Case, verdict
from oarlock_profiler.core.memory.interval import Interval
from oarlock_profiler.core.memory.peaks import Peaks, Stack, peaks_of
from oarlock_profiler.core.reading import ModuleNode, Reading
from oarlock_schemas import (
    Advice,
    Batch,
    BatchInput,
    Compute,
    Distributed,
    Evidence,
    Fit,
    Kernel,
    Memory,
    MemoryParts,
    MemoryPeak,
    ModelNode,
    Parameters,
    Portrait,
    UnknownFact,
)
from oarlock_schemas.portrait import How

MAX_MODEL_NODES = 2000
MAX_TEXT = 400
DOUBT_PER_ASSUMPTION = 0.05
DOUBT_PER_GAP = 0.01
MAX_DOUBT = 0.5


@dataclass(frozen=True, slots=True)
class Setting:
    """What surrounds a reading: the device kinds of the fleet, the one asked about, and what was learned.

    ``declared`` holds the task file's fields; they win only where the script is silent. ``devices`` is how many
    devices the task takes (None: what the script says, else 1).
    """

    fleet: Sequence[DeviceSpec] = ()
    target: DeviceSpec | None = None
    calibration: learning.State | None = None
    declared: Mapping[str, Any] = field(default_factory=dict)
    devices: int | None = None
    source_digest: str | None = None
    stack: Stack = field(default_factory=Stack)


def build(reading: Reading, setting: Setting = Setting()) -> Portrait:
    """The portrait of ``reading`` under ``setting``."""
    notes = _Notes(reading)
    framework = _declared(notes, setting, "framework", reading.framework)
    batch = _declared(notes, setting, "batch_size_per_gpu", reading.batch_size)
    strategy = _declared(notes, setting, "distributed_strategy", reading.distributed.strategy)
    devices = setting.devices or reading.distributed.devices or 1
    work = cost.work_of(reading.trace, devices=devices)
    family = family_of(reading, work.ops)
    sequence = _declared(notes, setting, "sequence_length", sequence_length(reading))
    cold = _unreadable(reading, framework)
    peaks = None if cold else _peaks(reading, setting, framework, devices, strategy)
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
    memory, calibrated = _memory(peaks, guess, setting, key, notes)
    flags = _flags(reading, family, sequence, devices, strategy, on_host)
    fit, advice = _fit(reading, setting, memory, key, on_host, guess is not None, family, batch, devices, strategy)
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
        family=family,
        source_digest=setting.source_digest,
        fit=fit,
        advice=advice,
    )


def _fit(
    reading: Reading,
    setting: Setting,
    memory: Memory,
    key: learning.Key,
    on_host: bool,
    guessed: bool,
    family: str | None,
    batch: int | None,
    devices: int,
    strategy: str | None,
) -> tuple[Fit | None, list[Advice]]:
    """The verdict for the device asked about, and advice.

    With no device asked about, the fleet's largest kind stands in when nothing of the fleet would hold the task, so
    that a rejection can say what would help.
    """
    need, reserve = memory.peak.device_bytes, memory.peak.reserve_bytes
    asked = setting.target
    if asked is None:
        asked = _largest_of(setting.fleet, on_host)
        if asked is None or reserve is None or reserve <= asked.capacity_bytes or guessed:
            return None, []
    free = asked.capacity_bytes
    if guessed or need is None or reserve is None or asked.is_host != on_host:
        why = Fit(device=asked.name, verdict="unknown", free_bytes=free, needed_bytes=need)
        return (why if setting.target else None), []
    correction = learning.correction(setting.calibration or learning.empty(), key)
    case = Case(
        reading.trace,
        reading.framework,
        asked,
        devices,
        strategy,
        setting.stack,
        _doubt(reading),
        correction.factor,
        correction.reserve_ratio,
    )
    found = verdict(case, need, reserve)
    fit = Fit(device=asked.name, verdict=found, free_bytes=free, needed_bytes=reserve)
    if found == "fits":
        advice = largest_batch_advice(case, batch) if batch else []
    else:
        advice = advise(
            case,
            reading,
            family=family,
            batch=batch,
            fleet=setting.fleet,
            allow_mixed_precision=bool(setting.declared.get("allow_mixed_precision", True)),
        )
    return (fit if setting.target else None), advice


def _largest_of(fleet: Sequence[DeviceSpec], on_host: bool) -> DeviceSpec | None:
    kinds = [spec for spec in fleet if spec.is_host == on_host]
    return max(kinds, key=lambda spec: spec.capacity_bytes, default=None)


class _Notes:
    """The evidence and unknowns of the portrait, begun with what the reader found."""

    def __init__(self, reading: Reading) -> None:
        self.evidence = [
            Evidence(fact=fact.fact, value=_plain(fact.value), **_place(fact.where), how=fact.how)
            for fact in reading.findings.facts
        ]
        self.unknowns = [
            UnknownFact(
                what=gap.what[:MAX_TEXT],
                **_place(gap.where),
                why=gap.why[:MAX_TEXT],
                assumed=_plain(gap.assumed),
            )
            for gap in reading.findings.gaps.values()
        ]
        if reading.stopped:
            self.unknowns.append(UnknownFact(what="the rest of the script", why=reading.stopped[:MAX_TEXT]))
        if reading.trace.truncated:
            self.unknowns.append(
                UnknownFact(what="the rest of the steps", why=f"the trace was cut at {reading.trace.limit} events")
            )

    def fact(self, fact: str, value: object, how: How) -> None:
        self.evidence.append(Evidence(fact=fact, value=_plain(value), how=how))

    def unknown(self, what: str, why: str, assumed: object = None) -> None:
        self.unknowns.append(UnknownFact(what=what, why=why, assumed=_plain(assumed)))


def _place(where: Where | None) -> dict[str, Any]:
    return {} if where is None else {"file": where.file, "line": where.line}


def _plain(value: object) -> Any:
    """``value`` as JSON can hold it, bounded."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value[:MAX_TEXT]
    if isinstance(value, tuple | list) and len(value) <= 64:
        return [_plain(item) for item in value]
    return repr(value)[:MAX_TEXT]


def _declared(notes: _Notes, setting: Setting, name: str, read: Any) -> Any:
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


def _doubt(reading: Reading) -> float:
    """How far the interval widens for what the reader had to assume or leave out."""
    gaps = reading.findings.gaps.values()
    assumed = sum(gap.assumed is not None for gap in gaps)
    total = DOUBT_PER_ASSUMPTION * assumed + DOUBT_PER_GAP * (len(gaps) - assumed)
    if reading.stopped or reading.trace.truncated:
        total += 0.2
    return min(total, MAX_DOUBT)


def _confidence(reading: Reading, guess: ColdStart | None) -> float:
    if guess is not None:
        return guess.confidence
    return round(max(0.3, 0.97 - 1.2 * _doubt(reading)), 2)


def _peaks(
    reading: Reading, setting: Setting, framework: str | None, devices: int, strategy: str | None
) -> Peaks | None:
    return peaks_of(
        reading.trace,
        framework,
        setting.target,
        devices=devices,
        strategy=strategy,
        stack=setting.stack,
        doubt=_doubt(reading),
    )


def _memory(
    peaks: Peaks | None, guess: ColdStart | None, setting: Setting, key: learning.Key, notes: _Notes
) -> tuple[Memory, How]:
    """Memory, and how its device figure was got."""
    correction = learning.correction(setting.calibration or learning.empty(), key)
    if guess is not None:
        whole, ratio = guess.device, correction.reserve_ratio
        return (
            Memory(
                peak=MemoryPeak(
                    allocated_bytes=guess.device.value,
                    device_bytes=whole.value,
                    raw_device_bytes=whole.value,
                    low_bytes=whole.low,
                    high_bytes=whole.high,
                    reserve_bytes=max(round(whole.value * ratio), whole.high),
                ),
            ),
            "cold_start",
        )
    assert peaks is not None  # noqa: S101 - one of the two is given by the caller
    whole = peaks.device
    how: How = "interpreted"
    if correction.observations:
        whole = _corrected(whole, correction.factor)
        how = "calibrated"
        notes.fact("calibration factor", round(correction.factor, 4), "calibrated")
        notes.fact("runs it was learned from", correction.observations, "calibrated")
    notes.fact("device context", peaks.context.source, "assumed" if peaks.context.assumed else "table")
    if peaks.context.assumed:
        notes.unknown(
            "device context",
            peaks.context.source if setting.target else "the device is not chosen yet",
            peaks.context.bytes.value,
        )
    usage = peaks.usage
    parts = usage.parts_bytes
    known = sum(parts.values())
    return (
        Memory(
            parts=MemoryParts(
                weights_bytes=parts.get("weights", 0),
                gradients_bytes=parts.get("gradients", 0),
                optimizer_bytes=parts.get("optimizer", 0),
                activations_bytes=parts.get("activations", 0),
                inputs_bytes=parts.get("inputs", 0),
                workspace_bytes=parts.get("workspace", 0),
                communication_bytes=peaks.communication.value,
                context_bytes=peaks.context.bytes.value,
                allocator_bytes=max(0, peaks.reserved.value - known),
                other_bytes=parts.get("other", 0),
            ),
            peak=MemoryPeak(
                allocated_bytes=peaks.allocated.value,
                reserved_bytes=peaks.reserved.value,
                device_bytes=whole.value,
                raw_device_bytes=peaks.device.value,
                low_bytes=whole.low,
                high_bytes=whole.high,
                # Until runs have shown how far estimates miss, the upper end of the interval is booked.
                reserve_bytes=max(
                    round(whole.value * correction.reserve_ratio), 0 if correction.observations else whole.high
                ),
            ),
            first_step_allocated_bytes=usage.first_step_bytes,
            steady_allocated_bytes=usage.steady_bytes,
            host_bytes=peaks.host_bytes.value,
        ),
        how,
    )


def _corrected(whole: Interval, factor: float) -> Interval:
    """The interval moved by a learned factor, its width kept."""
    value = round(whole.value * factor)
    return Interval(max(0, value - (whole.value - whole.low)), value, value + (whole.high - whole.value))


def _compute(
    reading: Reading, setting: Setting, framework: str | None, work: cost.Work, on_host: bool, notes: _Notes
) -> Compute:
    if not work.ops:
        notes.unknown("compute of one step", "no operator of a step was read")
        return Compute(steps_per_epoch=reading.steps_per_epoch, epochs=reading.epochs)
    fleet = {spec.name: spec for spec in (*setting.fleet, *([setting.target] if setting.target else []))}
    seconds: dict[str, float | None] = {}
    for name, spec in fleet.items():
        if spec.is_host != on_host:
            continue
        seconds[name] = cost.step_seconds(work, spec, framework)
        if seconds[name] is None:
            notes.unknown(f"step time on {name}", "the catalogue has no arithmetic rate or bandwidth of this kind")
    return Compute(
        flops_per_step=work.flops,
        bytes_per_step=work.bytes_moved,
        launches_per_step=work.launches,
        communication_bytes_per_step=work.communication_bytes,
        step_seconds=seconds,
        steps_per_epoch=reading.steps_per_epoch,
        epochs=reading.epochs,
        duration_seconds={
            name: cost.duration_seconds(value, reading.steps_per_epoch, reading.epochs)
            for name, value in seconds.items()
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
            **_place(node.where),
        )

    return [convert(root, 0) for root in roots[:64]]
