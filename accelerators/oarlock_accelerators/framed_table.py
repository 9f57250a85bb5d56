"""Tables drawn like nvidia-smi's, which other vendors' tools print too: two lines a device, then the processes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from oarlock_accelerators.readings import blocks, bus_id, celsius, size, used_and_total, watts
from oarlock_accelerators.tool_vendor import Row, attach

_TITLE = re.compile(r"(\d+)\s+(.+?)(?:\s{2,}.*)?$")


def framed_devices(
    output: str, driver: re.Pattern[str], *, head_cells: int, detail_cells: int
) -> Iterator[tuple[Row, list[str], list[str]]]:
    """What every such table says of a device, and the cells of its two lines for what only one tool's says.

    Args:
        output: what the tool printed.
        driver: finds the driver's version in its first group.
        head_cells: a device's first line has this many cells or is no device: index and name, bus address, ….
        detail_cells: likewise its second line: temperature and power, memory, ….
    """
    version = driver.search(output)
    for block in blocks(output):
        if len(block) < 2 or len(block[0]) < head_cells or len(block[1]) < detail_cells:
            continue
        head, detail = block[0], block[1]
        found = _TITLE.match(head[0])
        address = bus_id(head[1])
        if found is None or address is None:
            continue
        used, total = used_and_total(detail[1])
        row = Row(
            slot=address,
            index=int(found.group(1)),
            name=found.group(2),
            pci_bus_id=address,
            used_bytes=used,
            total_bytes=total,
            temperature_celsius=celsius(detail[0]),
            power_watts=watts(detail[0]),
            driver_version=None if version is None else version.group(1),
        )
        yield row, head, detail


def with_processes(rows: Sequence[Row], listing: str, process: re.Pattern[str]) -> tuple[Row, ...]:
    """``rows`` with the processes of ``listing``, whose lines ``process`` takes apart: index, process id, memory."""
    slots = {row.index: row.slot for row in rows}
    processes: dict[str, list[tuple[int, int | None]]] = {}
    for line in listing.splitlines():
        found = process.match(line.strip())
        if found is not None and (slot := slots.get(int(found.group(1)))) is not None:
            processes.setdefault(slot, []).append((int(found.group(2)), size(found.group(3))))
    return attach(rows, processes)
