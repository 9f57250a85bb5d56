"""Times and durations as people type them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?[smhdw])+")
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")


def duration_of(text: str) -> timedelta:
    """``90m``, ``1h30m``, ``2d``.

    Raises:
        ValueError: it is no duration.
    """
    if _DURATION.fullmatch(text.strip()) is None:
        raise ValueError(f"{text!r} is no duration; write 90m, 4h or 1d12h")
    return timedelta(seconds=sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text)))


def time_of(text: str, now: datetime) -> datetime:
    """``now``, ``+2h`` (from now), or an ISO 8601 time; one without an offset is in the zone of ``now``.

    Raises:
        ValueError: it is no time.
    """
    text = text.strip()
    if text == "now":
        return now
    if text.startswith("+"):
        return now + duration_of(text[1:])
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no time; write 2026-12-01T08:00, +2h or now") from None
    return time if time.tzinfo is not None else time.replace(tzinfo=now.tzinfo)
