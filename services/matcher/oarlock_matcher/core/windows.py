"""Times at which devices are kept for an owner, or for nobody because they are being maintained.

A task that is not the owner's is not placed where its run would reach into a window. How long it runs there is what its
portrait says for that kind, but not more than its run timeout; when neither is known it may run for ever, so it stays
away from every window that has not ended. What runs already is left alone: whoever plans a window plans around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from oarlock_matcher.core.demand import Demand
from oarlock_matcher.core.fleet import FleetTable
from oarlock_matcher.core.policy_settings import PolicySettings, Window

Grid = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """What a task may not use now for the sake of windows.

    `key` tells one closure from another as long as inventory and windows stay. `mask`: closed devices [rows, slots].
    `overlaps`: whether the task's run on a model reaches into a window [windows, models].
    """

    key: bytes
    mask: Grid
    overlaps: Grid


class Calendar:
    """Which devices the windows cover, worked out once per change of the inventory or of the windows."""

    def __init__(self) -> None:
        self._windows: tuple[Window, ...] = ()
        self._version = -1
        self._covers: list[Grid] = []
        self._closures: dict[bytes, Closure] = {}
        self._looked_at = float("-inf")

    def closure(self, fleet: FleetTable, settings: PolicySettings, demand: Demand, now: float) -> Closure | None:
        """What is closed for `demand`; `None` when nothing is."""
        windows = settings.windows
        if not windows:
            return None
        overlaps = np.zeros((len(windows), len(fleet.models)), dtype=np.bool_)
        for number, window in enumerate(windows):
            if now < window.ends and window.owner != demand.owner:
                for model, entry in enumerate(fleet.models):
                    seconds = demand.seconds_on(entry.kind)
                    overlaps[number, model] = seconds is None or now + seconds > window.begins
        if not overlaps.any():
            return None
        self._follow(fleet, windows)
        key = overlaps.tobytes()
        found = self._closures.get(key)
        if found is None:
            mask = np.zeros((fleet.size, fleet.slots), dtype=np.bool_)
            for number, covered in enumerate(self._covers):
                mask |= covered & overlaps[number][fleet.row_model][:, np.newaxis]
            found = self._closures[key] = Closure(key, mask, overlaps)
        return found

    def window_ended(self, settings: PolicySettings, now: float) -> bool:
        """Whether a window has ended since this was last asked: what was closed for it may be open now."""
        before, self._looked_at = self._looked_at, now
        return any(before < window.ends <= now for window in settings.windows)

    def covers(self, fleet: FleetTable, settings: PolicySettings, number: int) -> Grid:
        """The devices of one window. [rows, slots]"""
        self._follow(fleet, settings.windows)
        return self._covers[number]

    def _follow(self, fleet: FleetTable, windows: tuple[Window, ...]) -> None:
        if self._version == fleet.inventory_version and self._windows is windows:
            return
        self._windows, self._version = windows, fleet.inventory_version
        self._covers = [_covered(fleet, window) for window in windows]
        self._closures.clear()


def _covered(fleet: FleetTable, window: Window) -> Grid:
    """A device is covered when each of sites, nodes and kinds that the window names holds it; or by its uid."""
    rows = np.ones(fleet.size, dtype=np.bool_)
    named = bool(window.sites or window.nodes or window.kinds)
    for row in range(fleet.size):
        rows[row] = (
            (not window.sites or fleet.site_of(row) in window.sites)
            and (not window.nodes or fleet.node_name(row) in window.nodes)
            and (not window.kinds or fleet.model_of(row).kind in window.kinds)
        )
    if not named and window.devices:
        rows[:] = False
    mask = np.repeat(rows[:, np.newaxis], fleet.slots, axis=1)
    for uid in window.devices:
        if (place := fleet.place_of.get(uid)) is not None:
            mask[place] = True
    return mask


def sentence_of(window: Window, demand: Demand, kind: str) -> str:
    """Why the window keeps the task off a device of `kind`, for people."""
    what = "maintenance" if window.owner is None else f"reserved for {window.owner}"
    named = f"{window.name} ({window.reason})" if window.reason else window.name
    when = f"from {time_of(window.begins)} to {time_of(window.ends)}"
    seconds = demand.seconds_on(kind)
    if seconds is None:
        long = "how long the task runs is not known and it has no run timeout, so it might reach into it"
    else:
        long = f"the task may run for {seconds:.0f} s and would reach into it"
    return f"{what} {when} by {named}; {long}"


def time_of(seconds: float) -> str:
    """Seconds since the epoch as people write a time."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return f"{seconds:.0f} s"
