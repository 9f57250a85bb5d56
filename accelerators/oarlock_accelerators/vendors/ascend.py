"""Huawei Ascend NPUs, read through ``npu-smi``.

``npu-smi`` counts cards (NPU ID) and chips on them; frameworks count chips through (logic id); device nodes carry the
physical id, printed as Phy-ID by newer releases. HBM is the memory where there is any, else DDR (310P).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from oarlock_accelerators.model import Health, Kind
from oarlock_accelerators.readings import bus_id, integer, number, ratio, text, used_and_total
from oarlock_accelerators.specs import kind
from oarlock_accelerators.tool import ToolError
from oarlock_accelerators.tool_vendor import Row, ToolVendor


def _row(name: str, memory_mib: int, **columns: Any) -> Kind:
    return kind(name, "ascend", memory_mib, domestic=True, **columns)


# fmt: off
_KINDS = (
    _row("Ascend 310P3-24GB", 24576, aliases=("310P3", "Ascend310P3"), families=("310P",), bandwidth_gb=204.8,
        tflops=(None, None, 70, None), link="PCIe 4.0 x16", watts=72, year=2021, usable_bytes=22572695552,
        source="data sheet (recalled); HAMi configmap; memory nominal (HAMi config: 21527 MB allocatable)",
        notes="inference card; rates of low confidence"),
    _row("Ascend 310P3-44GB", 44280, aliases=("310P3", "Ascend310P3"), families=("310P",), link="PCIe 4.0 x16",
        idle_mib=(1507, "gpustack sample (43693 MB chip)"),
        source="gpustack sample 310p3 (driver 25.2.0)",
        notes="LPDDR: the tool shows it under DDR, not HBM"),
    _row("Ascend 910A", 32768, operators="npu", aliases=("910A", "Ascend910A"), families=("910",), bandwidth_gb=1200,
        tflops=(None, None, 256, None), link="HCCS", watts=310, year=2019,
        source="data sheet (recalled); HAMi configmap",
        notes="Paddle: release 2.6 only"),
    _row("Ascend 910B1", 65536, operators="npu", aliases=("910B1", "Ascend910B1"), families=("910B",),
        bandwidth_gb=1600, bf16=True,
        link="HCCS", link_gb=392, year=2023, idle_mib=(3453, "public npu-smi output (npu-smi 25.3.rc1)"),
        source="data sheet (recalled); memory from npu-smi output", notes="no official sheet per bin"),
    _row("Ascend 910B2", 65536, operators="npu", aliases=("910B2", "Ascend910B2", "910B2C"), families=("910B",),
        bandwidth_gb=1600,
        tflops=(None, None, 376, 376), bf16=True, link="HCCS", link_gb=392, year=2023,
        idle_mib=(3432, "gpustack sample 910B2 (driver 25.5.1); 3316 on 910B2C in Paddle docs"),
        source="data sheet (recalled); memory from gpustack sample", notes="no official sheet per bin"),
    _row("Ascend 910B3", 65536, operators="npu", aliases=("910B3", "Ascend910B3"), families=("910B",),
        bandwidth_gb=1600,
        tflops=(None, None, 313, 313), bf16=True, link="HCCS", link_gb=392, watts=350, year=2023,
        usable_bytes=64768106824, source="data sheet (recalled); HAMi configmap",
        notes="no official sheet per bin; FlagPerf measured fp16 313 and fp32 83 TFLOPS on an unnamed bin"),
    _row("Ascend 910B4", 32768, operators="npu", aliases=("910B4", "Ascend910B4"), families=("910B",),
        bandwidth_gb=800,
        tflops=(None, None, 280, 280), bf16=True, link="HCCS", year=2023,
        source="data sheet (recalled); HAMi configmap",
        notes="no official sheet per bin"),
    _row("Ascend 910B4-1", 65536, operators="npu", aliases=("910B4-1", "Ascend910B4-1"), families=("910B",),
        bf16=True, link="HCCS",
        source="HAMi configmap",
        notes="the 64 GB variant of 910B4; bf16 assumed from the family"),
    _row("Ascend 910C", 65536, operators="npu", aliases=("910C", "Ascend910C", "910_93"), families=("910",),
        bandwidth_gb=1600,
        tflops=(None, None, 376, 376), bf16=True, link="HCCS / UB", link_gb=392, year=2024,
        source="data sheet (recalled); HAMi configmap",
        notes="one of two dies of a package, each with its own node"),
)
# fmt: on


_PAIR = re.compile(r"(\d+|NA|N/A|-)\s*/\s*(\d+|NA|N/A|-)")
_HEALTH = {"ok": Health.OK, "unknown": Health.UNKNOWN}
"""Every other word (Warning, Alarm, Critical) is a fault."""

Chip = tuple[int, int]
"""Card (NPU ID) and chip on it."""


def parse_info(output: str) -> dict[Chip, Row]:
    """The devices and processes of ``npu-smi info``."""
    rows: dict[Chip, Row] = {}
    processes: dict[Chip, list[tuple[int, int | None]]] = {}
    head: list[str] | None = None
    for line in output.splitlines():
        row = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.lstrip().startswith("|"):
            continue
        if len(row) == 3 and head is not None and bus_id(row[1]) is not None:
            card = integer(head[0].split()[0])
            numbers = row[0].split()
            chip = integer(numbers[0]) if numbers else None
            if card is not None and chip is not None:
                rows[card, chip] = _device(head, row, numbers)
            head = None
        elif len(row) == 3 and row[0][:1].isdigit() and len(row[0].split()) > 1:
            head = row
        elif len(row) == 4 and len(row[0].split()) == 2 and (pid := integer(row[1])) is not None:
            card, chip = (integer(part) for part in row[0].split())
            if card is not None and chip is not None:
                used, _ = used_and_total(f"{row[3]}/-")
                processes.setdefault((card, chip), []).append((pid, used))
    return {chip: replace(row, processes=tuple(processes.get(chip, ()))) for chip, row in rows.items()}


def _device(head: list[str], row: list[str], numbers: list[str]) -> Row:
    name = head[0].split(maxsplit=1)[1]
    power, temperature = (*head[2].split(), "NA", "NA")[:2]
    pairs = [used_and_total("/".join(pair)) for pair in _PAIR.findall(row[2])]
    # the last column is HBM; a chip without it shows 0 there and its DDR before it
    used, total = next((pair for pair in reversed(pairs) if pair[1]), (None, None))
    word = head[1].strip().lower()
    health = _HEALTH.get(word, Health.DEGRADED)
    address = bus_id(row[1])
    return Row(
        slot=address or "",
        name=name if name.lower().startswith("ascend") else f"Ascend {name}",
        pci_bus_id=address,
        minor=integer(numbers[1]) if len(numbers) > 1 else None,
        used_bytes=used,
        total_bytes=total,
        utilization_ratio=ratio(row[2].split()[0]),
        temperature_celsius=number(temperature),
        power_watts=number(power),
        health=health,
        health_reason=None if health is Health.OK else f"npu-smi says {head[1].strip()}",
    )


def parse_mapping(output: str) -> dict[Chip, int]:
    """The logic id of each chip, from ``npu-smi info -m``; the card's controller (Mcu) has none."""
    logic: dict[Chip, int] = {}
    for line in output.splitlines():
        numbers = [integer(word) for word in line.split()[:3]]
        if len(numbers) == 3 and None not in numbers:
            card, chip, number_of_logic = (n for n in numbers if n is not None)
            logic[card, chip] = number_of_logic
    return logic


