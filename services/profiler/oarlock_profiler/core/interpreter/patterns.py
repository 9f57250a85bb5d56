"""``match``: structural patterns. A pattern on an unknown subject may match; the first that may is taken, and noted."""

# ruff: noqa: ARG005 - the signatures are Python's own

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from oarlock_profiler.core.interpreter import operators
from oarlock_profiler.core.interpreter.frames import Frame, Run
from oarlock_profiler.core.interpreter.scope import Scope
from oarlock_profiler.core.interpreter.targets import store_name
from oarlock_profiler.core.interpreter.values import MISSING, Class, Unknown, Value

if TYPE_CHECKING:
    from oarlock_profiler.core.interpreter.compiler import Compiler

Test = Callable[[Frame, Value], "bool | Unknown"]


def match_(c: Compiler, node: ast.Match, scope: Scope) -> Run:
    choose = chooser(c, node, scope)
    bodies = [c.block(k.body, scope) for k in node.cases]

    def run(f: Frame) -> Value:
        chosen = choose(f)
        return 0 if chosen is None else bodies[chosen](f)

    return run


def chooser(c: Compiler, node: ast.Match, scope: Scope) -> Callable[[Frame], int | None]:
    """Which case a ``match`` takes (None: no case fits); binds what its pattern captures."""
    m, line, subject = c.machine, node.lineno, c.expr(node.subject, scope)
    cases = [(pattern(c, k.pattern, scope), c.expr(k.guard, scope) if k.guard else None) for k in node.cases]

    def run(f: Frame) -> int | None:
        f.line = line
        m.spend()
        value = subject(f)
        for index, (test, guard) in enumerate(cases):
            fits = test(f, value)
            if fits is not False and guard is not None:
                fits = m.truth(guard(f))
            if fits is False:
                continue
            if isinstance(fits, Unknown):
                m.findings.gap("match", m.where, f"subject is not known ({fits.why})", "the first case that may fit")
            return index
        return None

    return run


def _all(tests: list[bool | Unknown]) -> bool | Unknown:
    if any(t is False for t in tests):
        return False
    return next((t for t in tests if isinstance(t, Unknown)), True)


def pattern(c: Compiler, node: ast.pattern, scope: Scope) -> Test:
    """Compile one pattern to a test that also binds its names."""
    m = c.machine
    match node:
        case ast.MatchValue(expression):
            value = c.expr(expression, scope)
            return lambda f, v: m.truth(operators.compare(m, "==", v, value(f)))
        case ast.MatchSingleton(single):
            return lambda f, v: v if isinstance(v, Unknown) else v is single
        case ast.MatchAs(inner, name):
            test = pattern(c, inner, scope) if inner is not None else None
            store = store_name(name, scope) if name else None

            def capture(f: Frame, v: Value) -> bool | Unknown:
                fits = test(f, v) if test is not None else True
                if fits is not False and store is not None:
                    store(f, v)
                return fits

            return capture
        case ast.MatchOr(options):
            tests = [pattern(c, p, scope) for p in options]

            def either(f: Frame, v: Value) -> bool | Unknown:
                doubt: bool | Unknown = False
                for test in tests:
                    fits = test(f, v)
                    if fits is True:
                        return True
                    doubt = fits if isinstance(fits, Unknown) else doubt
                return doubt

            return either
        case ast.MatchSequence(parts):
            return sequence(c, parts, scope)
        case ast.MatchMapping(keys, values, rest):
            return mapping(c, keys, values, rest, scope)
        case ast.MatchClass(cls, positional, names, named):
            return class_(c, cls, positional, list(zip(names, named, strict=True)), scope)
    return lambda _f, _v: False


def sequence(c: Compiler, parts: list[ast.pattern], scope: Scope) -> Test:
    """``[a, *rest, b]``."""
    star = next((i for i, p in enumerate(parts) if isinstance(p, ast.MatchStar)), None)
    tests = [pattern(c, p, scope) for p in parts if not isinstance(p, ast.MatchStar)]
    starred = parts[star] if star is not None else None
    name = starred.name if isinstance(starred, ast.MatchStar) else None
    store = store_name(name, scope) if name else None

    def run(f: Frame, v: Value) -> bool | Unknown:
        if isinstance(v, Unknown):
            return v
        if not isinstance(v, (list, tuple)):
            return False
        if len(v) < len(tests) or (star is None and len(v) != len(tests)):
            return False
        head = len(tests) if star is None else star
        tail = len(tests) - head
        chosen = [*v[:head], *(v[len(v) - tail :] if tail else ())]
        fits = _all([test(f, item) for test, item in zip(tests, chosen, strict=True)])
        if store is not None and fits is not False:
            store(f, list(v[head : len(v) - tail]))
        return fits

    return run


def mapping(c: Compiler, keys: list[ast.expr], values: list[ast.pattern], rest: str | None, scope: Scope) -> Test:
    """``{"kind": kind, **rest}``."""
    pairs = [(c.expr(k, scope), pattern(c, p, scope)) for k, p in zip(keys, values, strict=True)]
    store = store_name(rest, scope) if rest else None

    def run(f: Frame, v: Value) -> bool | Unknown:
        if isinstance(v, Unknown):
            return v
        if not isinstance(v, dict):
            return False
        results: list[bool | Unknown] = []
        taken = []
        for key, test in pairs:
            k = key(f)
            if k not in v:
                return False
            taken.append(k)
            results.append(test(f, v[k]))
        if store is not None:
            store(f, {k: x for k, x in v.items() if k not in taken})
        return _all(results)

    return run


def class_(
    c: Compiler, cls: ast.expr, positional: list[ast.pattern], named: list[tuple[str, ast.pattern]], scope: Scope
) -> Test:
    """``Point(x=0, y=y)``, ``int(n)``."""
    m = c.machine
    kind = c.expr(cls, scope)
    tests = [pattern(c, p, scope) for p in positional]
    attributes = [(name, pattern(c, p, scope)) for name, p in named]

    def run(f: Frame, v: Value) -> bool | Unknown:
        expected = kind(f)
        results = [m.isinstance(v, expected)]
        if results[0] is False:
            return False
        names = m.find(expected, "__match_args__") if isinstance(expected, Class) else MISSING
        for index, test in enumerate(tests):
            if isinstance(names, tuple) and index < len(names):
                results.append(test(f, m.getattr(v, names[index])))
            else:
                results.append(test(f, v))
        for name, test in attributes:
            value = m.find(v, name)
            if value is MISSING:
                return False
            results.append(test(f, value))
        return _all(results)

    return run
