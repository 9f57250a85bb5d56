"""``python -m benchmarks.oracles.compare torch|paddle [CASE…]``: the real framework beside the engine, case by case."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.oracles import cases_paddle, cases_torch, ours

HERE = Path(__file__).parent


def oracle_python() -> Path:
    """The interpreter that has the real frameworks."""
    return Path(os.environ.get("OARLOCK_ORACLES", ".cache/oracles")) / "bin" / "python"


def run_oracle(framework: str, cases: dict[str, str]) -> dict[str, Any]:
    """Measure ``cases`` with the real framework."""
    command = [str(oracle_python()), str(HERE / f"run_{framework}.py")]
    done = subprocess.run(command, input=json.dumps(cases), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return found


def sources(framework: str) -> dict[str, str]:
    """The cases of a framework."""
    if framework == "torch":
        return cases_torch.sources()
    return cases_paddle.sources()


def difference(real: dict[str, Any], mine: dict[str, Any], framework: str) -> list[str]:
    """What differs, in words."""
    found = []
    for key in ("parameters", "trainable", "shapes", "dtypes"):
        if key in real and real[key] != mine.get(key):
            found.append(f"{key} {real[key]} ≠ {mine.get(key)}")
    for key, tolerance in (("saved_bytes", 0.01), ("held", 0.01), ("flops", 0.005)):
        if key in real and abs(mine[key] - real[key]) > tolerance * max(real[key], 1) + (
            256 if framework == "torch" else 4096
        ):
            found.append(f"{key} {real[key]:,} ≠ {mine[key]:,}")
    for index, (a, b) in enumerate(zip(real["peaks"], mine["peaks"], strict=True)):
        if abs(a - b) > 0.01 * max(a, 1) + (16384 if framework == "paddle" else 2048):
            found.append(f"peak{index} {a:,} ≠ {b:,}")
    for path, shapes in real.get("modules", {}).items():
        if mine.get("modules", {}).get(path, shapes) != shapes:
            found.append(f"{path or 'root'} {shapes} ≠ {mine.get('modules', {}).get(path)}")
    if mine["internal_errors"]:
        found.append(f"errors {mine['internal_errors'][:2]}")
    return found


def main() -> int:
    """Print the table; the exit code says whether all agree."""
    framework, *wanted = sys.argv[1:]
    cache = Path(os.environ.get("OARLOCK_ORACLE_CACHE", HERE / f"measured_{framework}.json"))
    cases = {n: s for n, s in sources(framework).items() if not wanted or n in wanted}
    if cache.exists() and "--fresh" not in wanted:
        real = json.loads(cache.read_text())["cases"]
        missing = {n: s for n, s in cases.items() if n not in real}
    else:
        real, missing = {}, cases
    if missing:
        measured = run_oracle(framework, missing)
        real.update(measured["cases"])
        cache.write_text(json.dumps({"version": measured["version"], "cases": real}, indent=0, sort_keys=True) + "\n")
    bad = 0
    for name, source in cases.items():
        expected = real[name]
        if "error" in expected:
            print(f"? {name}: the framework says {expected['error']}")
            continue
        try:
            mine = ours.measure(source, framework)
            differences = difference(expected, mine, framework)
        except Exception as error:
            differences = [f"{type(error).__name__}: {error}"]
            if wanted:
                raise
        if differences:
            bad += 1
            print(f"✗ {name}: " + "; ".join(differences))
            if wanted:
                print("   gaps:", mine["gaps"][:5])
    print(f"{len(cases) - bad}/{len(cases)} agree")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
