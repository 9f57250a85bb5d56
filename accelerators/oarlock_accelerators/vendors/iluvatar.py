"""Iluvatar GPUs, read through ``ixsmi``. Only one GPU of a two-GPU board shows the power; that is no fault."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from oarlock_accelerators.framed_table import framed_devices, with_processes
from oarlock_accelerators.model import Kind
from oarlock_accelerators.readings import busy, integer, number, ratio, size, text
from oarlock_accelerators.specs import kind
from oarlock_accelerators.tool import ToolError
from oarlock_accelerators.tool_vendor import Row, ToolVendor


def _row(name: str, memory_mib: int, **columns: Any) -> Kind:
    return kind(name, "iluvatar", memory_mib, domestic=True, **columns)


# fmt: off
_KINDS = (
    _row("BI-V100", 32768, aliases=("Iluvatar BI-V100", "BI-V100", "BI100"), bandwidth_gb=1200,
        tflops=(37, None, 147, 147), bf16=True, link="PCIe 4.0", link_gb=64, watts=250, year=2021,
        idle_mib=(257, "gpustack#3256"), source="data sheet (recalled); community table; gpustack#3256"),
    _row("BI-V150", 32768, aliases=("Iluvatar BI-V150", "BI-V150", "BI150"), bf16=True,
        link="PCIe 4.0 x16", link_gb=64, watts=350, year=2023, idle_mib=(64, "Paddle docs ixsmi sample"),
        source="Paddle docs ixsmi sample; FlagPerf",
        notes="one of two GPUs of a board; power reads on one of them only"),
)
# fmt: on


_PROCESS = re.compile(r"^\|\s*(\d+)\s+(\d+)\s+.*?(\S+)\s*\|$")
_DRIVER = re.compile(r"Driver Version:\s*(\S+)")
_QUERY = (
    "ixsmi",
    "--query-gpu=index,uuid,name,memory.total,memory.used,utilization.gpu,temperature.gpu",
    "--format=csv",
)


def parse_table(output: str) -> tuple[Row, ...]:
    """The devices and processes of ``ixsmi``."""
    rows = [
        replace(row, utilization_ratio=busy(detail[2]))
        for row, _, detail in framed_devices(output, _DRIVER, head_cells=2, detail_cells=3)
    ]
    return with_processes(rows, output.partition("Processes:")[2], _PROCESS)


def parse_query(output: str) -> tuple[Row, ...]:
    """The rows of ``ixsmi --query-gpu=… --format=csv``, whatever columns were asked for."""
    lines = list(csv.reader(output.splitlines(), skipinitialspace=True))
    if not lines:
        return ()
    header = [cell.strip() for cell in lines[0]]
    rows = []
    for line in lines[1:]:
        column = dict(zip(header, line, strict=False))
        index = integer(column.get("index"))
        if index is None:
            continue
        rows.append(
            Row(
                slot=f"gpu {index}",
                index=index,
                name=text(column.get("name")),
                uid=text(column.get("uuid")),
                used_bytes=size(column.get("memory.used")),
                total_bytes=size(column.get("memory.total")),
                utilization_ratio=ratio(column.get("utilization.gpu")),
                temperature_celsius=number(column.get("temperature.gpu")),
                power_watts=number(column.get("board.power.draw")),
                driver_version=text(column.get("driver_version")),
            )
        )
    return tuple(rows)


class IluvatarVendor(ToolVendor):
    """Iluvatar GPUs of this machine."""

    name = "iluvatar"
    title = "Iluvatar CoreX"
    words = ("iluvatar", "corex", "tiangai")
    kinds = _KINDS
    domestic = True
    paddle_device_type = "iluvatar_gpu"
    paddle_custom_device = True
    torch_device_type = "cuda"
    tool = "ixsmi"
    reports = frozenset({"used_bytes", "utilization_ratio", "temperature_celsius"})
    process_variable = "CUDA_VISIBLE_DEVICES"
    process_unset = ("ILUVATAR_GPU_VISIBLE_DEVICES",)
    container_variable = "IX_VISIBLE_DEVICES"
    container_runtime = "iluvatar"
    cdi_kind = "iluvatar.com/gpu"
    kubernetes_resources = (("", "iluvatar.com/gpu"),)
    device_nodes = ("/dev/iluvatar{minor}",)
    optional_shared_nodes = ("/dev/itrctl",)
    driver_mounts = ("/usr/local/corex",)

    def read(self) -> Sequence[Row]:
        """The table."""
        return parse_table(self._run(("ixsmi",)))

    def identify(self) -> Sequence[Row]:
        """Also the UUIDs, which not every release tells."""
        rows = self.read()
        try:
            uids = {row.index: row.uid for row in parse_query(self._run(_QUERY))}
        except ToolError:
            return rows
        return tuple(replace(row, uid=uids.get(row.index)) for row in rows)


VENDOR = IluvatarVendor()
