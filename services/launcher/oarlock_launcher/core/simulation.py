"""A run on simulated devices: nothing is executed, and everything that is said of it says so.

Its duration is the predicted one where the script says how long it trains, cut to what a demonstration can wait for.
Its outcome is always ``ok``: the matcher has already decided that it fits, and a simulation cannot know better.
"""

from __future__ import annotations

from collections.abc import Sequence

STEPS_WHEN_UNKNOWN = 100
"""Steps that stand for a run whose length is not known."""

NOTICE = "simulated run on simulated devices: nothing was executed"


def duration_seconds(
    predicted_seconds: float | None, step_seconds: float | None, shortest: float, longest: float
) -> float:
    """Seconds a simulated run lasts: the predicted duration, else some steps, within ``shortest`` and ``longest``."""
    wanted = predicted_seconds
    if wanted is None and step_seconds is not None:
        wanted = step_seconds * STEPS_WHEN_UNKNOWN
    return longest if wanted is None else min(max(wanted, shortest), longest)


def log_lines(kinds: Sequence[str], command: Sequence[str], seconds: float, predicted_bytes: int | None) -> list[str]:
    """What the log of a simulated run says."""
    memory = "not predicted" if predicted_bytes is None else f"{predicted_bytes} bytes"
    return [
        NOTICE,
        f"devices: {', '.join(kinds)} (simulated)",
        f"would run: {' '.join(command)}" if command else "would run: nothing, the task has no code",
        f"lasts {seconds:.1f} s here; predicted device memory: {memory}",
    ]
