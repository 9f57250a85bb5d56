"""The shape of a filter, and how quantities are written for people."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from oarlock_matcher.core.fleet import FleetTable, Rows
from oarlock_matcher.core.policy_settings import PolicySettings
from oarlock_matcher.core.shapes import Shape

Mask = NDArray[np.bool_]
GIB = float(2**30)


class Filter(Protocol):
    """One cause for which devices are ruled out.

    `code` is the machine-readable reason. `static`: the answer depends on the inventory only.
    """

    code: str
    static: bool

    def concerns(self, shape: Shape) -> bool:
        """Whether the filter can rule anything out for this shape; skipping it otherwise saves the work."""
        ...

    def admits(self, fleet: FleetTable, shape: Shape, rows: Rows, settings: PolicySettings) -> Mask:
        """True where a device may take the shape. [len(rows), slots], or [len(rows), 1] for whole rows."""
        ...

    def sentence(self, fleet: FleetTable, shape: Shape, row: int, slot: int) -> str:
        """Why this filter ruled the device at (row, slot) out, for people."""
        ...


def gib(count: float) -> str:
    """Bytes as a person reads them, e.g. `31.2 GiB`."""
    return f"{count / GIB:.1f} GiB"
