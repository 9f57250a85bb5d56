"""Simple statements, ``if`` and definitions. Loops, ``try``, ``with`` and ``match`` have files of their own."""

# ruff: noqa: ARG001 - the signatures are Python's own

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from oarlock_profiler.core.interpreter import classes, guarded, loops, operators, patterns
from oarlock_profiler.core.interpreter.expressions import function
from oarlock_profiler.core.interpreter.formatting import text
from oarlock_profiler.core.interpreter.frames import BREAK, CONTINUE, RETURN, Cell, Frame, Run
from oarlock_profiler.core.interpreter.lazy_library import UNREAD, Lazy
from oarlock_profiler.core.interpreter.scope import Scope
from oarlock_profiler.core.interpreter.targets import delete, store_name
from oarlock_profiler.core.interpreter.values import Class, Function, Instance, Module, Native, Value

if TYPE_CHECKING:
    from oarlock_profiler.core.interpreter.compiler import Compiler


def expression(c: Compiler, node: ast.Expr, scope: Scope) -> Run:
    if isinstance(node.value, ast.Constant):
        return lambda _f: 0
    value, line, m = c.expr(node.value, scope), node.lineno, c.machine

    def run(f: Frame) -> Value:
        f.line = line
        m.spend()
        value(f)
        return 0

    return run


def assign(c: Compiler, node: ast.Assign, scope: Scope) -> Run:
    value, line, m = c.expr(node.value, scope), node.lineno, c.machine
    if len(node.targets) == 1:
        store = c.store(node.targets[0], scope)

        def run(f: Frame) -> Value:
            f.line = line
            m.spend()
            store(f, value(f))
            return 0

        return run
    stores = [c.store(t, scope) for t in node.targets]

    def run_all(f: Frame) -> Value:
        f.line = line
        m.spend()
        result = value(f)
        for one in stores:
            one(f, result)
        return 0

    return run_all


def annassign(c: Compiler, node: ast.AnnAssign, scope: Scope) -> Run:
    parts: list[Run] = []
    if node.value is not None:
        parts.append(assign(c, ast.Assign([node.target], node.value, lineno=node.lineno), scope))
    if scope.kind == "class" and isinstance(node.target, ast.Name):
        name, m = node.target.id, c.machine
        annotation = c.expr(node.annotation, scope)

        def note(f: Frame) -> Value:
            with m.quiet():
                f.vars.setdefault("__annotations__", {})[name] = annotation(f)
            return 0

        parts.append(note)

    def run(f: Frame) -> Value:
        for part in parts:
            part(f)
        return 0

    return run


def augassign(c: Compiler, node: ast.AugAssign, scope: Scope) -> Run:
    m, line, op = c.machine, node.lineno, operators.TOKENS[type(node.op)]
    value = c.expr(node.value, scope)
    target = node.target
    if isinstance(target, ast.Name):
        load, store = c.expr(ast.Name(target.id, ast.Load(), lineno=line), scope), store_name(target.id, scope)

        def run_name(f: Frame) -> Value:
            f.line = line
            m.spend()
            store(f, operators.inplace(m, op, load(f), value(f)))
            return 0

        return run_name
    owner = c.expr(target.value, scope)
    if isinstance(target, ast.Attribute):
        name = target.attr

        def run_attribute(f: Frame) -> Value:
            f.line = line
            m.spend()
            holder = owner(f)
            m.setattr(holder, name, operators.inplace(m, op, m.getattr(holder, name), value(f)))
            return 0

        return run_attribute
    key = c.expr(target.slice, scope)

    def run_item(f: Frame) -> Value:
        f.line = line
        m.spend()
        holder, index = owner(f), key(f)
        operators.setitem(m, holder, index, operators.inplace(m, op, operators.getitem(m, holder, index), value(f)))
        return 0

    return run_item


def return_(c: Compiler, node: ast.Return, scope: Scope) -> Run:
    line, m = node.lineno, c.machine
    if node.value is None:

        def run_none(f: Frame) -> Value:
            f.ret = None
            return RETURN

        return run_none
    value = c.expr(node.value, scope)

    def run(f: Frame) -> Value:
        f.line = line
        m.spend()
        f.ret = value(f)
        return RETURN

    return run


