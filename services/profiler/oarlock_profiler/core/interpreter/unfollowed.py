"""What a machine that keeps no trail does of the trail's work: nothing (:mod:`trail` has the other)."""

from __future__ import annotations

import ast
from typing import Any, Protocol

from oarlock_profiler.core.interpreter.frames import Frame
from oarlock_profiler.core.interpreter.values import Iteration, Value


class FollowedLoop(Protocol):
    """A loop whose rounds are shown."""

    def round(self) -> None:
        """A round is over."""

    def close(self, rounds: int, count: int | None) -> None:
        """The loop is left after ``rounds`` of ``count`` (None: not known)."""


class Unfollowed:
    """Compiled code asks ``follows`` once and calls these only when it is set, so that they cost nothing else."""

    follows = False
    trail: Any = None

    def decided(self, f: Frame, node: ast.If, truth: bool) -> None:
        """A branch whose condition is known."""

    def assumed(self, test: ast.expr, why: str, side: str) -> None:
        """A branch whose condition is not known."""

    def imported(self, name: str, value: Value) -> None:
        """An import statement."""

    def loop_begins(self, f: Frame, iteration: Iteration | None) -> FollowedLoop | None:  # noqa: ARG002
        """A loop is entered."""
        return None
