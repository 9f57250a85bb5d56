"""Oarlock's knowledge of accelerators: one file per vendor in ``vendors``.

Here: device kinds and their names, finding and sampling devices, handing them to containers and processes, which
operators a vendor supports, and fleet files. Not here: any decision about placement, anything that talks to the bus,
and anything only one service needs.

Every vendor is discovered by listing the ``vendors`` package; nothing is registered elsewhere.
"""

from oarlock_accelerators.catalog import Resolution, find_kind, means, resolve_kind
from oarlock_accelerators.discovery import all_kinds, vendor, vendors
from oarlock_accelerators.fleet import Fleet, FleetError, FleetNode
from oarlock_accelerators.handover import (
    ContainerHandover,
    DeviceNode,
    DeviceRequest,
    HandoverError,
    Mount,
    ProcessHandover,
)
from oarlock_accelerators.model import (
    Device,
    DeviceSample,
    Health,
    Inventory,
    Kind,
    Link,
    PeakFlops,
    ProcessMemory,
    Snapshot,
)
from oarlock_accelerators.operators import OperatorTable, operator_table, supported_ops
from oarlock_accelerators.vendor import Vendor

__all__ = [
    "ContainerHandover",
    "Device",
    "DeviceNode",
    "DeviceRequest",
    "DeviceSample",
    "Fleet",
    "FleetError",
    "FleetNode",
    "HandoverError",
    "Health",
    "Inventory",
    "Kind",
    "Link",
    "Mount",
    "OperatorTable",
    "PeakFlops",
    "ProcessHandover",
    "ProcessMemory",
    "Resolution",
    "Snapshot",
    "Vendor",
    "all_kinds",
    "find_kind",
    "means",
    "operator_table",
    "resolve_kind",
    "supported_ops",
    "vendor",
    "vendors",
]
