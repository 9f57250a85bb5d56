"""Placement tried out on this machine: what ``oarlock simulate`` and ``oarlock replay`` do.

Beside ``oarlock.local`` the one place of the client that runs a service's code: the simulator drives the matcher's
own core, so there is nothing to ask over the bus.
"""

from __future__ import annotations

from collections.abc import Sequence

from oarlock_matcher.simulator import run


def simulate(arguments: Sequence[str]) -> int:
    """Run the simulator with these arguments; prints its result and returns the exit code."""
    return run(arguments)
