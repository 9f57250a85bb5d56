"""``for`` and ``while``, and when to stop walking them.

A loop that trains stops once the engine has seen a steady state; a ``while`` whose condition is unknown runs its body
once (more often while it trains and is not steady yet). The trip count of loops that trained is kept as a fact.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from oarlock_profiler.core.findings import Where
from oarlock_profiler.core.interpreter.frames import BREAK, RETURN, Frame, Run
from oarlock_profiler.core.interpreter.scope import Scope
from oarlock_profiler.core.interpreter.values import Iteration, Unknown, Value, length

if TYPE_CHECKING:
    from oarlock_profiler.core.interpreter.compiler import Compiler
    from oarlock_profiler.core.interpreter.machine import Machine

END = object()
_PATIENCE = 8
MICRO_BATCHES = 128
"""Rounds of a loop of unknown length while the script accumulates gradients towards a step."""


def patience(m: Machine) -> int:
    """Rounds that a loop of unknown length is walked for while it learns."""
    waiting = 0 < m.engine.unstepped <= MICRO_BATCHES or 1 < m.engine.micro_batches <= MICRO_BATCHES
    return MICRO_BATCHES if waiting else _PATIENCE


class Watch:
    """Follows one loop: whether an optimiser stepped inside it, and whether it may stop."""

    __slots__ = ("asked", "count", "followed", "frame", "items", "machine", "rounds", "shown", "start", "where")

    def __init__(self, machine: Machine, frame: Frame, iteration: Iteration | None, *, suspends: bool = False) -> None:
        self.machine = machine
        self.frame = frame
        self.where: Where | None = machine.where
        self.start = machine.trace.steps
        self.asked = machine.engine.backward_calls
        self.rounds = 0
        self.count: int | None = None
        # a generator's loop does not nest with those of its caller; one over known items holds no more than it shows
        self.followed = not suspends and (iteration is None or not iteration.exact)
        if self.followed:
            machine.open_lists.enter(endless=iteration is not None)
        if iteration is not None:
            self.count = iteration.count
            self.items = iter(iteration.items)
            if self.count is None and iteration.exact and hasattr(iteration.items, "__len__"):
                self.count = length(iteration.items)
        frame.loop.append(-1 if iteration is not None else 0)
        self.shown = machine.loop_begins(frame, iteration) if machine.follows and not suspends else None

    def trained(self) -> bool:
        """Whether a training step lies inside the loop."""
        return bool(self.machine.trace.steps > self.start)

    def after_round(self) -> bool:
        """Called after each round; True when the loop may stop."""
        m = self.machine
        m.spend()
        self.rounds += 1
        if self.shown is not None:
            self.shown.round()
        if self.frame.loop[-1] >= 0:
            self.frame.loop[-1] = self.rounds
        return m.trace.steps > self.start and bool(m.engine.steady)

    def close(self) -> None:
        """The loop is over."""
        self.frame.loop.pop()
        if self.shown is not None:
            self.shown.close(self.rounds, self.count)
        if self.followed:
            self.machine.open_lists.leave()
        if self.trained():
            self.machine.note_training_loop(self.where, self.count)

    def another(self, truth: bool | Unknown) -> bool:
        """Whether a ``while`` goes round again for this condition."""
        m = self.machine
        if isinstance(truth, Unknown):
            if self.followed:
                m.open_lists.doubt()
            if self.rounds == 0:
                return True
            learns = self.trained() or m.engine.backward_calls > self.asked
            return learns and not m.engine.steady and self.rounds < patience(m)
        if truth and self.rounds >= m.budget.limits.loop:
            m.findings.gap("while loop", m.where, f"still running after {self.rounds:,} rounds; left there")
            return False
        return truth


def for_(c: Compiler, node: ast.For | ast.AsyncFor, scope: Scope) -> Run:
    m, line = c.machine, node.lineno
    source, store = c.expr(node.iter, scope), c.store(node.target, scope)
    body, orelse = c.block(node.body, scope), c.block(node.orelse, scope)

    def run(f: Frame) -> Value:
        f.line = line
        m.spend()
        watch = Watch(m, f, m.iterate(source(f)))
        items = watch.items
        try:
            while True:
                f.line = line
                item = next(items, END)
                if item is END:
                    break
                store(f, item)
                del item
                signal = body(f)
                if signal == BREAK:
                    return 0
                if signal == RETURN:
                    return signal
                if watch.after_round():
                    break
        finally:
            watch.close()
        return orelse(f)

    return run


def while_(c: Compiler, node: ast.While, scope: Scope) -> Run:
    m, line = c.machine, node.lineno
    test, body, orelse = c.expr(node.test, scope), c.block(node.body, scope), c.block(node.orelse, scope)

    def run(f: Frame) -> Value:
        f.line = line
        watch = Watch(m, f, None)
        try:
            while watch.another(m.truth(test(f))):
                signal = body(f)
                if signal == BREAK:
                    return 0
                if signal == RETURN:
                    return signal
                if watch.after_round():
                    break
                f.line = line
        finally:
            watch.close()
        return orelse(f)

    return run
