"""Sizes of layers that only data could tell: rows of a vocabulary's table, classes of a file's labels.

A model without its embedding is no model, so such a size is assumed, and the gap says by how much to doubt it.
"""

from __future__ import annotations

from oarlock_profiler.core.interpreter.values import Context, Unknown, Value
from oarlock_profiler.core.overlays.calling import integer

VOCABULARY = 30_000
"""Words of a vocabulary that is built from a text (what word-level tutorials keep; BERT's has 30,522 pieces)."""
CLASSES = 10
_STATE = "assumed sizes"


def counted(context: Context, value: Value, what: str, otherwise: int) -> int:
    """``value``, or ``otherwise`` for a number that depends on data; the same unknown number is assumed once.

    Raises:
        Unknowable: ``value`` is no number that data decides.
    """
    if not isinstance(value, Unknown) or value.hint != "int":
        return integer(value)
    source, more = value.origin or (value, 0)
    known: dict[int, tuple[Unknown, int]] = context.state.setdefault(_STATE, {})
    found = known.get(id(source))
    if found is None:
        number = int(source.high) if source.high is not None and source.high > 0 else otherwise
        known[id(source)] = found = (source, number)
        context.findings.gap(what, context.where, value.why, assumed=number)
    return found[1] + more
