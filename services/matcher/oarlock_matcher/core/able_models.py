"""Which device models could ever take a shape: what the demand mix remembers of a demand's constraints, and what spares
a waiting task the look at devices of other kinds."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from oarlock_matcher.core.filters import STATIC_FILTERS
from oarlock_matcher.core.filters.capability import ModelFilter
from oarlock_matcher.core.filters.capacity import memory_fits
from oarlock_matcher.core.fleet import FleetTable
from oarlock_matcher.core.shapes import Shape

CACHED_SHAPES = 4096


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


class AbleModels:
    """`able_models`, remembered for the shapes of one `ShapeTable`: a shape and a model never change."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, int], frozenset[int] | None] = OrderedDict()

    def of(self, fleet: FleetTable, shape: Shape) -> frozenset[int] | None:
        key = (shape.number, len(fleet.models))
        if key not in self._known:
            self._known[key] = able_models(fleet, shape)
            if len(self._known) > CACHED_SHAPES:
                self._known.popitem(last=False)
        return self._known[key]


def admitted_models(fleet: FleetTable, shape: Shape) -> NDArray[np.bool_]:
    """True for each model that the shape's kind, precision and operator filters admit, whatever its size. [models]"""
    admitted = np.ones(len(fleet.models), dtype=np.bool_)
    for rule in STATIC_FILTERS:
        if isinstance(rule, ModelFilter) and rule.concerns(shape):
            admitted &= np.fromiter((rule.allows(m, shape) for m in fleet.models), np.bool_, len(admitted))
    return admitted
