"""What a simulated run is said to use: its raw prediction, times a deviation of its own.

measured = raw × (1 + d(family, framework, device kind)) × (1 + e(task, attempt)), with d drawn once per group from
±``spread`` and e from ±1 %, both from a hash of their names and the seed. So every fleet with one seed shows the same
numbers, a group's deviation is systematic (there is something to learn), and a second run differs a little. The raw
prediction is taken, not the calibrated one: what is learned must not move what it is learned from.
"""

from __future__ import annotations

import hashlib

from oarlock_telemetry.core.runs import Facts

GROUP_SPREAD = 0.08
RUN_SPREAD = 0.01
_BUSY_LOW, _BUSY_SPAN = 0.6, 0.35


def simulated_bytes(facts: Facts, seed: str, room_bytes: int | None) -> int | None:
    """Bytes the run is said to use on each device, at most ``room_bytes``; None where nothing was predicted."""
    raw = facts.raw_predicted_bytes if facts.raw_predicted_bytes is not None else facts.predicted_bytes
    if raw is None:
        return None
    group = _draw(seed, facts.family, facts.framework, facts.device_kind)
    own = _draw(seed, facts.task_id, str(facts.attempt))
    used = round(raw * (1 + GROUP_SPREAD * group) * (1 + RUN_SPREAD * own))
    return used if room_bytes is None else min(used, room_bytes)


def simulated_utilization(facts: Facts, seed: str) -> float:
    """How busy the run is said to keep each device, 0 to 1."""
    return _BUSY_LOW + _BUSY_SPAN * (_draw(seed, "busy", facts.family, facts.device_kind) + 1) / 2


def _draw(*names: str | None) -> float:
    """A number from -1 to 1 that only depends on ``names``."""
    digest = hashlib.sha256("\0".join(name or "" for name in names).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**63 - 1
