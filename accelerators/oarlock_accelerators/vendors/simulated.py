"""Devices that exist only in a fleet file. Everything they report is marked as simulated.

A sample follows what the caller says is placed on a device; there is no randomness and no hidden state. Power is the
straight line between an idle share and the kind's rated power at the load's utilisation, temperature a straight line
too: plausible pictures for a dashboard, not measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from oarlock_accelerators.fleet import Fleet
from oarlock_accelerators.handover import ContainerHandover, HandoverError, ProcessHandover
from oarlock_accelerators.model import Device, DeviceSample, Health, Inventory, ProcessMemory, Snapshot
from oarlock_accelerators.vendor import Vendor

_IDLE_POWER_SHARE = 0.18
_IDLE_CELSIUS = 32.0
_BUSY_RISE_CELSIUS = 40.0


@dataclass(frozen=True, slots=True)
class SimulatedLoad:
    """What one run does on a simulated device."""

    used_bytes: int
    utilization_ratio: float
    """0.0 to 1.0, of this run alone."""
    pid: int | None = None
    """The process that stands for the run, when there is one."""


Loads = Callable[[], Mapping[str, Sequence[SimulatedLoad]]]
"""Gives the loads on each device id, at the time of the call."""


def _nothing_placed() -> Mapping[str, Sequence[SimulatedLoad]]:
    return {}


class SimulatedVendor(Vendor):
    """The devices of a fleet file, loaded as the caller says."""

    name = "simulated"
    title = "simulated fleet"
    kinds = ()

    def __init__(self, fleet: Fleet | None = None, loads: Loads = _nothing_placed) -> None:
        """Without a fleet there are no devices, and the probe says so."""
        self._fleet = fleet
        self._loads = loads

    def probe(self) -> Inventory:
        """All devices of the fleet."""
        devices = () if self._fleet is None else self._fleet.devices
        return Inventory(self.name, devices, None if devices else "no fleet file was given")

    def sample(self) -> Snapshot:
        """One sample for each device, from the loads of this moment."""
        loads = self._loads()
        devices = self.probe().devices
        return Snapshot(
            self.name,
            tuple(simulate_sample(d, loads.get(d.uid, ())) for d in devices),
            tuple(
                ProcessMemory(d.uid, load.pid, load.used_bytes)
                for d in devices
                for load in loads.get(d.uid, ())
                if load.pid is not None
            ),
            None if devices else "no fleet file was given",
        )

    def container(self, devices: Sequence[Device]) -> ContainerHandover:
        """Simulated devices have nothing to hand over."""
        _all_simulated(devices)
        return ContainerHandover(environment=_environment(devices))

    def process(self, devices: Sequence[Device]) -> ProcessHandover:
        """Only names the devices, for the record."""
        _all_simulated(devices)
        return ProcessHandover(_environment(devices))


def simulate_sample(device: Device, loads: Sequence[SimulatedLoad]) -> DeviceSample:
    """What ``device`` would show with ``loads`` on it. Memory may not exceed the device's."""
    idle = 0 if device.kind is None else device.kind.idle_bytes or 0
    wanted = idle + sum(load.used_bytes for load in loads)
    used = wanted if device.total_bytes is None else min(wanted, device.total_bytes)
    busy = min(1.0, sum(load.utilization_ratio for load in loads))
    rated = None if device.kind is None else device.kind.tdp_watts
    overfull = used < wanted
    return DeviceSample.of(
        uid=device.uid,
        vendor=device.vendor,
        used_bytes=used,
        total_bytes=device.total_bytes,
        utilization_ratio=busy,
        temperature_celsius=_IDLE_CELSIUS + _BUSY_RISE_CELSIUS * busy,
        power_watts=None if rated is None else rated * (_IDLE_POWER_SHARE + (1 - _IDLE_POWER_SHARE) * busy),
        error_count=0,
        health=Health.DEGRADED if overfull else Health.OK,
        health_reason="simulated loads need more memory than the device has" if overfull else None,
        simulated=True,
        why="no rated figure of this kind is known",
    )


def _environment(devices: Sequence[Device]) -> dict[str, str]:
    return {"OARLOCK_SIMULATED_DEVICES": ",".join(device.uid for device in devices)}


def _all_simulated(devices: Sequence[Device]) -> None:
    real = [device.uid for device in devices if not device.simulated]
    if real or not devices:
        raise HandoverError(f"these are not simulated devices: {', '.join(real) or 'none given'}")


VENDOR = SimulatedVendor()
