"""What is measured of a system, and how it is summed up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


def quantile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least ``share`` of ``values`` do not exceed; None of nothing."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


@dataclass
class Figures:
    """Of one system. Spans are in seconds from just before the call that submits."""

    system: str
    read_seconds: list[float] = field(default_factory=list)
    """Until the script had been read; empty where the system reads none."""
    placed_seconds: list[float] = field(default_factory=list)
    """Until the decision was known; empty where the system does not tell it."""
    launched_seconds: list[float] = field(default_factory=list)
    """Until the system said that the task has started; empty where it does not tell."""
    running_seconds: list[float] = field(default_factory=list)
    """Until the task's own code ran, by the task's own clock."""
    burst_tasks: int = 0
    burst_seconds: float | None = None
    """From the first submission of a burst to the end of its last task."""

    def row(self) -> dict[str, Any]:
        """As it is printed and written."""
        spans = {
            "read": self.read_seconds,
            "placed": self.placed_seconds,
            "launched": self.launched_seconds,
            "running": self.running_seconds,
        }
        quantiles = {
            f"{name}_{mark}_seconds": quantile(values, share)
            for name, values in spans.items()
            for mark, share in (("p50", 0.5), ("p99", 0.99))
        }
        rate = self.burst_tasks / self.burst_seconds if self.burst_seconds else None
        return {"system": self.system, "tasks": len(self.running_seconds), **quantiles, "tasks_per_second": rate}

    def as_dict(self) -> dict[str, Any]:
        """The row and every single measurement."""
        return {"row": self.row(), **asdict(self)}


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as a Markdown table; seconds as milliseconds, and a dash for what a system does not tell."""
    names = [name for name in rows[0] if name != "system"]
    heads = ["system", *(name.replace("_seconds", " ms").replace("_", " ") for name in names)]
    lines = [heads, ["---", *("---:" for _ in names)]]
    for row in rows:
        cells = [str(row["system"])]
        for name in names:
            value = row[name]
            if value is None:
                cells.append("-")
            elif name.endswith("_seconds"):
                cells.append(f"{value * 1000:.0f}")
            else:
                cells.append(f"{value:.1f}" if isinstance(value, float) else str(value))
        lines.append(cells)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
