"""Placement tried out on this machine: what ``oarlock simulate`` and ``oarlock replay`` do.

Beside ``oarlock.local`` the one place of the client that runs a service's code: the simulator drives the matcher's
own core, so there is nothing to ask over the bus.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from oarlock_matcher.adapters.decision_log import replay_file
from oarlock_matcher.core.recording import BadRecord
from oarlock_matcher.simulator import run


def simulate(arguments: Sequence[str]) -> int:
    """Run the simulator with these arguments; prints its result and returns the exit code."""
    return run(arguments)


class NoDecisionLog(ValueError):
    """The file is no decision log, or is damaged."""


def replay(path: Path) -> list[dict[str, Any]]:
    """Decide everything in a matcher's decision log again; one entry a reign, with what came out otherwise.

    Raises:
        NoDecisionLog: the file cannot be read as one.
    """
    try:
        return [
            {"reign": number, "decisions": count, "mismatches": [asdict(m) for m in mismatches]}
            for number, count, mismatches in replay_file(path)
        ]
    except (OSError, UnicodeDecodeError, BadRecord, KeyError, TypeError) as error:
        raise NoDecisionLog(f"{path}: {error}") from error
