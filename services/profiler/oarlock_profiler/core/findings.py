"""What the reader found and what it could not: every number of a portrait points into this list."""

from __future__ import annotations

from collections import deque
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
    """Collects facts and gaps; identical entries are kept once, and each list is bounded.

    Of more gaps than ``limit`` the first are kept, where causes are, and the last ``latest``, where the reading ended.
    """

    facts: dict[Fact, None] = field(default_factory=dict)
    gaps: dict[tuple[str, Where | None, str], Gap] = field(default_factory=dict)
    limit: int = 500
    latest: int = 100
    _late: deque[tuple[str, Where | None, str]] = field(default_factory=deque)

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
        key = (what, where, why)
        if key in self.gaps:
            return
        if len(self.gaps) >= self.limit - self.latest:
            if len(self._late) >= self.latest:
                del self.gaps[self._late.popleft()]
            self._late.append(key)
        self.gaps[key] = Gap(what, where, why, assumed)
