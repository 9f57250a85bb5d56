"""Arrays: one submission that stands for many tasks, which differ by the number they are told.

Written as Slurm writes them: ``0-9``, ``1,3,5-7``, ``0-15:4`` (every fourth), each with ``%N`` for at most N at a time.
The array's own id names all of its tasks; each has the id ``{array}-{index}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from oarlock_schemas.base import Message, Token

MAX_ARRAY_TASKS = 1000
MAX_INDEX = 999_999
MAX_ID_LENGTH = 120
"""Of an array's id, so that its tasks' ids are none too long."""

INDEX_VARIABLE = "OARLOCK_ARRAY_INDEX"
ID_VARIABLE = "OARLOCK_ARRAY_ID"
SIZE_VARIABLE = "OARLOCK_ARRAY_SIZE"

_PART = re.compile(r"(\d{1,6})(?:-(\d{1,6})(?::(\d{1,6}))?)?")
_LIMIT = re.compile(r"\d{1,6}")


class ArrayMember(Message):
    """Which task of which array this is; filled on arrival."""

    of: Token = Field(description="The array's id.")
    index: int = Field(ge=0, le=MAX_INDEX)
    size: int = Field(ge=1, le=MAX_ARRAY_TASKS)
    at_once: int | None = Field(None, ge=1, description="How many of the array may hold devices at a time.")

    @property
    def variables(self) -> dict[str, str]:
        """What the script finds in its environment."""
        return {INDEX_VARIABLE: str(self.index), ID_VARIABLE: self.of, SIZE_VARIABLE: str(self.size)}


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """The indices of an array, ascending, and how many of its tasks may hold devices at a time (None: all)."""

    indices: tuple[int, ...]
    at_once: int | None = None

    def ids(self, array_id: str) -> tuple[str, ...]:
        """The ids of its tasks."""
        return tuple(f"{array_id}-{index}" for index in self.indices)

    def member(self, array_id: str, index: int) -> ArrayMember:
        """What one of its tasks is told."""
        return ArrayMember(of=array_id, index=index, size=len(self.indices), at_once=self.at_once)


def array_spec(text: str) -> ArraySpec:
    """Read ``0-9%2``.

    Raises:
        ValueError: it is not written so, or has no task or too many.
    """
    ranges, percent, limit = text.replace(" ", "").partition("%")
    if percent and (_LIMIT.fullmatch(limit) is None or int(limit) < 1):
        raise ValueError(f"after % comes how many may run at a time, not {limit!r}")
    indices: set[int] = set()
    for part in ranges.split(","):
        found = _PART.fullmatch(part)
        if found is None:
            raise ValueError(
                f"{part!r} is no index and no range; write 0-9, 1,3,5-7 or 0-15:4, with %N for N at a time"
            )
        first = int(found[1])
        last = first if found[2] is None else int(found[2])
        step = 1 if found[3] is None else int(found[3])
        if last < first or step < 1:
            raise ValueError(f"the range {part!r} holds no index")
        if len(range(first, last + 1, step)) > MAX_ARRAY_TASKS:
            raise ValueError(f"an array has at most {MAX_ARRAY_TASKS} tasks")
        indices.update(range(first, last + 1, step))
    if len(indices) > MAX_ARRAY_TASKS:
        raise ValueError(f"an array has at most {MAX_ARRAY_TASKS} tasks, not {len(indices)}")
    return ArraySpec(tuple(sorted(indices)), int(limit) if percent else None)


ArrayEnd = Literal["succeeded", "failed", "cancelled"]


def array_end(states: Iterable[str]) -> tuple[ArrayEnd, str] | None:
    """How an array ended whose tasks are in ``states`` (all of them), and in words; None while one has not."""
    counts: dict[str, int] = {}
    for state in states:
        if state not in {"succeeded", "failed", "rejected", "cancelled"}:
            return None
        counts[state] = counts.get(state, 0) + 1
    words = ", ".join(f"{count} {state}" for state, count in sorted(counts.items(), key=lambda item: -item[1]))
    if set(counts) == {"succeeded"}:
        return "succeeded", words
    return ("failed" if counts.keys() & {"failed", "rejected"} else "cancelled"), words
