"""Intel Gaudi accelerators, read through ``hl-smi``: the query for values and ids, the table for errors, processes."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import Any

from oarlock_accelerators.framed_table import with_processes
from oarlock_accelerators.model import Kind
from oarlock_accelerators.readings import blocks, bus_id, integer, number, ratio, size, text
from oarlock_accelerators.specs import kind
from oarlock_accelerators.tool import ToolError
from oarlock_accelerators.tool_vendor import Row, ToolVendor, join


def _row(name: str, memory_mib: int, **columns: Any) -> Kind:
    return kind(name, "gaudi", memory_mib, operators="intel_hpu", **columns)


# fmt: off
_KINDS = (
    _row("Gaudi 2", 98304, aliases=("HL-225", "HL-225B", "Intel Gaudi 2"), bandwidth_gb=2460,
        tflops=(None, None, None, 432), bf16=True, link="24x 100GbE RoCE", link_gb=300, watts=600,
        year=2022, idle_mib=(768, "public hl-smi output (drivers 1.12-1.20)"),
        source="data sheet (recalled); ml-engineering table 2026-08",
        notes="bf16 rate published, fp16 not"),
    _row("Gaudi 3", 131072, aliases=("HL-325L", "HL-325", "HL-328", "HL-338", "Intel Gaudi 3"),
        bandwidth_gb=3700, tflops=(229, 459, None, 1677), bf16=True, link="24x 200GbE RoCE", link_gb=600,
        watts=900, year=2024, idle_mib=(672, "lablup/all-smi fixture (driver 1.22.1)"),
        source="data sheet (recalled); ml-engineering table 2026-08",
        notes="bf16 1835 in Intel's sheet"),
)
# fmt: on


_COLUMNS = (
    "index", "uuid", "name", "driver_version", "memory.total", "memory.used", "memory.free", "power.draw",
    "power.max", "temperature.aip", "utilization.aip",
)  # fmt: skip
_QUERY = ("hl-smi", "-Q", ",".join(_COLUMNS), "-f", "csv,noheader")
_PROCESS = re.compile(r"^\|\s*(\d+)\s+(\d+)\s+\S+\s+.*?(\S+)\s*\|$")


def parse_query(output: str) -> tuple[Row, ...]:
    """The rows of ``hl-smi -Q … -f csv,noheader``."""
    rows = []
    for line in csv.reader(output.splitlines(), skipinitialspace=True):
        column = dict(zip(_COLUMNS, line, strict=False))
        index = integer(column.get("index"))
        if index is None or len(line) < len(_COLUMNS):
            continue
        rows.append(
            Row(
                slot=f"aip {index}",
                index=index,
                name=text(column["name"]),
                uid=text(column["uuid"]),
                used_bytes=size(column["memory.used"]),
                total_bytes=size(column["memory.total"]),
                utilization_ratio=ratio(column["utilization.aip"]),
                temperature_celsius=number(column["temperature.aip"]),
                power_watts=number(column["power.draw"]),
                driver_version=text(column["driver_version"]),
            )
        )
    return tuple(rows)


def parse_table(output: str) -> tuple[Row, ...]:
    """Bus ids, uncorrected events and processes of the table of ``hl-smi``."""
    rows = []
    for block in blocks(output):
        number_and_name = block[0][0].split()
        index = integer(number_and_name[0]) if number_and_name else None
        if index is not None and len(block[0]) >= 3:
            rows.append(
                Row(
                    slot=f"aip {index}",
                    index=index,
                    pci_bus_id=bus_id(block[0][1]),
                    error_count=integer(block[0][2]),
                )
            )
    return with_processes(rows, output.partition("Compute Processes:")[2], _PROCESS)


class GaudiVendor(ToolVendor):
    """Gaudi accelerators of this machine."""

    name = "gaudi"
    title = "Intel Gaudi"
    words = ("intel", "habana")
    kinds = _KINDS
    paddle_device_type = "intel_hpu"
    paddle_custom_device = True
    torch_device_type = "hpu"
    tool = "hl-smi"
    process_variable = "HABANA_VISIBLE_MODULES"
    container_variable = "HABANA_VISIBLE_DEVICES"
    container_runtime = "habana"
    kubernetes_resources = (("", "habana.ai/gaudi"),)
    device_nodes = ("/dev/accel/accel{minor}", "/dev/accel/accel_controlD{minor}")
    optional_shared_nodes = ("/dev/infiniband",)

    def read(self) -> Sequence[Row]:
        """The query, joined with the table where that can be had."""
        rows = parse_query(self._run(_QUERY))
        try:
            return join(rows, parse_table(self._run(("hl-smi",))))
        except ToolError:
            return rows


VENDOR = GaudiVendor()
