"""Call expressions. The argument list is handed over to the callee, which empties it once its parameters are bound:
a temporary passed to a function lives no longer than the parameter that holds it."""

# ruff: noqa: ARG001 - the signatures are Python's own

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from oarlock_profiler.core.interpreter.expressions import gather
from oarlock_profiler.core.interpreter.frames import Frame, Run
from oarlock_profiler.core.interpreter.scope import Scope
from oarlock_profiler.core.interpreter.values import MISSING, Unknown, Value

if TYPE_CHECKING:
    from oarlock_profiler.core.interpreter.compiler import Compiler


def call(c: Compiler, node: ast.Call, scope: Scope) -> Run:
    m, line = c.machine, node.lineno
    if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and not node.keywords:
        return zero_argument_super(c, node, scope)
    if isinstance(node.func, ast.Name) and node.func.id == "locals" and not node.args:
        return lambda f: {**f.vars, **{n: cell.value for n, cell in f.cells.items() if cell.value is not MISSING}}
    if isinstance(node.func, ast.Name) and node.func.id in ("globals", "vars") and not node.args:
        return (lambda f: f.globals) if node.func.id == "globals" else (lambda f: f.vars)
    function = c.expr(node.func, scope)
    args = gather(c, node.args, scope)
    if not node.keywords:

        def plain(f: Frame) -> Value:
            fn = function(f)
            given = args(f)
            f.line = line
            return m.invoke(fn, given, None)

        return plain
    keywords = [(k.arg, c.expr(k.value, scope)) for k in node.keywords]

    def run(f: Frame) -> Value:
        fn = function(f)
        given = args(f)
        named: dict[str, Value] = {}
        for key, value in keywords:
            if key is not None:
                named[key] = value(f)
                continue
            more = m.mapping(value(f))
            if not isinstance(more, Unknown):
                named.update({k: v for k, v in more.items() if isinstance(k, str)})
            del more
        f.line = line
        return m.invoke(fn, given, named)

    return run


def zero_argument_super(c: Compiler, node: ast.Call, scope: Scope) -> Run:
    """``super()``: the class is the cell that the class statement fills, the object the first parameter."""
    m, line = c.machine, node.lineno

    def run(f: Frame) -> Value:
        f.line = line
        cell = f.cells.get("__class__")
        function = f.function
        first = function.closure.code.first if function is not None else None
        if cell is None or cell.value is MISSING or first is None:
            return m.unknown("super() outside a method")
        holder = f.vars.get(first, MISSING)
        if holder is MISSING:
            captured = f.cells.get(first)
            holder = captured.value if captured is not None else MISSING
        return m.unknown("super() without an object") if holder is MISSING else m.super(cell.value, holder)

    return run
