"""Turns a module's tree into closures. One compiler per source file; function bodies are compiled when first called."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from oarlock_profiler.core.interpreter import call_sites, expressions, generators, statements, tables, targets
from oarlock_profiler.core.interpreter.frames import RETURN, Code, Frame, Run
from oarlock_profiler.core.interpreter.scope import Analysis, Scope
from oarlock_profiler.core.interpreter.values import Unknown, Value

if TYPE_CHECKING:
    from oarlock_profiler.core.interpreter.machine import Machine

Store = Callable[[Frame, Value], None]
_EXPRESSIONS = {**expressions.COMPILERS, ast.Call: call_sites.call}


class Compiler:
    """Compiles the nodes of one tree for ``machine``."""

    def __init__(self, machine: Machine, tree: ast.Module, *, library: bool = False) -> None:
        self.machine = machine
        self.library = library
        self._analysis = Analysis()
        self.scopes = self._analysis.run(tree)
        self._codes: dict[ast.AST, Code] = {}
        self._prefixes: dict[Scope, str] = {}

    def prefix(self, scope: Scope) -> str:
        """What a qualified name defined in ``scope`` starts with."""
        return self._prefixes.get(scope, "")

    def qualify(self, inner: ast.AST, outer: Scope, name: str) -> None:
        """Note that definitions inside ``inner`` are qualified by ``name``."""
        self._prefixes[self.scopes[inner]] = f"{self.prefix(outer)}{name}."

    def module(self, tree: ast.Module) -> list[Run]:
        """The top-level statements, in order."""
        scope = self.scopes[tree]
        return [self.statement(s, scope) for s in tree.body]

    def expr(self, node: ast.expr, scope: Scope) -> Run:
        """Compile an expression."""
        make: Any = _EXPRESSIONS.get(type(node))
        if make is None:
            kind = type(node).__name__
            return lambda _f: self.machine.unknown(f"syntax not supported: {kind}")
        run: Run = make(self, node, scope)
        return run

    def store(self, target: ast.expr, scope: Scope) -> Store:
        """Compile an assignment target."""
        return targets.store(self, target, scope)

    def statement(self, node: ast.stmt, scope: Scope) -> Run:
        """Compile a statement."""
        make: Any = statements.COMPILERS.get(type(node))
        if make is None:
            kind = type(node).__name__
            self.machine.findings.gap(f"statement {kind}", self.machine.where, "syntax not supported")
            return lambda _f: None
        run: Run = make(self, node, scope)
        return run

    def block(self, nodes: Sequence[ast.stmt], scope: Scope) -> Run:
        """Compile statements in order; the closure returns the first signal."""
        runs = [self.statement(n, scope) for n in nodes if not isinstance(n, ast.Pass)]
        if not runs:
            return lambda _f: 0
        if len(runs) == 1:
            return runs[0]

        def run(f: Frame) -> Value:
            for one in runs:
                signal = one(f)
                if signal:
                    return signal
            return 0

        return run

    def code(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Code:
        """The function's code object, one per node."""
        code = self._codes.get(node)
        if code is None:
            code = self._codes[node] = expressions.code_of(self, node, self.scopes[node])
        return code

    def complete(self, code: Code) -> Callable[[Frame], Value]:
        """Compile a function's body, on its first call; what its inner functions capture is known only then."""
        node: Any = code.node
        self._analysis.finish(node)
        scope = code.scope
        names = {*code.positional, *code.keyword_only, code.vararg, code.kwarg}
        code.generator = scope.yields
        code.parameter_cells = tuple(n for n in names if n in scope.cells)
        code.own_cells = tuple(n for n in scope.cells if n not in names)
        return self.function_body(node, scope)

    def function_body(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope
    ) -> Callable[[Frame], Value]:
        """The body; a generator function's is a host generator function."""
        if isinstance(node, ast.Lambda):
            value = self.expr(node.body, scope)

            def run_lambda(f: Frame) -> Value:
                f.ret = value(f)
                return RETURN

            return run_lambda
        if scope.yields:
            return generators.block(self, node.body, scope)
        body = node.body
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]
        return self.block(body, scope)

    def comprehension_body(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, scope: Scope
    ) -> Callable[[Frame], Value]:
        """The nested loops of a comprehension, filling ``frame.ret`` (or yielding, for a generator expression)."""
        m = self.machine
        levels: list[tuple[Run, Store, list[Run]]] = []
        for index, g in enumerate(node.generators):
            source: Run = self.expr(g.iter, scope) if index else (lambda f: f.vars.pop(".0"))
            levels.append((source, self.store(g.target, scope), [self.expr(i, scope) for i in g.ifs]))

        def passes(f: Frame, tests: list[Run]) -> bool:
            # an unknown filter keeps the item: the larger need
            return all(isinstance(t := m.truth(test(f)), Unknown) or t for test in tests)

        if isinstance(node, ast.GeneratorExp):
            element = self.expr(node.elt, scope)

            def produce(f: Frame, level: int) -> Any:
                source, store, tests = levels[level]
                items = iter(m.iterate(source(f)).items)
                for item in items:
                    m.spend()
                    store(f, item)
                    del item
                    if tests and not passes(f, tests):
                        continue
                    if level + 1 < len(levels):
                        yield from produce(f, level + 1)
                    else:
                        yield element(f)

            return lambda f: produce(f, 0)
        if isinstance(node, ast.DictComp):
            key, value = self.expr(node.key, scope), self.expr(node.value, scope)

            def add(f: Frame) -> None:
                k = key(f)
                v = value(f)
                try:
                    f.ret[k] = v
                except TypeError as error:
                    m.fail("TypeError", str(error))
        else:
            element = self.expr(node.elt, scope)
            is_set = isinstance(node, ast.SetComp)

            def add(f: Frame) -> None:
                if is_set:
                    m.host(f.ret.add, element(f))
                else:
                    f.ret.append(element(f))

        limit = m.budget.limits.size
        last = len(levels) - 1
        table = isinstance(node, ast.ListComp) and last == 0 and not levels[0][2] and tables.is_arithmetic(node.elt)

        def loop(f: Frame, level: int) -> None:
            source, store, tests = levels[level]
            iteration = m.iterate(source(f))
            items = iteration.items
            partial = not iteration.exact and type(f.ret) is list
            for item in items:
                m.spend()
                store(f, item)
                del item
                if tests and not passes(f, tests):
                    continue
                if level < last:
                    loop(f, level + 1)
                else:
                    add(f)
                    if table and len(f.ret) == tables.SAMPLE and tables.fill(m, f.ret, items):
                        return
                    if len(f.ret) > limit:
                        m.unknown(f"a comprehension grew past {limit:,} items; the rest was left out")
                        return
            if partial and iteration.count != len(f.ret):
                m.open_lists.mark(f.ret)

        return lambda f: loop(f, 0)
