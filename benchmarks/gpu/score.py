"""``python -m benchmarks.gpu.score MEASURED.json``: our estimates against what ``measure`` wrote.

The scripts are read anew by the product; a device kind that the catalogue does not know can be named with ``--device``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu.configurations import configurations
from oarlock_profiler.adapters.devices import spec_named
from oarlock_profiler.adapters.sources import text_sources
from oarlock_profiler.core.devices import DeviceSpec
from oarlock_profiler.core.portrait import Setting, build
from oarlock_profiler.core.reader import read
from oarlock_profiler.core.reading import Request

KINDS = ("allocated_bytes", "reserved_bytes", "device_bytes", "step_seconds")


Errors = dict[str, list[tuple[float, str]]]
"""Relative error and name of each run, by kind of measurement."""


def compared(document: Any, spec: DeviceSpec | None, library_paths: Sequence[Path] = ()) -> tuple[Errors, list[str]]:
    """Our estimates on ``spec`` against the runs of ``document``, and what could not be compared."""
    scripts = {c.name: c.script for c in configurations(tiny=document["tiny"])}
    errors: Errors = {kind: [] for kind in KINDS}
    failed: list[str] = []
    for run in document["runs"]:
        if "error" in run:
            failed.append(f"{run['name']}: not measured: {run['error']}")
            continue
        sources = text_sources({"main.py": scripts[run["name"]]}, library_paths=library_paths)
        portrait = build(read(Request(entry="main.py"), sources, time.monotonic), Setting(target=spec))
        found: dict[str, Any] = portrait.memory.peak.model_dump()
        found["step_seconds"] = portrait.compute.step_seconds.get(spec.name) if spec else None
        for kind in KINDS:
            if run.get(kind) and found.get(kind):
                errors[kind].append((found[kind] / run[kind] - 1, run["name"]))
        if portrait.method == "cold_start":
            failed.append(f"{run['name']}: nothing could be read")
    return errors, failed


def main() -> int:
    """Print errors by kind of measurement, and the runs that are furthest off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measured", type=Path)
    parser.add_argument("--device", help="catalogue name, when the measured name is not found")
    parser.add_argument("--library-path", type=Path, action="append", default=[])
    parser.add_argument("--worst", type=int, default=10)
    options = parser.parse_args()
    document = json.loads(options.measured.read_text())
    name = options.device or document["machine"].get("device")
    spec = spec_named(name, memory_bytes=document["machine"].get("memory_bytes")) if name else None
    errors, failed = compared(document, spec, options.library_path)
    for kind, values in errors.items():
        ordered = sorted(abs(error) for error, _ in values)
        if ordered:
            p90 = ordered[int(len(ordered) * 0.9)]
            print(f"{kind}: {len(ordered)} runs, median {ordered[len(ordered) // 2]:.1%}, p90 {p90:.1%}")
        else:
            print(f"{kind}: nothing measured to compare with")
        for error, run_name in sorted(values, key=lambda item: -abs(item[0]))[: options.worst]:
            print(f"    {error:+.1%} {run_name}")
    for line in failed:
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
