"""What a portrait says besides its numbers: the evidence and the unknowns, begun with what the reader found."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.findings import Where
from oarlock_profiler.core.reading import Reading
from oarlock_profiler.core.settling import settled_by
from oarlock_schemas import Evidence, UnknownFact
from oarlock_schemas.portrait import How

MAX_TEXT = 400
_STOPPED = ("the rest of the script", "the entry script")
"""Unknowns that say why, and where, the reading ended."""


class Notes:
    """The evidence and unknowns of the portrait, begun with what the reader found."""

    def __init__(self, reading: Reading) -> None:
        self.evidence = [
            Evidence(fact=fact.fact, value=plain(fact.value), **place(fact.where), how=fact.how)
            for fact in reading.findings.facts
        ]
        self.unknowns = [unknown(gap.what, gap.why, gap.assumed, gap.where) for gap in reading.findings.gaps.values()]
        if reading.stopped and not any(gap.what in _STOPPED for gap in self.unknowns):
            self.unknowns.append(unknown("the rest of the script", reading.stopped))
        if reading.trace.truncated:
            self.unknowns.append(unknown("the rest of the steps", f"the trace was cut at {reading.trace.limit} events"))

    def fact(self, fact: str, value: object, how: How) -> None:
        """Add what is known without a place in the script."""
        self.evidence.append(Evidence(fact=fact, value=plain(value), how=how))

    def unknown(self, what: str, why: str, assumed: object = None) -> None:
        """Add what is not known."""
        self.unknowns.append(unknown(what, why, assumed))


def unknown(what: str, why: str, assumed: object = None, where: Where | None = None) -> UnknownFact:
    """One unknown, with what would settle it."""
    at = f"{where.file}:{where.line}" if where is not None else ""
    return UnknownFact(
        what=what[:MAX_TEXT],
        **place(where),
        why=why[:MAX_TEXT],
        assumed=plain(assumed),
        settle=settled_by(what, why, at)[:MAX_TEXT],
    )


def place(where: Where | None) -> dict[str, Any]:
    """``where`` as the fields of a schema."""
    return {} if where is None else {"file": where.file, "line": where.line}


def plain(value: object) -> Any:
    """``value`` as JSON can hold it, bounded."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value[:MAX_TEXT]
    if isinstance(value, tuple | list) and len(value) <= 64:
        return [plain(item) for item in value]
    return repr(value)[:MAX_TEXT]
