"""What to do at a branch whose condition is not known.

The state of a reading cannot be forked cheaply, so one side is walked on the live state, chosen in this order:

1. a side that ends in ``raise`` or an exit, or that may reach one, is not taken: the script is assumed to work;
2. a side that only leaves early (``break``, ``continue``, ``return``) is not taken, except that a ``while`` loop is
   left after a few rounds when nothing else ends it;
3. sides of plain assignments are both run and their values merged: equal values stay, the larger of two numbers
   wins; where that does not tell, the values of one side are taken;
4. a side that only imports is taken: what is named later must be there;
5. otherwise the side with more work in it (weighted calls; loading a checkpoint or a cache counts for nothing).

Each choice of 3 to 5 is recorded as a gap with what was assumed. Those of 3 and 5, and an early ``return`` of what is
computed, are first guesses: the script is read again with the other side (:mod:`core.larger_need`), which ``forced``
names, and the larger need counts.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from oarlock_profiler.core.findings import Where
from oarlock_profiler.core.interpreter.choices import Choice, Place
from oarlock_profiler.core.interpreter.frames import Frame, Run
from oarlock_profiler.core.interpreter.loops import patience
from oarlock_profiler.core.interpreter.values import MISSING, Unknown, Value
from oarlock_profiler.core.overlays import library

if TYPE_CHECKING:
    from oarlock_profiler.core.interpreter.machine import Machine

_EXITS = {"exit", "quit", "_exit", "abort", "error"}
_TRAINS = {"backward": 50, "step": 20, "minimize": 50, "fit": 50, "train": 20, "train_one_epoch": 50, "forward": 10}
_LOADS = {
    "load",
    "load_state_dict",
    "set_state_dict",
    "set_dict",
    "exists",
    "isfile",
    "isdir",
    "print",
    "info",
    "warning",
    "debug",
    "log",
    "save",
    "write",
    "format",
}
_WHILE_ROUNDS = 2


def _called(node: ast.Call) -> str:
    func = node.func
    if isinstance(func, ast.Attribute):
        return func.attr
    return func.id if isinstance(func, ast.Name) else ""


def ending(block: Sequence[ast.stmt]) -> str | None:
    """How a block leaves: ``raise``, ``exit``, ``return``, ``break``, ``continue``, or None when it goes on."""
    if not block:
        return None
    match block[-1]:
        case ast.Raise():
            return "raise"
        case ast.Return():
            return "return"
        case ast.Break():
            return "break"
        case ast.Continue():
            return "continue"
        case ast.Expr(ast.Call() as call) if _called(call) in _EXITS:
            return "exit"
        case ast.Assert(test=ast.Constant(value=False | 0)):
            return "raise"
        case ast.If(_, body, orelse) if orelse:
            one, other = ending(body), ending(orelse)
            return one if one == other else None
        case ast.With(_, body):
            return ending(body)
    return None


def _may_stop(block: Sequence[ast.stmt]) -> bool:
    """Whether a ``raise`` or an exit lies in a block, outside the functions it defines and its ``try``."""
    for node in block:
        if isinstance(node, ast.Raise) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _called(node.value) in _EXITS
        ):
            return True
        if isinstance(node, (ast.If, ast.With, ast.For, ast.While)):
            inner = [*node.body, *getattr(node, "orelse", ())]
            if not _trains(inner) and _may_stop(inner):
                return True
    return False


def _trains(block: Sequence[ast.stmt]) -> bool:
    return any(isinstance(n, ast.Call) and _called(n) in _TRAINS for s in block for n in ast.walk(s))


def weight(nodes: Sequence[ast.AST]) -> int:
    """A rough measure of the work in some code: its calls, those that train counting most."""
    total = 0
    for node in nodes:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call):
                name = _called(inner)
                total += 0 if name in _LOADS else _TRAINS.get(name, 2)
            elif isinstance(inner, (ast.For, ast.While, ast.With)):
                total += 3
            elif isinstance(inner, ast.BinOp):
                total += 1
    return total


def _plain(block: Sequence[ast.stmt]) -> bool:
    """Only assignments to names from expressions without calls."""
    return all(
        isinstance(s, ast.Pass)
        or (
            isinstance(s, (ast.Assign, ast.AnnAssign))
            and all(isinstance(t, ast.Name) for t in (s.targets if isinstance(s, ast.Assign) else [s.target]))
            and s.value is not None
            and _pure(s.value)
        )
        for s in block
    )


def _pure(node: ast.expr) -> bool:
    return not any(isinstance(n, (ast.Call, ast.Await, ast.Yield, ast.NamedExpr)) for n in ast.walk(node))


def _assigned(*blocks: Sequence[ast.stmt]) -> list[str]:
    """The names that plain assignments bind."""
    targets = [t for block in blocks for s in block for t in getattr(s, "targets", [getattr(s, "target", None)])]
    return list(dict.fromkeys(t.id for t in targets if isinstance(t, ast.Name)))


def _imports(block: Sequence[ast.stmt]) -> bool:
    return bool(block) and all(isinstance(s, (ast.Import, ast.ImportFrom)) for s in block)


def _taken(side: bool) -> str:
    return "the branch is taken" if side else "the else side is taken"


def _put(f: Frame, values: Mapping[str, Value]) -> None:
    for name, value in values.items():
        if value is MISSING:
            f.vars.pop(name, None)
        else:
            f.vars[name] = value


def _same(one: Value, other: Value) -> bool:
    return one is other or (type(one) is type(other) and isinstance(one, (str, bytes, int, float)) and one == other)


def _must_choose(one: Value, other: Value, merged: Value) -> bool:
    """Whether two known values have nothing in common that could stand for both."""
    known = not isinstance(one, (Unknown, bool)) and not isinstance(other, (Unknown, bool))
    return known and isinstance(merged, Unknown)


class Branches:
    """Decides for one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.forced: Mapping[Place, bool] = {}
        self.choices: dict[Place, Choice] = {}

    def _side(self, f: Frame, node: ast.If | ast.IfExp, doubt: Unknown, guess: bool, *, early: bool = False) -> bool:
        """The side that another reading asks for, else the guessed one. ``early``: the body leaves early."""
        file = f.module.file
        if file is None or f.module.library:
            self._note(node, doubt, _taken(guess))
            return guess
        place = Place(file, node.lineno, node.col_offset)
        side = self.forced.get(place, guess)
        gap = None if early and not side else self._note(node, doubt, _taken(side))
        both = [node.body, node.orelse] if isinstance(node, ast.IfExp) else [*node.body, *node.orelse]
        self.choices.setdefault(place, Choice(side, weight(both), gap))
        return side

    def _early(self, f: Frame, kind: str | None) -> bool:
        """Whether an early exit of ``kind`` is taken."""
        if kind in ("break", "return") and f.loop and f.loop[-1] >= 0:
            m = self.machine
            unsteady = (m.trace.steps > 0 or m.engine.unstepped > 0) and not m.engine.steady
            m.open_lists.doubt()
            return f.loop[-1] >= (patience(m) if unsteady else _WHILE_ROUNDS)
        return False

    def choose(self, f: Frame, node: ast.If, doubt: Unknown) -> bool:
        """True for the body, False for ``else``; records why when it matters."""
        one, other = ending(node.body), ending(node.orelse)
        for mine, theirs, side in ((one, other, True), (other, one, False)):
            if mine in ("raise", "exit") and theirs not in ("raise", "exit"):
                return not side
        risky, other_risky = _may_stop(node.body), _may_stop(node.orelse)
        if risky is not other_risky and one not in ("return", "break", "continue"):
            return other_risky
        if one in ("break", "continue") and other is None:
            return self._early(f, one)
        if other in ("break", "continue") and one is None:
            return not self._early(f, other)
        if one == "return" and other is None and not node.orelse:
            early = self._early(f, one)
            computes = not f.loop and f.code is not None and weight(node.body) > 0
            return self._side(f, node, doubt, early, early=True) if computes else early
        first, second = weight(node.body), weight(node.orelse)
        side = first >= second
        if _imports(node.body) or _imports(node.orelse):
            side = _imports(node.body)
        elif not node.orelse and not first:
            side = True
        elif first or second:
            return self._side(f, node, doubt, side)
        self._note(node, doubt, _taken(side))
        return side

    def _note(self, node: ast.If | ast.IfExp, doubt: Unknown, assumed: str) -> tuple[str, Where | None, str] | None:
        """Record what was assumed; the key of the gap."""
        m = self.machine
        if m.frames and (m.frames[-1].module.file or "").startswith(library.SHOWN_FOLDER):
            return None  # the script's reader has no such line; what is unknown has its own gap
        key = (f"branch on {ast.unparse(node.test)[:80]}", m.where, f"the condition is not known: {doubt.why}")
        m.findings.gap(*key, assumed)
        if m.follows:
            m.assumed(node.test, doubt.why, assumed)
        return key

    def statement(self, f: Frame, node: ast.If, doubt: Unknown, body: Run, orelse: Run) -> Value:
        """Run an ``if`` whose condition is ``doubt``."""
        names = _assigned(node.body, node.orelse) if _plain(node.body) and _plain(node.orelse) else []
        if names and f.cells.keys().isdisjoint(names):
            return self._merge_both(f, node, doubt, body, orelse, names)
        return body(f) if self.choose(f, node, doubt) else orelse(f)

    def _merge_both(
        self, f: Frame, node: ast.If, doubt: Unknown, body: Run, orelse: Run, names: Sequence[str]
    ) -> Value:
        before = {name: f.vars.get(name, MISSING) for name in names}
        body(f)
        one = {name: f.vars.get(name, MISSING) for name in names}
        _put(f, before)
        del before
        orelse(f)
        other = {name: f.vars.get(name, MISSING) for name in names}
        differing = [name for name in names if not _same(one[name], other[name])]
        if not differing:
            return 0
        merged = self._merged({name: (one[name], other[name]) for name in differing}, doubt)
        if merged is not None:
            self._note(node, doubt, "the larger of both" if node.orelse else "the larger of before and after")
        else:
            taken, left = (one, other) if self._side(f, node, doubt, True) else (other, one)
            merged = {name: left[name] if taken[name] is MISSING else taken[name] for name in differing}
        _put(f, merged)
        return 0

    def _merged(self, pairs: Mapping[str, tuple[Value, Value]], doubt: Unknown) -> dict[str, Value] | None:
        """One value for each pair; None when one side must be taken for all."""
        merged: dict[str, Value] = {}
        larger: set[bool] = set()
        for name, (one, other) in pairs.items():
            if one is MISSING or other is MISSING:
                merged[name] = other if one is MISSING else one
                continue
            merged[name] = value = self.merge(one, other, doubt)
            if _must_choose(one, other, value):
                return None
            if type(value) in (int, float):
                larger.add(value is one)
        return merged if len(larger) < 2 else None

    def merge(self, one: Value, other: Value, doubt: Unknown) -> Value:
        """One value that stands for either."""
        if one is other:
            return one
        numbers = (int, float)
        if type(one) in numbers and type(other) in numbers:
            return max(one, other)
        if type(one) is type(other) and isinstance(one, (str, bool, bytes)) and one == other:
            return one
        if one is None:
            return other
        if other is None:
            return one
        hint = doubt.hint if type(one) is not type(other) else type(one).__name__
        return Unknown(doubt.why, doubt.where, hint)

    def expression(self, f: Frame, node: ast.IfExp, doubt: Unknown, body: Run, orelse: Run) -> Value:
        """``a if doubt else b``."""
        if _pure(node.body) and _pure(node.orelse):
            one, other = body(f), orelse(f)
            merged = self.merge(one, other, doubt)
            if _must_choose(one, other, merged):
                return one if self._side(f, node, doubt, True) else other
            if not isinstance(merged, Unknown) and not _same(one, other):
                self._note(node, doubt, _taken(merged is one))
            return merged
        return body(f) if self._side(f, node, doubt, weight([node.body]) >= weight([node.orelse])) else orelse(f)
