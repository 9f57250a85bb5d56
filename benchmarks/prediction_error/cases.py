"""One measured run: the script that made it, and what was seen."""

from __future__ import annotations

import csv
import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

MIB = 1 << 20
FOLDS = 5


@dataclass(frozen=True, slots=True)
class Case:
    """A row of a table as a script.

    ``kind`` is what was measured: ``device``, ``reserved`` or ``allocated``. ``surroundings`` names the machine and
    stack of the campaign: its context is one unknown constant. ``group`` is what folds are cut by, so that no model
    lends constants to itself. ``scored`` is False where the row's note says it is not fully specified or suspect.
    """

    source: str
    name: str
    family: str
    script: str
    device: str
    surroundings: str
    kind: str
    measured_bytes: int
    out_of_memory: bool = False
    scored: bool = True
    group: str = ""
    arguments: tuple[str, ...] = ()
    note: str = ""
    peers_bytes: dict[str, int] = field(default_factory=dict)

    @property
    def fold(self) -> int:
        """Which of the fixed folds this case is scored in."""
        return int(hashlib.sha256((self.group or self.name).encode()).hexdigest(), 16) % FOLDS


def rows(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a table."""
    csv.field_size_limit(sys.maxsize)
    with path.open(newline="") as file:
        yield from csv.DictReader(file)


def settings(model: str) -> dict[str, str]:
    """``mlp:input:12_output:3_act:leaky_relu_…`` as a dictionary; values may hold underscores, keys too."""
    body = model.split(":", 1)[1]
    keys = [
        "input_channels", "input_size", "input", "output", "depth", "arch", "batch_size", "batch", "act",
        "dropout_rate", "dropout", "batchnorm", "num_classes", "base_filters", "embedding_size", "num_layers",
        "num_heads", "ff_hidden_size", "seq_length", "num_samples",
    ]  # fmt: skip
    found: dict[str, str] = {}
    rest = body
    while rest:
        key = next((key for key in sorted(keys, key=len, reverse=True) if rest.startswith(key + ":")), None)
        if key is None:
            break
        rest = rest[len(key) + 1 :]
        cut = min((at for other in keys if (at := rest.find(f"_{other}:")) >= 0), default=len(rest))
        value = rest[:cut]
        # `dropout` appears twice: first the rate, then whether it is used.
        found["dropout_used" if key == "dropout" and "dropout" in found else key] = value
        rest = rest[cut + 1 :]
    return found
