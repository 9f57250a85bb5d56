"""The three peaks of one device, never mixed, each with an interval: allocated, reserved, device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from oarlock_profiler.core.devices import DeviceSpec
from oarlock_profiler.core.engine.trace import Trace
from oarlock_profiler.core.memory.allocator import Allocator, PlainAllocator
from oarlock_profiler.core.memory.auto_growth import ALIGNMENT_BYTES, AutoGrowthAllocator, preallocated_bytes
from oarlock_profiler.core.memory.caching import CachingAllocator
from oarlock_profiler.core.memory.context import Context, Loading, communication_of, context_of, host_base
from oarlock_profiler.core.memory.interval import Interval, around, exactly
from oarlock_profiler.core.memory.libraries import Libraries, libraries_of
from oarlock_profiler.core.memory.replay import Usage, devices_of, is_host, replay

ALLOCATED_BELOW, ALLOCATED_ABOVE = 0.02, 0.03
"""What is left uncertain of a fully read script's tensors: kernels whose scratch differs between library versions."""

RESERVED_ABOVE = 0.04
"""Fragmentation beyond what the walked steps show (a last smaller batch, an evaluation pass, another kernel choice)."""


@dataclass(frozen=True, slots=True)
class Stack:
    """What surrounds the script: how the driver loads kernels, and allocator flags from the environment."""

    loading: Loading = "lazy"
    environment: Mapping[str, str] | None = None


_DEFAULT_STACK = Stack()


@dataclass(frozen=True, slots=True)
class Peaks:
    """Memory of one device (or of main memory, when ``on_host``)."""

    usage: Usage
    allocated: Interval
    reserved: Interval
    context: Context
    communication: Interval
    device: Interval
    on_host: bool
    traced_device: str
    host_bytes: Interval


def peaks_of(
    trace: Trace,
    framework: str | None,
    device: DeviceSpec | None,
    *,
    devices: int = 1,
    strategy: str | None = None,
    stack: Stack = _DEFAULT_STACK,
    doubt: float = 0.0,
    top: int = 0,
) -> Peaks | None:
    """The peaks that ``trace`` has on ``device`` (None: on an accelerator yet unknown); None for an empty trace.

    A trace that never touches an accelerator is sized in main memory. ``doubt`` widens the interval of what the
    reader assumed (0.1 is 10 %).
    """
    requested = devices_of(trace)
    if not requested:
        return None
    accelerator = _accelerator(requested)
    on_host = accelerator is None
    traced = accelerator or next(iter(requested))
    spec = None if on_host or (device is not None and device.is_host) else device
    libraries = Libraries(framework, None) if on_host else libraries_of(spec, framework, recent=stack.loading == "lazy")
    allocator = _allocator(framework, on_host, stack)
    usage = replay(trace, traced, allocator, libraries=libraries, top=top)
    allocated = around(usage.allocated_bytes, ALLOCATED_BELOW + doubt, ALLOCATED_ABOVE + doubt)
    reserved_bytes = max(usage.pages_bytes, _preallocated(framework, spec, on_host, stack))
    unsettled = usage.unsettled_bytes
    reserved = Interval(
        min(reserved_bytes, max(allocated.low, round(reserved_bytes * (1 - ALLOCATED_BELOW - doubt)) - unsettled)),
        reserved_bytes,
        round(reserved_bytes * (1 + RESERVED_ABOVE + doubt)) + unsettled,
    )
    if on_host:
        base = host_base(framework, accelerator=False)
        context = Context(base, "resident size of the interpreter and libraries", assumed=False)
        return Peaks(
            usage, allocated, reserved, context, exactly(0), reserved.plus(base), True, traced, reserved.plus(base)
        )
    context = context_of(spec, framework, stack.loading)
    communication = communication_of(devices, strategy)
    host = _host_peak(trace, requested).plus(host_base(framework, accelerator=True))
    whole = reserved.plus(context.bytes).plus(communication)
    return Peaks(usage, allocated, reserved, context, communication, whole, False, traced, host)


def runs_within(trace: Trace, framework: str | None, device: DeviceSpec, *, stack: Stack = _DEFAULT_STACK) -> bool:
    """Whether the steps run in ``device``'s capacity, cached memory being given back as the framework does."""
    requested = devices_of(trace)
    accelerator = _accelerator(requested)
    if device.is_host or accelerator is None:
        total = sum(replay(trace, name, PlainAllocator()).tensor_bytes for name in requested)
        return total + host_base(framework, accelerator=False).value <= device.capacity_bytes
    return _used(trace, accelerator, framework, device, stack).out_of_memory is None


def usage_within(trace: Trace, framework: str | None, device: DeviceSpec, *, stack: Stack = _DEFAULT_STACK) -> Usage:
    """What the steps use of an accelerator that has no more than its capacity.

    Cached memory is given back, and kernels do without scratch, before the steps fail.

    Raises:
        ValueError: the trace touches no accelerator.
    """
    accelerator = _accelerator(devices_of(trace))
    if accelerator is None:
        raise ValueError("the steps touch no accelerator")
    return _used(trace, accelerator, framework, device, stack)


def _accelerator(requested: Iterable[str]) -> str | None:
    """The accelerator that most is asked of, given devices as :func:`devices_of` orders them; None on main memory."""
    return next((name for name in requested if not is_host(name)), None)


def _used(trace: Trace, accelerator: str, framework: str | None, device: DeviceSpec, stack: Stack) -> Usage:
    capacity = device.capacity_bytes - context_of(device, framework, stack.loading).bytes.value
    allocator = _allocator(framework, False, stack, capacity)
    libraries = libraries_of(device, framework, recent=stack.loading == "lazy")
    return replay(trace, accelerator, allocator, libraries=libraries)


def _allocator(framework: str | None, on_host: bool, stack: Stack, capacity_bytes: int | None = None) -> Allocator:
    if on_host:
        return PlainAllocator()
    if framework == "paddlepaddle":
        chunk = _flag(stack, "FLAGS_auto_growth_chunk_size_in_mb") * (1 << 20)
        return AutoGrowthAllocator(capacity_bytes, chunk_bytes=max(chunk, ALIGNMENT_BYTES))
    return CachingAllocator(capacity_bytes)


def _preallocated(framework: str | None, spec: DeviceSpec | None, on_host: bool, stack: Stack) -> int:
    environment = stack.environment or {}
    if framework != "paddlepaddle" or on_host or environment.get("FLAGS_allocator_strategy") != "naive_best_fit":
        return 0
    initial = _flag(stack, "FLAGS_initial_gpu_memory_in_mb")
    try:
        fraction = float(environment.get("FLAGS_fraction_of_gpu_memory_to_use", "0.92"))
    except ValueError:
        fraction = 0.92
    return preallocated_bytes(spec.capacity_bytes if spec else 0, fraction=fraction, initial_mb=initial)


def _flag(stack: Stack, name: str) -> int:
    try:
        return max(0, int((stack.environment or {}).get(name, "0")))
    except ValueError:
        return 0


def _host_peak(trace: Trace, requested: Mapping[str, int]) -> Interval:
    hosts = [name for name in requested if is_host(name)]
    total = sum(replay(trace, name, PlainAllocator()).tensor_bytes for name in hosts)
    return around(total, 0.05, 0.5)
