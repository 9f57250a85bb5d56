"""The same steps under another setting: a trace rewritten, to be replayed like the one that was read.

The needs of a step are nearly affine in the batch: what is made per sample scales with it, what is made per parameter
does not. A storage is per parameter when it is (or turns into) a weight, a gradient or optimiser state, or when it is
made while the optimiser steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from oarlock_profiler.core.engine.trace import Alloc, Event, Op, Retag, Trace

_PER_PARAMETER = frozenset({"parameter", "buffer", "gradient", "optimizer"})


def per_parameter_ids(trace: Trace) -> set[int]:
    """Storages whose size does not depend on the batch."""
    ids: set[int] = set()
    for event in trace.events:
        if isinstance(event, Alloc):
            if event.kind in _PER_PARAMETER or event.phase in {"setup", "optimizer"}:
                ids.add(event.id)
        elif isinstance(event, Retag) and event.kind in _PER_PARAMETER:
            ids.add(event.id)
    return ids


def with_batch(trace: Trace, ratio: float) -> Trace:
    """The trace with the batch multiplied by ``ratio``: per-sample storages and the work on them scale."""
    fixed = per_parameter_ids(trace)

    def change(event: Event) -> Event:
        if isinstance(event, Alloc):
            return event if event.id in fixed else replace(event, nbytes=max(1, round(event.nbytes * ratio)))
        if isinstance(event, Op) and event.phase not in {"setup", "optimizer"}:
            return replace(
                event,
                flops=round(event.flops * ratio),
                bytes_moved=round(event.bytes_moved * ratio),
                workspace_bytes=round(event.workspace_bytes * ratio),
            )
        return event

    return _rewritten(trace, change)


def with_sizes(trace: Trace, shares: dict[str, float], *, saved_share: float = 1.0) -> Trace:
    """The trace with parts resized: ``shares`` by storage kind (its final kind), ``saved_share`` for activations kept.

    A storage's final kind is the one it is last tagged with, so that a gradient buffer counts as a gradient.
    """
    final: dict[int, str] = {}
    for event in trace.events:
        if isinstance(event, Alloc | Retag):
            final[event.id] = event.kind
    merged = {"saved": saved_share, **shares}

    def change(event: Event) -> Event:
        if isinstance(event, Alloc):
            share = merged.get(final[event.id], 1.0)
            return event if share == 1.0 else replace(event, nbytes=round(event.nbytes * share))
        return event

    return _rewritten(trace, change)


def _rewritten(trace: Trace, change: Callable[[Event], Event]) -> Trace:
    return Trace(
        events=[change(event) for event in trace.events],
        phase=trace.phase,
        steps=trace.steps,
        limit=trace.limit,
        truncated=trace.truncated,
    )
