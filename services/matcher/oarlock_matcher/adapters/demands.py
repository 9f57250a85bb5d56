"""From a profiled task to what the core decides on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Literal

from oarlock_matcher.adapters.fleet_kinds import CPU_VENDOR, canonical, kinds_meant
from oarlock_matcher.core.demand import Demand
from oarlock_schemas import MemoryParts, TaskProfiled, TaskRecord

MAX_AUTO_DEVICES = 8
"""Most devices that `auto` spreads a task over: one node of today's largest."""

CPU_COMPUTE_MILLI = 250
"""A CPU task's share of a machine's processors: most are bound by one or a few cores, so four may run at once."""

SHARED_COMPUTE_MILLI = 250
"""What a task that may share a device takes of it at least: at most four are on one. Whether they slow each other down
is told by how busy each keeps it (`core/interference.py`)."""

_PRECISIONS = {"float16": "fp16", "amp_float16": "fp16", "bfloat16": "bf16", "amp_bfloat16": "bf16", "float32": "fp32"}

_SHARDED = {
    "zero1": ("optimizer_bytes",),
    "sharding_stage1": ("optimizer_bytes",),
    "zero2": ("optimizer_bytes", "gradients_bytes"),
    "sharding_stage2": ("optimizer_bytes", "gradients_bytes"),
    "zero3": ("optimizer_bytes", "gradients_bytes", "weights_bytes"),
    "sharding_stage3": ("optimizer_bytes", "gradients_bytes", "weights_bytes"),
    "fsdp": ("optimizer_bytes", "gradients_bytes", "weights_bytes"),
    "tensor": ("optimizer_bytes", "gradients_bytes", "weights_bytes", "activations_bytes"),
    "pipeline": ("optimizer_bytes", "gradients_bytes", "weights_bytes"),
}
"""What each strategy divides among its devices (ZeRO: Rajbhandari et al. 2020, figure 1)."""


def demand_of(event: TaskProfiled, record: TaskRecord | None, fleet: Mapping[str, str]) -> Demand:
    """The demand of a profiled task. ``fleet`` maps the kinds there are to their vendors.

    A task that computes on the host only takes a CPU; any other takes no CPU unless it asks for one by name.
    """
    task, portrait = event.task, event.portrait
    policy = task.resource_policy
    peak = portrait.memory.peak
    on_host = _computes_on_host(event)
    cpus = tuple(kind for kind, vendor in fleet.items() if vendor == CPU_VENDOR) or ("CPU",)
    preferred = kinds_meant(policy.preferred_devices, fleet)
    required = kinds_meant(policy.required_devices, fleet)
    forbidden = set(kinds_meant(policy.forbidden_devices, fleet))
    if not required and on_host:
        required = cpus
    elif not on_host:
        forbidden |= {kind for kind in cpus if kind not in required and kind not in preferred}
    count = _count(event)
    strategy = (portrait.distributed.strategy or policy.distributed_strategy or "").lower() or None
    shared_cpu = bool(required) and set(required) <= set(cpus) and count in (1, "auto") and not policy.exclusive
    busy = _busy(portrait.compute.busy_share) if policy.shared and count in (1, "auto") and not on_host else None
    run_timeout = task.scheduler.run_timeout_seconds
    durations = _by_kind(portrait.compute.duration_seconds)
    arrived = record.history[0].at if record is not None and record.history else task.submitted_at
    return Demand(
        task_id=event.task_id,
        owner=task.owner,
        priority=task.priority,
        attempt=max(event.attempt, record.attempt if record is not None else 1),
        device_count=count if busy is None else 1,
        device_bytes=peak.device_bytes,
        reserve_bytes=_reserve(peak.reserve_bytes, record),
        compute_milli=CPU_COMPUTE_MILLI if shared_cpu else 1000 if busy is None else SHARED_COMPUTE_MILLI,
        busy_milli=busy,
        exclusive=policy.exclusive,
        memory_threshold=policy.memory_threshold,
        precision=_PRECISIONS.get(portrait.precision or ""),
        kernels=frozenset(kernel.name for kernel in portrait.kernels),
        preferred_kinds=preferred,
        required_kinds=frozenset(required),
        forbidden_kinds=frozenset(forbidden),
        step_seconds=_by_kind(portrait.compute.step_seconds),
        flops_per_step=portrait.compute.flops_per_step,
        expected_seconds=_longest(durations, required, forbidden, run_timeout),
        duration_seconds=durations,
        run_timeout_seconds=run_timeout,
        strategy=strategy,
        span_nodes=policy.several_nodes,
        device_bytes_by_count=_by_count(portrait.memory.parts, peak.device_bytes, strategy, count),
        max_devices=MAX_AUTO_DEVICES,
        timeout_seconds=task.scheduler.timeout_seconds,
        deadline=epoch_seconds(task.scheduler.deadline),
        after=tuple(task.after),
        arrived_at=epoch_seconds(arrived),
        algorithm=task.scheduler.algorithm,
        array=task.array_member.of if task.array_member else None,
        array_at_once=task.array_member.at_once if task.array_member else None,
    )


