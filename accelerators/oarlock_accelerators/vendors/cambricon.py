"""Cambricon MLUs, read through ``cnmon``.

``cnmon info`` tells everything with labels. Its JSON form is not used: it is written to a file in the working
directory and lacks the power.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oarlock_accelerators.model import Health, Kind
from oarlock_accelerators.readings import integer, number, ratio, size, text
from oarlock_accelerators.specs import kind
from oarlock_accelerators.tool_vendor import Row, ToolVendor


def _row(name: str, memory_mib: int, **columns: Any) -> Kind:
    return kind(name, "cambricon", memory_mib, domestic=True, operators="mlu", **columns)


# fmt: off
_KINDS = (
    _row("MLU370-X8", 23374, families=("MLU370",), aliases=("MLU370-X8",),
        bandwidth_gb=307.2, bf16=True, link="MLU-Link",
        link_gb=200, watts=250, year=2022, idle_mib=(0, "Paddle docs cnmon sample"),
        source="data sheet (recalled); Paddle docs",
        notes="one of two chips of a board; the board figures are fp32 24 and fp16 96 TFLOPS"),
    _row("MLU590", 98304, aliases=("MLU590", "MLU590-M9", "MLU590-H8"), bandwidth_gb=2760,
        tflops=(None, None, 314, 314), bf16=True, link="MLU-Link", link_gb=200, year=2023,
        source="community table, low confidence; memory from cnmon reports",
        notes="only the memory is confirmed by tool output"),
)
# fmt: on


def parse_info(output: str) -> tuple[Row, ...]:
    """The devices and processes of ``cnmon info``: indented sections of ``label : value`` for each card."""
    rows: list[Row] = []
    card: int | None = None
    values: dict[str, str] = {}
    processes: list[tuple[int, int | None]] = []
    section = ""

    def finish() -> None:
        if card is not None:
            rows.append(_row_of(card, values, processes))

    for line in output.splitlines():
        if line.startswith("Card ") and (found := integer(line[5:])) is not None:
            finish()
            card, values, processes, section = found, {}, [], ""
            continue
        label, separator, value = (part.strip() for part in line.partition(":"))
        if not separator:
            continue
        depth = len(line) - len(line.lstrip())
        if depth <= 4:
            section = label
            values[label] = value
        elif section == "Processes":
            if label == "PID" and (pid := integer(value)) is not None:
                processes.append((pid, None))
            elif label == "MLU Memory Usage" and processes:
                processes[-1] = (processes[-1][0], size(value))
        else:
            values[f"{section}/{label}"] = value
    finish()
    return tuple(rows)


def _row_of(card: int, values: dict[str, str], processes: list[tuple[int, int | None]]) -> Row:
    address = _address(values)
    state = text(values.get("Health State/Device"))
    health = Health.UNKNOWN if state is None else Health.OK if state.lower() == "good" else Health.DEGRADED
    return Row(
        slot=address or f"card {card}",
        index=card,
        name=text(values.get("Product Name")),
        uid=_uid(values.get("UUID")),
        pci_bus_id=address,
        used_bytes=size(values.get("Physical Memory Usage/Used")),
        total_bytes=size(values.get("Physical Memory Usage/Total")),
        utilization_ratio=ratio(values.get("Utilization/MLU Average")),
        temperature_celsius=number(values.get("Temperature/Chip")),
        power_watts=number(values.get("Power/Usage")),
        health=health,
        health_reason=None if health is Health.OK else f"cnmon says {state or 'nothing'} of the device's health",
        driver_version=text(values.get("Driver")),
        processes=tuple(processes),
    )


def _uid(cell: str | None) -> str | None:
    uuid = text(cell)
    return None if uuid is None else f"MLU-{uuid}"


def _address(values: dict[str, str]) -> str | None:
    parts = [values.get(f"PCI/{label}") for label in ("Domain ID", "Bus num", "Device", "Function")]
    if any(text(part) is None for part in parts):
        return None
    domain, number_of_bus, device, function = parts
    return f"{domain}:{number_of_bus}:{device}.{function}".lower()


class CambriconVendor(ToolVendor):
    """Cambricon MLUs of this machine."""

    name = "cambricon"
    title = "Cambricon"
    words = ("cambricon",)
    kinds = _KINDS
    domestic = True
    paddle_device_type = "mlu"
    paddle_custom_device = True
    torch_device_type = "mlu"
    tool = "cnmon"
    process_variable = "MLU_VISIBLE_DEVICES"
    container_variable = "CAMBRICON_VISIBLE_DEVICES"
    container_runtime = "cambricon"
    cdi_kind = "cambricon.com/mlu"
    kubernetes_resources = (("", "cambricon.com/mlu"),)
    device_nodes = ("/dev/cambricon_dev{minor}",)
    optional_device_nodes = ("/dev/cambricon_ipcm{minor}",)
    shared_nodes = ("/dev/cambricon_ctl",)
    optional_mounts = ("/usr/bin/cnmon",)

    def read(self) -> Sequence[Row]:
        """One command tells everything."""
        return parse_info(self._run(("cnmon", "info")))


VENDOR = CambriconVendor()