def if_(c: Compiler, node: ast.If, scope: Scope) -> Run:
    m, line = c.machine, node.lineno
    test, body, orelse = c.expr(node.test, scope), c.block(node.body, scope), c.block(node.orelse, scope)

    def run(f: Frame) -> Value:
        f.line = line
        m.spend()
        truth = m.truth(test(f))
        if truth is True:
            return body(f)
        if truth is False:
            return orelse(f)
        return m.branches.statement(f, node, truth, body, orelse)

    if not m.follows:
        return run

    def followed(f: Frame) -> Value:
        f.line = line
        m.spend()
        truth = m.truth(test(f))
        if isinstance(truth, bool):
            m.decided(f, node, truth)
            return body(f) if truth else orelse(f)
        return m.branches.statement(f, node, truth, body, orelse)

    return followed


def assert_(c: Compiler, node: ast.Assert, scope: Scope) -> Run:
    m, line, test = c.machine, node.lineno, c.expr(node.test, scope)
    message = c.expr(node.msg, scope) if node.msg is not None else None

    def run(f: Frame) -> Value:
        f.line = line
        m.spend()
        if m.truth(test(f)) is False:
            given = message(f) if message is not None else ""
            shown = given if isinstance(given, str) else text(m, given)
            m.fail("AssertionError", shown if isinstance(shown, str) else "assertion failed")
        return 0

    return run


def raise_(c: Compiler, node: ast.Raise, scope: Scope) -> Run:
    m, line = c.machine, node.lineno
    value = c.expr(node.exc, scope) if node.exc is not None else None
    cause = c.expr(node.cause, scope) if node.cause is not None else None

    def run(f: Frame) -> Value:
        f.line = line
        error = value(f) if value is not None else m.handling()
        if cause is not None:
            if isinstance(error, Class):
                error = m.call(error)
            if isinstance(error, Instance):
                error.attrs.update(__cause__=cause(f), __suppress_context__=True)
        return m.raised(error, f)

    return run


def global_(c: Compiler, node: ast.stmt, scope: Scope) -> Run:
    return lambda _f: 0


def delete_(c: Compiler, node: ast.Delete, scope: Scope) -> Run:
    runs, line = [delete(c, t, scope) for t in node.targets], node.lineno

    def run(f: Frame) -> Value:
        f.line = line
        for one in runs:
            one(f)
        return 0

    return run


def import_(c: Compiler, node: ast.Import, scope: Scope) -> Run:
    m, line = c.machine, node.lineno
    names = [(a.name, a.asname, store_name(a.asname or a.name.partition(".")[0], scope)) for a in node.names]

    def run(f: Frame) -> Value:
        f.line = line
        m.spend()
        for name, alias, store in names:
            if m.importer.is_lazy(name, f):
                store(f, Lazy(name, None, alias))
                continue
            module = m.importer.load(name)
            if m.follows:
                m.imported(name, module)
            store(f, module if alias else m.importer.top(name, module))
        return 0

    return run


def importfrom(c: Compiler, node: ast.ImportFrom, scope: Scope) -> Run:
    m, line, level, source = c.machine, node.lineno, node.level, node.module or ""
    if source == "__future__":
        return lambda _f: 0
    names = [(a.name, store_name(a.asname or a.name, scope) if a.name != "*" else None) for a in node.names]

    def run(f: Frame) -> Value:
        f.line = line
        m.spend()
        full = m.importer.absolute(source, level, f)
        waits = m.importer.is_lazy(full, f)
        if m.follows and not waits:
            m.imported(full, m.importer.load(full) if full else None)
        for name, store in names:
            if store is None:
                f.vars.update(m.importer.star(source, level, f))
            elif waits:
                store(f, Lazy(full, name))
            else:
                store(f, m.importer.member(source, level, name, f))
        return 0

    return run


