"""Turns what vendors' tools print into numbers, or into nothing where they print one of their words for "missing".

No parser raises on odd text: a cell that holds no number is a missing value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from oarlock_accelerators.model import MIB

_MISSING = frozenset(
    {"", "n/a", "[n/a]", "na", "-", "--", "/", "none", "unknown", "[unknown error]", "unknown error", "[not found]",
     "not found", "[not supported]", "not supported", "err!", "xxx", "nan", "null"}
)  # fmt: skip
_NUMBER = re.compile(r"[-+]?\d{1,15}(?:\.\d{1,9})?")
_UNITS = {"b": 1, "kb": 1024, "kib": 1024, "mb": MIB, "mib": MIB, "gb": 1024 * MIB, "gib": 1024 * MIB}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([kmg]?i?b)?\b", re.IGNORECASE)
_CELSIUS = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d+)?)\s*C\b", re.IGNORECASE)
_WATTS = re.compile(r"(\d{1,5}(?:\.\d+)?)\s*W\b", re.IGNORECASE)
_BUS = re.compile(r"(?<![0-9a-f:])([0-9a-f]{2,8}:)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])(?![0-9a-f])", re.IGNORECASE)
_MISSING_SLASHES = re.compile(r"\[?\bN/A\b\]?", re.IGNORECASE)


def text(cell: object) -> str | None:
    """The cell as text, or ``None`` when it is a spelling of "missing" or not a scalar."""
    if cell is None or isinstance(cell, dict | list):
        return None
    stripped = str(cell).strip()
    return None if stripped.lower() in _MISSING else stripped


def number(cell: object) -> float | None:
    """The first number of the cell (``67 C``, ``402.18W``)."""
    content = text(cell)
    match = None if content is None else _NUMBER.search(content)
    return None if match is None else float(match.group())


def ratio(cell: object) -> float | None:
    """A percentage as 0.0 to 1.0; tools that count slightly over 100 are cut off there."""
    value = number(cell)
    return None if value is None or value < 0 else min(1.0, value / 100)


def busy(cell: str) -> float | None:
    """The utilisation in a cell that says more behind it (``100%      Default``)."""
    return ratio(cell.split(maxsplit=1)[0]) if cell else None


def size(cell: object, default_unit: str = "mib") -> int | None:
    """Bytes of ``49152MiB``, ``59963`` and the like. The tools' MB are MiB."""
    content = text(cell)
    match = None if content is None else _SIZE.search(content)
    if match is None:
        return None
    return int(float(match.group(1)) * _UNITS[(match.group(2) or default_unit).lower()])


def integer(cell: object) -> int | None:
    """A whole number of zero or more (an index, a process id, a count)."""
    value = number(cell)
    return None if value is None or value < 0 else int(value)


def used_and_total(cell: str, default_unit: str = "mib") -> tuple[int | None, int | None]:
    """Bytes of ``58214/ 65536``, ``N/A MiB/ 23374 MiB`` and the like."""
    used, _, total = _MISSING_SLASHES.sub("-", cell).partition("/")
    return size(used, default_unit), size(total, default_unit)


def celsius(cell: str) -> float | None:
    """The temperature in a cell that holds other things too (``N/A   63C  N/A    341W / 400W``)."""
    match = _CELSIUS.search(cell)
    return None if match is None else float(match.group(1))


def watts(cell: str) -> float | None:
    """The usage in ``341W / 400W`` or ``201 W/ 250 W``; the cap behind the slash is never taken for it."""
    match = _WATTS.search(_MISSING_SLASHES.sub("-", cell).partition("/")[0])
    return None if match is None else float(match.group(1))


def bus_id(cell: str) -> str | None:
    """The PCI bus id in a cell, in one spelling: lower case with a four-digit domain."""
    match = _BUS.search(cell)
    if match is None:
        return None
    domain = (match.group(1) or "0000").rstrip(":").lower()
    return f"{domain[-4:].rjust(4, '0')}:{match.group(2).lower()}"


def blocks(table: str) -> Iterator[list[list[str]]]:
    """The lines of each device in a framed table: those from one that holds a PCI bus id to the next frame line."""
    block: list[list[str]] = []
    for line in table.splitlines():
        row = cells(line)
        framed = line.lstrip().startswith("|") and len(row) > 1
        if framed and bus_id(line) is not None:
            if block:
                yield block
            block = [row]
        elif framed and block:
            block.append(row)
        elif block:
            yield block
            block = []
    if block:
        yield block


def cells(line: str, separator: str = "|") -> list[str]:
    """The cells of a table line, without the frame's outer separators."""
    return [cell.strip() for cell in line.strip().strip(separator).split(separator)]
