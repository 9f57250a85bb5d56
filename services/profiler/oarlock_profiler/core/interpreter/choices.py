"""Sides taken at branches on unknowns, by place: what one reading chose, and what another may be told to choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from oarlock_profiler.core.findings import Where


class Place(NamedTuple):
    """A branch of the bundle. One choice holds for every time it is passed."""

    file: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Choice:
    """``side``: True for the body. ``weight`` is a rough measure of the work in both sides.

    ``gap`` is the key under which the findings hold it; None where the side that was taken is no assumption
    (what follows an early ``return``).
    """

    side: bool
    weight: int
    gap: tuple[str, Where | None, str] | None