def functiondef(c: Compiler, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> Run:
    c.qualify(node, scope, f"{node.name}.<locals>")
    m, make, store = c.machine, function(c, node, scope), store_name(node.name, scope)
    decorators = [(c.expr(d, scope), d.lineno) for d in node.decorator_list]
    if c.library and scope.kind == "module":
        unread = {full.rpartition(".")[2] for full in UNREAD}
        if node.name in unread:
            return lambda f: store(f, as_given(f.module, node.name) or make(f)) or 0

    def run(f: Frame) -> Value:
        runs = []
        for decorator, line in decorators:
            f.line = line
            runs.append(decorator(f))
        value = make(f)
        for decorate in reversed(runs):
            value = m.decorate(decorate, value)
        store(f, value)
        return 0

    return run


def as_given(module: Module, name: str) -> Native | None:
    """A decorator (or its factory) that returns what it is given, for those that only write documentation."""
    if f"{module.name}.{name}" not in UNREAD:
        return None

    def decorate(_m: Any, target: Value = None, *_args: Value, **_options: Value) -> Value:
        if isinstance(target, (Class, Function)) or not isinstance(target, (str, type(None))):
            return target
        return Native(name, lambda _m, inner: inner)

    return Native(name, decorate)


def classdef(c: Compiler, node: ast.ClassDef, scope: Scope) -> Run:
    c.qualify(node, scope, node.name)
    m, line, inner = c.machine, node.lineno, c.scopes[node]
    bases = [(isinstance(b, ast.Starred), c.expr(b, scope)) for b in node.bases]
    keywords = [(k.arg, c.expr(k.value, scope)) for k in node.keywords]
    body, store = c.block(node.body, inner), store_name(node.name, scope)
    decorators = [c.expr(d, scope) for d in node.decorator_list]
    free, qualname = tuple(inner.free), c.prefix(scope) + node.name
    doc = ast.get_docstring(node, clean=False)

    def run(f: Frame) -> Value:
        f.line = line
        m.spend()
        decorations = [d(f) for d in decorators]
        given: list[Value] = []
        for star, base in bases:
            value = base(f)
            given.extend(m.listed(value) if star else [value])
        named: dict[str, Any] = {k: v(f) for k, v in keywords if k is not None}
        cells = {n: f.cells[n] for n in free}
        owner = cells["__class__"] = Cell()
        namespace: dict[str, Value] = {"__module__": f.module.attrs.get("__name__", f.module.name), "__doc__": doc}
        namespace["__qualname__"] = qualname
        metaclass = named.get("metaclass")
        if isinstance(metaclass, Class) and metaclass.module is not None:
            options = {key: value for key, value in named.items() if key != "metaclass"}
            namespace = {**classes.UserMeta(metaclass).prepared(m, node.name, given, options), **namespace}
        body(Frame(namespace, cells, f.module, f.code, f.function, line))
        namespace.pop("__qualname__", None)
        cls = classes.create(m, node.name, qualname, given, namespace, named, f.module)
        owner.value = cls
        result: Value = cls
        for decorate in reversed(decorations):
            result = m.decorate(decorate, result)
        store(f, result)
        return 0

    return run


def _signal(value: int) -> Any:
    return lambda _c, _node, _scope: lambda _f: value


COMPILERS: dict[type[ast.stmt], Any] = {
    ast.Expr: expression,
    ast.Assign: assign,
    ast.AnnAssign: annassign,
    ast.AugAssign: augassign,
    ast.Return: return_,
    ast.If: if_,
    ast.Assert: assert_,
    ast.Raise: raise_,
    ast.Global: global_,
    ast.Nonlocal: global_,
    ast.Delete: delete_,
    ast.Import: import_,
    ast.ImportFrom: importfrom,
    ast.FunctionDef: functiondef,
    ast.AsyncFunctionDef: functiondef,
    ast.ClassDef: classdef,
    ast.Pass: _signal(0),
    ast.Break: _signal(BREAK),
    ast.Continue: _signal(CONTINUE),
    ast.For: loops.for_,
    ast.AsyncFor: loops.for_,
    ast.While: loops.while_,
    ast.Try: guarded.try_,
    ast.TryStar: guarded.try_,
    ast.With: guarded.with_,
    ast.AsyncWith: guarded.with_,
    ast.Match: patterns.match_,
}
