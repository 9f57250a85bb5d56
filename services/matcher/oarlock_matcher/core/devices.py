"""What a fleet is made of: nodes, devices, and the model a device is an instance of.

Nothing here knows of tasks. Quantities are SI integers; an absent fact is `None`, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

WHOLE_MILLI = 1000
"""Compute share of one whole device."""


class Health(StrEnum):
    """What telemetry says of a device; only `OK` devices receive work."""

    OK = "ok"
    DEGRADED = "degraded"
    FAILED = "failed"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class DeviceModel:
    """Everything that two devices of one make have in common, so that filters look at a make once.

    `*_flops` are peak FLOP/s; `None` means unknown or unsupported. `precisions` is the set a vendor supports
    (`None`: unknown, which admits). `unsupported_kernels` lists framework kernels without an implementation there.
    `link` names the fast interconnect (`nvlink`, `hccs`, `pcie`); `price_per_hour` has no currency of its own.
    `tdp_watts`: thermal design power, what the device draws at most.
    """

    kind: str
    vendor: str
    memory_bytes: int
    fp32_flops: float | None = None
    fp16_flops: float | None = None
    bf16_flops: float | None = None
    bandwidth_bytes_per_second: float | None = None
    link: str | None = None
    price_per_hour: float | None = None
    tdp_watts: float | None = None
    domestic: bool = False
    precisions: frozenset[str] | None = None
    unsupported_kernels: frozenset[str] = frozenset()
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator, by its vendor's UUID.

    `usable_bytes` is what a task could take on an idle device (memory less the driver's own share); `None` means the
    whole `model.memory_bytes`. `foreign_bytes` is memory held by processes that are not ours. Devices with the same
    `link_group` on one node reach each other over `model.link`.
    """

    uid: str
    node: str
    model: DeviceModel
    usable_bytes: int | None = None
    foreign_bytes: int = 0
    health: Health = Health.OK
    cordoned: bool = False
    link_group: str | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One host. `cpu_milli` and `memory_bytes` are what tasks may use, `None` when unknown (then not limited)."""

    name: str
    site: str
    cpu_milli: int | None = None
    memory_bytes: int | None = None
    devices: tuple[Device, ...] = ()
    draining: bool = False


@dataclass(frozen=True, slots=True)
class Share:
    """What one placement holds on one device; `exclusive` forbids any other holder.

    `busy_milli`: predicted share of the time in which the device computes for it alone, `None` when unknown.
    """

    device_uid: str
    node: str
    bytes: int
    milli: int
    exclusive: bool
    busy_milli: int | None = None


@dataclass(frozen=True, slots=True)
class NodeShare:
    """Processor and memory that one placement holds on one node."""

    node: str
    cpu_milli: int
    memory_bytes: int
