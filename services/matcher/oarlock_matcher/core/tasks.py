"""What the core remembers of each task, and what each owner holds."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from oarlock_matcher.core.demand import Demand
from oarlock_matcher.core.devices import NodeShare, Share
from oarlock_matcher.core.effects import Reason
from oarlock_matcher.core.policy_settings import Quota
from oarlock_matcher.core.queue import GroupKey, Turn
from oarlock_matcher.core.shapes import Shape

if TYPE_CHECKING:
    from oarlock_matcher.core.holds import Hold


class Phase(StrEnum):
    """Where a task stands, as far as the matcher is concerned."""

    BLOCKED = "blocked"
    WAITING = "waiting"
    PLACED = "placed"


@dataclass(frozen=True, slots=True, eq=False)
class Blocked:
    """What the fleet and the held rows were when waiting tasks were last tried in vain: one object for all of them.

    `position`: how far the fleet's log of touched rows reached then.
    """

    position: int
    hold: Hold | None
    inventory_version: int


@dataclass(slots=True)
class TaskRecord:
    """A task that waits or holds leases. Ended tasks are forgotten, but for their outcome.

    `spans`: whether several rows may serve it together. `told_at`: when its reasons were last worked out for people.
    """

    demand: Demand
    phase: Phase
    arrived_at: float
    shapes: tuple[Shape, ...]
    turn: Turn
    group: GroupKey
    reasons: tuple[Reason, ...] = ()
    shares: tuple[Share, ...] = ()
    node_shares: tuple[NodeShare, ...] = ()
    placed_at: float | None = None
    kind: str | None = None
    cancelled: bool = False
    preempting: bool = False
    conflicts: int = 0
    spans: bool = False
    blocked: Blocked | None = None
    told_at: float = 0.0
    after: set[str] = field(default_factory=set)

    @property
    def holder(self) -> tuple[str, int]:
        return (self.demand.task_id, self.demand.attempt)

    def ends_at(self) -> float | None:
        """When the run is expected to end; `None` when its duration is unknown."""
        if self.placed_at is None or self.demand.expected_seconds is None:
            return None
        return self.placed_at + self.demand.expected_seconds


@dataclass(slots=True)
class Usage:
    """What one owner holds now. `waiting_devices` counts what that owner's queued tasks ask for;
    `held` what ended runs had of late, as of `held_at`."""

    devices: int = 0
    device_bytes: int = 0
    tasks: int = 0
    waiting_devices: int = 0
    held: float = 0.0
    held_at: float = 0.0

    def recent_devices(self, now: float, half_life_seconds: float) -> float:
        """Devices that ended runs of the owner held of late, as an average in which older times count less."""
        return self.held * _remembered(now - self.held_at, half_life_seconds)

    def note_held(self, devices: int, seconds: float, now: float, half_life_seconds: float) -> None:
        """A run of the owner has ended that held so many devices for so long."""
        share = 1.0 - _remembered(seconds, half_life_seconds)
        self.held = self.recent_devices(now, half_life_seconds) + devices * share
        self.held_at = now

    def over(self, quota: Quota, shape: Shape) -> str | None:
        """Which part of the quota one more task of this shape would exceed; `None` when it would not."""
        if quota.devices is not None and self.devices + shape.count > quota.devices:
            return f"holds {self.devices} of {quota.devices} devices and asks for {shape.count} more"
        wanted = shape.count * shape.lease_bytes
        if quota.device_bytes is not None and self.device_bytes + wanted > quota.device_bytes:
            return f"holds {self.device_bytes} of {quota.device_bytes} device bytes and asks for {wanted} more"
        if quota.tasks is not None and self.tasks + 1 > quota.tasks:
            return f"already runs {self.tasks} of {quota.tasks} tasks"
        return None


def _remembered(age_seconds: float, half_life_seconds: float) -> float:
    """Weight of what is that old."""
    if half_life_seconds <= 0.0:
        return 0.0
    return math.exp2(-max(0.0, age_seconds) / half_life_seconds)


class Outcomes:
    """How recent tasks ended, for those that come `after:` them. Bounded: the oldest are forgotten."""

    def __init__(self, limit: int = 100_000) -> None:
        self._outcomes: OrderedDict[str, tuple[str, int]] = OrderedDict()
        self._limit = limit

    def note(self, task_id: str, outcome: tuple[str, int]) -> None:
        self._outcomes[task_id] = outcome
        self._outcomes.move_to_end(task_id)
        if len(self._outcomes) > self._limit:
            self._outcomes.popitem(last=False)

    def of(self, task_id: str) -> tuple[str, int] | None:
        """(outcome, attempt), or `None` when it has not ended as far as is remembered."""
        return self._outcomes.get(task_id)
