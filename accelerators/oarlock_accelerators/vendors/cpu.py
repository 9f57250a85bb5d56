"""This machine's processor and memory as one device, so that the whole loop is real on any machine.

Memory is the machine's, or the control group's where one limits us. Utilisation is the share of all processors that
was busy since the last sample, so the first sample has none. The resident size of a process counts pages that it
shares with others in full, as ``ps`` does.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from oarlock_accelerators.cgroups import MemoryGroup, memory_group
from oarlock_accelerators.handover import ContainerHandover, HandoverError, ProcessHandover
from oarlock_accelerators.machine import machine_id
from oarlock_accelerators.model import Device, DeviceSample, Health, Inventory, Kind, ProcessMemory, Snapshot
from oarlock_accelerators.vendor import Vendor

_CPU = Kind(
    name="CPU",
    vendor="cpu",
    memory_bytes=None,
    aliases=("host", "processor", "x86", "x86_64", "arm64"),
    bf16_supported=True,
    context_bytes=0,
    context_source="there is no driver context on the host",
    operators="everything",
    source="measured on the machine itself",
    notes="memory is the machine's; peak rates are not known in advance",
)

_PACKAGE_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "acpitz")


class CpuVendor(Vendor):
    """The one device every machine has."""

    name = "cpu"
    title = "this machine's CPU"
    words = ()
    kinds = (_CPU,)
    paddle_device_type = "cpu"
    torch_device_type = "cpu"

    def __init__(self, group: Callable[[], MemoryGroup | None] = memory_group, uid: str | None = None) -> None:
        """Take the control-group reader and identity from outside, for tests."""
        self._group = group
        self._uid = uid or f"CPU-{machine_id()}"
        self._last: tuple[float, float] | None = None

    def probe(self) -> Inventory:
        """Always exactly one device."""
        total, _ = self._memory()
        return Inventory(
            self.name,
            (
                Device(
                    uid=self._uid,
                    vendor=self.name,
                    name=_model_name(),
                    kind=_CPU,
                    total_bytes=total,
                    usable_bytes=total,
                    index=0,
                ),
            ),
        )

    def sample(self) -> Snapshot:
        """Memory, load and temperature of the machine, and the resident size of every process we may see."""
        total, used = self._memory()
        reasons = {
            "utilization_ratio": "the first sample only starts the interval",
            "temperature_celsius": "this machine shows no processor temperature",
            "power_watts": "power is not measured on the host",
            "error_count": "memory errors are not counted on the host",
            "used_bytes": "the control group's usage cannot be read",
        }
        sample = DeviceSample.of(
            uid=self._uid,
            vendor=self.name,
            used_bytes=used,
            total_bytes=total,
            utilization_ratio=self._utilization(),
            temperature_celsius=_temperature(),
            health=Health.OK,
            why="not available",
            reasons=reasons,
        )
        return Snapshot(self.name, (sample,), tuple(self._processes()))

    def process_tree_bytes(self, pid: int) -> int | None:
        """Resident bytes of a process and all its descendants; ``None`` when it is gone."""
        try:
            root = _psutil().Process(pid)
            total = root.memory_info().rss
            children = root.children(recursive=True)
        except _psutil().Error:
            return None
        return int(total + sum(filter(None, map(_resident, children))))

    def container(self, devices: Sequence[Device]) -> ContainerHandover:
        """Nothing to hand over: every container has a processor. Accelerators of the host stay hidden."""
        _only_one(devices)
        return ContainerHandover(environment={"NVIDIA_VISIBLE_DEVICES": "void"})

    def process(self, devices: Sequence[Device]) -> ProcessHandover:
        """Hide accelerators that a framework would otherwise pick by itself."""
        _only_one(devices)
        return ProcessHandover({"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""})

    def _memory(self) -> tuple[int, int | None]:
        machine = _psutil().virtual_memory()
        group = self._group()
        if group is not None and group.limit_bytes < machine.total:
            return group.limit_bytes, group.used_bytes
        return int(machine.total), int(machine.total - machine.available)

    def _utilization(self) -> float | None:
        times = _psutil().cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        total = sum(times[:8])  # guest time is inside user time
        last, self._last = self._last, (total, idle)
        if last is None or total <= last[0]:
            return None
        return float(min(1.0, max(0.0, 1 - (idle - last[1]) / (total - last[0]))))

    def _processes(self) -> Iterator[ProcessMemory]:
        for process in _psutil().process_iter():
            resident = _resident(process)
            if resident:  # kernel threads have no memory of their own
                yield ProcessMemory(self._uid, process.pid, resident)


def _psutil() -> ModuleType:
    """Imported where a sample is taken: who asks the catalogue alone need not wait for it."""
    import psutil  # noqa: PLC0415

    return psutil


def _resident(process: Any) -> int | None:
    try:
        return int(process.memory_info().rss)
    except _psutil().Error:
        return None


def _temperature() -> float | None:
    read = getattr(_psutil(), "sensors_temperatures", None)
    sensors = read() if read is not None else {}
    for chip in _PACKAGE_SENSORS:
        values = [s.current for s in sensors.get(chip, ()) if s.current and s.current > 0]
        if values:
            return float(max(values))
    return None


def _model_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    try:
        with cpuinfo.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.lower().startswith("model name"):
                    return line.partition(":")[2].strip()[:200]
    except OSError:
        pass
    return platform.processor() or platform.machine() or "CPU"


def _only_one(devices: Sequence[Device]) -> None:
    if len(devices) != 1:
        raise HandoverError(f"a machine is one CPU device, but {len(devices)} were asked for")


VENDOR = CpuVendor()
