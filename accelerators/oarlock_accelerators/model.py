"""The plain values every vendor file speaks in: kinds, devices, samples.

All are frozen dataclasses of numbers, strings and tuples, so that a bus schema can be filled from them field by
field. Quantities are SI integers or floats with the unit in the name. An absent quantity is ``None`` and the
``absent`` mapping says why; zero always means a measured zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum

MIB = 1024**2


@dataclass(frozen=True, slots=True)
class PeakFlops:
    """Dense peak rates in floating-point operations per second; ``None`` where no published figure was found."""

    fp32_flops_per_second: float | None = None
    tf32_flops_per_second: float | None = None
    fp16_flops_per_second: float | None = None
    bf16_flops_per_second: float | None = None

    def for_precision(self, precision: str) -> float | None:
        """The rate of ``fp32``, ``tf32``, ``fp16`` or ``bf16``.

        Raises:
            KeyError: for any other precision name.
        """
        return {
            "fp32": self.fp32_flops_per_second,
            "tf32": self.tf32_flops_per_second,
            "fp16": self.fp16_flops_per_second,
            "bf16": self.bf16_flops_per_second,
        }[precision]


@dataclass(frozen=True, slots=True)
class Link:
    """How devices of one kind reach each other inside a node."""

    kind: str | None
    """For example ``NVLink 3``, ``HCCS``, ``PCIe 4.0 x16``; ``None`` when unknown."""
    bytes_per_second: float | None
    """Published total per device, both directions; ``None`` when unknown (and for plain PCIe)."""

    @property
    def is_fabric(self) -> bool:
        """Whether this is a dedicated device-to-device fabric rather than the host's PCIe."""
        return self.kind is not None and not self.kind.startswith("PCIe")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of device as its vendor sells it; per entry of the vendor's tool, not per board."""

    name: str
    vendor: str
    memory_bytes: int | None
    """What the vendor's tool reports as total; ``None`` for the CPU, whose memory is the machine's."""
    aliases: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    """Looser names people use that several kinds share (``A100``, ``910B``)."""
    arch: str | None = None
    usable_bytes: int | None = None
    """What a framework can allocate at most on an idle device; ``None`` when no figure was found."""
    memory_bandwidth_bytes_per_second: float | None = None
    peak: PeakFlops = field(default_factory=PeakFlops)
    bf16_supported: bool = False
    link: Link = field(default_factory=lambda: Link(None, None))
    tdp_watts: int | None = None
    domestic: bool = False
    """Made by a Chinese vendor, which the domestic-first preference asks for."""
    year: int | None = None
    context_bytes: int | None = None
    """Device memory one process's driver context takes before any tensor; ``None`` when no figure was found."""
    context_source: str | None = None
    idle_bytes: int | None = None
    """What the vendor's tool shows as used with nothing running; ``None`` when no figure was found."""
    idle_source: str | None = None
    operators: str | None = None
    """Name of the operator table that applies; ``None`` when none is known for this kind."""
    price_per_hour: float | None = None
    """In the fleet's currency; ``None`` unless a fleet file gives one."""
    source: str = ""
    notes: str = ""


class Health(StrEnum):
    """What is known of a device's state. Only ``OK`` invites new work."""

    OK = "ok"
    DEGRADED = "degraded"
    LOST = "lost"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Device:
    """One device of this machine (or of a simulated fleet), identified by the vendor's own stable id."""

    uid: str
    vendor: str
    name: str
    """As the vendor's tool says it."""
    kind: Kind | None
    """``None`` when the name is not in the catalogue."""
    total_bytes: int | None
    usable_bytes: int | None = None
    """``total_bytes`` less what driver and firmware keep, where the vendor tells."""
    index: int | None = None
    """Position in the vendor's tool now. May shift; only for hand-over variables that know nothing better."""
    minor: int | None = None
    """The N of the device node, where it differs from ``index``."""
    pci_bus_id: str | None = None
    parent_uid: str | None = None
    """For a slice (MIG): the physical device it is cut from."""
    slice_profile: str | None = None
    """For a slice: its profile, for example ``1g.5gb``."""
    driver_version: str | None = None
    simulated: bool = False

    @property
    def price_per_hour(self) -> float | None:
        """The price a fleet file gave for this device, or ``None``."""
        return None if self.kind is None else self.kind.price_per_hour


