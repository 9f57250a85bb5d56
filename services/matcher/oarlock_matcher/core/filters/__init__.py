"""Filters: each rules out rows or devices for one cause, and can say why in words.

A person is told in the order in which they stand here: the first filter that rules a device out names its reason.
What does not belong: preferences (those are scores) and anything about other tasks (that is the queue's).
"""

from oarlock_matcher.core.filters.availability import DrainFilter, HealthFilter
from oarlock_matcher.core.filters.base import Filter
from oarlock_matcher.core.filters.capability import (
    ForbiddenKindFilter,
    KernelFilter,
    PrecisionFilter,
    RequiredKindFilter,
    SiteFilter,
)
from oarlock_matcher.core.filters.capacity import (
    ComputeShareFilter,
    DeviceSizeFilter,
    ExclusiveFilter,
    InterferenceFilter,
    MemoryFilter,
    NodeMemoryFilter,
    NodeSizeFilter,
    ProcessorFilter,
    SharersFilter,
)

STATIC_FILTERS: tuple[Filter, ...] = (
    SiteFilter(),
    RequiredKindFilter(),
    ForbiddenKindFilter(),
    PrecisionFilter(),
    KernelFilter(),
)
"""Depend on the inventory alone: their answer for a shape is kept until the inventory changes."""

SIZE_FILTERS: tuple[Filter, ...] = (DeviceSizeFilter(), NodeSizeFilter())
"""Rule out what would be too small even when idle. Implied by the dynamic ones, so only asked when nothing fits:
a task that no device passes STATIC and SIZE filters for can never run on this fleet."""

INTERFERENCE = InterferenceFilter()
DYNAMIC_FILTERS: tuple[Filter, ...] = (
    HealthFilter(),
    DrainFilter(),
    ExclusiveFilter(),
    MemoryFilter(),
    ComputeShareFilter(),
    SharersFilter(),
    INTERFERENCE,
    ProcessorFilter(),
    NodeMemoryFilter(),
)
"""Depend on bookings and health: recomputed for touched rows."""

LASTING_FILTERS: tuple[Filter, ...] = STATIC_FILTERS + SIZE_FILTERS
"""What no waiting will change, as long as the fleet is what it is."""

__all__ = ["DYNAMIC_FILTERS", "INTERFERENCE", "LASTING_FILTERS", "SIZE_FILTERS", "STATIC_FILTERS", "Filter"]
