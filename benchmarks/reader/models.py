"""Library models: what the framework makes of each (in ``measured.json``), and what the reader makes of its source."""

from __future__ import annotations

import datetime
import json
import statistics
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.oracles import environment
from benchmarks.reader import packages
from benchmarks.reader.cases import Case, cases, framework
from benchmarks.reader.session import Built, Session

HERE = Path(__file__).parent
MEASURED = HERE / "measured.json"
SCRIPT = HERE.parent / "oracles" / "run_models.py"
SUITES = ("paddle.vision", "torchvision", "timm", "transformers", *packages.SUITES)
TARGETS = {"paddle.vision": 1.0, "torchvision": 0.98, "timm": 0.90, "transformers": 0.90} | dict.fromkeys(
    packages.SUITES, 0.80
)


def measured() -> dict[str, Any]:
    """What the frameworks said, by case."""
    found: dict[str, Any] = json.loads(MEASURED.read_text())
    return found


def ask(wanted: Iterable[Case]) -> dict[str, Any]:
    """Measure with the real frameworks, in their own environment."""
    request = json.dumps({case.key: case.as_json() for case in wanted})
    path = {
        "PYTHONPATH": str(environment.root() / "src"),
        "HF_HUB_OFFLINE": "1",
        "PATH": "/usr/bin:/bin",
        "HOME": "/tmp",
    }
    done = subprocess.run(
        [str(environment.python()), str(SCRIPT)], input=request, capture_output=True, text=True, check=False, env=path
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    answer: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    for row in answer["cases"].values():
        trim(row)
    return answer


def trim(row: dict[str, Any]) -> None:
    """Keep leaf shapes at one batch size only: the file is large enough."""
    for batch in [key for key in row if key.isdigit()][1:]:
        row[batch].pop("modules", None)


def store(answers: Sequence[dict[str, Any]]) -> None:
    """Write ``measured.json``, one case a line, with versions and date."""
    versions: dict[str, str] = {}
    rows: dict[str, Any] = {}
    for answer in answers:
        versions.update(answer["versions"])
        rows.update(answer["cases"])
    for row in rows.values():
        trim(row)
    head = json.dumps({"date": datetime.datetime.now(datetime.UTC).date().isoformat(), "versions": versions})[1:-1]
    lines = ",\n".join(
        f"{json.dumps(key)}: {json.dumps(row, separators=(',', ':'))}" for key, row in sorted(rows.items())
    )
    MEASURED.write_text(f'{{{head}, "cases": {{\n{lines}\n}}}}\n')


@dataclass(slots=True)
class Result:
    """One suite's score."""

    suite: str
    tried: int = 0
    equal: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    failed: dict[str, str] = field(default_factory=dict)
    unbuildable: dict[str, str] = field(default_factory=dict)
    leaves: int = 0
    leaves_equal: int = 0
    wrong_leaves: dict[str, str] = field(default_factory=dict)
    saved: dict[str, float] = field(default_factory=dict)
    flops: dict[str, float] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)


def compare(case: Case, real: dict[str, Any], built: Built, result: Result) -> None:
    """Add a case to its suite's score."""
    if not real.get("parameters"):
        why_not = "no parameters" if "parameters" in real else "not measured"
        result.unbuildable[case.name] = str(real.get("error", why_not))
        return
    result.tried += 1
    result.seconds.append(built.seconds)
    if (built.parameters, built.trainable) == (real["parameters"], real["trainable"]):
        result.equal += 1
    else:
        cause = why(built, real)
        result.causes[cause] += 1
        result.failed[case.name] = cause
    for batch, step in built.steps.items():
        truth = real.get(str(batch))
        if not truth or "error" in truth:
            continue
        name = f"{case.name} at {batch}"
        for path, shapes in truth.get("modules", {}).items():
            result.leaves += 1
            if step["modules"].get(path) == shapes:
                result.leaves_equal += 1
            else:
                result.wrong_leaves.setdefault(name, f"{path}: {shapes} is read as {step['modules'].get(path)}")
        for key, errors in (("saved_bytes", result.saved), ("flops", result.flops)):
            if truth.get(key):
                errors[name] = step[key] / truth[key] - 1


def why(built: Built, real: dict[str, Any]) -> str:
    """The cause of a failure, in words that are the same for failures of one kind."""
    if built.error is not None:
        return built.error[:100]
    if built.internal:
        return f"host error in {built.internal[0].split(':')[0]}"
    for gap in built.gaps:
        if gap.what not in ("value",) and not gap.what.startswith("branch on"):
            return f"unknown: {gap.what}"[:100]
    if built.gaps:
        return f"{built.gaps[0].what}: {built.gaps[0].why}"[:100]
    more = (built.parameters or 0) - real["parameters"]
    return f"counts differ by {more:+,}, nothing unknown" if more else "trainable parameters differ, nothing unknown"


def score(suite: str, wanted: Sequence[Case], truth: dict[str, Any], *, step: bool = True) -> Result:
    """Read every case of a suite and compare."""
    session = Session(framework(suite), environment.library_paths())
    result = Result(suite)
    for case in wanted:
        compare(case, truth.get(case.key, {}), session.run(case, step=step), result)
    return result


def spread(errors: dict[str, float]) -> tuple[float, float]:
    """Median and 90th percentile of the absolute errors."""
    sizes = sorted(map(abs, errors.values()))
    return statistics.median(sizes), sizes[min(len(sizes) - 1, int(0.9 * len(sizes)))]


def suite_cases(suite: str) -> list[Case]:
    """The cases of a suite."""
    return cases((suite,))
