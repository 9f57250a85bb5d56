"""Enflame GCUs, read through ``efsmi``, which shows the used share of the memory and no load and no processes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from oarlock_accelerators.model import Kind
from oarlock_accelerators.readings import blocks, bus_id, celsius, ratio, size, text, watts
from oarlock_accelerators.specs import kind
from oarlock_accelerators.tool_vendor import Row, ToolVendor


def _row(name: str, memory_mib: int, **columns: Any) -> Kind:
    return kind(name, "enflame", memory_mib, domestic=True, operators="gcu", **columns)


# fmt: off
_KINDS = (
    _row("GCU S60", 49120, aliases=("S60", "Enflame S60"), bf16=True, link="PCIe 5.0", watts=300,
        year=2024, source="Paddle docs", notes="inference card; ECC lowers the total to 42976 MiB"),
    _row("GCU T20", 32768, aliases=("T20",), bandwidth_gb=1600, tflops=(32, 128, 128, 128), bf16=True,
        link="GCU-LARE", link_gb=300, watts=300, year=2021, source="data sheet (recalled); memory nominal",
        notes="low confidence"),
)
# fmt: on


_DRIVER = re.compile(r"Driver Ver:\s*(\S+)")


def parse_table(output: str) -> tuple[Row, ...]:
    """The devices of ``efsmi``."""
    version = _DRIVER.search(output)
    rows = []
    for block in blocks(output):
        if len(block) < 2 or len(block[0]) < 3 or len(block[1]) < 3:
            continue
        (title, _, place), (state, memory, share) = block[0][:3], block[1][:3]
        words = title.split(maxsplit=1)
        address = bus_id(place)
        if len(words) < 2 or not words[0].isdigit() or address is None:
            continue
        total = size(memory.split()[0]) if memory else None
        parts = share.split()
        used_share = ratio(parts[0]) if parts else None
        serial = text(parts[1]) if len(parts) > 1 else None
        rows.append(
            Row(
                slot=address,
                index=int(words[0]),
                name=words[1],
                uid=None if serial is None else f"GCU-{serial}",
                pci_bus_id=address,
                used_bytes=None if total is None or used_share is None else round(total * used_share),
                total_bytes=total,
                temperature_celsius=celsius(state),
                power_watts=_usage(state),
                driver_version=None if version is None else version.group(1),
            )
        )
    return tuple(rows)


def _usage(state: str) -> float | None:
    # "67 C   Active   231W  300W": usage, then cap; a missing usage leaves one dash for both
    return watts(state) if state.upper().count("W") >= 2 else None


class EnflameVendor(ToolVendor):
    """Enflame GCUs of this machine."""

    name = "enflame"
    title = "Enflame"
    words = ("enflame",)
    kinds = _KINDS
    domestic = True
    paddle_device_type = "gcu"
    paddle_custom_device = True
    torch_device_type = "gcu"
    tool = "efsmi"
    reports = frozenset({"used_bytes", "temperature_celsius", "power_watts"})
    process_variable = "TOPS_VISIBLE_DEVICES"
    container_variable = "ENFLAME_VISIBLE_DEVICES"
    kubernetes_resources = (("", "enflame.com/gcu"),)
    device_nodes = ("/dev/gcu{minor}",)
    shared_nodes = ("/dev/gcuctl",)
    optional_mounts = ("/usr/sbin/efsmi",)

    def read(self) -> Sequence[Row]:
        """One command tells everything."""
        return parse_table(self._run(("efsmi",)))


VENDOR = EnflameVendor()
