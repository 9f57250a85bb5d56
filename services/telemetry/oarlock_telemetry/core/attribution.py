"""Whose process is whose: from a process up its parents to the main process of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from oarlock_telemetry.core.runs import Key

_DEPTH = 256


def owners(parents: Mapping[int, int], roots: Mapping[int, Key], pids: Iterable[int] | None = None) -> dict[int, Key]:
    """The run of each process that belongs to one.

    Args:
        parents: process id to its parent's.
        roots: main process (or the watcher that stands over it) to its run.
        pids: the processes in question; None for all.
    """
    found: dict[int, Key] = {}
    for pid in parents if pids is None else pids:
        at, steps = pid, 0
        while at not in roots and at in parents and steps < _DEPTH:
            at, steps = parents[at], steps + 1
        if at in roots:
            found[pid] = roots[at]
    return found
