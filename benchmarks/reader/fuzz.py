"""Reads mutated scripts with the service's limited reader and prints what came of them (``make fuzz-reader``).

A mutation passes when its outcome is a portrait or a named error, whatever stopped the reading has a place, the
reading ends within its budget and memory, and nothing was executed, started, written, or opened outside the bundle
meanwhile. Each failure is printed with its seed, which ``--seed`` repeats.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import pickle
import random
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.reader.mutations import KINDS, Bundle, Mutation, mutation, scripts, snippets

from oarlock_profiler.adapters.isolated import GRACE_SECONDS
from oarlock_profiler.adapters.portray import Job
from oarlock_profiler.settings import ProfilerSettings
from oarlock_schemas import Portrait, read

MEMORY_BYTES = ProfilerSettings().read_memory_bytes
READ_SECONDS = 0.5
WALL_SECONDS = 120.0
"""A reading without an answer by then waits for something; processor time is bounded by the child's own limit."""
READINGS_EACH = 5_000
"""Readings of one process before a fresh one takes over."""
ERRORS = {"bad_bundle", "nothing_to_read", "too_large"}


class Died(Exception):
    """The child gave no answer; the message says how it ended."""


class Child:
    """One reading process and its bundle folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.readings = 0
        limit = str(int(READ_SECONDS + GRACE_SECONDS))
        command = [sys.executable, "-B", "-m", "benchmarks.reader.fuzz_child", str(MEMORY_BYTES), limit]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _, bundle in [*scripts(), *snippets()]:
            # what the reader itself imports while it reads is in memory before anything is watched
            self.read(bundle, watched=False)
        self.read(scripts()[0][1], watched=False, archive=b"no archive")
        self.readings = 0

    def read(self, bundle: Bundle, *, watched: bool = True, archive: bytes | None = None) -> dict[str, Any]:
        """The child's answer.

        Raises:
            Died: it ended, or had to be killed.
        """
        shutil.rmtree(self.folder, ignore_errors=True)
        inner = self.folder / "bundle"
        inner.mkdir(parents=True)
        (self.folder / "outside").write_text("lr: 1\n")
        path = inner
        if archive is not None:
            path = inner / "bundle.zip"
            path.write_bytes(archive)
        else:
            for name, data in bundle.files.items():
                file = inner / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
        job = Job(path=str(path), entry=bundle.entry, arguments=bundle.arguments, seconds=READ_SECONDS)
        body = pickle.dumps((str(inner) if watched else None, job))
        self.readings += 1
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(struct.pack("<I", len(body)) + body)
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Died(self.end()) from None
        if not select.select([self.process.stdout], [], [], WALL_SECONDS)[0]:
            self.process.kill()
            raise Died(f"no answer within {WALL_SECONDS:g} s of wall time; {self.end()}")
        line = self.process.stdout.readline()
        if not line:
            raise Died(self.end())
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> str:
        """Wait for the process; how it ended."""
        _, errors = self.process.communicate()
        lines = errors.decode("utf-8", "replace").strip().split("\n")
        return f"ended with {self.process.returncode}: {' | '.join(lines[-3:])[-400:]}"


@dataclass
class Tally:
    """What came of the mutations."""

    outcomes: dict[str, Counter[str]] = field(default_factory=lambda: {kind: Counter() for kind in KINDS})
    failures: dict[str, list[str]] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)
    """Library functions that the reader could not apply (an unknown, with the function's name), by function."""
    slowest_cpu_seconds: float = 0.0
    most_bytes: int = 0
    cpu_seconds: float = 0.0
    done: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fail(self, made: Mutation, kind: str, detail: str) -> None:
        """Note a failure of ``kind``."""
        self.failures.setdefault(kind, []).append(f"seed {made.seed} ({made.origin}, {made.kind}): {detail}")

    def add(self, made: Mutation, answer: dict[str, Any]) -> None:
        """Judge an answer."""
        self.slowest_cpu_seconds = max(self.slowest_cpu_seconds, answer["cpu_seconds"])
        self.cpu_seconds += answer["cpu_seconds"]
        self.most_bytes = max(self.most_bytes, answer["peak_bytes"])
        for what in answer["seen"]:
            self.fail(made, "did what no reading may", what)
        if answer["cpu_seconds"] > READ_SECONDS + GRACE_SECONDS:
            self.fail(made, "longer than its budget", f"{answer['cpu_seconds']:.1f} s")
        if "code" in answer:
            self.outcomes[made.kind][answer["code"]] += 1
            if answer["code"] not in ERRORS or not answer["message"]:
                self.fail(made, "an error without a name", str(answer))
            return
        portrait, _ = read(Portrait, answer["portrait"])
        self._portrait(made, portrait)

    def _portrait(self, made: Mutation, portrait: Portrait) -> None:
        stopped = [
            gap
            for gap in portrait.unknowns
            if gap.what in ("the rest of the script", "the entry script") or gap.what.startswith("file ")
        ]
        for gap in portrait.unknowns:
            if "the reader failed (" in gap.why:
                self.fail(made, "a fault of the reader", gap.why)
            if " could not be applied (" in gap.why:
                self.refused[gap.why[:120]] += 1
        for gap in stopped:
            if gap.file is None:
                self.fail(made, "stopped without a place", f"{gap.what}: {gap.why}")
        known = portrait.memory.peak.device_bytes is not None
        if not known and not portrait.unknowns:
            self.fail(made, "neither numbers nor a reason", made.bundle.entry)
        outcome = "stopped early, said where" if stopped else "numbers" if known else "no numbers, said why"
        self.outcomes[made.kind][outcome] += 1


def _archive(made: Mutation) -> bytes | None:
    """Each twentieth bundle is a zip archive; each second of them is damaged."""
    chance = random.Random(made.seed + 1)
    if chance.random() >= 0.05:
        return None
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in made.bundle.files.items():
            archive.writestr(name, data)
    packed = bytearray(stream.getvalue())
    for _ in range(chance.choice((0, 0, 1, 4))):
        packed[chance.randrange(len(packed))] = chance.randrange(256)
    return bytes(packed)


def work(seeds: list[int], tally: Tally, folder: Path, deadline: float) -> None:
    """Read the mutations of ``seeds`` in one process after the other, until ``deadline`` (monotonic)."""
    child = Child(folder)
    for seed in seeds:
        if time.monotonic() > deadline:
            break
        if child.readings >= READINGS_EACH:
            child.end()
            child = Child(folder)
        made = mutation(seed)
        try:
            answer = child.read(made.bundle, archive=_archive(made))
        except Died as death:
            with tally.lock:
                tally.fail(made, "the process died", str(death))
                tally.outcomes[made.kind]["died"] += 1
                tally.done += 1
            child = Child(folder)
            continue
        with tally.lock:
            tally.add(made, answer)
            tally.done += 1
        if answer.get("code") == "too_large":
            child.end()
            child = Child(folder)
    child.end()


def fuzz(seeds: range, workers: int, *, seconds: float = math.inf, progress: bool = True) -> Tally:
    """Read the mutations of ``seeds``; of fewer when ``seconds`` are over."""
    tally, started = Tally(), time.monotonic()
    parts = [list(seeds)[n::workers] for n in range(workers)]
    with tempfile.TemporaryDirectory(prefix="oarlock-fuzz-") as folder, ThreadPoolExecutor(workers) as pool:
        jobs = [
            pool.submit(work, part, tally, Path(folder) / str(n), started + seconds) for n, part in enumerate(parts)
        ]
        while not any(job.done() and job.exception() for job in jobs) and wait(jobs, timeout=15).not_done:
            if progress:
                failed = sum(map(len, tally.failures.values()))
                print(
                    f"{tally.done:,} of {len(seeds):,}, {failed} failures, {time.monotonic() - started:.0f} s",
                    file=sys.stderr,
                    flush=True,
                )
        for job in jobs:
            job.result()
    return tally


def table(tally: Tally) -> str:
    """Outcomes by kind of mutation, then failures."""
    names = sorted({name for counter in tally.outcomes.values() for name in counter})
    rows = ["| mutated | " + " | ".join(names) + " | all |", "|" + "---|" * (len(names) + 2)]
    for kind, counter in tally.outcomes.items():
        rows.append(f"| {kind} | " + " | ".join(f"{counter[name]:,}" for name in names) + f" | {counter.total():,} |")
    rows.append("")
    failed = sum(map(len, tally.failures.values()))
    mean = tally.cpu_seconds / max(1, tally.done) * 1e3
    rows += [
        f"{tally.done:,} mutations, {failed} failures; {mean:.0f} ms of processor time each, longest reading",
        f"{tally.slowest_cpu_seconds:.1f} processor seconds of {READ_SECONDS + GRACE_SECONDS:g}, most memory "
        f"{tally.most_bytes / 2**20:,.0f} MiB resident of {MEMORY_BYTES / 2**20:,.0f};",
        f"{tally.refused.total():,} calls that a library function could not take.",
    ]
    for kind, found in tally.failures.items():
        rows += ["", f"{kind}: {len(found)}", *(f"  {one}" for one in found[:20])]
    if tally.refused:
        rows += ["", "Calls that a library function could not take, most frequent first:"]
        rows += [f"  {count:6,}  {why}" for why, count in tally.refused.most_common(25)]
    return "\n".join(rows)


def main() -> int:
    """Parse the command line, read, print; 1 when anything failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=50_000, help="mutations to read")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop then, and print what was done")
    parser.add_argument("--seed", type=int, help="print one mutation and its answer")
    given = parser.parse_args()
    if given.seed is not None:
        made = mutation(given.seed)
        print(made.bundle.files[made.bundle.entry].decode("utf-8", "replace"))
    seeds = range(given.first, given.first + given.count) if given.seed is None else range(given.seed, given.seed + 1)
    tally = fuzz(seeds, min(given.workers, len(seeds)), seconds=60 * given.minutes)
    print(table(tally))
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
