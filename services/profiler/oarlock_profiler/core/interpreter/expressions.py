"""Expressions, compiled once to closures: ``closure(frame)`` gives the value.

Temporaries live in the host's own locals and die when a closure returns, as CPython's evaluation stack does.
"""

# ruff: noqa: ARG001, ARG005 - the signatures are Python's own

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oarlock_profiler.core.interpreter import operators
from oarlock_profiler.core.interpreter.formatting import format_value, join_parts
from oarlock_profiler.core.interpreter.frames import Cell, Closure, Code, Frame, Run
from oarlock_profiler.core.interpreter.lazy_library import Lazy
from oarlock_profiler.core.interpreter.scope import Scope
from oarlock_profiler.core.interpreter.slices import open_ended, same_origin, width_node
from oarlock_profiler.core.interpreter.values import MISSING, Function, Unknown, Value

if TYPE_CHECKING:
    from oarlock_profiler.core.interpreter.compiler import Compiler

_NUMBERS = (int, float)
_FAST: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
}


def constant(c: Compiler, node: ast.Constant, scope: Scope) -> Run:
    value = node.value
    return lambda _f: value


def name(c: Compiler, node: ast.Name, scope: Scope) -> Run:
    return load(c, node.id, scope)


def load(c: Compiler, name: str, scope: Scope) -> Run:
    """Read a variable by Python's rules for where it lives."""
    m = c.machine
    builtins = m.builtins

    def from_globals(f: Frame) -> Value:
        try:
            return f.globals[name]
        except KeyError:
            pass
        try:
            return builtins[name]
        except KeyError:
            return m.fail("NameError", f"name '{name}' is not defined")

    def from_library(f: Frame) -> Value:
        found = f.globals
        value = found.get(name, MISSING)
        if type(value) is Lazy:
            return m.importer.lazy.wake(value, found, name)
        if value is not MISSING:
            return value
        value = builtins.get(name, MISSING)
        if value is MISSING:
            value = m.importer.lazy.search(f.module, name)
        return m.fail("NameError", f"name '{name}' is not defined") if value is MISSING else value

    def from_cell(f: Frame) -> Value:
        value = f.cells[name].value
        if value is MISSING:
            return m.fail("NameError", f"variable '{name}' has no value yet")
        return value

    def from_vars(f: Frame) -> Value:
        try:
            return f.vars[name]
        except KeyError:
            return m.fail("UnboundLocalError", f"local variable '{name}' has no value yet")

    if c.library:
        from_globals = from_library
    if scope.kind == "module" or name in scope.declared_global:
        return from_globals
    if scope.kind == "class":
        outer = from_cell if name in scope.free else from_globals

        def from_class(f: Frame) -> Value:
            value = f.vars.get(name, MISSING)
            return outer(f) if value is MISSING else value

        return from_class
    if name in scope.cells or name in scope.free:
        return from_cell
    if name in scope.bound:
        return from_vars
    return from_globals


def attribute(c: Compiler, node: ast.Attribute, scope: Scope) -> Run:
    m, value, name, line = c.machine, c.expr(node.value, scope), node.attr, node.lineno

    def run(f: Frame) -> Value:
        target = value(f)
        f.line = line
        return m.getattr(target, name)

    return run


def subscript(c: Compiler, node: ast.Subscript, scope: Scope) -> Run:
    m, value, key, line = c.machine, c.expr(node.value, scope), c.expr(node.slice, scope), node.lineno

    def run(f: Frame) -> Value:
        target, index = value(f), key(f)
        kind = type(target)
        if kind is dict or kind is tuple or (kind is list and not m.open_lists.holds(target)):
            try:
                return target[index]
            except Exception:  # noqa: S110 - asked again below, where it is placed and explained
                pass
        f.line = line
        return operators.getitem(m, target, index)

    return run


def slice_(c: Compiler, node: ast.Slice, scope: Scope) -> Run:
    lower, upper, step = (c.expr(n, scope) if n is not None else None for n in (node.lower, node.upper, node.step))
    left = width_node(node)
    width = c.expr(left, scope) if left is not None else None

    def run(f: Frame) -> Value:
        start, stop = lower and lower(f), upper and upper(f)
        if open_ended(start) and open_ended(stop):
            long = same_origin(start, stop)
            if long is None and width is not None:
                long = width(f)
            if type(long) is int and long >= 0:
                start, stop = 0, long
        return slice(start, stop, step and step(f))

    return run


def starred_items(c: Compiler, nodes: list[ast.expr], scope: Scope) -> tuple[list[tuple[bool, Run]], bool]:
    """Each element with whether it is starred, and whether any is."""
    items = [(True, c.expr(n.value, scope)) if isinstance(n, ast.Starred) else (False, c.expr(n, scope)) for n in nodes]
    return items, any(star for star, _ in items)


