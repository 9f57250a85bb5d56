"""``python benchmarks/latency/run.py [--tasks N] [--burst N] [--only oarlock|slurm] [--json FILE]``: see README.md."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.latency import oarlock_side, slurm_side
from benchmarks.latency.figures import table

DEFAULT_JSON = Path(__file__).parent / "measured.json"


def main(arguments: list[str] | None = None) -> int:
    """Measure, print the table, write the JSON; returns the exit status (2: a system cannot be started here)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=40, help="measured one after another")
    parser.add_argument("--burst", type=int, default=100, help="submitted at once")
    parser.add_argument("--only", choices=("oarlock", "slurm"))
    parser.add_argument("--json", type=Path, default=DEFAULT_JSON)
    chosen = parser.parse_args(arguments)
    systems = {"oarlock": oarlock_side.measure, "slurm": slurm_side.measure}
    if chosen.only:
        systems = {chosen.only: systems[chosen.only]}
    if "slurm" in systems and (why := slurm_side.missing()):
        print(f"Slurm is left out: {why}", file=sys.stderr)
        del systems["slurm"]
    if not systems:
        return 2
    measured = []
    # Slurm's socket path must be short; under /tmp it is.
    with tempfile.TemporaryDirectory(prefix="latency-") as folder:
        for measure in systems.values():
            measured.append(measure(Path(folder), chosen.tasks, chosen.burst))
    print(table([figures.row() for figures in measured]))
    document = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()},
        "load_average": os.getloadavg(),
        "systems": [figures.as_dict() for figures in measured],
    }
    chosen.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
