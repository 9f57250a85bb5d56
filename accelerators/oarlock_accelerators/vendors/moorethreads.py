"""Moore Threads GPUs, read through ``mthreads-gmi -q --json``, or its text form where that release has no JSON.

A card whose memory total is well below its kind's is reported as degraded: a misconfigured IOMMU causes that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from oarlock_accelerators.catalog import find_kind
from oarlock_accelerators.model import Health, Kind
from oarlock_accelerators.readings import bus_id, integer, number, ratio, size, text
from oarlock_accelerators.specs import kind
from oarlock_accelerators.tool import ToolError, ToolMissing
from oarlock_accelerators.tool_vendor import Row, ToolVendor


def _row(name: str, memory_mib: int, **columns: Any) -> Kind:
    return kind(name, "moorethreads", memory_mib, domestic=True, **columns)


# fmt: off
_KINDS = (
    _row("MTT S4000", 49152, aliases=("MTT S4000",), bandwidth_gb=768, tflops=(25, 50, 100, 100), bf16=True,
        link="MTLink", link_gb=240, watts=450, year=2023, idle_mib=(4, "public mthreads-gmi sample"),
        source="data sheet (recalled); community table",
        notes="shows 32768 MiB when the IOMMU is misconfigured"),
    _row("MTT S5000", 81920, aliases=("MTT S5000",), bf16=True, link="MTLink",
        source="host notes (80 GB per card); memory nominal"),
    _row("MTT S80", 16384, aliases=("MTT S80",), bandwidth_gb=448, tflops=(14.4, None, None, None),
        link="PCIe 5.0 x16", watts=255, year=2022, idle_mib=(2, "public mthreads-gmi sample"),
        source="data sheet (recalled)"),
)
# fmt: on


_SHORT_TOTAL = 0.9
_CARD = re.compile(r"^GPU\s*(\d+)\s+(\S+)")


def parse_json(output: str) -> tuple[Row, ...]:
    """The GPUs of ``mthreads-gmi -q --json``. Some keys carry a trailing space."""
    try:
        data = json.loads(output)
    except (ValueError, RecursionError) as error:
        raise ToolError(f"mthreads-gmi's JSON cannot be read: {error}") from error
    data = _stripped(data)
    gpus = data.get("GPU") if isinstance(data, dict) else None
    version = text(data.get("Driver Version")) if isinstance(data, dict) else None
    rows = []
    for gpu in gpus if isinstance(gpus, list) else ():
        if not isinstance(gpu, dict):
            continue
        flat = {"Index": gpu.get("Index"), "Bus Id": _in(gpu, "PCI", "Bus Id")}
        for section in ("FB Memory Usage", "Utilization", "Temperature", "Power Readings"):
            inner = gpu.get(section)
            if isinstance(inner, dict):
                flat |= {f"{section}/{key}": value for key, value in inner.items()}
        flat |= {key: gpu.get(key) for key in ("Product Name", "GPU UUID")}
        listed = gpu.get("Processes")
        processes = [
            (pid, size(entry.get("GPU Memory")))
            for entry in (listed if isinstance(listed, list) else ())
            if isinstance(entry, dict) and (pid := integer(entry.get("Process ID"))) is not None
        ]
        rows.append(_row_of(flat, processes, version))
    return tuple(rows)


def parse_text(output: str) -> tuple[Row, ...]:
    """The GPUs of ``mthreads-gmi -q``: indented sections of ``label : value``."""
    rows: list[Row] = []
    flat: dict[str, object] = {}
    processes: list[tuple[int, int | None]] = []
    section, version = "", None

    def finish() -> None:
        if flat:
            rows.append(_row_of(flat, processes, version))

    for line in output.splitlines():
        card = _CARD.match(line)
        label, separator, value = (part.strip() for part in line.partition(" :"))
        if card is not None:
            finish()
            flat, processes, section = {"Index": card.group(1), "Bus Id": card.group(2)}, [], ""
        elif label == "Driver Version":
            version = text(value)
        elif not separator:
            section = label
        elif label == "Process ID" and (pid := integer(value)) is not None:
            processes.append((pid, None))
        elif label == "GPU Memory" and processes:
            processes[-1] = (processes[-1][0], size(value))
        elif flat:
            flat[label if label in ("Product Name", "GPU UUID") else f"{section}/{label}"] = value
    finish()
    return tuple(rows)


def _row_of(flat: dict[str, object], processes: Sequence[tuple[int, int | None]], version: str | None) -> Row:
    address = bus_id(str(flat.get("Bus Id")))
    return Row(
        slot=address or f"gpu {flat.get('Index')}",
        index=integer(flat.get("Index")),
        name=text(flat.get("Product Name")),
        uid=text(flat.get("GPU UUID")),
        pci_bus_id=address,
        used_bytes=size(flat.get("FB Memory Usage/Used")),
        total_bytes=size(flat.get("FB Memory Usage/Total")),
        utilization_ratio=ratio(flat.get("Utilization/Gpu")),
        temperature_celsius=number(flat.get("Temperature/GPU Current Temp")),
        power_watts=number(flat.get("Power Readings/Power Draw")),
        driver_version=version,
        processes=tuple(processes),
    )


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key).strip(): _stripped(inner) for key, inner in value.items()}
    return [_stripped(inner) for inner in value] if isinstance(value, list) else value


def _in(gpu: dict[str, Any], section: str, key: str) -> Any:
    inner = gpu.get(section)
    return inner.get(key) if isinstance(inner, dict) else None


class MooreThreadsVendor(ToolVendor):
    """Moore Threads GPUs of this machine."""

    name = "moorethreads"
    title = "Moore Threads"
    words = ("moore", "threads", "moorethreads", "mthreads", "mtt")
    kinds = _KINDS
    domestic = True
    torch_device_type = "musa"
    tool = "mthreads-gmi"
    process_variable = "MUSA_VISIBLE_DEVICES"
    container_variable = "MTHREADS_VISIBLE_DEVICES"
    container_runtime = "mthreads"
    cdi_kind = "mthreads.com/gpu"
    kubernetes_resources = (("", "mthreads.com/gpu"),)
    device_nodes = ("/dev/mtgpu.{minor}",)
    optional_device_nodes = ("/dev/dri/by-path/pci-{bus}-render", "/dev/dri/by-path/pci-{bus}-card")
    optional_mounts = ("/usr/bin/mthreads-gmi",)

    def read(self) -> Sequence[Row]:
        """One command tells everything."""
        try:
            rows = parse_json(self._run(("mthreads-gmi", "-q", "--json")))
        except ToolMissing:
            raise
        except ToolError:
            rows = parse_text(self._run(("mthreads-gmi", "-q")))
        return tuple(_checked(row) for row in rows)


def _checked(row: Row) -> Row:
    known = None if row.name is None else find_kind(row.name, vendor=MooreThreadsVendor.name)
    if known is None or known.memory_bytes is None or row.total_bytes is None:
        return row
    if row.total_bytes >= known.memory_bytes * _SHORT_TOTAL:
        return row
    reason = f"shows {row.total_bytes} of {known.memory_bytes} bytes; check the IOMMU settings of this host"
    return replace(row, health=Health.DEGRADED, health_reason=reason)


VENDOR = MooreThreadsVendor()