@dataclass(frozen=True, slots=True)
class DeviceSample:
    """One reading of one device. The caller stamps the time, so that one clock serves all vendors.

    Every ``None`` among the measured fields has its reason in ``absent`` under the field's name; the constructor
    refuses a sample that breaks this.
    """

    uid: str
    vendor: str
    used_bytes: int | None
    total_bytes: int | None
    utilization_ratio: float | None
    """0.0 to 1.0."""
    temperature_celsius: float | None
    power_watts: float | None
    error_count: int | None
    """Uncorrected memory errors since the driver started."""
    health: Health
    health_reason: str | None = None
    simulated: bool = False
    absent: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Hold the invariant between measured fields and ``absent``.

        Raises:
            ValueError: a field is ``None`` without a reason, or has both a value and a reason.
        """
        for name in MEASURED:
            if (getattr(self, name) is None) != (name in self.absent):
                raise ValueError(f"{name} of {self.uid}: exactly one of a value and a reason is needed")

    @classmethod
    def of(
        cls,
        *,
        uid: str,
        vendor: str,
        health: Health,
        why: str,
        used_bytes: int | None = None,
        total_bytes: int | None = None,
        utilization_ratio: float | None = None,
        temperature_celsius: float | None = None,
        power_watts: float | None = None,
        error_count: int | None = None,
        health_reason: str | None = None,
        simulated: bool = False,
        reasons: Mapping[str, str] | None = None,
    ) -> DeviceSample:
        """Build a sample, giving each missing field its own reason of ``reasons``, else ``why``."""
        values: dict[str, int | float | None] = {
            "used_bytes": used_bytes,
            "total_bytes": total_bytes,
            "utilization_ratio": utilization_ratio,
            "temperature_celsius": temperature_celsius,
            "power_watts": power_watts,
            "error_count": error_count,
        }
        return cls(
            uid=uid,
            vendor=vendor,
            used_bytes=used_bytes,
            total_bytes=total_bytes,
            utilization_ratio=utilization_ratio,
            temperature_celsius=temperature_celsius,
            power_watts=power_watts,
            error_count=error_count,
            health=health,
            health_reason=health_reason,
            simulated=simulated,
            absent={k: (reasons or {}).get(k, why) for k, v in values.items() if v is None},
        )


MEASURED = tuple(
    f.name
    for f in fields(DeviceSample)
    if f.name not in ("uid", "vendor", "health", "health_reason", "simulated", "absent")
)
"""The fields of a sample that carry a measurement."""


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """Device memory of one process on one device, by host process id."""

    uid: str
    pid: int
    used_bytes: int | None
    reason: str | None = None
    """Why ``used_bytes`` is ``None``; otherwise ``None``."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a probe found. No devices and no ``reason`` would be a silent failure, so one is always given."""

    vendor: str
    devices: tuple[Device, ...]
    reason: str | None = None
    """Why there are no devices, in words for a person."""
    problems: tuple[str, ...] = ()
    """Devices that are there but could not be identified."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One round of readings of one vendor's devices and of the processes on them."""

    vendor: str
    samples: tuple[DeviceSample, ...]
    processes: tuple[ProcessMemory, ...] = ()
    reason: str | None = None
    """Why there are no samples, in words for a person."""
    problems: tuple[str, ...] = ()

    def process_bytes(self, uid: str, pids: Iterable[int] | None = None) -> dict[int, int | None]:
        """Bytes per process id on the device ``uid`` (only ``pids`` when given)."""
        wanted = None if pids is None else frozenset(pids)
        return {p.pid: p.used_bytes for p in self.processes if p.uid == uid and (wanted is None or p.pid in wanted)}
