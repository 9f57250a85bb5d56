"""``python -m benchmarks.reader.coverage_api``: what share of the calls in public scripts the reader knows, by area.

Counts are read from ``$OARLOCK_DATA/api_frequency`` (default ``../shared/facts/api_frequency``): name, calls, files,
repositories. A call is known when its dotted name has an entry, is defined by a library text, or is an attribute of a
known class; shares are weighted by files.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.reader.tensor_names import TENSOR_NAMES

from oarlock_profiler.core.interpreter.values import MISSING, Class
from oarlock_profiler.core.overlays import areas, library, load, registry

AREAS: list[tuple[str, float, Callable[[str], bool]]] = [
    ("paddle.nn", 0.98, lambda n: n.startswith("paddle.nn")),
    ("paddle.vision", 0.98, lambda n: n.startswith("paddle.vision")),
    ("paddle.optimizer", 0.98, lambda n: n.startswith("paddle.optimizer")),
    ("paddle.io", 0.98, lambda n: n.startswith("paddle.io")),
    ("torch.nn", 0.97, lambda n: n.startswith("torch.nn")),
    ("torch.optim", 0.97, lambda n: n.startswith("torch.optim")),
    ("torch.utils.data", 0.97, lambda n: n.startswith("torch.utils.data")),
    ("torchvision.transforms", 0.97, lambda n: n.startswith("torchvision.transforms")),
    ("other paddle", 0.95, lambda n: n.startswith("paddle.")),
    ("other torch", 0.95, lambda n: n.startswith("torch.")),
    ("libraries", 0.0, lambda n: "." in n and not n.startswith("method ")),
]


def known(name: str) -> bool:
    """Whether ``name`` has an entry, itself or as a member of a class that has one."""
    if registry.get(name) is not MISSING or library.provides(name):
        return True
    owner, _, member = name.rpartition(".")
    if not owner:
        return False
    value = registry.get(owner)
    if isinstance(value, Class):
        return value.lookup(member) is not MISSING or member in ("__init__", "__call__", "forward")
    return False


def rows(path: Path) -> list[tuple[str, int]]:
    """``(name, files)`` of a table."""
    with path.open(newline="") as handle:
        return [(row["name"], int(row["files"])) for row in csv.DictReader(handle)]


def shares(data: Path) -> list[tuple[str, float, float, list[tuple[str, int]]]]:
    """Per area: target, share known, and what is missing, most widespread first."""
    for served in areas():
        load(served)
    remaining = rows(data / "paddle.csv") + rows(data / "torch.csv")
    result = []
    for area, target, belongs in AREAS:
        mine = [(n, f) for n, f in remaining if belongs(n)]
        remaining = [(n, f) for n, f in remaining if not belongs(n)]
        missing = [(n, f) for n, f in mine if not known(n)]
        total = sum(f for _, f in mine) or 1
        result.append((area, target, 1 - sum(f for _, f in missing) / total, missing))
    tensor_methods = [(n, f) for n, f in rows(data / "methods.csv")]
    ours = {n.rpartition(".")[2] for n in registry.names() if n.startswith(("torch.Tensor.", "paddle.Tensor."))}
    real = set(TENSOR_NAMES.split())
    counted = [(n, f) for n, f in tensor_methods if n.removeprefix("method ").lstrip(".") in real]
    missing = [(n, f) for n, f in counted if n.removeprefix("method ").lstrip(".") not in ours]
    total = sum(f for _, f in counted) or 1
    result.append(("tensor methods", 0.95, 1 - sum(f for _, f in missing) / total, missing))
    return result


def main() -> int:
    """Print the table; 1 when an area is below its target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("OARLOCK_DATA", "../shared/facts")))
    parser.add_argument("--missing", type=int, default=10, help="how many missing names to print an area")
    options = parser.parse_args()
    below = 0
    for area, target, share, missing in shares(options.data / "api_frequency"):
        flag = "" if share >= target else "  BELOW"
        below += share < target
        print(f"{area:24} {share:7.2%}  (target {target:.0%}){flag}")
        for name, files in missing[: options.missing]:
            print(f"    {files:6} {name}")
    return int(below > 0)


if __name__ == "__main__":
    sys.exit(main())
