"""Mutated snippets never crash the reader, and never hang it."""

from __future__ import annotations

import random
import time

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oarlock_profiler.core.interpreter.budget import Limits

from .bench import run
from .test_hostile import HOSTILE
from .test_language import CASES

CORPUS = [source for source, _ in CASES.values()] + [s for s in HOSTILE.values() if len(s) < 500]
PIECES = ["None", "0", "1", "-1", "''", "[]", "{}", "()", "lambda: x", "x", "self", "*", "**", ".", ",", ":", "(", ")", "[", "]", "\n", " ", "for", "in", "if", "else",
          "yield", "await", "class", "def", "return", "raise", "del", "=", "+=", "10**9", "input()", "open('x')", "super()", "not", "is", "@", "%", "<<", "try:\n ", "except"]  # fmt: skip


def mutated(seed: int) -> str:
    """A snippet of the corpus with a few pieces cut, doubled, swapped with another's, or replaced."""
    chance = random.Random(seed)
    source = chance.choice(CORPUS)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(source) + 1)
        to = min(len(source), at + chance.randrange(8))
        kind = chance.randrange(4)
        other = chance.choice(CORPUS)
        start = chance.randrange(len(other) + 1)
        piece = ["", source[at:to] * 2, other[start : start + chance.randrange(40)], chance.choice(PIECES)][kind]
        source = source[:at] + piece + source[to:]
    return source


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.integers(0, 2**32))
def test_mutations(seed: int) -> None:
    started = time.monotonic()
    ran = run(mutated(seed), limits=Limits(steps=30_000, seconds=1.0))
    assert time.monotonic() - started < 10
    assert not [e for e in ran.machine.internal_errors if e.startswith("the reader failed")]
