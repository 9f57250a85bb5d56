"""What is published of a device: its inventory entry and its sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from oarlock_accelerators import Device, Health, means
from oarlock_accelerators import DeviceSample as Reading
from oarlock_schemas import DeviceSample, DeviceState, ProcessSample
from oarlock_telemetry.ports import Node

_PROCESSES_SHOWN = 256


def device_state(
    node: Node, device: Device, reading: Reading | None, runtime: str, at: str, prices: Mapping[str, float]
) -> DeviceState | None:
    """The inventory entry; None for a device whose memory is not known, since nothing can be planned on it."""
    total = device.total_bytes or (reading.total_bytes if reading else None)
    if not total:
        return None
    health = reading.health if reading else Health.UNKNOWN
    # A vendor's tool that says nothing of health does not make a device unusable; one that is lost does.
    healthy = health in (Health.OK, Health.UNKNOWN)
    kind = device.kind
    chosen: Any = runtime
    return DeviceState(
        uid=device.uid,
        site=node.site,
        node=node.name,
        kind=kind.name if kind else device.name,
        vendor=device.vendor,
        reported_name=device.name,
        index=device.index,
        memory_bytes=total,
        used_bytes=reading.used_bytes if reading else None,
        utilization_ratio=reading.utilization_ratio if reading else None,
        healthy=healthy,
        health_reason=None if healthy or reading is None else reading.health_reason,
        link_group=f"{node.name}-{kind.link.kind}" if kind and kind.link.is_fabric else None,
        price_per_hour=_price(device, prices),
        node_cpu_milli=node.cpu_milli,
        node_memory_bytes=node.memory_bytes,
        runtime=chosen,
        simulated=device.simulated,
        seen_at=at,
    )


def _price(device: Device, prices: Mapping[str, float]) -> float | None:
    """A fleet file's price; else that of the kind by its own name, or by one that means it; None when none does."""
    if device.price_per_hour is not None or device.kind is None:
        return device.price_per_hour
    if device.kind.name in prices:
        return prices[device.kind.name]
    return next((price for name, price in prices.items() if means(name, device.kind)), None)


def device_sample(device: Device, reading: Reading, processes: Iterable[ProcessSample], at: str) -> DeviceSample:
    """The sample as it is published."""
    return DeviceSample(
        uid=device.uid,
        kind=device.kind.name if device.kind else device.name,
        vendor=device.vendor,
        at=at,
        total_bytes=reading.total_bytes,
        used_bytes=reading.used_bytes,
        utilization_ratio=reading.utilization_ratio,
        temperature_celsius=reading.temperature_celsius,
        power_watts=reading.power_watts,
        processes=list(processes)[:_PROCESSES_SHOWN],
        errors=faults(reading),
        absent=dict(reading.absent),
        simulated=reading.simulated,
    )


def faults(reading: Reading) -> list[str]:
    """What is wrong with the device now."""
    if reading.health in (Health.LOST, Health.DEGRADED):
        return [reading.health_reason or str(reading.health)]
    return []
