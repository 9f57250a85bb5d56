"""How many tokens each of ``n`` experts gets: of what was picked among ``n``, one ``n``-th equals any one of them.

Which elements of ``topk_indices == expert`` are true depends on values, and taken alone it may be all of them; but a
script that asks for every expert in turn gets each element once. Counting all for each would compute ``n`` times too
much. Views share their storage, so that is what carries the note.
"""

from __future__ import annotations

import math

from oarlock_profiler.core.engine.shapes import numel
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Context, Value

_PICKED = "picked among"
_SHARE = "share of true elements"
FEWEST, MOST = 2, 1024
"""Of a vocabulary's words, or of pixels, one may well be picked by all: only a router's choices are spread evenly."""


def picked(context: Context, indices: Value, among: int) -> Value:
    """``indices`` are places among ``among``."""
    if isinstance(indices, Tensor) and indices.storage is not None and FEWEST <= among <= MOST:
        context.state.setdefault(_PICKED, {})[indices.storage.id] = among
    return indices


def compared(context: Context, indices: Value, result: Value) -> Value:
    """``result`` is where ``indices`` equal one value, or their one-hot form."""
    if isinstance(indices, Tensor) and isinstance(result, Tensor) and indices.storage and result.storage:
        among = context.state.get(_PICKED, {}).get(indices.storage.id)
        if among is not None:
            context.state.setdefault(_SHARE, {})[result.storage.id] = 1 / among
    return result


def any_of(context: Context, mask: Tensor, result: Tensor) -> Tensor:
    """``mask.any(axis)``: a token that picks several different experts is true for each of them."""
    share = _share(context, mask)
    if share is not None and result.storage is not None and numel(result.shape or ()):
        several = numel(mask.shape or ()) // numel(result.shape or ())
        context.state[_SHARE][result.storage.id] = min(1.0, share * several)
    return result


def selected(context: Context, mask: Tensor) -> int | None:
    """How many elements of ``mask`` are true where it says who picked one expert; None for any other mask."""
    share = _share(context, mask)
    return None if share is None else math.ceil(numel(mask.shape or ()) * share)


def _share(context: Context, mask: Tensor) -> float | None:
    if mask.storage is None:
        return None
    found: float | None = context.state.get(_SHARE, {}).get(mask.storage.id)
    return found
