"""Kunlunxin XPUs, read through ``xpu-smi``, or through the older ``xpu_smi`` of K200, R200 and R300 hosts.

The number of a device node (/dev/xpuN) can differ from the tool's index: it is asked for card by card.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from oarlock_accelerators.framed_table import framed_devices, with_processes
from oarlock_accelerators.model import Health, Kind
from oarlock_accelerators.readings import bus_id, busy, cells, integer, ratio, size, text, used_and_total
from oarlock_accelerators.specs import kind
from oarlock_accelerators.tool import ToolError, ToolMissing
from oarlock_accelerators.tool_vendor import Row, ToolVendor, attach, join


def _row(name: str, memory_mib: int, **columns: Any) -> Kind:
    return kind(name, "kunlunxin", memory_mib, domestic=True, **columns)


# fmt: off
_KINDS = (
    _row("Kunlun K200", 16384, aliases=("K200",), bandwidth_gb=512, tflops=(16, None, 64, None),
        link="PCIe 4.0", watts=150, year=2020, source="data sheet (recalled); memory nominal",
        notes="watts and year of low confidence"),
    _row("Kunlun R200", 32768, operators="xpu_kl2", aliases=("R200", "R200-8F"),
        bandwidth_gb=512, tflops=(32, None, 128, None),
        link="PCIe 4.0", watts=150, year=2021, source="data sheet (recalled); memory nominal",
        notes="16 GB variants exist"),
    _row("Kunlun R300", 32768, operators="xpu_kl2", aliases=("R300", "R300p"),
        bandwidth_gb=512, tflops=(32, None, 128, None),
        link="OAM inter-chip link", link_gb=200, year=2021, source="data sheet (recalled); Paddle docs"),
    _row("Kunlun P800", 98304, operators="xpu_kl3", aliases=("P800 OAM", "P800", "P800 PCIe"),
        tflops=(None, None, 345, 345),
        bf16=True, link="XPU Link", watts=400, year=2024,
        idle_mib=(100, "Paddle docs xpu-smi sample (100 MiB); 0 MiB on a bare host"),
        source="Paddle docs and host inventory; fp16 is an unverified press figure (recalled)",
        notes="two groups of four cards share a fast link; fp16 is an unconfirmed press figure"),
)
# fmt: on


_PROCESS = re.compile(r"^\|\s*(\d+)\s+\S+\s+\S+\s+(\d+)\s+\S+\s+.*?(\S+)\s*\|$")
_VERSION = re.compile(r"Driver Version:\s*(\S+)")

# columns of `xpu-smi -m`, counted from 0
_BUS, _INDEX, _SERIAL = 0, 1, 2


def parse_table(output: str) -> tuple[Row, ...]:
    """The devices and processes of ``xpu-smi``. The third line of a device is its on-chip cache, not its memory."""
    rows = [
        replace(row, utilization_ratio=busy(detail[2]), error_count=integer(head[2]))
        for row, head, detail in framed_devices(output, _VERSION, head_cells=3, detail_cells=3)
    ]
    return with_processes(rows, output.partition("Processes:")[2], _PROCESS)


def parse_machine(output: str) -> tuple[Row, ...]:
    """The serial numbers of ``xpu-smi -m``. Only columns that are certain are read."""
    rows = []
    for line in output.splitlines():
        columns = line.split()
        address = bus_id(columns[_BUS]) if len(columns) > _SERIAL else None
        if address is not None:
            rows.append(Row(slot=address, index=integer(columns[_INDEX]), uid=text(columns[_SERIAL])))
    return tuple(rows)


def parse_minor(output: str) -> int | None:
    """The device node's number from ``xpu-smi -i N -q``."""
    found = re.search(r"^\s*Minor Number\s*:\s*(\d+)\s*$", output, re.MULTILINE)
    return None if found is None else int(found.group(1))


def parse_legacy(output: str) -> tuple[Row, ...]:
    """The devices and processes of ``xpu_smi``, which shows neither temperature nor power."""
    version = _VERSION.search(output)
    section = ""
    rows = []
    processes: dict[str, list[tuple[int, int | None]]] = {}
    for line in output.splitlines():
        if line.strip() in ("DEVICES", "VIDEO", "PROCESSES"):
            section = line.strip()
        row = cells(line)
        if not line.startswith("|") or (index := integer(row[0])) is None:
            continue
        if section == "DEVICES" and len(row) == 8 and (address := bus_id(row[1])) is not None:
            used, total = used_and_total(row[7])
            node = re.search(r"xpu(\d+)$", row[4])
            rows.append(
                Row(
                    slot=address,
                    index=index,
                    name=row[2],
                    uid=text(row[3]),
                    pci_bus_id=address,
                    minor=None if node is None else int(node.group(1)),
                    used_bytes=used,
                    total_bytes=total,
                    utilization_ratio=ratio(row[5]),
                    driver_version=None if version is None else version.group(1),
                )
            )
        elif section == "PROCESSES" and len(row) == 6 and (pid := integer(row[1])) is not None:
            slot = next((r.slot for r in rows if r.index == index), None)
            if slot is not None:
                processes.setdefault(slot, []).append((pid, size(row[4])))
    return attach(rows, processes)


class KunlunxinVendor(ToolVendor):
    """Kunlunxin XPUs of this machine."""

    name = "kunlunxin"
    title = "Kunlunxin"
    words = ("kunlunxin", "kunlun", "baidu")
    kinds = _KINDS
    domestic = True
    paddle_device_type = "xpu"
    tool = "xpu-smi"
    process_variable = "XPU_VISIBLE_DEVICES"
    process_unset = ("CUDA_VISIBLE_DEVICES",)
    container_variable = "CXPU_VISIBLE_DEVICES"
    container_runtime = "xpu"
    kubernetes_resources = (("", "kunlunxin.com/xpu"),)
    node_number_differs = True
    device_nodes = ("/dev/xpu{minor}",)
    shared_nodes = ("/dev/xpuctrl",)
    optional_mounts = ("/usr/local/bin/xpu-smi", "/usr/local/xpu")

    def read(self) -> Sequence[Row]:
        """``xpu-smi``, or ``xpu_smi`` where that is missing."""
        try:
            return parse_table(self._run(("xpu-smi",)))
        except ToolMissing:
            return parse_legacy(self._run(("xpu_smi",)))

    def identify(self) -> Sequence[Row]:
        """Also serial numbers and node numbers, which ``xpu_smi`` shows by itself."""
        rows = self.read()
        try:
            rows = join(rows, parse_machine(self._run(("xpu-smi", "-m"))))
        except ToolError:
            return rows
        return tuple(replace(row, minor=self._minor(row)) for row in rows)

    def _minor(self, row: Row) -> int | None:
        try:
            return parse_minor(self._run(("xpu-smi", "-i", str(row.index), "-q")))
        except ToolError:
            return None

    def _health(self, row: Row) -> tuple[Health, str | None]:
        health, reason = super()._health(row)
        legacy = row.temperature_celsius is None and row.power_watts is None and row.used_bytes is not None
        if health is Health.UNKNOWN and legacy and row.utilization_ratio is not None:
            return Health.OK, None  # xpu_smi never shows temperature and power
        return health, reason


VENDOR = KunlunxinVendor()
