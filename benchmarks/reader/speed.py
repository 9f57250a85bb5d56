"""How long a reading takes: a plain script in process, the whole command, a transformer of a billion parameters, the
same with more blocks, and models of ``transformers`` from its source.

``python -m benchmarks.reader.speed`` prints these alone."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from benchmarks.oracles import environment
from benchmarks.reader.cases import cases

from oarlock_profiler.adapters.portray import Job, portray

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = (12, 48, 192)
PLAIN = ROOT / "examples" / "paddle_cnn_cifar10.py"
BILLION = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.up, self.act, self.down = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.down(self.act(self.up(self.norm2(x))))

class Model(nn.Module):
    def __init__(self, vocabulary=50304, width=2048, layers=18, heads=16, length=1024):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
for step in range(1000):
    ids = torch.randint(0, 50304, (8, 1024), device="cuda")
    logits = model(ids)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@dataclass(frozen=True, slots=True)
class Speed:
    """Wall and processor seconds; where others use the machine too, only the latter mean something."""

    plain_seconds: float
    command_seconds: float
    command_cpu_seconds: float
    billion_seconds: float
    billion_parameters: int
    peak_mib: float
    block_seconds: dict[int, float]


def measure(rounds: int = 7) -> Speed:
    """Measure on this machine."""
    portray(Job(path=str(PLAIN)))
    plain = []
    for _ in range(rounds):
        begun = time.process_time()
        portray(Job(path=str(PLAIN)))
        plain.append(time.process_time() - begun)
    walls, processor = [], []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begun = time.perf_counter()
        subprocess.run(
            [str(Path(sys.executable).parent / "oarlock"), "explain", str(PLAIN)],
            check=True,
            capture_output=True,
            env=_environment(),
        )
        walls.append(time.perf_counter() - begun)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    begun = time.process_time()
    portrait, _ = portray(Job(text=BILLION))
    billion = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    total = portrait.parameters.total
    return Speed(statistics.median(plain), min(walls), min(processor), billion, total or 0, peak, growth())


def growth(rounds: int = 4) -> dict[int, float]:
    """Processor seconds by the number of blocks of the transformer (the least of ``rounds``, taken in turn)."""
    found: dict[int, list[float]] = {count: [] for count in BLOCKS}
    for _ in range(rounds):
        for count in BLOCKS:
            begun = time.process_time()
            portray(Job(text=BILLION.replace("layers=18", f"layers={count}")))
            found[count].append(time.process_time() - begun)
    return {count: min(times) for count, times in found.items()}


def from_source() -> dict[str, float]:
    """Processor seconds of each ``transformers`` model read from the library's source, each in a process of its own."""
    wanted = cases(("transformers",))
    paths = environment.library_paths()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        times = [pool.submit(_reading_seconds, case.source, paths) for case in wanted]
        return {case.name: time.result() for case, time in zip(wanted, times, strict=True)}


def _reading_seconds(source: str, library_paths: Sequence[str]) -> float:
    begun = time.process_time()
    portray(Job(text=source, library_paths=tuple(library_paths), seconds=60))
    return time.process_time() - begun


def _environment() -> dict[str, str]:
    """As a user has it: byte-code is kept."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def rows_of(fast: Speed, source: dict[str, float]) -> list[tuple[str, str, str]]:
    """Rows of the table: what, how much, the aim."""
    slow = max(source, key=lambda name: source[name])
    over = sum(seconds > 5 for seconds in source.values())
    return [
        ("a plain script in process, processor seconds", f"{fast.plain_seconds:.3f}", "0.1"),
        (
            "the whole `oarlock explain`, wall / processor seconds",
            f"{fast.command_seconds:.2f} / {fast.command_cpu_seconds:.2f}",
            "0.6",
        ),
        (
            f"a transformer of {fast.billion_parameters / 1e9:.2f} billion parameters, processor seconds",
            f"{fast.billion_seconds:.2f}",
            "5",
        ),
        (
            f"the same with {' / '.join(map(str, fast.block_seconds))} blocks",
            " / ".join(f"{seconds:.2f}" for seconds in fast.block_seconds.values()),
            "no growth",
        ),
        (
            f"{len(source)} transformers models from source: median / longest ({slow}) / above 5 s",
            f"{statistics.median(source.values()):.1f} / {source[slow]:.1f} / {over}",
            "5 s each",
        ),
        ("memory of all that, MiB", f"{fast.peak_mib:.0f}", "500"),
    ]


if __name__ == "__main__":
    for row in rows_of(measure(), from_source()):
        print(" | ".join(row))
