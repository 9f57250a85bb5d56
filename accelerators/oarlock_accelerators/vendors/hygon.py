"""Hygon DCUs, read through ``hy-smi``, or through the ``rocm-smi`` of toolkits up to DTK 23.

Load is called DCU use before DTK 25.04 and HCU use from then on. The mode (sound or not) is only in the table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from oarlock_accelerators.model import Health, Kind
from oarlock_accelerators.readings import bus_id, integer, number, ratio, size, text
from oarlock_accelerators.specs import kind
from oarlock_accelerators.tool import ToolError, ToolMissing
from oarlock_accelerators.tool_vendor import Row, ToolVendor, attach, join


def _row(name: str, memory_mib: int, **columns: Any) -> Kind:
    return kind(name, "hygon", memory_mib, domestic=True, **columns)


# fmt: off
_KINDS = (
    _row("DCU Z100", 32752, aliases=("Z100", "Z100L"), bandwidth_gb=1024, link="PCIe 4.0", watts=280,
        year=2021, idle_mib=(2, "gpustack docstring"), source="data sheet (recalled); Paddle docs",
        notes="bf16 unverified"),
    _row("DCU K100-AI", 65520, aliases=("K100_AI", "K100AI", "K1xx_AI"), arch="gfx928",
        tflops=(49, 96, 192, 192), bf16=True, link="PCIe 5.0", watts=400, year=2023,
        idle_mib=(2, "gpustack sample (DTK 24.04.3)"),
        source="community forum figures quoted in a repo; gpustack sample",
        notes="rates from a community forum, low confidence"),
    _row("DCU BW1000", 65520, aliases=("BW1000",), bf16=True, link="PCIe 4.0 x16", year=2024,
        source="benchmark inventory", notes="published power caps contradict each other"),
)
# fmt: on


_ASKED = (
    "--showid", "--showmeminfo", "vram", "--showpower", "--showuse", "--showtemp", "--showproductname",
    "--showuniqueid", "--json",
)  # fmt: skip
_BUS = ("--showbus", "--json")
_LIST = re.compile(r"'([^']*)'")


def parse_json(output: str) -> tuple[Row, ...]:
    """The cards of ``hy-smi --json`` or the old ``rocm-smi --json``: those whose memory is in MiB."""
    rows = []
    for index, card in _cards(output):
        if "vram Total Memory (MiB)" not in card:
            continue
        temperatures = (number(card.get(f"Temperature (Sensor {s}) (C)")) for s in ("junction", "core", "edge"))
        rows.append(
            Row(
                slot=f"card {index}",
                index=index,
                name=text(card.get("Card Series")),
                uid=_uid(card.get("Unique ID")),
                used_bytes=size(card.get("vram Total Used Memory (MiB)")),
                total_bytes=size(card.get("vram Total Memory (MiB)")),
                utilization_ratio=ratio(card.get("HCU use (%)", card.get("DCU use (%)"))),
                temperature_celsius=next((t for t in temperatures if t is not None), None),
                power_watts=number(card.get("Average Graphics Package Power (W)")),
            )
        )
    return tuple(rows)


def parse_buses(output: str) -> tuple[Row, ...]:
    """The bus addresses of ``hy-smi --showbus --json``."""
    return tuple(
        Row(slot=f"card {index}", pci_bus_id=bus_id(str(card.get("PCI Bus")))) for index, card in _cards(output)
    )


def _cards(output: str) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        data = json.loads(output)
    except (ValueError, RecursionError) as error:
        raise ToolError(f"hy-smi's JSON cannot be read: {error}") from error
    for key, card in data.items() if isinstance(data, dict) else ():
        index = integer(key.removeprefix("card"))
        if key.startswith("card") and index is not None and isinstance(card, dict):
            yield index, card


def parse_modes(output: str) -> dict[int, str]:
    """The mode of each card from the table of ``hy-smi``; the columns before it vary by release."""
    modes: dict[int, str] = {}
    last_is_mode = False
    for line in output.splitlines():
        words = line.split()
        if words and words[0] in ("HCU", "DCU"):
            last_is_mode = words[-1] == "Mode"
        elif last_is_mode and words and words[0].isdigit():
            modes[int(words[0])] = words[-1]
    return modes


def parse_processes(output: str) -> dict[str, list[tuple[int, int | None]]]:
    """Processes by card from ``hy-smi --showpids``; one on several cards is listed without a share per card."""
    found: dict[str, list[tuple[int, int | None]]] = {}
    pid: int | None = None
    cards: list[int] = []
    for line in output.splitlines():
        label, _, value = (part.strip() for part in line.partition(":"))
        if label == "PID":
            pid, cards = integer(value), []
        elif label in ("HCU Index", "DCU Index"):
            cards = [card for item in _LIST.findall(value) if (card := integer(item)) is not None]
        elif label == "VRAM USED(MiB)" and pid is not None:
            for card in cards:
                used = size(value) if len(cards) == 1 else None
                found.setdefault(f"card {card}", []).append((pid, used))
    return found


def _uid(cell: object) -> str | None:
    serial = text(cell)
    return None if serial is None else f"DCU-{serial.lower().removeprefix('0x')}"


class HygonVendor(ToolVendor):
    """Hygon DCUs of this machine."""

    name = "hygon"
    title = "Hygon"
    words = ("hygon", "dcu")
    kinds = _KINDS
    domestic = True
    paddle_device_type = "gpu"
    torch_device_type = "cuda"
    tool = "hy-smi"
    process_variable = "HIP_VISIBLE_DEVICES"
    process_unset = ("CUDA_VISIBLE_DEVICES",)
    container_variable = "DCU_VISIBLE_DEVICES"
    container_runtime = "dcu"
    kubernetes_resources = (("", "hygon.com/dcu"),)
    device_nodes = ("/dev/dri/by-path/pci-{bus}-render",)
    optional_device_nodes = ("/dev/dri/by-path/pci-{bus}-card",)
    shared_nodes = ("/dev/kfd", "/dev/mkfd")
    driver_mounts = ("/opt/hyhal",)
    groups = ("video",)
    security_options = ("seccomp=unconfined",)

    def read(self) -> Sequence[Row]:
        """The JSON for the values, the table for the mode, the process list where it can be had."""
        try:
            rows = parse_json(self._run(("hy-smi", *_ASKED)))
        except ToolMissing:
            return parse_json(self._run(("rocm-smi", *_ASKED)))
        modes = parse_modes(self._run(("hy-smi",)))
        rows = tuple(_with_mode(row, modes.get(row.index or 0)) for row in rows)
        try:
            return attach(rows, parse_processes(self._run(("hy-smi", "--showpids"))))
        except ToolError:
            return rows

    def identify(self) -> Sequence[Row]:
        """Also the bus addresses, which not every release tells."""
        rows = self.read()
        for tool in ("hy-smi", "rocm-smi"):
            try:
                return join(rows, parse_buses(self._run((tool, *_BUS))))
            except ToolMissing:
                continue
            except ToolError:
                break
        return rows


def _with_mode(row: Row, mode: str | None) -> Row:
    if mode is None or mode.lower() == "normal":
        return row
    return replace(row, health=Health.DEGRADED, health_reason=f"hy-smi shows mode {mode}")


VENDOR = HygonVendor()
