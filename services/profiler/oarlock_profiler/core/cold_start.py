"""What is booked when nothing can be read: batch × sequence × hidden × 4 bytes × 1.5, each missing input said so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oarlock_profiler.core.memory.interval import Interval
from oarlock_profiler.core.notes import unknown
from oarlock_schemas import Evidence, UnknownFact

ASSUMED_BATCH = 32
ASSUMED_SEQUENCE = 512
ASSUMED_HIDDEN = 768
BYTES_PER_VALUE = 4
MARGIN = 1.5
CONFIDENCE = 0.1

LOW, HIGH = 0.2, 20.0
"""The formula knows nothing of depth or optimiser, so that the need may well be many times what it says."""


@dataclass(frozen=True, slots=True)
class ColdStart:
    """The guess, in bytes, with what it rests on."""

    device: Interval
    confidence: float
    evidence: list[Evidence]
    unknowns: list[UnknownFact]


def cold_start(declared: Mapping[str, Any], batch: int | None, sequence: int | None, why: str) -> ColdStart:
    """Size a task from what was declared alone; ``why`` says what kept the reader from doing better."""
    inputs = {
        "batch_size_per_gpu": (batch, ASSUMED_BATCH),
        "sequence_length": (sequence, ASSUMED_SEQUENCE),
        "hidden_size": (declared.get("hidden_size"), ASSUMED_HIDDEN),
    }
    unknowns = [unknown("memory", f"{why}; the cold-start formula stands in")]
    values = []
    for name, (given, assumed) in inputs.items():
        if given is None:
            unknowns.append(unknown(name, "neither read nor declared", assumed))
        values.append(int(given or assumed))
    nbytes = round(values[0] * values[1] * values[2] * BYTES_PER_VALUE * MARGIN)
    evidence = [
        Evidence(fact="memory", value="batch × sequence × hidden × 4 bytes × 1.5", how="cold_start"),
    ]
    return ColdStart(Interval(round(nbytes * LOW), nbytes, round(nbytes * HIGH)), CONFIDENCE, evidence, unknowns)
