"""A branch on an unknown keeps the larger need: the script is read again with the other side, and the larger counts.

A reading cannot be forked, so each branch costs a reading of its own. The branches with the most work in them come
first, one after the other, each on top of what was decided before; :attr:`Limits.readings` bounds how many. What was
compared stands in the findings, at the line of the branch.
"""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from oarlock_profiler.core.engine.trace import Alloc, Free, Trace
from oarlock_profiler.core.interpreter.choices import Choice, Place
from oarlock_profiler.core.reading import Reading

_MANY_EVENTS = 200_000
"""A reading of so many events holds memory worth collecting before the next one."""


@dataclass(frozen=True)
class Walked:
    """One reading, and the sides it took."""

    reading: Reading
    choices: Mapping[Place, Choice]

    @cached_property
    def largest_bytes(self) -> int:
        """The need by which sides are compared."""
        return largest_bytes(self.reading.trace)


Again = Callable[[Mapping[Place, bool]], Walked]


def settle(first: Walked, again: Again, readings: int, time_left: Callable[[], bool]) -> Reading:
    """The reading with the larger need among ``first`` and at most ``readings`` more, each with one side turned round.

    ``time_left`` says before each whether there is time for it.
    """
    if not first.choices:
        return first.reading
    search = _Search(again, readings, time_left)
    best = search.improve(first, frozenset())
    for place, choice in best.choices.items():
        _tell(best.reading, choice, search.compared.get(place))
    return best.reading


class _Search:
    """Turns one branch after the other; those that only one of two sides has are settled before these are compared."""

    def __init__(self, again: Again, readings: int, time_left: Callable[[], bool]) -> None:
        self.again = again
        self.left = readings
        self.time_left = time_left
        self.compared: dict[Place, str] = {}

    def improve(self, best: Walked, fixed: frozenset[Place]) -> Walked:
        """The best that turning branches of ``best`` gives, all but those of ``fixed``."""
        while True:
            place = self._next(best, fixed)
            if place is None or self.left <= 0 or not self.time_left():
                return best
            self.left -= 1
            if len(best.reading.trace.events) > _MANY_EVENTS:
                gc.collect()
            turned = not best.choices[place].side
            other = self.again({**{p: c.side for p, c in best.choices.items()}, place: turned})
            shared = fixed | {place} | (best.choices.keys() & other.choices.keys())
            best, other = self.improve(best, shared), self.improve(other, shared)
            kept, left = (other, best) if _rank(other) > _rank(best) else (best, other)
            self.compared[place] = _words(kept, left)
            best = kept

    def _next(self, best: Walked, fixed: frozenset[Place]) -> Place | None:
        """The branch with the most work that was not compared yet."""
        seen = fixed | self.compared.keys()
        left = [(-choice.weight, place) for place, choice in best.choices.items() if place not in seen]
        return min(left)[1] if left else None


def _rank(walked: Walked) -> tuple[bool, bool, int]:
    """What goes through counts for more than what stops, what trains for more than what does not."""
    return walked.reading.stopped is None, walked.reading.trace.steps > 0, walked.largest_bytes


def largest_bytes(trace: Trace) -> int:
    """The most bytes that tensors hold at once on the device that holds most; the host's if there is no other."""
    live: dict[str, int] = {}
    most: dict[str, int] = {}
    sizes: dict[int, tuple[str, int]] = {}
    for event in trace.events:
        if type(event) is Alloc:
            sizes[event.id] = event.device, event.nbytes
            now = live[event.device] = live.get(event.device, 0) + event.nbytes
            if now > most.get(event.device, 0):
                most[event.device] = now
        elif type(event) is Free and event.id in sizes:
            device, nbytes = sizes.pop(event.id)
            live[device] -= nbytes
    accelerators = [nbytes for device, nbytes in most.items() if device not in ("cpu", "meta")]
    return max(accelerators or most.values(), default=0)


def _words(kept: Walked, left: Walked) -> str:
    if left.reading.stopped and not kept.reading.stopped:
        return f"with the other side the script does not go through: {left.reading.stopped[:120]}"
    if kept.largest_bytes == left.largest_bytes:
        return "both sides need the same"
    return f"it needs {_size(kept.largest_bytes)}, the other side {_size(left.largest_bytes)}"


def _size(nbytes: int) -> str:
    return f"{nbytes / 2**20:,.1f} MiB" if nbytes >= 2**20 else f"{nbytes:,} bytes"


def _tell(reading: Reading, choice: Choice, compared: str | None) -> None:
    """Write into the findings how the sides of a branch compare."""
    gaps = reading.findings.gaps
    if choice.gap is not None and choice.gap in gaps:
        gap = gaps[choice.gap]
        assumed = f"{gap.assumed}; {compared or 'the other side was not measured'}"
        gaps[choice.gap] = dataclasses.replace(gap, assumed=assumed)
