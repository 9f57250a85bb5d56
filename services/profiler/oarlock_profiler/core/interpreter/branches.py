"""What to do at a branch whose condition is not known.

The state of a reading cannot be forked cheaply, so one side is walked on the live state, chosen so that the larger
need is kept, in this order:

1. a side that ends in ``raise`` or an exit, or that may reach one, is not taken: the script is assumed to work;
2. a side that only leaves early (``break``, ``continue``, ``return``) is not taken, except that a ``while`` loop is
   left after a few rounds when nothing else ends it;
3. two sides of plain assignments are both run and their values merged: equal values stay, the larger of two numbers
   wins, anything else is unknown;
4. a side that only imports is taken: what is named later must be there;
5. otherwise the side with more work in it (weighted calls; loading a checkpoint or a cache counts for nothing).

Each choice of 3 to 5 is recorded as a gap with what was assumed.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from oarlock_profiler.core.interpreter.frames import Frame, Run
from oarlock_profiler.core.interpreter.loops import patience
from oarlock_profiler.core.interpreter.values import MISSING, Unknown, Value

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


def _imports(block: Sequence[ast.stmt]) -> bool:
    return bool(block) and all(isinstance(s, (ast.Import, ast.ImportFrom)) for s in block)


OWN_TEXTS = "oarlock/library/"
"""Where our own texts of library modules seem to lie."""


class Branches:
    """Decides for one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

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
            return self._early(f, one)
        first, second = weight(node.body), weight(node.orelse)
        side = first >= second
        if _imports(node.body) or _imports(node.orelse):
            side = _imports(node.body)
        elif not node.orelse and not first:
            side = True
        self._note(node, doubt, side)
        return side

    def _note(self, node: ast.If | ast.IfExp, doubt: Unknown, side: bool) -> None:
        m = self.machine
        if m.frames and (m.frames[-1].module.file or "").startswith(OWN_TEXTS):
            return  # the script's reader has no such line; what is unknown has its own gap
        text = ast.unparse(node.test)
        m.findings.gap(
            f"branch on {text[:80]}",
            m.where,
            f"the condition is not known: {doubt.why}",
            "the branch is taken" if side else "the else side is taken",
        )

    def statement(self, f: Frame, node: ast.If, doubt: Unknown, body: Run, orelse: Run) -> Value:
        """Run an ``if`` whose condition is ``doubt``."""
        if node.orelse and _plain(node.body) and _plain(node.orelse) and f.code is not None and not f.cells:
            return self._merge_both(f, node, doubt, body, orelse)
        return body(f) if self.choose(f, node, doubt) else orelse(f)

    def _merge_both(self, f: Frame, node: ast.If, doubt: Unknown, body: Run, orelse: Run) -> Value:
        before = dict(f.vars)
        body(f)
        after = dict(f.vars)
        f.vars.clear()
        f.vars.update(before)
        del before
        orelse(f)
        changed = False
        for name, value in after.items():
            mine = f.vars.get(name, MISSING)
            if mine is not value:
                changed = True
                f.vars[name] = value if mine is MISSING else self.merge(value, mine, doubt)
        if changed:
            self._note(node, doubt, True)
        return 0

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
            if not isinstance(merged, Unknown):
                if merged is not one or merged is not other:
                    self._note(node, doubt, merged is one)
                return merged
            return merged
        side = weight([node.body]) >= weight([node.orelse])
        self._note(node, doubt, side)
        return body(f) if side else orelse(f)
