"""The reader's path as lines for a person, and as values for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oarlock_profiler.core.interpreter.trail import Step

MOST_LINES = 1_000


def lines(root: Step) -> list[str]:
    """One line a step, indented by how deep it lies; at most :data:`MOST_LINES`."""
    shown: list[str] = []
    for line in _lines(root, 0):
        if len(shown) >= MOST_LINES:
            shown.append("… (the rest: --format json)")
            break
        shown.append(line)
    return shown


def _lines(parent: Step, depth: int) -> Iterator[str]:
    for step in parent.steps:
        place = f"{step.where.file}:{step.where.line}" if step.where is not None else ""
        head = f"{step.kind} {step.what}" if step.kind in ("import", "make", "raise") else step.what or step.kind
        head = f"{step.kind} {head}" if step.kind == "loop" else head
        arrow = "" if not step.result or step.result == "None" else f" → {step.result}"
        times = f"  ×{step.times:,}" if step.times > 1 else ""
        yield f"{place:<24} {'  ' * depth}{head}{arrow}{times}"
        yield from _lines(step, depth + 1)
    if parent.omitted:
        yield f"{'':<24} {'  ' * depth}… {parent.omitted:,} more steps"


def values(parent: Step) -> list[dict[str, Any]]:
    """The steps inside ``parent`` as JSON values."""
    return [
        {
            "kind": step.kind,
            "what": step.what,
            "file": step.where.file if step.where is not None else None,
            "line": step.where.line if step.where is not None else None,
            "result": step.result or None,
            "times": step.times,
            "omitted": step.omitted,
            "steps": values(step),
        }
        for step in parent.steps
    ]
