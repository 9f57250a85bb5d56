"""Mutated scripts, snippets and hostile code: read by the service's limited reader, which never crashes, hangs, runs
anything, or opens what is not in the bundle. ``make fuzz-reader`` does this for 50,000 of them.
"""

from __future__ import annotations

from benchmarks.reader import fuzz
from benchmarks.reader.mutations import KINDS, mutation


def test_mutations_are_read_or_refused_by_name() -> None:
    tally = fuzz.fuzz(range(1_000_000, 1_000_300), workers=1, progress=False)
    assert tally.failures == {}
    assert tally.done == 300
    assert {kind for kind, outcomes in tally.outcomes.items() if outcomes} == set(KINDS)


def test_a_seed_stands_for_one_mutation() -> None:
    assert mutation(7) == mutation(7)
    assert len({mutation(seed).bundle.files[mutation(seed).bundle.entry] for seed in range(40)}) > 35
