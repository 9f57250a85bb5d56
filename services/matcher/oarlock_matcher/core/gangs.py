"""Which devices of a row, or of several rows, a task gets once the policy has chosen where.

Gangs are whole or not at all, of one device model. On one node, devices of one link group are preferred, the smallest
group that is large enough, so that larger groups stay whole. Over several nodes: one site, the fewest nodes.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from numpy.typing import NDArray

from oarlock_matcher.core.filters.base import Mask
from oarlock_matcher.core.fleet import FleetTable
from oarlock_matcher.core.shapes import Shape

Pick = tuple[int, tuple[int, ...]]
"""(row, device columns)."""


def pick_slots(fleet: FleetTable, row: int, fits: Mask, count: int) -> tuple[int, ...]:
    """`count` of the fitting devices of one row, linked ones first. `fits`: [slots]."""
    free = np.flatnonzero(fits)
    if count == len(free):
        return tuple(int(s) for s in free)
    if count > 1:
        groups = fleet.link[row, free]
        sizes = Counter(int(g) for g in groups if g != 0)
        whole = sorted((size, group) for group, size in sizes.items() if size >= count)
        if whole:
            free = free[groups == whole[0][1]]
        elif sizes:
            # No group is large enough: fill the largest groups first, so that the gang crosses as few links as it can.
            free = free[np.argsort([-sizes.get(int(g), 0) for g in groups], kind="stable")]
    return tuple(int(s) for s in free[:count])


def span(
    fleet: FleetTable,
    shape: Shape,
    per_row: NDArray[np.intp],
    cost_of_model: NDArray[np.float64],
) -> tuple[tuple[int, int], ...] | None:
    """Rows and device counts for a gang over several nodes, or `None`.

    `per_row`: devices that each row could give now (0 where it cannot). `cost_of_model`: lower is better, by model.
    Among (site, model) pairs that hold the gang, the cheapest model wins, then the fewest nodes.
    """
    by_home: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for row in np.flatnonzero(per_row > 0).tolist():
        by_home[(fleet.site_of(row), int(fleet.row_model[row]))].append(row)
    best: tuple[tuple[float, int, str], tuple[tuple[int, int], ...]] | None = None
    for (site, model), rows in by_home.items():
        if sum(int(per_row[r]) for r in rows) < shape.count:
            continue
        rows.sort(key=lambda r: (-int(per_row[r]), r))
        chosen: list[tuple[int, int]] = []
        left = shape.count
        for row in rows:
            take = min(left, int(per_row[row]))
            chosen.append((row, take))
            left -= take
            if not left:
                break
        rank = (float(cost_of_model[model]), len(chosen), site)
        if best is None or rank < best[0]:
            best = (rank, tuple(chosen))
    return None if best is None else best[1]
