"""Every decision's input, compactly, and the proof that it can be decided again: the same effects, bit for bit.

A record is one JSON object `{"now", "event", "effects"}`: the event in full, the effects as a digest. Replaying records
from the first on needs nothing else but the settings and the policy that the recording began with.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from oarlock_matcher.core import demand, devices, events, policy_settings
from oarlock_matcher.core.effects import Effect
from oarlock_matcher.core.events import Event
from oarlock_matcher.core.machine import decide
from oarlock_matcher.core.state import MatcherState

_TYPES: dict[str, type] = {
    name: found
    for module in (events, demand, devices, policy_settings)
    for name, found in vars(module).items()
    if isinstance(found, type) and dataclasses.is_dataclass(found)
}


class BadRecord(ValueError):
    """A record that cannot be read back; the message says why."""


@dataclasses.dataclass(frozen=True, slots=True)
class Mismatch:
    """A record that was decided differently this time. `number` counts from 0."""

    number: int
    event: str
    expected: str
    found: str


def encode(value: Any) -> Any:
    """A core value as plain JSON values, so that `decode` gives an equal one."""
    if isinstance(value, Enum):
        return {"enum": value.value}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # Fields that hold their default are left out: most of a demand's do.
        fields = {}
        for field in dataclasses.fields(value):
            content = getattr(value, field.name)
            if not _is_default(field, content):
                fields[field.name] = encode(content)
        return {"type": type(value).__name__, "fields": fields}
    if isinstance(value, frozenset):
        return {"set": sorted(encode(item) for item in value)}
    if isinstance(value, Mapping):
        return {"map": [[encode(k), encode(v)] for k, v in value.items()]}
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    return value


def decode(value: Any) -> Any:
    """The inverse of `encode`.

    Raises:
        BadRecord: not something that `encode` writes.
    """
    if isinstance(value, list):
        return tuple(decode(item) for item in value)
    if not isinstance(value, dict):
        return value
    try:
        if "enum" in value:
            return devices.Health(value["enum"])
        if "set" in value:
            return frozenset(decode(item) for item in value["set"])
        if "map" in value:
            return {decode(k): decode(v) for k, v in value["map"]}
        made = _TYPES[value["type"]]
        return made(**{name: decode(content) for name, content in value["fields"].items()})
    except (KeyError, TypeError, ValueError) as error:
        raise BadRecord(f"cannot be read back ({type(error).__name__}: {error}): {str(value)[:200]}") from error


def _is_default(field: dataclasses.Field[Any], content: Any) -> bool:
    if field.default is not dataclasses.MISSING:
        return type(content) is type(field.default) and bool(content == field.default)
    if field.default_factory is not dataclasses.MISSING:
        return bool(content == field.default_factory())
    return False


def digest(effects: Iterable[Effect]) -> str:
    """16 hexadecimal digits that tell one set of effects from another, every bit of every score included."""
    text = json.dumps([encode(effect) for effect in effects], separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def record(event: Event, now: float, effects: Iterable[Effect]) -> str:
    """One decision as a line of JSON."""
    return json.dumps({"now": now, "event": encode(event), "effects": digest(effects)}, separators=(",", ":"))


def replay(lines: Iterable[str], state: MatcherState) -> list[Mismatch]:
    """Decide every record again, from `state` (fresh, with the settings that the recording began with), and list those
    whose effects differ.

    Raises:
        BadRecord: a line is not a record.
    """
    mismatches: list[Mismatch] = []
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            now, expected, event = float(entry["now"]), str(entry["effects"]), decode(entry["event"])
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise BadRecord(f"line {number + 1} is not a record: {error}") from error
        state, effects = decide(state, event, now)
        found = digest(effects)
        if found != expected:
            mismatches.append(Mismatch(number, type(event).__name__, expected, found))
    return mismatches
