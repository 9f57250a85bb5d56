"""How long containers are whose keys are not known: vocabularies and label sets built from a file that is not there.

A loop over unknown words is walked once, so ``vocab[word] = len(vocab)`` leaves one key where there will be many.
Asked twice, the same container has the same unknown length: a vocabulary's embedding and the layer over its words
agree.
"""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.interpreter.values import Unknown, Value

WHY = "how many there are depends on data that is not in the script"
_STATE = "unknown lengths"
_SHOWN = 64
_PLAIN = (str, bytes, int, float, type(None), Unknown)


def length(m: Any, value: Value) -> Unknown | None:
    """The length of a dictionary or set that has a key that is not known; None for any other."""
    if type(value) not in (dict, set, frozenset) and not isinstance(value, dict):
        return None
    if not value or not any(isinstance(key, Unknown) for key in _shown(value)):
        return None
    known = m.state.setdefault(_STATE, {})
    found = known.get(id(value))
    if found is not None and found[0] is value:
        return found[1]  # type: ignore[no-any-return]
    made = Unknown(WHY, m.where, "int", 1)
    items = list(value.values())[:_SHOWN] if isinstance(value, dict) else ()
    if all(isinstance(item, _PLAIN) for item in items):
        known[id(value)] = (value, made)
    return made


def _shown(value: Any) -> list[Value]:
    keys = list(value) if len(value) <= _SHOWN else []
    return keys or ([next(reversed(value))] if isinstance(value, dict) else [])
