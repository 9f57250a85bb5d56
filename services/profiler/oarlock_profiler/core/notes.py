"""What a portrait says besides its numbers: the evidence and the unknowns, begun with what the reader found."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.findings import Where
from oarlock_profiler.core.reading import Reading
from oarlock_schemas import Evidence, UnknownFact
from oarlock_schemas.portrait import How

MAX_TEXT = 400


class Notes:
    """The evidence and unknowns of the portrait, begun with what the reader found."""

    def __init__(self, reading: Reading) -> None:
        self.evidence = [
            Evidence(fact=fact.fact, value=plain(fact.value), **place(fact.where), how=fact.how)
            for fact in reading.findings.facts
        ]
        self.unknowns = [
            UnknownFact(
                what=gap.what[:MAX_TEXT],
                **place(gap.where),
                why=gap.why[:MAX_TEXT],
                assumed=plain(gap.assumed),
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
        """Add what is known without a place in the script."""
        self.evidence.append(Evidence(fact=fact, value=plain(value), how=how))

    def unknown(self, what: str, why: str, assumed: object = None) -> None:
        """Add what is not known."""
        self.unknowns.append(UnknownFact(what=what, why=why, assumed=plain(assumed)))


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
