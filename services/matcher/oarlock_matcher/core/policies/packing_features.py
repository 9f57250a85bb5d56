"""What the learned policy looks at: named features of a candidate, each in thousandths of a device ("milli").

A candidate is a row of the fleet, with the device that a sharing shape would get there. Higher is meant to be better
for all of them; the weights decide. The first three are the rules' own terms, so weights of one for `fragmentation` and
`scarcity` alone decide exactly as the rules do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oarlock_matcher.core.devices import WHOLE_MILLI
from oarlock_matcher.core.fleet import FleetTable, Rows
from oarlock_matcher.core.policies.base import Slots
from oarlock_matcher.core.policies.fragmentation_field import Floats, FragmentationField, free_cpu_milli
from oarlock_matcher.core.shapes import Shape

CPU_CAP_MILLI = 1_000_000
"""Nodes that do not say how many processors they have count as having this many."""
STEP_MILLI = 100.0
"""Worth of a yes-or-no feature, a tenth of a device."""
LEFT_SCALE = 0.1
"""What stays free counts a tenth: a row has up to several devices, and most differences are small."""

CLASSES = ("processors", "share", "one", "gang")
"""Kinds of shapes with weights of their own: no device, a part of one, one whole device, several."""


def class_of(shape: Shape) -> str:
    """Which weights a shape is judged by."""
    if shape.count == 0:
        return "processors"
    if shape.count > 1:
        return "gang"
    return "one" if shape.whole else "share"


def as_floats(numbers: NDArray[Any]) -> Floats:
    floats: Floats = numbers.astype(np.float64)
    return floats


@dataclass(frozen=True)
class Sight:
    """Candidates and what is known of them. All arrays are [candidates]; milli of devices and of processors. What
    several features need is worked out once.

    `scarcity`: of each candidate's kind and size of node, from the demand and fleet seen.
    """

    fleet: FleetTable
    field: FragmentationField
    shape: Shape
    rows: Rows
    slots: Slots
    gain: Floats
    scarcity: Floats

    @property
    def asked(self) -> int:
        return self.shape.count * self.shape.milli

    @cached_property
    def total(self) -> Floats:
        return as_floats(self.field.total_free(self.rows))

    @cached_property
    def capacity(self) -> Floats:
        return as_floats(self.fleet.present[self.rows].sum(axis=1) * WHOLE_MILLI)

    @cached_property
    def cpu(self) -> Floats:
        return as_floats(np.minimum(free_cpu_milli(self.fleet, self.rows), CPU_CAP_MILLI))

    @cached_property
    def cpu_capacity(self) -> Floats:
        total = self.fleet.cpu_total[self.fleet.row_node[self.rows]]
        return as_floats(np.minimum(total, CPU_CAP_MILLI))

    @property
    def device_before(self) -> Floats:
        return as_floats(self.fleet.milli_free[self.rows, self.slots])

    @property
    def shares(self) -> bool:
        return self.shape.count == 1 and not self.shape.whole


def fragmentation(sight: Sight) -> Floats:
    """Published fragmentation gradient plus stranded devices, as the rules have it."""
    return sight.gain


def stranding(sight: Sight) -> Floats:
    """The stranded devices once more: more or less weight for them than the rules give."""
    return sight.field.stranding_gain(sight.fleet, sight.shape, sight.rows, sight.asked)


def scarcity(sight: Sight) -> Floats:
    """Price of taking a kind that others are bound to, as the rules have it."""
    return -sight.asked * sight.scarcity


def device_left(sight: Sight) -> Floats:
    """Best fit by devices: less left on the row is better."""
    return -LEFT_SCALE * (sight.total - sight.asked)


def cpu_left(sight: Sight) -> Floats:
    """Best fit by processors, counted as the device milli that the expected demand would use with them."""
    left = sight.cpu - sight.shape.cpu_milli
    return -LEFT_SCALE * sight.field.device_milli_per_cpu_milli * left


def evenness(sight: Sight) -> Floats:
    """How much nearer the free shares of devices and of processors come to each other."""
    capacity, cpu_capacity = np.maximum(sight.capacity, 1.0), np.maximum(sight.cpu_capacity, 1.0)
    total, cpu = sight.total, sight.cpu
    before = np.abs(total / capacity - cpu / cpu_capacity)
    after = np.abs((total - sight.asked) / capacity - (cpu - sight.shape.cpu_milli) / cpu_capacity)
    return WHOLE_MILLI * (before - after)


def breaks_device(sight: Sight) -> Floats:
    """An idle device would be shared from now on."""
    return -STEP_MILLI * as_floats((sight.device_before == WHOLE_MILLI) & sight.shares)


def fits_exactly(sight: Sight) -> Floats:
    """The shared device would be full."""
    return STEP_MILLI * as_floats((sight.device_before == sight.asked) & sight.shares)


def opens_row(sight: Sight) -> Floats:
    """All devices of the row are idle now."""
    capacity = sight.capacity
    return -STEP_MILLI * as_floats((sight.total >= capacity) & (capacity > 0))


def closes_row(sight: Sight) -> Floats:
    """No device milli would be left on the row."""
    return STEP_MILLI * as_floats((sight.total <= sight.asked) & (sight.capacity > 0))


FEATURES: Mapping[str, Callable[[Sight], Floats]] = {
    "fragmentation": fragmentation,
    "stranding": stranding,
    "scarcity": scarcity,
    "device_left": device_left,
    "cpu_left": cpu_left,
    "evenness": evenness,
    "breaks_device": breaks_device,
    "fits_exactly": fits_exactly,
    "opens_row": opens_row,
    "closes_row": closes_row,
}