def gather(c: Compiler, nodes: list[ast.expr], scope: Scope) -> Any:
    """A closure giving the elements as a fresh host list."""
    m = c.machine
    items, starred = starred_items(c, nodes, scope)
    if not starred:
        runs = [run for _, run in items]
        return lambda f: [run(f) for run in runs]

    def run_all(f: Frame) -> list[Value]:
        out: list[Value] = []
        for star, run in items:
            if star:
                out.extend(m.listed(run(f)))
            else:
                out.append(run(f))
        return out

    return run_all


def list_(c: Compiler, node: ast.List, scope: Scope) -> Run:
    items, open_lists = gather(c, node.elts, scope), c.machine.open_lists
    return lambda f: open_lists.born(items(f))


def tuple_(c: Compiler, node: ast.Tuple, scope: Scope) -> Run:
    items = gather(c, node.elts, scope)
    return lambda f: tuple(items(f))


def set_(c: Compiler, node: ast.Set, scope: Scope) -> Run:
    m, items = c.machine, gather(c, node.elts, scope)
    return lambda f: m.host(set, items(f))


def dict_(c: Compiler, node: ast.Dict, scope: Scope) -> Run:
    m = c.machine
    pairs = [
        (c.expr(k, scope) if k is not None else None, c.expr(v, scope))
        for k, v in zip(node.keys, node.values, strict=True)
    ]

    def run(f: Frame) -> Value:
        out: dict[Value, Value] = {}
        for key, value in pairs:
            if key is None:
                more = m.mapping(value(f))
                if isinstance(more, Unknown):
                    continue
                out.update(more)
            else:
                k = key(f)
                v = value(f)
                try:
                    out[k] = v
                except TypeError as error:
                    m.fail("TypeError", str(error))
        return out

    return run


def binop(c: Compiler, node: ast.BinOp, scope: Scope) -> Run:
    m, left, right, line = c.machine, c.expr(node.left, scope), c.expr(node.right, scope), node.lineno
    op = operators.TOKENS[type(node.op)]
    fast = _FAST.get(type(node.op))

    if fast is None:

        def run(f: Frame) -> Value:
            a, b = left(f), right(f)
            f.line = line
            return operators.binary(m, op, a, b)

        return run

    def run_fast(f: Frame) -> Value:
        a, b = left(f), right(f)
        if type(a) in _NUMBERS and type(b) in _NUMBERS:
            try:
                return fast(a, b)
            except (OverflowError, ValueError) as error:
                return m.fail("OverflowError", str(error))
        f.line = line
        return operators.binary(m, op, a, b)

    return run_fast


def unaryop(c: Compiler, node: ast.UnaryOp, scope: Scope) -> Run:
    m, operand = c.machine, c.expr(node.operand, scope)
    if isinstance(node.op, ast.Not):

        def negate(f: Frame) -> Value:
            value = m.truth(operand(f))
            return value if isinstance(value, Unknown) else not value

        return negate
    op = operators.UNARY_TOKENS[type(node.op)]
    return lambda f: operators.unary(m, op, operand(f))


def boolop(c: Compiler, node: ast.BoolOp, scope: Scope) -> Run:
    m, runs = c.machine, [c.expr(v, scope) for v in node.values]
    stops_on = isinstance(node.op, ast.Or)
    last = len(runs) - 1

    def run(f: Frame) -> Value:
        doubt: Unknown | None = None
        for index, part in enumerate(runs):
            value = part(f)
            if index == last and doubt is None:
                return value
            truth = m.truth(value)
            if isinstance(truth, Unknown):
                doubt = doubt or truth
            elif truth is stops_on:
                # an unknown before it decides which falsy/truthy value it is, but not that it is one
                return value
        return doubt

    return run


def compare(c: Compiler, node: ast.Compare, scope: Scope) -> Run:
    m, line = c.machine, node.lineno
    left, rights = c.expr(node.left, scope), [c.expr(n, scope) for n in node.comparators]
    ops = [operators.COMPARE_TOKENS[type(op)] for op in node.ops]
    if len(ops) == 1:
        op, right = ops[0], rights[0]

        def single(f: Frame) -> Value:
            a, b = left(f), right(f)
            f.line = line
            return operators.compare(m, op, a, b)

        return single

    def run(f: Frame) -> Value:
        a = left(f)
        f.line = line
        result: Value = True
        doubt: Unknown | None = None
        for op, right in zip(ops, rights, strict=True):
            b = right(f)
            result = operators.compare(m, op, a, b)
            truth = m.truth(result)
            if isinstance(truth, Unknown):
                doubt = truth
            elif not truth:
                return result
            a = b
        return doubt if doubt is not None else result

    return run


def ifexp(c: Compiler, node: ast.IfExp, scope: Scope) -> Run:
    m = c.machine
    test, body, orelse = c.expr(node.test, scope), c.expr(node.body, scope), c.expr(node.orelse, scope)

    def run(f: Frame) -> Value:
        truth = m.truth(test(f))
        if truth is True:
            return body(f)
        if truth is False:
            return orelse(f)
        f.line = node.lineno
        return m.branches.expression(f, node, truth, body, orelse)

    return run


