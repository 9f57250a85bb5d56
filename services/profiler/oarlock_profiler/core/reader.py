"""Reads a script: interprets it as ``python entry.py arguments…`` would run it, and gathers what was seen.

``read`` is pure: source text comes from :class:`Sources`, time from the clock passed in. Nothing of the script is
imported or executed by the host.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from oarlock_profiler.core import frameworks
from oarlock_profiler.core.engine.trace import Trace
from oarlock_profiler.core.findings import Findings, Where
from oarlock_profiler.core.interpreter.budget import Budget, BudgetExceeded, Limits
from oarlock_profiler.core.interpreter.choices import Place
from oarlock_profiler.core.interpreter.errors import Raised
from oarlock_profiler.core.interpreter.frames import Frame
from oarlock_profiler.core.interpreter.machine import Machine
from oarlock_profiler.core.larger_need import Walked, settle
from oarlock_profiler.core.reading import Reading, Request, Sources
from oarlock_profiler.core.summary import summarise

_HOST_DEPTH = 20_000


def default_engine(trace: Trace, framework: str | None, findings: Findings) -> Any:
    """The tensor engine."""
    from oarlock_profiler.core.engine.engine import Engine  # noqa: PLC0415 - tests bring a small one of their own

    return Engine(trace, "paddle" if framework == "paddlepaddle" else "torch", findings=findings)


def read(
    request: Request,
    sources: Sources,
    clock: Callable[[], float],
    limits: Limits | None = None,
    *,
    engine: Callable[[Trace, str | None, Findings], Any] = default_engine,
    follow: bool = False,
) -> Reading:
    """Walk the script and say what it needs. Never raises for anything the script does.

    ``follow``: also keep the path (:attr:`Reading.trail`).
    """
    limits = limits or Limits()
    started = clock()
    longest = 0.0

    def walk(forced: Mapping[Place, bool]) -> Walked:
        nonlocal longest
        begun = clock()
        left = replace(limits, seconds=limits.seconds - (begun - started))
        walked = _read_once(request, sources, clock, left, engine, forced, follow)
        longest = max(longest, clock() - begun)
        return walked

    def time_left() -> bool:
        return clock() - started + 2 * longest < limits.seconds

    return settle(walk({}), walk, limits.readings, time_left)


def _read_once(
    request: Request,
    sources: Sources,
    clock: Callable[[], float],
    limits: Limits,
    engine: Callable[[Trace, str | None, Findings], Any],
    forced: Mapping[Place, bool],
    follow: bool,
) -> Walked:
    trace = Trace()
    findings = Findings()
    entry = sources.read(request.entry) or b""
    named = frameworks.named(entry)
    framework = named or frameworks.guessed(entry, request.declared)
    tensors = engine(trace, framework, findings)
    kind = _followed() if follow else Machine
    machine = kind(request, sources, tensors, findings, Budget(limits, clock))
    machine.branches.forced = forced
    if named is None:
        machine.importer.first_framework = tensors.adopt
    tensors.locate = lambda: machine.where
    machine.state.update(world_size=max(1, request.world_size), declared=dict(request.declared))
    stopped = interpret(machine, request)
    reading = summarise(machine, machine.importer.framework or framework, stopped)
    if follow:
        reading.trail = machine.trail.root
    return Walked(reading, machine.branches.choices)


def _followed() -> type[Machine]:
    from oarlock_profiler.core.interpreter.trail import FollowedMachine  # noqa: PLC0415 - only when it is asked for

    return FollowedMachine


def interpret(machine: Machine, request: Request) -> str | None:
    """Interpret the entry module; why it stopped early, or None."""
    depth, collecting = sys.getrecursionlimit(), gc.isenabled()
    sys.setrecursionlimit(max(depth, _HOST_DEPTH))
    # the collector would free cycles at moments that have nothing to do with the script
    gc.disable()
    try:
        return _walk(machine, request)
    finally:
        machine.unpatch()
        sys.setrecursionlimit(depth)
        if collecting:
            gc.enable()


def _walk(machine: Machine, request: Request) -> str | None:
    entry = request.entry
    data = machine.sources.read(entry)
    if data is None:
        machine.findings.gap("the entry script", Where(entry, 1), "the file is not in the bundle")
        return f"{entry} is not in the bundle"
    folder = entry.rpartition("/")[0]
    name = entry.rpartition("/")[2].removesuffix(".py").replace(".", "_")
    if name == "__main__" and folder and machine.sources.exists(f"{folder}/__init__.py"):
        # a package's ``__main__`` is what ``python -m package`` runs
        folder, _, package = folder.rpartition("/")
        name = f"{package}.{name}"
    machine.importer.base_roots = [folder, ""] if folder else [""]
    try:
        machine.importer.run(name, entry, data, main=True)
    except Raised as raised:
        error = raised.value
        where = machine.place_of(error) or _line_of(raised) or Where(entry, 1)
    except (BudgetExceeded, Exception) as end:
        reason = _end(machine, end)
        machine.findings.gap("the rest of the script", _line_of(end) or Where(entry, 1), reason)
        return reason
    else:
        return None
    if error.cls.name == "SystemExit":
        return None
    reason = f"the script raises {machine.describe(error)}{_absent_before(machine.findings)}"
    machine.findings.gap("the rest of the script", where, reason)
    return reason


def _end(machine: Machine, error: BaseException) -> str:
    """Why the walk ended before the script did. A fault of the reader itself must not take the portrait with it."""
    match error:
        case BudgetExceeded():
            return str(error)
        case RecursionError():
            return "calls or expressions nested too deeply"
        case MemoryError():
            return "stopped where reading needed more memory than it may have"
    reason = f"the reader failed ({type(error).__name__}: {str(error)[:200]})"
    machine.internal_errors.append(reason)
    return reason


def _line_of(error: BaseException) -> Where | None:
    """The innermost line of the bundle that was walked when ``error`` came up (the script's frames are gone by now)."""
    found, level = None, error.__traceback__
    while level is not None:
        frame = level.tb_frame.f_locals.get("f")
        if isinstance(frame, Frame) and frame.module.file is not None and not frame.module.library and frame.line:
            found = Where(frame.module.file, frame.line)
        level = level.tb_next
    return found


_ABSENT = re.compile(r"the (?:file|folder|configuration) \S+ is not in the bundle$")
_TOLD = 3


def _absent_before(findings: Findings) -> str:
    """What the script asked for earlier and did not find: the likely cause of what it raises."""
    found = (_ABSENT.search(gap.why) for gap in findings.gaps.values())
    absent = list(dict.fromkeys(match[0] for match in found if match))
    return f" (before that: {'; '.join(absent[:_TOLD])})" if absent else ""
