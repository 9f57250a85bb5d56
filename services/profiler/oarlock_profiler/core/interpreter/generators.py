"""Generator functions: the statements that contain a ``yield`` are compiled to host generators, the rest as usual.

A yield inside a larger expression is first lifted into an assignment of its own before the statement.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, cast

from oarlock_profiler.core.interpreter.errors import Raised, exception
from oarlock_profiler.core.interpreter.frames import BREAK, RETURN, Frame, Run
from oarlock_profiler.core.interpreter.guarded import Guard, Handler, divide, enter_context, exit_context, select
from oarlock_profiler.core.interpreter.iterators import GeneratorObject
from oarlock_profiler.core.interpreter.loops import END, Watch
from oarlock_profiler.core.interpreter.patterns import chooser
from oarlock_profiler.core.interpreter.scope import Scope
from oarlock_profiler.core.interpreter.values import Instance, Unknown, Value

if TYPE_CHECKING:
    from oarlock_profiler.core.interpreter.compiler import Compiler

Steps = Generator[Value, Value, Value]
GenRun = Callable[[Frame], Steps]
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def yields(node: ast.AST) -> bool:
    """Whether ``node`` contains a yield of this function."""
    if isinstance(node, (ast.Yield, ast.YieldFrom)):
        return True
    if isinstance(node, _INNER):
        return False
    return any(yields(child) for child in ast.iter_child_nodes(node))


class _Lift(ast.NodeTransformer):
    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.before: list[ast.stmt] = []

    def _take(self, node: ast.Yield | ast.YieldFrom) -> ast.expr:
        self.generic_visit(node)
        name = self._name()
        self._assign(name, node, node.lineno)
        return ast.Name(name, ast.Load(), lineno=node.lineno, col_offset=0)

    visit_Yield = visit_YieldFrom = _take

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """``a if test else b`` of which a side yields: an ``if`` statement."""
        if not (yields(node.body) or yields(node.orelse)):
            return cast("ast.expr", self.generic_visit(node))
        test = self.visit(node.test)
        return self._branches(node, test, node.body, node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """``a and b`` of which a later part yields: that part runs only if it is reached."""
        first, *rest = node.values
        if not any(yields(value) for value in rest):
            return cast("ast.expr", self.generic_visit(node))
        name = self._name()
        self._assign(name, self.visit(first), node.lineno)
        for value in rest:
            held = ast.Name(name, ast.Load(), lineno=node.lineno, col_offset=0)
            test: ast.expr = held if isinstance(node.op, ast.And) else ast.UnaryOp(ast.Not(), held)
            store = ast.Assign([ast.Name(name, ast.Store())], value, lineno=node.lineno)
            self.before.append(ast.fix_missing_locations(ast.If(test, [store], [], lineno=node.lineno, col_offset=0)))
        return ast.Name(name, ast.Load(), lineno=node.lineno, col_offset=0)

    def _branches(self, node: ast.expr, test: ast.expr, body: ast.expr, orelse: ast.expr) -> ast.expr:
        name = self._name()
        sides: list[list[ast.stmt]] = [
            [ast.Assign([ast.Name(name, ast.Store())], side, lineno=node.lineno)] for side in (body, orelse)
        ]
        made = ast.If(test, sides[0], sides[1], lineno=node.lineno, col_offset=0)
        self.before.append(ast.fix_missing_locations(made))
        return ast.Name(name, ast.Load(), lineno=node.lineno, col_offset=0)

    def _name(self) -> str:
        name = f".y{len(self.scope.bound)}"
        self.scope.bound.add(name)
        return name

    def _assign(self, name: str, value: ast.expr, line: int) -> None:
        target = ast.Name(name, ast.Store(), lineno=line, col_offset=0)
        self.before.append(ast.Assign([target], value, lineno=line, col_offset=0))


def _lifted(node: ast.stmt, scope: Scope) -> list[ast.stmt]:
    """The statement with its yields moved to assignments before it."""
    match node:
        case ast.Expr(ast.Yield() | ast.YieldFrom()) | ast.Assign(value=ast.Yield() | ast.YieldFrom()):
            fields: list[str] = []
            inner = getattr(node, "value").value  # noqa: B009 - both alternatives have it
            if inner is not None and yields(inner):
                lift = _Lift(scope)
                getattr(node, "value").value = lift.visit(inner)  # noqa: B009
                return [*lift.before, node]
        case ast.For() | ast.AsyncFor():
            fields = ["iter"]
        case ast.If() | ast.Match():
            fields = ["test" if isinstance(node, ast.If) else "subject"]
        case ast.While():
            if yields(node.test):
                stop = ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Break()], [], lineno=node.lineno)
                stop.test.lineno = node.lineno
                node.body = [stop, *node.body]
                node.test = ast.Constant(True)
            fields = []
        case ast.With() | ast.AsyncWith():
            lift = _Lift(scope)
            for item in node.items:
                item.context_expr = lift.visit(item.context_expr)
            return [*lift.before, node]
        case ast.Try() | ast.TryStar():
            fields = []
        case _:
            lift = _Lift(scope)
            return [*lift.before, node] if not yields(node) else _lift_all(node, lift)
    lift = _Lift(scope)
    for name in fields:
        setattr(node, name, lift.visit(getattr(node, name)))
    return [*lift.before, node]


def _lift_all(node: ast.stmt, lift: _Lift) -> list[ast.stmt]:
    changed = lift.visit(node)
    return [*lift.before, changed]


def block(c: Compiler, nodes: Sequence[ast.stmt], scope: Scope) -> GenRun:
    """Compile statements, some of which yield."""
    parts: list[tuple[bool, Any]] = []
    for node in nodes:
        if not yields(node):
            parts.append((False, c.statement(node, scope)))
            continue
        for one in _lifted(node, scope):
            parts.append((True, statement(c, one, scope)) if yields(one) else (False, c.statement(one, scope)))

    def run(f: Frame) -> Steps:
        for steps, part in parts:
            signal = (yield from part(f)) if steps else part(f)
            if signal:
                return signal
        return 0

    return run


def statement(c: Compiler, node: ast.stmt, scope: Scope) -> GenRun:
    """Compile one statement that yields."""
    match node:
        case ast.Expr(ast.Yield() | ast.YieldFrom() as value):
            return yielding(c, value, None, node.lineno, scope)
        case ast.Assign([target], ast.Yield() | ast.YieldFrom() as value):
            return yielding(c, value, target, node.lineno, scope)
        case ast.If():
            return if_(c, node, scope)
        case ast.For() | ast.AsyncFor():
            return for_(c, node, scope)
        case ast.While():
            return while_(c, node, scope)
        case ast.With() | ast.AsyncWith():
            return with_(c, node, scope)
        case ast.Try() | ast.TryStar():
            return try_(c, node, scope)
        case ast.Match():
            return match_(c, node, scope)
    run: Run = c.statement(node, scope)

    def other(f: Frame) -> Steps:
        return run(f)
        yield

    return other


def yielding(c: Compiler, node: ast.Yield | ast.YieldFrom, target: ast.expr | None, line: int, scope: Scope) -> GenRun:
    m = c.machine
    store = c.store(target, scope) if target is not None else None
    value = c.expr(node.value, scope) if node.value is not None else (lambda _f: None)

    if isinstance(node, ast.YieldFrom):

        def delegate(f: Frame) -> Steps:
            f.line = line
            source = value(f)
            if isinstance(source, GeneratorObject):
                result = yield from source.delegate()
            else:
                result = None
                for item in m.iterate(source).items:
                    m.spend()
                    yield item
                    del item
            if store is not None:
                store(f, result)
            return 0

        return delegate

    def run(f: Frame) -> Steps:
        f.line = line
        m.spend()
        sent = yield value(f)
        if store is not None:
            store(f, sent)
        return 0

    return run


def if_(c: Compiler, node: ast.If, scope: Scope) -> GenRun:
    m, line, test = c.machine, node.lineno, c.expr(node.test, scope)
    body, orelse = block(c, node.body, scope), block(c, node.orelse, scope)

    def run(f: Frame) -> Steps:
        f.line = line
        m.spend()
        truth = m.truth(test(f))
        if isinstance(truth, Unknown):
            truth = m.branches.choose(f, node, truth)
        return (yield from (body if truth else orelse)(f))

    return run


def match_(c: Compiler, node: ast.Match, scope: Scope) -> GenRun:
    choose = chooser(c, node, scope)
    bodies = [block(c, case.body, scope) for case in node.cases]

    def run(f: Frame) -> Steps:
        chosen = choose(f)
        return 0 if chosen is None else (yield from bodies[chosen](f))

    return run


def for_(c: Compiler, node: ast.For | ast.AsyncFor, scope: Scope) -> GenRun:
    m, line = c.machine, node.lineno
    source, store = c.expr(node.iter, scope), c.store(node.target, scope)
    body, orelse = block(c, node.body, scope), block(c, node.orelse, scope)

    def run(f: Frame) -> Steps:
        f.line = line
        watch = Watch(m, f, m.iterate(source(f)), suspends=True)
        items = watch.items
        try:
            while True:
                item = next(items, END)
                if item is END:
                    break
                store(f, item)
                del item
                signal = yield from body(f)
                if signal == BREAK:
                    return 0
                if signal == RETURN:
                    return signal
                watch.after_round()
        finally:
            f.loop.pop()
        return (yield from orelse(f))

    return run


def while_(c: Compiler, node: ast.While, scope: Scope) -> GenRun:
    m, line, test = c.machine, node.lineno, c.expr(node.test, scope)
    body, orelse = block(c, node.body, scope), block(c, node.orelse, scope)

    def run(f: Frame) -> Steps:
        f.line = line
        watch = Watch(m, f, None, suspends=True)
        try:
            while watch.another(m.truth(test(f))):
                signal = yield from body(f)
                if signal == BREAK:
                    return 0
                if signal == RETURN:
                    return signal
                watch.after_round()
        finally:
            f.loop.pop()
        return (yield from orelse(f))

    return run


def with_(c: Compiler, node: ast.With | ast.AsyncWith, scope: Scope) -> GenRun:
    m = c.machine
    items = [
        (c.expr(i.context_expr, scope), c.store(i.optional_vars, scope) if i.optional_vars is not None else None)
        for i in node.items
    ]
    body = block(c, node.body, scope)

    def level(f: Frame, index: int) -> Steps:
        if index == len(items):
            return (yield from body(f))
        expression, store = items[index]
        manager = expression(f)
        entered = enter_context(m, manager)
        if store is not None:
            store(f, entered)
        del entered
        error: Instance | None = None
        signal: Value = 0
        try:
            signal = yield from level(f, index + 1)
        except Raised as raised:
            error = raised.value
        except GeneratorExit:
            exit_context(m, manager, None)
            raise
        if exit_context(m, manager, error):
            return 0
        if error is not None:
            raise Raised(error)
        return signal

    return lambda f: level(f, 0)


def try_(c: Compiler, node: ast.Try | ast.TryStar, scope: Scope) -> GenRun:
    m = c.machine
    body, orelse, final = (block(c, b, scope) for b in (node.body, node.orelse, node.finalbody))
    handlers = [Handler(c, h, scope) for h in node.handlers]
    bodies = [block(c, h.body, scope) for h in node.handlers]

    def handle(f: Frame, handler: Handler, error: Instance) -> Steps:
        handler.begin(f, error)
        m.handled.append(error)
        try:
            return (yield from bodies[handlers.index(handler)](f))
        finally:
            if error in m.handled:
                m.handled.remove(error)
            handler.end(f)

    def attempt(f: Frame) -> Steps:
        error: Instance | None = None
        signal: Value = 0
        guard = Guard(m, f, handlers)
        m.guards.append(guard)
        try:
            signal = yield from body(f)
        except Raised as raised:
            error = raised.value
        except GeneratorExit:
            if guard in m.guards:
                m.guards.remove(guard)
            closing = exception("GeneratorExit", "")
            handler = select(m, f, handlers, closing)
            if handler is None:
                raise
            yield from handle(f, handler, closing)
            return RETURN
        finally:
            if guard in m.guards:
                m.guards.remove(guard)
        if error is None:
            return signal or (yield from orelse(f))
        if isinstance(node, ast.TryStar):
            return (yield from starred(f, error))
        handler = select(m, f, handlers, error)
        if handler is None:
            raise Raised(error)
        return (yield from handle(f, handler, error))

    def starred(f: Frame, error: Instance) -> Steps:
        rest: Instance | None = error
        for handler in handlers:
            taken, rest = divide(m, f, handler, rest)
            if taken is not None:
                yield from handle(f, handler, taken)
        if rest is not None:
            raise Raised(rest)
        return 0

    if not node.finalbody:
        return attempt

    def run(f: Frame) -> Steps:
        error: Instance | None = None
        signal: Value = 0
        try:
            signal = yield from attempt(f)
        except Raised as raised:
            error = raised.value
        except GeneratorExit:
            yield from final(f)
            raise
        kept, f.ret = f.ret, None
        last = yield from final(f)
        if last:
            return last
        f.ret = kept
        if error is not None:
            raise Raised(error)
        return signal

    return run
