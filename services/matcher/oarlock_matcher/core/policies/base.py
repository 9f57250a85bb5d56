"""The port that every placement policy implements."""
# ruff: noqa: ARG002 - one signature for all, whatever each needs of it

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from oarlock_matcher.core.filters.base import Mask
from oarlock_matcher.core.fleet import FleetTable, Rows
from oarlock_matcher.core.policy_settings import PolicySettings
from oarlock_matcher.core.shapes import Shape

INFEASIBLE = -np.inf

Scores = NDArray[np.float64]
Slots = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run as the matcher saw it: from placement to end. `expected_seconds` is what was expected of the whole run on
    this kind of device; `None` when nothing was."""

    kind: str | None
    outcome: str
    seconds: float
    expected_seconds: float | None


class PlacementPolicy(Protocol):
    """Scores rows of the fleet for a shape; higher is better, ties go to the first row.

    `epoch` counts the changes of what has been learned: scores kept from an earlier epoch are computed again.
    """

    name: str
    epoch: int

    def retune(self, settings: PolicySettings) -> None:
        """Operators changed the settings; what has been learned is kept."""
        ...

    def arrived(self, fleet: FleetTable, shape: Shape, now: float) -> None:
        """A demand of this shape has arrived (called once per task, before it is scored)."""
        ...

    def ended(self, run: EndedRun) -> None:
        """A placed run has ended, whichever policy placed it."""
        ...

    def score(self, fleet: FleetTable, shape: Shape, rows: Rows, fits: Mask) -> tuple[Scores, Slots]:
        """Score of each row and, for sharing shapes, the device it would get there.

        `rows` can all take the shape; `fits` [len(rows), slots] says which devices do. A row's score may depend on
        that row and on what was learned up to `epoch` only: it is kept until one of them changes.
        """
        ...

    def weigh(self, fleet: FleetTable, shape: Shape, scores: Scores) -> Scores:
        """Last word over all rows' scores (`INFEASIBLE` where ruled out): rescaling, whole-fleet terms."""
        ...

    def parts(self, fleet: FleetTable, shape: Shape, rows: Rows) -> list[Mapping[str, float]]:
        """The terms of each row's score by feature name, for people."""
        ...


class BasePolicy:
    """Defaults: learns nothing, keeps scores as they are, shares the fullest device that fits (best fit)."""

    name = "base"

    def __init__(self) -> None:
        self.epoch = 0

    def retune(self, settings: PolicySettings) -> None:
        """Nothing to tune."""

    def arrived(self, fleet: FleetTable, shape: Shape, now: float) -> None:
        """Nothing to learn."""

    def ended(self, run: EndedRun) -> None:
        """Nothing to learn."""

    def weigh(self, fleet: FleetTable, shape: Shape, scores: Scores) -> Scores:
        return scores

    def parts(self, fleet: FleetTable, shape: Shape, rows: Rows) -> list[Mapping[str, float]]:
        return [{} for _ in rows]


def fullest_slot(fleet: FleetTable, rows: Rows, fits: Mask) -> Slots:
    """For each row the fitting device with the least compute left, ties to the first."""
    left = np.where(fits, fleet.milli_free[rows], np.iinfo(np.int64).max)
    slots: Slots = left.argmin(axis=1)
    return slots
