"""MetaX GPUs, read through ``mx-smi``: the layouts of 2.1 and of 2.2, which has a state of each GPU."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from oarlock_accelerators.framed_table import framed_devices, with_processes
from oarlock_accelerators.model import Health, Kind
from oarlock_accelerators.readings import bus_id, busy, text
from oarlock_accelerators.specs import kind
from oarlock_accelerators.tool import ToolError
from oarlock_accelerators.tool_vendor import Row, ToolVendor, join


def _row(name: str, memory_mib: int, **columns: Any) -> Kind:
    return kind(name, "metax", memory_mib, domestic=True, **columns)


# fmt: off
_KINDS = (
    _row("MetaX C500", 65536, aliases=("MetaX C500", "MXC500"), bandwidth_gb=1800,
        tflops=(18, 140, 280, 280), bf16=True, link="MetaXLink", watts=350, year=2023,
        idle_mib=(826, "gpustack#4832 mx-smi output / gpustack sample"),
        source="Gitee AI product page figures quoted in a repo; FlagPerf C550; gpustack sample",
        notes="fp32 is the vector rate; bandwidth rated for C550"),
    _row("MetaX C550", 65536, aliases=("MetaX C550", "MXC550"), bandwidth_gb=1800, bf16=True,
        link="MetaXLink", watts=450, year=2024,
        source="FlagPerf base READMEs; memory nominal (64 GB, FlagPerf)"),
)
# fmt: on


_PROCESS = re.compile(r"^\|\s*(\d+)\s+(\d+)\s+.*?(\S+)\s*\|$")
_LISTED = re.compile(r"^GPU#(\d+)\s+(\S+)\s+(\S+)\s+(\S+)\s+\(UUID:\s*([^)]*)\)")
_DRIVER = re.compile(r"Kernel Mode Driver Version:\s*(\S+)")


def parse_table(output: str) -> tuple[Row, ...]:
    """The devices and processes of ``mx-smi``, either layout."""
    has_state = "GPU-State" in output
    rows = []
    for row, head, detail in framed_devices(output, _DRIVER, head_cells=3, detail_cells=2):
        row = replace(row, utilization_ratio=busy(head[2]))
        if has_state:
            word = text(detail[2]) if len(detail) > 2 else None
            sound = word is not None and word.lower() == "available"
            reason = None if sound else f"mx-smi says {word or 'nothing'} of the GPU's state"
            row = replace(row, health=Health.OK if sound else Health.DEGRADED, health_reason=reason)
        rows.append(row)
    return with_processes(rows, output.partition("Process:")[2], _PROCESS)


def parse_list(output: str) -> tuple[Row, ...]:
    """The ids of ``mx-smi -L``."""
    rows = []
    for line in output.splitlines():
        found = _LISTED.match(line.strip())
        address = None if found is None else bus_id(found.group(3))
        if found is not None and address is not None:
            rows.append(Row(slot=address, uid=text(found.group(5))))
    return tuple(rows)


class MetaxVendor(ToolVendor):
    """MetaX GPUs of this machine."""

    name = "metax"
    title = "MetaX"
    words = ("metax",)
    kinds = _KINDS
    domestic = True
    paddle_device_type = "metax_gpu"
    paddle_custom_device = True
    torch_device_type = "cuda"
    tool = "mx-smi"
    process_variable = "CUDA_VISIBLE_DEVICES"
    process_unset = ("MACA_VISIBLE_DEVICES", "METAX_GPU_VISIBLE_DEVICES")
    kubernetes_resources = (("", "metax-tech.com/gpu"),)
    device_nodes = ("/dev/dri/by-path/pci-{bus}-render", "/dev/dri/by-path/pci-{bus}-card")
    shared_nodes = ("/dev/mxcd",)
    optional_shared_nodes = ("/dev/mxnd", "/dev/mxgd", "/dev/infiniband")
    optional_mounts = ("/opt/maca",)
    groups = ("video",)

    def read(self) -> Sequence[Row]:
        """The table."""
        return parse_table(self._run(("mx-smi",)))

    def identify(self) -> Sequence[Row]:
        """Also the list with the ids."""
        rows = self.read()
        try:
            return join(rows, parse_list(self._run(("mx-smi", "-L"))))
        except ToolError:
            return rows


VENDOR = MetaxVendor()
