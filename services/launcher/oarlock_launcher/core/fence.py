"""Whether a placement is still true: nobody has surpassed its booking.

The revision of a device's lease book is the fence of the bookings in it. Revisions only grow, so of two bookings the
one with the higher fence was made later, knowing of the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from oarlock_launcher.core.run import Run


@dataclass(frozen=True, slots=True)
class Verdict:
    """``refusal``: why the placement is stale. ``superseded``: runs of ours that must end before this one starts."""

    refusal: str | None = None
    superseded: tuple[Run, ...] = ()


def judge(candidate: Run, known: Iterable[Run], unheld: tuple[str, ...]) -> Verdict:
    """Judge ``candidate`` against the runs this site knows and the devices whose book does not hold it.

    A run with a later booking that excludes the candidate makes it stale, whether that run still goes on or has ended:
    the later booking was only possible because the candidate's lease had been given up. A run with an earlier booking
    that still goes on has lost its lease to the candidate, and must end first.
    """
    if unheld:
        return Verdict(f"the lease of {', '.join(unheld)} is no longer held by attempt {candidate.attempt}")
    superseded: dict[tuple[str, int], Run] = {}
    fences = {device.uid: device.fence for device in candidate.devices}
    for run in known:
        if run.key == candidate.key or not (run.exclusive or candidate.exclusive):
            continue
        for device in run.devices:
            mine = fences.get(device.uid)
            if mine is None:
                continue
            if device.fence > mine:
                return Verdict(
                    f"fence {mine} of {device.uid} is stale: task {run.task_id} was given the device alone"
                    f" with fence {device.fence}"
                    if run.exclusive
                    else f"fence {mine} of {device.uid} is stale: the device was asked for alone, and task"
                    f" {run.task_id} was given a share of it with fence {device.fence}"
                )
            if run.active:
                superseded[run.key] = run
    return Verdict(None, tuple(superseded.values()))
