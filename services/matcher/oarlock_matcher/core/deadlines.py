"""What a deadline means for a task: how much slack it has, and which models would finish it in time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oarlock_matcher.core.demand import Demand
from oarlock_matcher.core.devices import DeviceModel
from oarlock_matcher.core.effects import Reason
from oarlock_matcher.core.windows import time_of

UNKNOWN = 0.5
"""Score of a model on which the duration is not known: it neither wins against one in time nor loses to one too
late."""


def expected_on(demand: Demand, kind: str | None) -> float | None:
    """Predicted seconds of the whole run on this kind; `None` when unknown. What was expected on no kind in particular
    is scaled by the predicted step times, which say how kinds differ."""
    expected = demand.expected_seconds
    if kind is not None and kind in demand.duration_seconds:
        return demand.duration_seconds[kind]
    if kind is not None and expected is not None and kind in demand.step_seconds:
        return expected * (demand.step_seconds[kind] * len(demand.step_seconds) / sum(demand.step_seconds.values()))
    return expected


def latest_start(demand: Demand) -> float | None:
    """When it must start to be done in time (seconds since the epoch); of an unknown duration nothing is taken off."""
    return None if demand.deadline is None else demand.deadline - (demand.expected_seconds or 0.0)


def promptness(demand: Demand, models: Sequence[DeviceModel], weight: float, now: float) -> NDArray[np.float64] | None:
    """What a start now adds to the score on each model: `weight` where it is done by its deadline, nothing where it is
    not. `None` where it makes no difference."""
    if demand.deadline is None or not weight:
        return None
    left = demand.deadline - now
    found = [UNKNOWN if (takes := expected_on(demand, m.kind)) is None else float(takes <= left) for m in models]
    return weight * np.array(found) if len(set(found)) > 1 else None


def slack(demand: Demand, now: float) -> tuple[Reason, ...]:
    """How long a task may still wait to be done in time, in words; empty when it has no deadline."""
    latest = latest_start(demand)
    if demand.deadline is None or latest is None:
        return ()
    left = latest - now
    takes = demand.expected_seconds
    duration = "takes a time that is not known" if takes is None else f"is expected to take {takes:.0f} s"
    rest = f"its slack is {left:.0f} s" if left >= 0 else f"it is {-left:.0f} s too late to be in time"
    text = f"it should be done by {time_of(demand.deadline)} and {duration}: {rest}"
    return (Reason("deadline", text, values={"slack_seconds": left}),)
