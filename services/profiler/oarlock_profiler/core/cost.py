"""The work of one training step, and how long a device takes for it.

Roofline per kernel (Williams, Waterman, Patterson, CACM 2009): a kernel takes the longer of its arithmetic at the
achievable rate of its number format and its memory traffic at the achievable bandwidth, but not less than the shortest
kernel. The host launches kernels one by one; when launching takes longer than computing, the step is host-bound.
Collectives follow the ring algorithm's cost (2 (n-1)/n of the gradients over the link) and overlap with the backward
pass where the strategy allows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from oarlock_profiler.core.devices import DeviceSpec
from oarlock_profiler.core.engine.trace import Alloc, Event, Mark, Op, Trace

MATMUL_SHARE = {"fp32": 0.80, "tf32": 0.50, "fp16": 0.50, "bf16": 0.50}
"""Share of the data sheet's dense rate that large matrix products reach."""

BANDWIDTH_SHARE = 0.75
DEPTHWISE_SLOWDOWN = 4.0
"""Depthwise convolutions take so many times their roofline: the kernels read their input once per filter position, and
their backward passes sum badly. Found on timm's training table of an RTX 3090 (4 on four of five folds of the model
families, 5 on the fifth)."""

LINK_SHARE = 0.70
KERNEL_SECONDS = 3e-6
"""Shortest kernel on an accelerator, launch to launch on a busy stream."""

LAUNCH_SECONDS = {"pytorch": 7e-6, "paddlepaddle": 9e-6}
"""Host time to issue one eager operator (Python, dispatch, autograd bookkeeping), per framework."""

PCIE_BYTES_PER_SECOND = 16e9
OVERLAP_SHARE = 0.6
"""Share of the backward pass behind which gradient all-reduce can hide."""

HOST_FP32_FLOPS_PER_SECOND = 60e9
HOST_BYTES_PER_SECOND = 12e9
"""A few server cores, when the catalogue gives no rates of the processor."""


@dataclass(frozen=True, slots=True)
class Work:
    """One step on one device: floating-point operations, bytes of memory traffic, kernel launches.

    ``communication_bytes`` is what one device sends for the step (gradients, by the ring algorithm).
    """

    ops: tuple[Op, ...]
    flops: int
    bytes_moved: int
    launches: int
    communication_bytes: int = 0


def step_events(trace: Trace) -> list[Event]:
    """The events of the last whole training step (the steady state), or of all that was read when no step ended."""
    ends = [i for i, event in enumerate(trace.events) if isinstance(event, Mark) and event.name == "step_end"]
    if not ends:
        return [event for event in trace.events if not isinstance(event, Op) or event.phase != "setup"]
    begin = ends[-2] + 1 if len(ends) > 1 else 0
    return trace.events[begin : ends[-1]]


def work_of(trace: Trace, *, devices: int = 1, gradient_bytes: int = 0) -> Work:
    """What one step of ``trace`` asks of one of ``devices`` devices; evaluation and set-up are left out.

    With gradient accumulation a step holds every micro-batch up to the optimiser's step.
    """
    ops = tuple(
        event for event in step_events(trace) if isinstance(event, Op) and event.phase not in {"setup", "evaluation"}
    )
    sent = round(2 * (devices - 1) / devices * gradient_bytes) if devices > 1 else 0
    return Work(ops, sum(op.flops for op in ops), sum(op.bytes_moved for op in ops), len(ops), sent)


def step_seconds(
    work: Work, device: DeviceSpec, framework: str | None, *, depthwise_slowdown: float = DEPTHWISE_SLOWDOWN
) -> float | None:
    """Seconds of one step of ``work`` on ``device``; None when the device's rates are not known."""
    timed = timed_step(work, device, framework, depthwise_slowdown=depthwise_slowdown)
    return None if timed is None else timed.seconds


class TimedStep(NamedTuple):
    """Seconds of one step, and those of them in which kernels run."""

    seconds: float
    kernel_seconds: float

    @property
    def busy_share(self) -> float | None:
        """Share of the step, in 0..1, in which the device computes instead of waiting for launches or for its peers.

        What the script does between steps (loading, logging) is not counted, so that a run is rather less busy.
        """
        return min(1.0, self.kernel_seconds / self.seconds) if self.seconds > 0 else None


