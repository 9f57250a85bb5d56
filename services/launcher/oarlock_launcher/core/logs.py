"""How much of a run's output reaches the bus: bounded in length of a line, in rate and in total.

Lines are numbered by their place in the run's output, so a line that is read again after a restart has the same number
and is published under the same message id. What is held back leaves one line of our own saying how much.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Stream = Literal["stdout", "stderr", "oarlock"]

LINE_SCHEMA_MAX_LENGTH = 8192
"""Longest line that ``oarlock_schemas.LogLine`` takes."""


@dataclass(frozen=True, slots=True)
class LogLimits:
    """``burst_lines`` may come at once; after that ``lines_per_second``. ``total_bytes`` is of one run."""

    lines_per_second: float = 200.0
    burst_lines: int = 2000
    line_length: int = 4096
    total_bytes: int = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Line:
    """One line of output. ``number`` counts a run's lines from 1; our own remarks carry the number they follow."""

    stream: Stream
    text: str
    number: int


@dataclass(frozen=True, slots=True)
class LogFlow:
    """How much has passed, and what was held back since something last did."""

    credit: float
    at_seconds: float
    passed_bytes: int = 0
    held_back: int = 0
    full: bool = False


def open_flow(limits: LogLimits, now: float) -> LogFlow:
    """The state before the first line."""
    return LogFlow(credit=float(limits.burst_lines), at_seconds=now)


def admit(flow: LogFlow, line: Line, limits: LogLimits, now: float) -> tuple[LogFlow, list[Line]]:
    """What goes out when ``line`` comes at ``now`` (seconds on any steady clock)."""
    gained = max(0.0, now - flow.at_seconds) * limits.lines_per_second
    flow = replace(flow, credit=min(float(limits.burst_lines), flow.credit + gained), at_seconds=now)
    if flow.full:
        return replace(flow, held_back=flow.held_back + 1), []
    text = shorten(line.text, limits.line_length)
    size = len(text.encode("utf-8", errors="replace"))
    if flow.passed_bytes + size > limits.total_bytes:
        notice = f"output is over {limits.total_bytes} bytes; the rest is kept on the node and not sent"
        return replace(flow, full=True, held_back=flow.held_back + 1), [Line("oarlock", notice, line.number)]
    if flow.credit < 1.0:
        return replace(flow, held_back=flow.held_back + 1), []
    out = []
    if flow.held_back:
        notice = f"{flow.held_back} lines came too fast and were not sent"
        out.append(Line("oarlock", notice, line.number - 1))
    out.append(replace(line, text=text))
    return replace(flow, credit=flow.credit - 1.0, passed_bytes=flow.passed_bytes + size, held_back=0), out


def close(flow: LogFlow, last_number: int) -> list[Line]:
    """What is said when the run has ended."""
    if not flow.held_back:
        return []
    return [Line("oarlock", f"{flow.held_back} more lines were not sent", last_number)]


def shorten(text: str, length: int) -> str:
    """``text`` in at most ``length`` characters, saying how much was cut."""
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if len(text) <= length:
        return text
    mark = f" …[{len(text) - length} more characters]"
    return (text[: max(0, length - len(mark))] + mark)[:length]
