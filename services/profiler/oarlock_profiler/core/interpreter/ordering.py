"""Sorting and choosing the largest of any values, with the script's own keys and comparisons."""

from __future__ import annotations

import functools
from typing import Any

from oarlock_profiler.core.interpreter import operators
from oarlock_profiler.core.interpreter.values import Unknown, Value


def _less(m: Any, a: Value, b: Value) -> bool:
    m.spend()
    return m.truth(operators.compare(m, "<", a, b)) is True


def sort_items(m: Any, items: list[Value], key: Value, reverse: Value) -> list[Value]:
    """Sorted copy; where the order of two items is not known they keep their places."""
    keyed = [(item if key is None else m.call(key, [item]), item) for item in items]
    m.spend(len(items))
    if any(isinstance(k, Unknown) for k, _ in keyed):
        return items

    def order(a: tuple[Value, Value], b: tuple[Value, Value]) -> int:
        if _less(m, a[0], b[0]):
            return -1
        return 1 if _less(m, b[0], a[0]) else 0

    if all(type(k) in (int, float) for k, _ in keyed) or all(type(k) is str for k, _ in keyed):
        keyed.sort(key=lambda pair: pair[0], reverse=reverse is True)
    else:
        keyed.sort(key=functools.cmp_to_key(order), reverse=reverse is True)
    return [item for _, item in keyed]


def extreme(m: Any, items: list[Value], key: Value, largest: bool) -> Value:
    """``max``/``min``; an unknown among numbers makes the result unknown within bounds."""
    best: Value = None
    best_key: Value = None
    doubt: Unknown | None = None
    for position, item in enumerate(items):
        ranked = item if key is None else m.call(key, [item])
        if isinstance(ranked, Unknown):
            doubt = ranked
            continue
        if (best_key is None and (position == 0 or doubt is not None or best is None)) or (
            (_less(m, best_key, ranked)) if largest else _less(m, ranked, best_key)
        ):
            best, best_key = item, ranked
    if doubt is None:
        return best
    low = high = None
    if type(best_key) in (int, float):
        low, high = (best_key, None) if largest else (None, best_key)
    kind = doubt.hint or (type(best).__name__ if type(best) in (int, float, str) else None)
    return Unknown(doubt.why, doubt.where, kind, low, high, name=doubt.name)
