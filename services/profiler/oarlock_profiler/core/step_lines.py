"""One training step as read: what each line of the script does in it, and what tensors hold meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from oarlock_profiler.core.engine.trace import Alloc, Free, Mark, Op, Trace
from oarlock_profiler.core.findings import Where
from oarlock_profiler.core.memory.replay import devices_of
from oarlock_profiler.core.notes import place
from oarlock_schemas import StepLine

MAX_LINES = 64


@dataclass(slots=True)
class _Line:
    phase: str
    where: Where | None
    launches: int = 0
    flops: int = 0
    bytes_moved: int = 0
    allocated: int = 0


def step_lines(trace: Trace, backward: Where | None) -> list[StepLine]:
    """The last whole step of ``trace`` by line, on the device that most is asked of; ``backward`` is where it starts.

    Without a whole step there is nothing to show.
    """
    ends = [i for i, event in enumerate(trace.events) if isinstance(event, Mark) and event.name == "step_end"]
    if not ends:
        return []
    begin = ends[-2] + 1 if len(ends) > 1 else 0
    device = next(iter(devices_of(trace)), None)
    live: dict[int, int] = {}
    held = 0
    lines: dict[tuple[str, Where | None], _Line] = {}
    current: _Line | None = None
    for index, event in enumerate(trace.events[: ends[-1]]):
        if isinstance(event, Alloc):
            if event.device == device:
                live[event.id] = event.nbytes
                held += event.nbytes
        elif isinstance(event, Free):
            held -= live.pop(event.id, 0)
        elif index >= begin and isinstance(event, Op) and event.phase not in ("setup", "evaluation"):
            where = backward if event.phase == "backward" else event.where
            key = (event.phase, where)
            current = lines.get(key)
            if current is None:
                current = lines[key] = _Line(event.phase, where)
            current.launches += 1
            current.flops += event.flops
            current.bytes_moved += event.bytes_moved
        if current is not None and held > current.allocated:
            current.allocated = held
    return [
        StepLine(
            phase=line.phase,
            **place(line.where),
            launches=line.launches,
            flops=line.flops,
            bytes_moved=line.bytes_moved,
            allocated_bytes=line.allocated,
        )
        for line in list(lines.values())[:MAX_LINES]
    ]
