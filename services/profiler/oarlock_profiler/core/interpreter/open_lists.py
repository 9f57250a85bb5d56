"""Lists that hold more than was seen: filled in a loop whose number of rounds is not known.

Such a loop is walked once, so ``samples.append(…)`` leaves one item where there will be many. The items stand for all,
but neither the length nor an index says anything: ``samples[: int(0.8 * len(samples))]`` is not empty.
"""

from __future__ import annotations

from oarlock_profiler.core.interpreter.values import Unknown, Value

_DEPTH = 3
_PLAIN = (str, bytes, int, float, complex, type(None), Unknown)
WHY = "how many items it gets depends on a loop whose number of rounds is not known"


class _Loop:
    """A loop being walked: the lists made in it, and the older ones that got items in it."""

    __slots__ = ("born", "endless", "grown")

    def __init__(self, endless: bool) -> None:
        self.endless = endless
        self.born: set[int] = set()
        self.grown: dict[int, list[Value]] = {}


class OpenLists:
    """Which lists are open, and which lists were made inside the loops that are being walked.

    A list that holds tensors is never counted as open: to remember it would keep its tensors alive.
    """

    def __init__(self) -> None:
        self._open: dict[int, list[Value]] = {}
        self._loops: list[_Loop] = []

    def enter(self, *, endless: bool) -> None:
        """A loop begins: one whose number of rounds is not known (``endless``), or one that may turn out so."""
        self._loops.append(_Loop(endless))

    def doubt(self) -> None:
        """The innermost loop is left, or goes on, for a condition that is not known."""
        if self._loops:
            self._loops[-1].endless = True

    def leave(self) -> None:
        """It is over: what was made in it is as old as what was made around it."""
        loop = self._loops.pop()
        if loop.endless:
            for target in loop.grown.values():
                self.mark(target)
        if self._loops:
            self._loops[-1].born |= loop.born

    def born(self, made: list[Value]) -> list[Value]:
        """A list is made (by a display, a comprehension, ``list()``)."""
        if self._open:
            self._open.pop(id(made), None)
        if self._loops:
            self._loops[-1].born.add(id(made))
        return made

    def grown(self, target: Value, item: Value) -> None:
        """``target`` got an item: in a loop of unknown length that began after ``target`` was made, it gets many."""
        for loop in reversed(self._loops):
            if id(target) in loop.born:
                return
            if loop.endless:
                self.mark(target, item)
                return
            if type(target) is list and _plain(item):
                loop.grown[id(target)] = target

    def mark(self, target: Value, item: Value = None) -> None:
        """Count ``target`` as open."""
        if type(target) is list and (id(target) in self._open or (_plain(item) and all(map(_plain, target[:4])))):
            self._open[id(target)] = target

    def holds(self, value: Value) -> bool:
        """Whether ``value`` is an open list."""
        return bool(self._open) and self._open.get(id(value)) is value

    def copied(self, made: Value, *sources: Value) -> Value:
        """``made`` was made from ``sources``: open when one of them is."""
        if self._open and any(self.holds(source) for source in sources):
            self.mark(made)
        return made

    def part(self, target: list[Value], key: Value) -> Value:
        """``target[key]``: a slice is open and never empty, and there is an item wherever the script looks."""
        if isinstance(key, slice):
            bounds = (key.start, key.stop, key.step)
            known = all(bound is None or isinstance(bound, int) for bound in bounds) and key.step != 0
            return self.copied((target[key] if known else target[:]) or target[-1:], target)
        return target[key] if -len(target) <= key < len(target) else target[-1]


def _plain(item: Value, depth: int = 0) -> bool:
    """Whether an item is made of texts, numbers and unknowns, or is an array: nothing that holds a tensor."""
    if isinstance(item, _PLAIN) or getattr(item, "array_shape", None) is not None:
        return True
    if type(item) in (list, tuple, dict) and depth < _DEPTH:
        values = item.values() if type(item) is dict else item
        return all(_plain(one, depth + 1) for one in list(values)[:16])
    return hasattr(item, "py_type") and item.py_type() in ("numpy.ndarray", "pathlib.Path")
