"""From the machine's final state to a :class:`Reading`."""

from __future__ import annotations

from oarlock_profiler.core.engine.trace import Trace
from oarlock_profiler.core.interpreter.machine import Machine
from oarlock_profiler.core.overlays.training_notes import fill
from oarlock_profiler.core.reading import Reading


def summarise(machine: Machine, framework: str | None, stopped: str | None) -> Reading:
    """Gather what the interpreter, the engine and the overlays saw."""
    imported = machine.importer.modules
    if framework is None:
        if "paddle" in imported:
            framework = "paddlepaddle"
        elif "torch" in imported:
            framework = "pytorch"
        elif "numpy" in imported:
            framework = "numpy"
    reading = Reading(
        framework=framework,
        kind="training" if machine.trace.steps else "other",
        trace=_sealed(machine.trace),
        findings=machine.findings,
        stopped=stopped,
        path=machine.path,
    )
    loops = machine.training_loops
    if loops:
        reading.steps_per_epoch = loops[0][1]
        if len(loops) > 1:
            reading.epochs = loops[1][1]
    fill(reading, machine.state, machine.engine)
    return reading


def _sealed(trace: Trace) -> Trace:
    """The trace as it is now: what is freed when the machine goes away is not part of the script's life."""
    sealed = Trace(
        events=trace.events, phase=trace.phase, steps=trace.steps, limit=trace.limit, truncated=trace.truncated
    )
    trace.events = []
    return sealed
