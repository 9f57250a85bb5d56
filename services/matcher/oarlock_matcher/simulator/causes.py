"""Who waited, or was left without a device, and why: the causes that the core gave, summed up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oarlock_matcher.core.demand import Demand
from oarlock_matcher.core.effects import Reason

Tally = dict[tuple[str, str], float]
"""By (who, cause code): seconds waited, or tasks left out."""

MAKE = frozenset(
    {
        *("other_site", "kind_not_required", "kind_forbidden", "precision_unsupported", "kernel_unsupported"),
        *("memory_too_small", "node_too_small"),
    }
)
"""Causes that rule a device out for good: they do not say why a task waits for the others."""
NOT_TOLD = "not_told"


def cause_of(reasons: Sequence[Reason]) -> str:
    """The code of the cause that keeps most devices from the task, of those that can pass if there are any."""
    passing = [reason for reason in reasons if reason.code not in MAKE] or reasons
    counts: dict[str, int] = {}
    for reason in passing:
        counts[reason.code] = counts.get(reason.code, 0) + max(1, reason.count)
    return max(counts, key=lambda code: (counts[code], code), default=NOT_TOLD)


def class_of(demand: Demand) -> str:
    """What a task asks for, in a word or two."""
    count = demand.device_count
    if count == 0:
        return "processors only"
    if count == "auto":
        return "auto"
    if count == 1:
        return "part of a device" if demand.compute_milli < 1000 else "one device"
    return f"{count} devices"


class WaitLedger:
    """Attributes each second that a task waits to the cause it was last told."""

    def __init__(self) -> None:
        self.seconds: Tally = {}
        self._open: dict[str, tuple[float, str, str]] = {}

    def told(self, task_id: str, who: str, reasons: Sequence[Reason], now: float) -> None:
        """The task waits, from now on for these reasons."""
        self.ended(task_id, now)
        self._open[task_id] = (now, who, cause_of(reasons))

    def ended(self, task_id: str, now: float) -> None:
        """The task waits no longer; one that did not wait is ignored."""
        begun = self._open.pop(task_id, None)
        if begun is not None:
            since, who, cause = begun
            self.seconds[who, cause] = self.seconds.get((who, cause), 0.0) + now - since

    def close(self, now: float) -> Tally:
        """End every wait, and what there is in all."""
        for task_id in list(self._open):
            self.ended(task_id, now)
        return self.seconds


def most(tally: Mapping[tuple[str, str], float], limit: int = 12) -> dict[str, dict[str, float]]:
    """By who (those with most first, the rest together as `others`), then by cause."""
    totals: dict[str, float] = {}
    for (who, _), amount in tally.items():
        totals[who] = totals.get(who, 0.0) + amount
    ranked = sorted(totals, key=lambda who: (-totals[who], who))
    named = set(ranked if len(ranked) <= limit else ranked[: limit - 1])
    found: dict[str, dict[str, float]] = {who: {} for who in ranked if who in named}
    for (who, cause), amount in sorted(tally.items()):
        causes = found.setdefault(who if who in named else "others", {})
        causes[cause] = causes.get(cause, 0.0) + amount
    return found
