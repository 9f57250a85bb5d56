"""The part that vendors read through a command-line tool have in common: from parsed rows to devices and samples.

A vendor's file parses text into rows; here rows get their stable ids, missing values their reasons, and devices that
were there before and are missing now are reported as lost.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar

from oarlock_accelerators.catalog import find_kind
from oarlock_accelerators.handover import (
    ContainerHandover,
    DeviceNode,
    HandoverError,
    Mount,
    ProcessHandover,
    comma,
    indices,
    minors,
    refuse_simulated,
)
from oarlock_accelerators.machine import machine_id
from oarlock_accelerators.model import Device, DeviceSample, Health, Inventory, ProcessMemory, Snapshot
from oarlock_accelerators.tool import Run, ToolError, run_tool
from oarlock_accelerators.vendor import Vendor


@dataclass(frozen=True, slots=True)
class Row:
    """What a tool shows of one device; ``None`` is whatever it does not show."""

    slot: str
    """What joins the outputs of several commands: the PCI bus id where the tool prints it, else its own number."""
    index: int | None = None
    name: str | None = None
    uid: str | None = None
    pci_bus_id: str | None = None
    minor: int | None = None
    used_bytes: int | None = None
    total_bytes: int | None = None
    utilization_ratio: float | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None
    error_count: int | None = None
    health: Health | None = None
    """``None``: the tool has no health field; judged by the values that are missing."""
    health_reason: str | None = None
    driver_version: str | None = None
    processes: tuple[tuple[int, int | None], ...] = ()
    """Process id and its bytes on this device."""


def join(rows: Iterable[Row], more: Iterable[Row]) -> tuple[Row, ...]:
    """``rows`` with their gaps filled from the rows of the same slot in ``more``."""
    extra = {row.slot: row for row in more}
    return tuple(_fill(row, extra[row.slot]) if row.slot in extra else row for row in rows)


def _fill(row: Row, other: Row) -> Row:
    gaps = {
        f.name: getattr(other, f.name) for f in fields(Row) if getattr(row, f.name) in (None, ()) and f.name != "slot"
    }
    return replace(row, **gaps)


def attach(rows: Iterable[Row], processes: Mapping[str, Sequence[tuple[int, int | None]]]) -> tuple[Row, ...]:
    """``rows`` with the processes listed under their slot."""
    return tuple(replace(row, processes=tuple(processes.get(row.slot, ()))) for row in rows)


class ToolVendor(Vendor):
    """A vendor whose devices are read by running its tool."""

    tool: ClassVar[str]
    """The tool's name, for messages."""
    reports: ClassVar[frozenset[str]] = frozenset(
        {"used_bytes", "utilization_ratio", "temperature_celsius", "power_watts"}
    )
    """What the tool shows of a sound device. Two of these missing means the device does not answer."""

    process_variable: ClassVar[str]
    """Limits a process to the devices whose indices it lists."""
    process_unset: ClassVar[tuple[str, ...]] = ()
    """Variables that would overrule ``process_variable`` or renumber its result."""
    container_variable: ClassVar[str | None] = None
    """Read by the vendor's container runtime; it does no harm without that runtime."""
    container_runtime: ClassVar[str | None] = None
    cdi_kind: ClassVar[str | None] = None
    kubernetes_resources: ClassVar[tuple[tuple[str, str], ...]]
    """Part of a device's name and the resource its plug-in offers such devices under; the first that fits counts."""
    device_nodes: ClassVar[tuple[str, ...]]
    """Nodes of one device: ``{minor}`` and ``{bus}`` are filled in."""
    node_number_differs: ClassVar[bool] = False
    """Whether the tool's index is known to differ from the node's number, so that it cannot stand in for it."""
    optional_device_nodes: ClassVar[tuple[str, ...]] = ()
    shared_nodes: ClassVar[tuple[str, ...]] = ()
    """Nodes every container with a device of this vendor needs."""
    optional_shared_nodes: ClassVar[tuple[str, ...]] = ()
    driver_mounts: ClassVar[tuple[str, ...]] = ()
    optional_mounts: ClassVar[tuple[str, ...]] = ()
    groups: ClassVar[tuple[str, ...]] = ()
    security_options: ClassVar[tuple[str, ...]] = ()

    def __init__(self, run: Run = run_tool) -> None:
        """Take the runner from outside, so that recorded output can stand in for a machine with the device."""
        self._run = run
        self._known: dict[str, Device] = {}
        self._uid_of_slot: dict[str, str] = {}

    @abstractmethod
    def read(self) -> Sequence[Row]:
        """Run the tool and parse it.

        Raises:
            ToolError: the tool is missing or gave no answer.
        """

    def identify(self) -> Sequence[Row]:
        """Like ``read``, with stable ids and node numbers where those take further commands.

        Raises:
            ToolError: the tool is missing or gave no answer.
        """
        return self.read()

    def container(self, devices: Sequence[Device]) -> ContainerHandover:
        """The nodes, mounts and settings that the vendor's own plug-ins pass, and no more."""
        refuse_simulated(devices)
        unsure = [device.uid for device in devices if self.node_number_differs and device.minor is None]
        if unsure:
            raise HandoverError(
                f"{self.tool} does not tell the device node of {', '.join(unsure)}; its index may differ"
            )
        numbers = minors(devices)
        resources: dict[str, int] = {}
        for device in devices:
            resource = next(name for part, name in self.kubernetes_resources if part in device.name)
            resources[resource] = resources.get(resource, 0) + 1
        environment = {} if self.container_variable is None else {self.container_variable: comma(numbers)}
        return ContainerHandover(
            device_nodes=(
                *self._nodes(self.device_nodes, devices, numbers, required=True),
                *self._nodes(self.optional_device_nodes, devices, numbers, required=False),
                *(DeviceNode(path) for path in self.shared_nodes),
                *(DeviceNode(path, required=False) for path in self.optional_shared_nodes),
            ),
            mounts=(
                *(Mount(path) for path in self.driver_mounts),
                *(Mount(path, required=False) for path in self.optional_mounts),
            ),
            group_add=self.groups,
            security_options=self.security_options,
            environment={**environment, **self._paddle_environment()},
            runtime=self.container_runtime,
            cdi_names=() if self.cdi_kind is None else tuple(f"{self.cdi_kind}={number}" for number in numbers),
            kubernetes_resources=resources,
        )

    def process(self, devices: Sequence[Device]) -> ProcessHandover:
        """The vendor's visible-device variable, by index: it knows nothing better."""
        refuse_simulated(devices)
        return ProcessHandover(
            {self.process_variable: comma(indices(devices)), **self._paddle_environment()}, self.process_unset
        )

    def _paddle_environment(self) -> dict[str, str]:
        if self.paddle_custom_device and self.paddle_device_type is not None:
            return {"PADDLE_XCCL_BACKEND": self.paddle_device_type}
        return {}

    @staticmethod
    def _nodes(
        templates: Iterable[str], devices: Sequence[Device], numbers: Sequence[int], *, required: bool
    ) -> Iterator[DeviceNode]:
        for template in templates:
            for device, number in zip(devices, numbers, strict=True):
                if "{bus}" in template and device.pci_bus_id is None:
                    raise HandoverError(f"{device.uid} has no PCI bus id, so its node under /dev/dri cannot be told")
                yield DeviceNode(template.format(minor=number, bus=device.pci_bus_id), required)

    def probe(self) -> Inventory:
        """Which devices the tool lists, with their stable ids."""
        try:
            rows = self.identify()
        except ToolError as error:
            return Inventory(self.name, (), str(error))
        problems: list[str] = []
        devices = []
        for row in rows:
            uid = self._identify(row)
            if uid is None:
                problems.append(f"{self.tool} shows a device ({row.slot}) without an id or bus address")
                continue
            self._uid_of_slot[row.slot] = uid
            # a device that is failing keeps what was known of it while it was sound
            device = self._device(row, uid)
            before = self._known.get(uid)
            self._known[uid] = device if before is None or row.name is not None else before
            devices.append(self._known[uid])
        reason = None if devices else f"{self.tool} lists no device"
        return Inventory(self.name, tuple(devices), reason, tuple(problems))

    def sample(self) -> Snapshot:
        """Read every device the tool lists; one that was seen before and is gone is reported as lost."""
        problems: tuple[str, ...] = ()
        try:
            rows = self.read()
            if any(row.uid is None and row.slot not in self._uid_of_slot for row in rows):
                problems = self.probe().problems
        except ToolError as error:
            return Snapshot(self.name, tuple(self._lost(u, str(error)) for u in self._known), reason=str(error))
        samples = []
        processes = []
        for row in rows:
            uid = row.uid or self._uid_of_slot.get(row.slot)
            if uid is None:
                continue
            samples.append(self._sample(row, uid))
            processes += [self._process(uid, pid, used) for pid, used in row.processes]
        seen = {sample.uid for sample in samples}
        samples += [self._lost(uid, f"{self.tool} no longer lists it") for uid in self._known if uid not in seen]
        reason = None if samples else f"{self.tool} lists no device"
        return Snapshot(self.name, tuple(samples), tuple(processes), reason, problems)

    def _identify(self, row: Row) -> str | None:
        if row.uid is not None:
            return row.uid
        known = self._uid_of_slot.get(row.slot)
        if known is not None:
            return known
        return None if row.pci_bus_id is None else f"{self.name.upper()}-{machine_id()}-{row.pci_bus_id}"

    def _device(self, row: Row, uid: str) -> Device:
        name = row.name or f"unknown {self.title} device"
        return Device(
            uid=uid,
            vendor=self.name,
            name=name,
            kind=find_kind(name, memory_bytes=row.total_bytes, vendor=self.name),
            total_bytes=row.total_bytes,
            index=row.index,
            minor=row.minor,
            pci_bus_id=row.pci_bus_id,
            driver_version=row.driver_version,
        )

    def _sample(self, row: Row, uid: str) -> DeviceSample:
        health, reason = self._health(row)
        return DeviceSample.of(
            uid=uid,
            vendor=self.name,
            used_bytes=row.used_bytes,
            total_bytes=row.total_bytes,
            utilization_ratio=row.utilization_ratio,
            temperature_celsius=row.temperature_celsius,
            power_watts=row.power_watts,
            error_count=row.error_count,
            health=health,
            health_reason=reason,
            why=f"{self.tool} shows no value",
        )

    def _health(self, row: Row) -> tuple[Health, str | None]:
        if row.health is not None and row.health is not Health.OK:
            return row.health, row.health_reason
        if row.error_count:
            return Health.DEGRADED, f"{row.error_count} uncorrected memory errors"
        missing = sorted(name for name in self.reports if getattr(row, name) is None)
        if len(missing) >= 2 and row.health is None:
            return Health.UNKNOWN, f"{self.tool} shows no {', '.join(missing)}"
        return Health.OK, None

    def _lost(self, uid: str, reason: str) -> DeviceSample:
        return DeviceSample.of(
            uid=uid, vendor=self.name, health=Health.LOST, health_reason=reason, why=f"the device is lost: {reason}"
        )

    def _process(self, uid: str, pid: int, used: int | None) -> ProcessMemory:
        return ProcessMemory(uid, pid, used, None if used is not None else f"{self.tool} shows no value")
