"""Replays a trace through an allocator: the peaks of one device, and what holds the memory at the peak.

The trace holds every allocation, free and kernel of the steps that were read. The replay keeps, per storage kind, the
bytes alive, and remembers them at the moment the most was allocated. Scratch of a kernel (``Op.workspace_bytes``) is
taken and given back around the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from oarlock_profiler.core.engine.trace import Alloc, Free, Mark, Op, Phase, Retag, Trace
from oarlock_profiler.core.findings import Where
from oarlock_profiler.core.memory.allocator import Allocator, OutOfMemory
from oarlock_profiler.core.memory.libraries import Libraries

PART_OF_KIND = {
    "parameter": "weights",
    "buffer": "weights",
    "gradient": "gradients",
    "optimizer": "optimizer",
    "activation": "activations",
    "saved": "activations",
    "input": "inputs",
    "workspace": "workspace",
    "temporary": "workspace",
    "other": "other",
}

_SCRATCH_ID = -1
_LASTING_ID = -2
_NO_LIBRARIES = Libraries(None, None)


@dataclass(frozen=True, slots=True)
class Holder:
    """One storage that is alive at the peak."""

    nbytes: int
    kind: str
    op: str
    where: Where | None


@dataclass(frozen=True, slots=True)
class Usage:
    """Peaks of one device, in bytes.

    ``allocated_bytes`` is as the framework's own counter gives it (rounding included), ``tensor_bytes`` without
    rounding; ``reserved_bytes`` the most that the allocator held and ``pages_bytes`` what the device gave for it.
    ``first_step_bytes`` and ``steady_bytes`` are allocated peaks up to and after the end of the first step (None when
    the trace has no such part). ``parts_bytes`` are tensor bytes by part at the peak. ``unsettled_bytes`` is the
    largest scratch of which it is not known how it is taken. ``out_of_memory`` says why the replay stopped, when the
    allocator had a capacity.
    """

    allocated_bytes: int
    tensor_bytes: int
    reserved_bytes: int
    pages_bytes: int
    first_step_bytes: int | None
    steady_bytes: int | None
    first_step_tensor_bytes: int | None
    steady_tensor_bytes: int | None
    parts_bytes: dict[str, int]
    peak_phase: Phase
    peak_op: str
    peak_where: Where | None
    largest: tuple[Holder, ...] = ()
    unsettled_bytes: int = 0
    out_of_memory: str | None = None


@dataclass(slots=True)
class _Watch:
    """What is alive, and the greatest of it so far."""

    tensor: int = 0
    allocated_peak: int = 0
    tensor_peak: int = 0
    parts: dict[str, int] = field(default_factory=dict)
    step_allocated: int = 0
    step_tensor: int = 0
    peak_parts: dict[str, int] = field(default_factory=dict)
    peak_index: int = -1
    reserved_peak: int = 0
    pages_peak: int = 0
    unsettled: int = 0

    def take(self, part: str, nbytes: int) -> None:
        """Count ``nbytes`` (negative: given back) of ``part``."""
        self.tensor += nbytes
        self.parts[part] = self.parts.get(part, 0) + nbytes

    def look(self, allocator: Allocator, index: int) -> bool:
        """Take note of what is allocated at event ``index``; True when it is the most so far."""
        now = allocator.allocated_bytes
        # Cached memory may have been given back since: what counts is the most that was held.
        if allocator.reserved_bytes > self.reserved_peak:  # noqa: PLR1730 - looked at for every event
            self.reserved_peak = allocator.reserved_bytes
        if allocator.device_bytes > self.pages_peak:  # noqa: PLR1730 - looked at for every event
            self.pages_peak = allocator.device_bytes
        if now > self.step_allocated:  # noqa: PLR1730 - looked at for every event
            self.step_allocated = now
        if self.tensor > self.step_tensor:
            self.step_tensor = self.tensor
            if self.tensor > self.tensor_peak:  # noqa: PLR1730 - looked at for every event
                self.tensor_peak = self.tensor
        if now <= self.allocated_peak:
            return False
        self.allocated_peak, self.peak_index, self.peak_parts = now, index, dict(self.parts)
        return True


def devices_of(trace: Trace) -> dict[str, int]:
    """Bytes ever requested by device (``cpu``, ``gpu:0``…), largest first."""
    totals: dict[str, int] = {}
    for event in trace.events:
        if type(event) is Alloc:
            totals[event.device] = totals.get(event.device, 0) + event.nbytes
    return dict(sorted(totals.items(), key=lambda item: -item[1]))


def is_host(device: str) -> bool:
    """Whether ``device`` names main memory."""
    return device.split(":", maxsplit=1)[0] in {"cpu", "host", "meta"}


def replay(
    trace: Trace, device: str, allocator: Allocator, *, libraries: Libraries = _NO_LIBRARIES, top: int = 0
) -> Usage:
    """Replay ``trace`` on ``device`` through ``allocator``, with the scratch that ``libraries`` take.

    ``top`` asks for that many of the largest holders at the peak.
    """
    watch = _Watch()
    lasting: set[str] = set()
    fresh: list[int] = []  # sizes of what was allocated since the last kernel
    live: dict[int, tuple[int, str]] = {}
    first: tuple[int, int] | None = None
    steady: tuple[int, int] | None = None
    stepped = False
    peak_phase: Phase = "setup"
    reason: str | None = None
    try:
        for index, event in enumerate(trace.events):
            if isinstance(event, Alloc):
                if event.device != device:
                    continue
                part = PART_OF_KIND.get(event.kind, "other")
                live[event.id] = (event.nbytes, part)
                fresh.append(event.nbytes)
                allocator.allocate(event.id, event.nbytes)
                watch.take(part, event.nbytes)
                if watch.look(allocator, index):
                    peak_phase = event.phase
            elif isinstance(event, Free):
                held = live.pop(event.id, None)
                if held is not None:
                    allocator.free(event.id)
                    watch.take(held[1], -held[0])
            elif isinstance(event, Op):
                made, fresh = fresh, []
                if not live:
                    continue
                kept = libraries.lasting_bytes(event)
                if kept is not None and kept[0] not in lasting:
                    lasting.add(kept[0])
                    allocator.allocate(_LASTING_ID - len(lasting), kept[1])
                    watch.take("workspace", kept[1])
                    if watch.look(allocator, index):
                        peak_phase = event.phase
                taken, settled = libraries.scratch_bytes(event, made)
                if not settled:
                    watch.unsettled = max(watch.unsettled, *taken, 0)
                for scratch in taken:
                    if not _taken(allocator, scratch):
                        continue
                    watch.take("workspace", scratch)
                    if watch.look(allocator, index):
                        peak_phase = event.phase
                    watch.take("workspace", -scratch)
                    allocator.free(_SCRATCH_ID)
            elif isinstance(event, Retag):
                held = live.get(event.id)
                if held is not None:
                    part = PART_OF_KIND.get(event.kind, "other")
                    live[event.id] = (held[0], part)
                    watch.take(held[1], -held[0])
                    watch.take(part, held[0])
            elif isinstance(event, Mark) and event.name == "step_end":
                if stepped:
                    steady = _larger(steady, (watch.step_allocated, watch.step_tensor))
                else:
                    first, stepped = (watch.step_allocated, watch.step_tensor), True
                watch.step_allocated, watch.step_tensor = allocator.allocated_bytes, watch.tensor
    except OutOfMemory as error:
        reason = str(error)
    peak = trace.events[watch.peak_index] if watch.peak_index >= 0 else None
    return Usage(
        allocated_bytes=watch.allocated_peak,
        tensor_bytes=watch.tensor_peak,
        reserved_bytes=watch.reserved_peak,
        pages_bytes=watch.pages_peak,
        first_step_bytes=first[0] if first else None,
        steady_bytes=steady[0] if steady else None,
        first_step_tensor_bytes=first[1] if first else None,
        steady_tensor_bytes=steady[1] if steady else None,
        parts_bytes={part: nbytes for part, nbytes in watch.peak_parts.items() if nbytes},
        peak_phase=peak_phase,
        peak_op=peak.op if isinstance(peak, Alloc) else peak.name if isinstance(peak, Op) else "",
        peak_where=peak.where if isinstance(peak, Alloc | Op) else None,
        largest=_largest(trace.events[: watch.peak_index + 1], device, top) if top else (),
        unsettled_bytes=watch.unsettled,
        out_of_memory=reason,
    )


def _taken(allocator: Allocator, nbytes: int) -> bool:
    """Whether there is room for scratch; where there is none, frameworks try the kernel that needs none."""
    try:
        allocator.allocate(_SCRATCH_ID, nbytes)
    except OutOfMemory:
        return False
    return True


def _larger(one: tuple[int, int] | None, other: tuple[int, int]) -> tuple[int, int]:
    return other if one is None else (max(one[0], other[0]), max(one[1], other[1]))


def _largest(events: Iterable[object], device: str, top: int) -> tuple[Holder, ...]:
    """The ``top`` largest storages alive after ``events``."""
    live: dict[int, Alloc] = {}
    kinds: dict[int, str] = {}
    for event in events:
        if isinstance(event, Alloc):
            if event.device == device:
                live[event.id] = event
                kinds[event.id] = event.kind
        elif isinstance(event, Free):
            live.pop(event.id, None)
        elif isinstance(event, Retag):
            kinds[event.id] = event.kind
    chosen = sorted(live.values(), key=lambda alloc: -alloc.nbytes)[:top]
    return tuple(Holder(alloc.nbytes, kinds[alloc.id], alloc.op, alloc.where) for alloc in chosen)