def parse_board(output: str) -> str | None:
    """The die's serial number from ``npu-smi info -t board``, or ``None``."""
    for line in output.splitlines():
        label, separator, value = line.partition(":")
        if separator and label.strip() == "VDie ID":
            die = text(value)
            return None if die is None else f"NPU-{'-'.join(die.split())}"
    return None


class AscendVendor(ToolVendor):
    """Ascend NPUs of this machine."""

    name = "ascend"
    title = "Huawei Ascend"
    words = ("huawei", "ascend", "atlas")
    kinds = _KINDS
    domestic = True
    paddle_device_type = "npu"
    paddle_custom_device = True
    torch_device_type = "npu"
    tool = "npu-smi"
    process_variable = "ASCEND_RT_VISIBLE_DEVICES"
    process_unset = ("NPU_VISIBLE_DEVICES",)
    container_variable = "ASCEND_VISIBLE_DEVICES"
    container_runtime = "ascend"
    kubernetes_resources = (("310P", "huawei.com/Ascend310P"), ("", "huawei.com/Ascend910"))
    device_nodes = ("/dev/davinci{minor}",)
    shared_nodes = ("/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc")
    optional_shared_nodes = ("/dev/uburma", "/dev/ummu")
    driver_mounts = ("/usr/local/Ascend/driver", "/usr/local/dcmi")
    optional_mounts = ("/usr/local/bin/npu-smi", "/etc/ascend_install.info")

    def read(self) -> Sequence[Row]:
        """``npu-smi info``."""
        return tuple(parse_info(self._run(("npu-smi", "info"))).values())

    def identify(self) -> Sequence[Row]:
        """Also the logic ids and each chip's die serial number."""
        chips = parse_info(self._run(("npu-smi", "info")))
        logic = parse_mapping(self._run(("npu-smi", "info", "-m")))
        several = {card for card, chip in chips if chip > 0}
        rows = []
        for (card, chip), row in chips.items():
            # a card of one chip has its own number as physical id; with more, only Phy-ID or the logic id can tell
            minor = row.minor if row.minor is not None or card in several else card
            rows.append(replace(row, index=logic.get((card, chip)), minor=minor, uid=self._die(card, chip)))
        return rows

    def _die(self, card: int, chip: int) -> str | None:
        try:
            return parse_board(self._run(("npu-smi", "info", "-t", "board", "-i", str(card), "-c", str(chip))))
        except ToolError:
            return None  # a chip that does not answer is known by its bus address


VENDOR = AscendVendor()
