"""How long a reading takes: a plain script in process, the whole command, a transformer of a billion parameters."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from oarlock_profiler.adapters.portray import Job, portray

ROOT = Path(__file__).resolve().parents[2]
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
    return Speed(statistics.median(plain), min(walls), min(processor), billion, total or 0, peak)


def _environment() -> dict[str, str]:
    """As a user has it: byte-code is kept."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
