"""MetaX GPUs, read through ``mx-smi``: the layouts of 2.1 and of 2.2, which has a state of each GPU."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from oarlock_accelerators.model import Health, Kind
from oarlock_accelerators.readings import blocks, bus_id, celsius, ratio, size, text, used_and_total, watts
from oarlock_accelerators.specs import kind
from oarlock_accelerators.tool import ToolError
from oarlock_accelerators.tool_vendor import Row, ToolVendor, attach, join


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


_TITLE = re.compile(r"(\d+)\s+(.+?)(?:\s{2,}.*)?$")
_PROCESS = re.compile(r"^\|\s*(\d+)\s+(\d+)\s+.*?(\S+)\s*\|$")
_LISTED = re.compile(r"^GPU#(\d+)\s+(\S+)\s+(\S+)\s+(\S+)\s+\(UUID:\s*([^)]*)\)")
_DRIVER = re.compile(r"Kernel Mode Driver Version:\s*(\S+)")


def parse_table(output: str) -> tuple[Row, ...]:
    """The devices and processes of ``mx-smi``, either layout."""
    version = _DRIVER.search(output)
    has_state = "GPU-State" in output
    rows = []
    for block in blocks(output):
        if len(block) < 2 or len(block[0]) < 3 or len(block[1]) < 2:
            continue
        (title, place, load), (state, memory, *rest) = block[0][:3], block[1]
        found = _TITLE.match(title)
        address = bus_id(place)
        if found is None or address is None:
            continue
        used, total = used_and_total(memory)
        word = text(rest[0]) if has_state and rest else None
        bad = has_state and (word is None or word.lower() != "available")
        rows.append(
            Row(
                slot=address,
                index=int(found.group(1)),
                name=found.group(2),
                pci_bus_id=address,
                used_bytes=used,
                total_bytes=total,
                utilization_ratio=ratio(load.split()[0]) if load else None,
                temperature_celsius=celsius(state),
                power_watts=watts(state),
                health=Health.DEGRADED if bad else Health.OK if has_state else None,
                health_reason=f"mx-smi says {word or 'nothing'} of the GPU's state" if bad else None,
                driver_version=None if version is None else version.group(1),
            )
        )
    slots = {row.index: row.slot for row in rows}
    processes: dict[str, list[tuple[int, int | None]]] = {}
    for line in output.partition("Process:")[2].splitlines():
        process = _PROCESS.match(line.strip())
        if process is not None and (slot := slots.get(int(process.group(1)))) is not None:
            processes.setdefault(slot, []).append((int(process.group(2)), size(process.group(3))))
    return attach(rows, processes)


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
