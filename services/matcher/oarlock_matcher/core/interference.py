"""How fast tasks run that share a device, from how busy each keeps it alone.

speed = 1 − 0.47 · max(0, Σ busy − 1): as long as the sharers together leave the device idle at times they hardly notice
each other; what they want beyond the whole device slows all of them. Speeds are relative to running alone. The one
constant was fitted by least absolute error to 605 measured pairs (the co-location table published with Lucid, Hu et
al., ASPLOS'23); with the models of a pair left out of the fit it lies in 0.455..0.48 and the mean error is
0.066 (see `benchmarks/placement/sharing.py`). Utilisation of the memory interface did not improve it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

SLOWDOWN_PER_EXCESS = 0.47


def speed_together(busy_milli: ArrayLike, slowdown: float = SLOWDOWN_PER_EXCESS) -> NDArray[np.float64]:
    """Speed of each sharer relative to running alone, in 0..1, where sharers keep the device busy for `busy_milli`
    thousandths of the time in sum."""
    excess = np.maximum(np.asarray(busy_milli, dtype=np.float64) / 1000.0 - 1.0, 0.0)
    speed: NDArray[np.float64] = np.clip(1.0 - slowdown * excess, 0.0, 1.0)
    return speed
