"""``python -m benchmarks.prediction_error.cpu_peaks --python ORACLE``: allocated peaks against the CPU allocators.

Each script of :mod:`.cpu_scripts` is run for real in the oracle's environment and read by the product; what is
compared is the tensors' peak up to the end of the first step, and in the steady state. PyTorch's CPU convolutions and
recurrent layers reorder their tensors into scratch, which the profiler's events tell apart (:mod:`.cpu_run`): scripts
that run such kernels are named, and their peak is taken without it. PaddlePaddle's unfolded columns are modelled.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.oracles import environment
from benchmarks.prediction_error.cpu_scripts import scripts
from oarlock_profiler.adapters.sources import text_sources
from oarlock_profiler.core.engine.engine import Engine
from oarlock_profiler.core.engine.trace import Trace
from oarlock_profiler.core.findings import Findings
from oarlock_profiler.core.memory.allocator import PlainAllocator
from oarlock_profiler.core.memory.replay import Usage, replay
from oarlock_profiler.core.reader import read
from oarlock_profiler.core.reading import Request

UNROLLED = ("lstm-", "gru-")
"""Scripts whose recurrent layers keep other tensors for the backward pass on the CPU than cuDNN does."""


def cpu_engine(trace: Trace, framework: str | None, findings: Findings) -> Any:
    """The engine that mirrors the CPU builds' kernels."""
    return Engine(trace, "paddle" if framework == "paddlepaddle" else "torch", findings=findings, kernels="cpu")


def predicted(text: str, library_paths: Sequence[Path] = ()) -> Usage:
    """Read ``text`` and replay its main-memory tensors."""
    sources = text_sources({"main.py": text}, library_paths=library_paths)
    reading = read(Request(entry="main.py"), sources, time.monotonic, engine=cpu_engine)
    return replay(reading.trace, "cpu", PlainAllocator())


def measured(python: Path, framework: str, texts: dict[str, str]) -> dict[str, Any]:
    """Run the scripts in the oracle's environment."""
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder, "scripts.json"), Path(folder, "peaks.json")
        given.write_text(json.dumps(texts))
        runner = Path(__file__).with_name("cpu_run.py")
        subprocess.run([python, runner, framework, given, out], check=True, capture_output=True)
        found: dict[str, Any] = json.loads(out.read_text())
        return found


def _scratch(nbytes: int) -> str:
    return f" and {nbytes} of scratch" if nbytes else ""


def _summary(errors: list[float]) -> str:
    ordered = sorted(errors)
    median, p90 = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.9)]
    return f"{len(ordered)} scripts, median {median:.2%}, p90 {p90:.2%}, worst {ordered[-1]:.2%}"


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, default=environment.python(), help="the oracle's interpreter")
    parser.add_argument("--framework", choices=["paddle", "torch"], action="append")
    parser.add_argument("--library-path", type=Path, action="append", default=[], help="where timm, transformers … lie")
    parser.add_argument("--all", action="store_true", help="list every script, not just those over 1 %%")
    options = parser.parse_args()
    if not options.python.exists():
        parser.error("no oracle environment: python -m benchmarks.oracles.environment makes one")
    options.library_path = options.library_path or [Path(path) for path in environment.library_paths()]
    for framework in options.framework or ["paddle", "torch"]:
        texts = dict(scripts(framework))
        truth = measured(options.python, framework, texts)
        errors: dict[str, list[float]] = {"first": [], "steady": []}
        alike: dict[str, list[float]] = {"first": [], "steady": []}
        for name, text in texts.items():
            if "error" in truth[name]:
                print(f"{framework} {name}: did not run: {truth[name]['error']}")
                continue
            usage = predicted(text, options.library_path)
            found = {"first": usage.first_step_tensor_bytes, "steady": usage.steady_tensor_bytes}
            notes = []
            for kind, value in found.items():
                peak = truth[name].get(f"{kind}_without", truth[name][kind])
                error = 1.0 if value is None else value / peak - 1
                errors[kind].append(abs(error))
                if not name.startswith(UNROLLED):
                    alike[kind].append(abs(error))
                notes.append(f"{kind} {error:+.2%} ({value} against {peak}{_scratch(truth[name][kind] - peak)})")
            own = truth[name].get("own_kernels")
            flagged = options.all or own or max(errors["first"][-1], errors["steady"][-1]) > 0.01
            if flagged:
                print(f"{framework} {name}: {', '.join(notes)}{' ' + ', '.join(own) if own else ''}")
        for kind, found_errors in errors.items():
            print(f"{framework} {kind}: {_summary(found_errors)}")
            print(f"{framework} {kind}, without recurrent layers: {_summary(alike[kind])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
