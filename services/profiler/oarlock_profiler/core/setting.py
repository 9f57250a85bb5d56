"""What surrounds a reading when it is turned into numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oarlock_profiler.core import calibration as learning
from oarlock_profiler.core.devices import DeviceSpec
from oarlock_profiler.core.memory.peaks import Stack


@dataclass(frozen=True, slots=True)
class Setting:
    """What surrounds a reading: the device kinds of the fleet, the one asked about, and what was learned.

    ``declared`` holds the task file's fields; they win only where the script is silent. ``devices`` is how many
    devices the task takes (None: what the script says, else 1).
    """

    fleet: Sequence[DeviceSpec] = ()
    target: DeviceSpec | None = None
    calibration: learning.State | None = None
    declared: Mapping[str, Any] = field(default_factory=dict)
    devices: int | None = None
    source_digest: str | None = None
    stack: Stack = field(default_factory=Stack)
