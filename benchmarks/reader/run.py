"""The reader against the frameworks themselves, in one table, with the failures by cause.

    python benchmarks/reader/run.py [--suite NAME …] [--measure] [--no-step] [--no-foreign] [--write README]

``--measure`` asks the real frameworks again (``OARLOCK_ORACLES``); otherwise ``measured.json`` says what they said.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.oracles import environment
from benchmarks.reader import foreign, models, speed

_TOLERANCE = {"saved": (0.01, 0.05), "flops": (0.01, None)}


def rows_of(result: models.Result) -> list[tuple[str, str, str]]:
    """What is measured, what came out, what was aimed at."""
    name, rows = result.suite, []
    share = result.equal / max(1, result.tried)
    rows.append(
        (f"{name}: parameters equal", f"{result.equal} of {result.tried} ({share:.1%})", f"{models.TARGETS[name]:.0%}")
    )
    if result.leaves:
        rows.append((f"{name}: leaf output shapes equal", f"{result.leaves_equal} of {result.leaves}", "all"))
    for what, errors, target in (
        ("bytes kept for backward", result.saved, "1 % / 5 %"), ("FLOPs", result.flops, "1 %"),
    ):  # fmt: skip
        if errors:
            median, high = models.spread(errors)
            rows.append((f"{name}: {what}, error median / p90", f"{median:.2%} / {high:.2%} of {len(errors)}", target))
    if result.seconds:
        rows.append(
            (f"{name}: seconds per model once the library is read", f"{statistics.median(result.seconds):.2f}", "")
        )
    return rows


def table(rows: list[tuple[str, str, str]]) -> str:
    """As Markdown."""
    lines = ["| measured | result | aim |", "|---|---|---|"]
    return "\n".join(lines + [f"| {a} | {b} | {c} |" for a, b, c in rows])


def failures(results: list[models.Result]) -> str:
    """Failures, by cause."""
    lines = []
    for result in results:
        for cause, count in result.causes.most_common():
            names = [name for name, why in result.failed.items() if why == cause]
            lines.append(f"- {result.suite}, {count}: {cause} ({', '.join(names[:4])}{' …' if count > 4 else ''})")
        lines += [f"- {result.suite}, shape in {name}: {what}" for name, what in list(result.wrong_leaves.items())[:5]]
        for what, errors, limit in (("bytes kept", result.saved, 0.05), ("FLOPs", result.flops, 0.01)):
            worst = sorted(errors.items(), key=lambda item: -abs(item[1]))[:5]
            lines += [
                f"- {result.suite}, {what} of {name}: {error:+.1%}" for name, error in worst if abs(error) > limit
            ]
        kinds = Counter(why.partition(":")[0] for why in result.unbuildable.values())
        lines += [
            f"- {result.suite}, {count} not counted: the framework itself does not build them so ({kind})"
            for kind, count in kinds.most_common()
        ]
    return "\n".join(lines) or "- none"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", action="append", choices=models.SUITES)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--no-step", action="store_true")
    parser.add_argument("--no-foreign", action="store_true")
    parser.add_argument("--no-speed", action="store_true")
    options = parser.parse_args()
    if not environment.exists():
        print("no oracle environment: make one with `python -m benchmarks.oracles.environment`", file=sys.stderr)
        return 2
    if options.measure:
        known = models.measured()  # suites that are not asked about keep what was said of them
        models.store([known, *(models.ask(models.suite_cases(suite)) for suite in options.suite or models.SUITES)])
    truth = models.measured()
    results = [
        models.score(s, models.suite_cases(s), truth["cases"], step=not options.no_step)
        for s in options.suite or models.SUITES
    ]
    rows = [row for result in results for row in rows_of(result)]
    causes = failures(results)
    if not options.no_speed:
        rows += speed.rows_of(speed.measure(), speed.from_source())
    if not options.no_foreign:
        read = foreign.measure()
        rows += foreign.rows_of(read)
        causes += "\n" + foreign.failures(read)
    print(f"frameworks: {json.dumps(truth['versions'])}, measured {truth['date']}\n")
    print(table(rows))
    print(f"\nFailures, by cause\n\n{causes}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
