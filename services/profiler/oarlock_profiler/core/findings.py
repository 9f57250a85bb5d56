"""What the reader found and what it could not: every number of a portrait points into this list."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

How = Literal["interpreted", "declared", "zoo", "config", "calibrated", "cold_start", "assumed", "table"]


class Where(NamedTuple):
    """A place in the bundle: a path relative to its root and a 1-based line."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that was read, and how."""

    fact: str
    value: object
    where: Where | None
    how: How


@dataclass(frozen=True, slots=True)
class Gap:
    """One thing that could not be read. ``assumed`` is what was used instead (None: nothing could be)."""

    what: str
    where: Where | None
    why: str
    assumed: object | None = None


@dataclass(slots=True)
class Findings:
    """Collects facts and gaps; identical entries are kept once, and each list is bounded."""

    facts: dict[Fact, None] = field(default_factory=dict)
    gaps: dict[tuple[str, Where | None, str], Gap] = field(default_factory=dict)
    limit: int = 500

    def fact(self, fact: str, value: object, where: Where | None, how: How = "interpreted") -> None:
        """Record that ``fact`` has ``value`` (made hashable by ``repr`` when it is not)."""
        try:
            hash(value)
        except TypeError:
            value = repr(value)
        if len(self.facts) < self.limit:
            self.facts.setdefault(Fact(fact, value, where, how))

    def gap(self, what: str, where: Where | None, why: str, assumed: object | None = None) -> None:
        """Record that ``what`` is unknown because of ``why``; the first record of a place wins."""
        if len(self.gaps) < self.limit:
            self.gaps.setdefault((what, where, why), Gap(what, where, why, assumed))