def lambda_(c: Compiler, node: ast.Lambda, scope: Scope) -> Run:
    return function(c, node, scope)


def function(c: Compiler, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope) -> Run:
    """Make the function object: defaults are evaluated now, the body is compiled on its first call."""
    code = c.code(node)
    arguments = node.args
    defaults = [c.expr(d, scope) for d in arguments.defaults]
    kw_defaults = [
        (a.arg, c.expr(d, scope))
        for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if d is not None
    ]
    free = code.free
    name = code.name
    prefix = c.prefix(scope)

    def run(f: Frame) -> Value:
        cells = {n: f.cells[n] for n in free}
        return Function(
            name,
            prefix + name,
            node,
            f.module,
            Closure(code, cells),
            [d(f) for d in defaults],
            {n: d(f) for n, d in kw_defaults},
        )

    return run


def comprehension(c: Compiler, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, scope: Scope) -> Run:
    m = c.machine
    inner = c.scopes[node]
    first = c.expr(node.generators[0].iter, scope)
    free, own = tuple(inner.free), tuple(inner.cells)
    line = node.lineno
    body = c.comprehension_body(node, inner)

    def enter(f: Frame) -> Frame:
        cells = {n: f.cells[n] for n in free}
        for n in own:
            cells[n] = Cell()
        return Frame({".0": first(f)}, cells, f.module, f.code, f.function, line)

    if isinstance(node, ast.GeneratorExp):
        return lambda f: m.generator(enter(f), body, "<genexpr>")

    def run(f: Frame) -> Value:
        inside = enter(f)
        if isinstance(node, ast.ListComp):
            out: Value = m.open_lists.born([])
        elif isinstance(node, ast.SetComp):
            out = set()
        else:
            out = {}
        inside.ret = out
        del out
        body(inside)
        return inside.ret

    return run


def joinedstr(c: Compiler, node: ast.JoinedStr, scope: Scope) -> Run:
    m = c.machine
    parts = [c.expr(v, scope) for v in node.values]
    return lambda f: join_parts(m, [p(f) for p in parts])


def formattedvalue(c: Compiler, node: ast.FormattedValue, scope: Scope) -> Run:
    m, value = c.machine, c.expr(node.value, scope)
    spec = c.expr(node.format_spec, scope) if node.format_spec is not None else None
    conversion = chr(node.conversion) if node.conversion > 0 else ""
    return lambda f: format_value(m, value(f), spec(f) if spec else "", conversion)


def namedexpr(c: Compiler, node: ast.NamedExpr, scope: Scope) -> Run:
    value, store = c.expr(node.value, scope), c.store(node.target, scope)

    def run(f: Frame) -> Value:
        result = value(f)
        store(f, result)
        return result

    return run


def await_(c: Compiler, node: ast.Await, scope: Scope) -> Run:
    return c.expr(node.value, scope)


def starred(c: Compiler, node: ast.Starred, scope: Scope) -> Run:
    return c.expr(node.value, scope)


def yield_outside(c: Compiler, node: ast.expr, scope: Scope) -> Run:
    m = c.machine
    return lambda f: m.unknown("a yield in a place that is not supported")


def code_of(c: Compiler, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope) -> Code:
    """The function's code: its parameters now, its body when it is first called."""
    a = node.args
    positional = tuple(x.arg for x in (*a.posonlyargs, *a.args))
    keyword_only = tuple(x.arg for x in a.kwonlyargs)
    code = Code(
        node,
        scope,
        "<lambda>" if isinstance(node, ast.Lambda) else node.name,
        positional,
        len(a.posonlyargs),
        keyword_only,
        a.vararg.arg if a.vararg else None,
        a.kwarg.arg if a.kwarg else None,
        first=positional[0] if positional else None,
        free=tuple(scope.free),
        annotations={x.arg: x.annotation for x in (*a.posonlyargs, *a.args, *a.kwonlyargs) if x.annotation is not None},
    )
    code.compile = lambda: c.complete(code)
    return code


COMPILERS: dict[type[ast.AST], Any] = {
    ast.Constant: constant,
    ast.Name: name,
    ast.Attribute: attribute,
    ast.Subscript: subscript,
    ast.Slice: slice_,
    ast.List: list_,
    ast.Tuple: tuple_,
    ast.Set: set_,
    ast.Dict: dict_,
    ast.BinOp: binop,
    ast.UnaryOp: unaryop,
    ast.BoolOp: boolop,
    ast.Compare: compare,
    ast.IfExp: ifexp,
    ast.Lambda: lambda_,
    ast.ListComp: comprehension,
    ast.SetComp: comprehension,
    ast.DictComp: comprehension,
    ast.GeneratorExp: comprehension,
    ast.JoinedStr: joinedstr,
    ast.FormattedValue: formattedvalue,
    ast.NamedExpr: namedexpr,
    ast.Await: await_,
    ast.Starred: starred,
    ast.Yield: yield_outside,
    ast.YieldFrom: yield_outside,
}
