"""Where each owner stands in the fair share: for operators, and for the leader that comes next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oarlock_matcher.core.policy_settings import PolicySettings
    from oarlock_matcher.core.state import MatcherState
    from oarlock_matcher.core.tasks import Usage

OWNERS_TOLD = 1000
"""Those who used most; the others' use is small and soon forgotten. So many fit a message of the bus."""


@dataclass(frozen=True, slots=True)
class OwnerShare:
    """`recent_devices`: held on average of late by runs that ended. `behind_seconds`: a new task of one device is put
    in the queue as if it had come this much later."""

    owner: str
    devices: int
    waiting_devices: int
    recent_devices: float
    behind_seconds: float


def behind_seconds(usage: Usage, settings: PolicySettings, now: float) -> float:
    """How much later than it came an owner's new task is put in the queue, for what the owner holds, wants and had."""
    recent = usage.recent_devices(now, settings.fair_share_half_life_seconds)
    return settings.fair_share_seconds * (usage.devices + usage.waiting_devices + recent)


def owner_shares(state: MatcherState, now: float) -> tuple[OwnerShare, ...]:
    """Who used or wants most first; empty where operators have not switched the fair share on."""
    settings = state.settings
    if not settings.fair_share_seconds:
        return ()
    found: list[OwnerShare] = []
    for owner, usage in state.usage.items():
        recent = usage.recent_devices(now, settings.fair_share_half_life_seconds)
        behind = behind_seconds(usage, settings, now)
        found.append(OwnerShare(owner, usage.devices, usage.waiting_devices, recent, behind))
    found.sort(key=lambda share: (-share.behind_seconds, share.owner))
    return tuple(found[:OWNERS_TOLD])
