"""Assignment targets, and deletion."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from oarlock_profiler.core.interpreter import operators
from oarlock_profiler.core.interpreter.frames import Frame, Run
from oarlock_profiler.core.interpreter.scope import Scope
from oarlock_profiler.core.interpreter.values import MISSING, HostObject, Unknown, Value

if TYPE_CHECKING:
    from oarlock_profiler.core.interpreter.compiler import Compiler

Store = Callable[[Frame, Value], None]


def store_name(name: str, scope: Scope) -> Store:
    """Write a variable where Python's rules put it."""

    def to_vars(f: Frame, value: Value) -> None:
        f.vars[name] = value

    def to_cell(f: Frame, value: Value) -> None:
        f.cells[name].value = value

    def to_globals(f: Frame, value: Value) -> None:
        f.globals[name] = value

    if scope.kind == "module" or name in scope.declared_global:
        return to_globals
    if name in scope.cells or name in scope.free:
        return to_cell if scope.kind != "class" or name in scope.declared_nonlocal else to_vars
    return to_vars


def store(c: Compiler, target: ast.expr, scope: Scope) -> Store:
    """Compile the target of an assignment, a loop, a ``with`` or a walrus."""
    m = c.machine
    match target:
        case ast.Name(name):
            return store_name(name, scope)
        case ast.Attribute(value, name):
            owner = c.expr(value, scope)

            def to_attribute(f: Frame, value: Value) -> None:
                m.setattr(owner(f), name, value)

            return to_attribute
        case ast.Subscript(value, key):
            container, index = c.expr(value, scope), c.expr(key, scope)

            def to_item(f: Frame, value: Value) -> None:
                operators.setitem(m, container(f), index(f), value)

            return to_item
        case ast.Tuple(elements) | ast.List(elements):
            return unpack(c, elements, scope)
        case ast.Starred(value):
            return store(c, value, scope)
    return lambda _f, _value: None


def unpack(c: Compiler, elements: list[ast.expr], scope: Scope) -> Store:
    """``a, *b, c = value``; an unknown gives each name an unknown of its own."""
    m = c.machine
    stores = [store(c, e, scope) for e in elements]
    star = next((i for i, e in enumerate(elements) if isinstance(e, ast.Starred)), None)
    count = len(stores)

    def spread(value: Value) -> list[Value]:
        if isinstance(value, Unknown):
            items: list[Value] = [m.part(value, index=i) for i in range(count)]
            if star is not None:
                items[star] = [items[star]]
            return items
        if isinstance(value, HostObject):
            iteration = m.iterate(value)
            items = m.take(iteration.items, count + 1 if star is None else m.budget.limits.size)
            if star is None and iteration.exact and len(items) > count:
                items = items[:count]
        else:
            items = m.listed(value)
        if star is None:
            if len(items) != count:
                if len(items) > count:
                    m.fail("ValueError", f"too many values to unpack (expected {count})")
                else:
                    m.fail("ValueError", f"not enough values to unpack (expected {count}, got {len(items)})")
                items = [*items, *([m.derived("too few values to unpack")] * count)][:count]
            return items
        if len(items) < count - 1:
            m.fail("ValueError", f"not enough values to unpack (expected at least {count - 1}, got {len(items)})")
            items = [*items, *([m.derived("too few values to unpack")] * count)][: count - 1]
        tail = count - star - 1
        middle = items[star : len(items) - tail]
        return [*items[:star], middle, *items[len(items) - tail :]]

    def run(f: Frame, value: Value) -> None:
        if (type(value) is tuple or type(value) is list) and len(value) == count and star is None:
            items = list(value)
        else:
            items = spread(value)
        del value
        items.reverse()
        for one in stores:
            one(f, items.pop())

    return run


def delete(c: Compiler, target: ast.expr, scope: Scope) -> Run:
    """``del target``."""
    m = c.machine
    match target:
        case ast.Name(name):
            in_cell = name in scope.cells or (name in scope.free and scope.kind != "class")
            in_globals = scope.kind == "module" or name in scope.declared_global

            def drop(f: Frame) -> Value:
                if in_cell:
                    f.cells[name].value = MISSING
                elif (f.globals if in_globals else f.vars).pop(name, MISSING) is MISSING:
                    m.fail("NameError", f"name '{name}' is not defined")
                return 0

            return drop
        case ast.Attribute(value, name):
            owner = c.expr(value, scope)

            def drop_attribute(f: Frame) -> Value:
                m.delattr(owner(f), name)
                return 0

            return drop_attribute
        case ast.Subscript(value, key):
            container, index = c.expr(value, scope), c.expr(key, scope)

            def drop_item(f: Frame) -> Value:
                operators.delitem(m, container(f), index(f))
                return 0

            return drop_item
        case ast.Tuple(elements) | ast.List(elements):
            runs = [delete(c, e, scope) for e in elements]

            def drop_all(f: Frame) -> Value:
                for run in runs:
                    run(f)
                return 0

            return drop_all
    return lambda _f: 0