def _by_kind(seconds: Mapping[str, float | None]) -> dict[str, float]:
    """What is known of a table by device kind, under the kinds' canonical names."""
    return {canonical(kind): value for kind, value in seconds.items() if value is not None and value > 0}


def _busy(shares: Mapping[str, float | None]) -> int | None:
    """Thousandths of the time in which the kind that it keeps busiest computes for it; None where no kind is known.

    A task of which this is not known shares no device, whatever it allows.
    """
    known = [share for share in shares.values() if share is not None]
    return max(1, round(1000 * max(known))) if known else None


def _longest(
    durations: Mapping[str, float], required: Collection[str], forbidden: Collection[str], timeout_seconds: float | None
) -> float | None:
    """How long the run takes at most, wherever it may go; None when nothing bounds it."""
    allowed = (s for kind, s in durations.items() if kind not in forbidden and (not required or kind in required))
    longest = max(allowed, default=None)
    if timeout_seconds is None:
        return longest
    return timeout_seconds if longest is None else min(longest, timeout_seconds)


def _reserve(predicted_bytes: int | None, record: TaskRecord | None) -> int | None:
    """What to book: more than a run of the task had when it ran out of memory, whatever was predicted. A larger device
    of the same kind will do."""
    had = None if record is None else record.ran_out_of_bytes
    return predicted_bytes if had is None else max(had + 1, predicted_bytes or 0)


def _computes_on_host(event: TaskProfiled) -> bool:
    """Whether the script leaves accelerators alone; one without a framework does, unless it is declared not to."""
    portrait, declared = event.portrait, event.task.task
    if portrait.framework == "numpy" or "cpu_only" in portrait.flags:
        return True
    asks = declared.model_name or declared.num_gpus_estimate != "auto" or event.task.image
    return portrait.framework is None and not asks


def _count(event: TaskProfiled) -> int | Literal["auto"]:
    declared = event.task.task.num_gpus_estimate
    if declared != "auto":
        return declared
    return event.portrait.distributed.devices or "auto"


def _by_count(
    parts: MemoryParts, device_bytes: int | None, strategy: str | None, count: int | Literal["auto"]
) -> dict[int, int]:
    """Bytes on each device when the task is spread over 1, 2, 4… of them. Replicas (ddp) do not get smaller."""
    if device_bytes is None or count != "auto":
        return {}
    divided = sum(getattr(parts, name) or 0 for name in _SHARDED.get(strategy or "", ()))
    if not divided:
        return {1: device_bytes}
    counts = [n for n in (1, 2, 4, 8) if n <= MAX_AUTO_DEVICES]
    return {n: device_bytes - round(divided * (1 - 1 / n)) for n in counts}


def epoch_seconds(text: str | None) -> float | None:
    """RFC 3339 to seconds since the epoch; None for what is no time."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