def timed_step(
    work: Work, device: DeviceSpec, framework: str | None, *, depthwise_slowdown: float = DEPTHWISE_SLOWDOWN
) -> TimedStep | None:
    """How one step of ``work`` passes on ``device``; None when the device's rates are not known."""
    rates = _rates(device)
    bandwidth = device.bandwidth_bytes_per_second or (HOST_BYTES_PER_SECOND if device.is_host else None)
    if bandwidth is None or rates is None:
        return None
    bandwidth *= BANDWIDTH_SHARE
    least = 0.0 if device.is_host else KERNEL_SECONDS
    forward = backward = 0.0
    for op in work.ops:
        form = number_format(op, device, framework) if op.matmul or op.flops > 8 * op.bytes_moved else "fp32"
        seconds = max(op.flops / rates[form], op.bytes_moved / bandwidth, least)
        if not device.is_host and op.kernel.startswith("depthwise_"):
            seconds *= depthwise_slowdown
        if op.phase == "backward":
            backward += seconds
        else:
            forward += seconds
    issue = 0.0 if device.is_host else work.launches * LAUNCH_SECONDS.get(framework or "", 8e-6)
    kernels = forward + backward
    return TimedStep(max(kernels, issue) + _communication(work, device, backward), kernels)


def _communication(work: Work, device: DeviceSpec, backward_seconds: float) -> float:
    if not work.communication_bytes:
        return 0.0
    link = (device.link_bytes_per_second or 2 * PCIE_BYTES_PER_SECOND) / 2  # data sheets count both directions
    return max(0.0, work.communication_bytes / (link * LINK_SHARE) - OVERLAP_SHARE * backward_seconds)


def number_format(op: Op, device: DeviceSpec, framework: str | None) -> str:
    """In which format ``op`` computes: half formats on tensor cores; float32 as TF32 where the framework allows it.

    By default PyTorch lets cuDNN convolutions use TF32 and matrix products not; PaddlePaddle lets both.
    """
    if op.dtype == "bfloat16":
        return "bf16" if device.bf16_supported else "fp32"
    if op.dtype == "float16":
        return "fp16"
    if op.dtype == "float32" and device.tf32_flops_per_second:
        return "tf32" if framework == "paddlepaddle" or "conv" in op.name or "conv" in op.kernel else "fp32"
    return "fp32"


def _rates(device: DeviceSpec) -> dict[str, float] | None:
    """Achievable rate per number format; a format whose rate is not known runs as the next better known one."""
    half = device.fp16_flops_per_second or device.bf16_flops_per_second
    fp32 = device.fp32_flops_per_second or (HOST_FP32_FLOPS_PER_SECOND if device.is_host else None)
    if fp32 is None:
        if half is None:
            return None
        fp32 = half / 4  # matrix units of the kinds concerned run float32 at a quarter of the half rate
    peak = {
        "fp32": fp32,
        "tf32": device.tf32_flops_per_second or fp32,
        "fp16": device.fp16_flops_per_second or fp32,
        "bf16": device.bf16_flops_per_second or half or fp32,
    }
    return {form: rate * MATMUL_SHARE[form] for form, rate in peak.items()}


def gradient_bytes(trace: Trace, device: str) -> int:
    """Bytes of parameter gradients that one step makes on ``device``: what data parallelism has to exchange."""
    return sum(
        event.nbytes
        for event in step_events(trace)
        if isinstance(event, Alloc) and event.device == device and event.kind == "gradient"
    )


def duration_seconds(step: float | None, steps_per_epoch: int | None, epochs: int | None) -> float | None:
    """Seconds of the whole job; None when its length or the step's time is not known."""
    if step is None or steps_per_epoch is None:
        return None
    return step * steps_per_epoch * (epochs or 1)


def price_of(seconds: float | None, device: DeviceSpec, devices: int = 1) -> float | None:
    """Price of ``seconds`` on ``devices`` such devices, in the fleet's currency; None when no price is given."""
    if seconds is None or device.price_per_hour is None:
        return None
    return seconds / 3600 * device.price_per_hour * devices


def kernels_of(ops: Iterable[Op]) -> dict[tuple[str, str], int]:
    """How often each kernel runs, by name and number format."""
    counts: dict[tuple[str, str], int] = {}
    for op in ops:
        key = (op.kernel or op.name, op.dtype)
        counts[key] = counts.get(key, 0) + 1
    return counts
