"""Which device models could ever take a shape: what the demand mix remembers of a demand's constraints."""

from __future__ import annotations

import numpy as np

from oarlock_matcher.core.filters import STATIC_FILTERS
from oarlock_matcher.core.filters.capability import ModelFilter
from oarlock_matcher.core.filters.capacity import memory_fits
from oarlock_matcher.core.fleet import FleetTable
from oarlock_matcher.core.shapes import Shape


def able_models(fleet: FleetTable, shape: Shape) -> frozenset[int] | None:
    """Numbers of the models that pass the shape's kind, precision, operator and size filters; `None` when all do."""
    rules = [rule for rule in STATIC_FILTERS if isinstance(rule, ModelFilter) and rule.concerns(shape)]
    sized = shape.count > 0 and (shape.device_bytes is not None or shape.reserve_bytes is not None)
    if not rules and not sized:
        return None
    able: set[int] = set()
    for number, model in enumerate(fleet.models):
        if all(rule.allows(model, shape) for rule in rules):
            usable = np.array([model.memory_bytes], dtype=np.int64)
            if not sized or bool(memory_fits(usable, shape)[0]):
                able.add(number)
    return frozenset(able) if len(able) < len(fleet.models) else None
