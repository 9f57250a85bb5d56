"""Unknown lists that a script has cut: ``ids[:128]`` of the tokens of a file that is not there.

Those who cut a list so bring it to that length afterwards (``ids + [0] * (128 - len(ids))``), and what is longer is
cut to it: the larger need is a list that is as long as the cut allows.
"""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.interpreter.values import Unknown, Value

MOST_ITEMS = 4096
_LOOKED_AT = 16
_STATE = "cut lists"
_NO_LIST = frozenset({"str", "bytes", "tensor", "array", "library", "callable"})


def _kept(key: slice) -> int | None:
    """The most items that ``[:n]`` or ``[-n:]`` leaves; None for other slices."""
    if key.step is not None:
        return None
    if key.start in (None, 0) and type(key.stop) is int:
        most = key.stop
    elif key.stop is None and type(key.start) is int:
        most = -key.start
    else:
        return None
    return most if 0 < most <= MOST_ITEMS else None


def cut(m: Any, target: Unknown, key: slice) -> Unknown | None:
    """``target[:n]`` as a list of which the length is remembered; None when it is no such cut."""
    long = _kept(key)
    if long is None or target.hint in _NO_LIST:
        return None
    made = Unknown(target.why, target.where, target.hint, item=target.item, name=target.name)
    m.state.setdefault(_STATE, {})[id(made)] = (made, long)
    return made


def numbers(target: list[Value], key: slice) -> int | None:
    """How long an open list of numbers is taken to be once it is cut to ``n`` of them; None when it is no such cut.

    Of other things, files say, that a script goes through, one still stands for all.
    """
    long = _kept(key)
    if long is None:
        return None
    return long if target and all(map(is_number, target[:_LOOKED_AT])) else None


def is_number(value: Value) -> bool:
    """Whether a value is a number, known or not."""
    hint = value.hint if isinstance(value, Unknown) else None
    return isinstance(value, int | float) or hint in ("int", "float", "bool", "number")


def length(m: Any, value: Value) -> int | None:
    """How long an unknown list is taken to be that was cut."""
    known = m.state.get(_STATE)
    found = known.get(id(value)) if known else None
    return found[1] if found is not None and found[0] is value else None


def joined(m: Any, left: Value, right: Value) -> list[Value] | None:
    """``left + right`` where one is such a list and the other a list."""
    sides = [listed(m, side) for side in (left, right)]
    return None if sides[0] is None or sides[1] is None else sides[0] + sides[1]


def listed(m: Any, value: Value) -> list[Value] | None:
    """Its items, as many as it is taken to hold, or those of a list."""
    if type(value) is list:
        return value
    long = length(m, value)
    if long is None:
        return None
    item = value.item if value.item is not None else Unknown(value.why, value.where, name=value.name)
    return [item] * long
