"""Which names of a scope are local, captured, free or global: Python's own rules.

Functions of a module and methods of its classes capture nothing (but the class itself, for ``super()``), so their
bodies are looked at when they are first called: most functions of a library never are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["module", "function", "class", "comprehension"]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(eq=False, slots=True)
class Scope:
    """``bound`` names are assigned here; ``cells`` are those an inner scope captures; ``free`` come from outside."""

    kind: Kind
    parent: Scope | None
    bound: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    declared_global: set[str] = field(default_factory=set)
    declared_nonlocal: set[str] = field(default_factory=set)
    cells: set[str] = field(default_factory=set)
    free: set[str] = field(default_factory=set)
    children: list[Scope] = field(default_factory=list)
    yields: bool = False


class Analysis:
    """Builds the scopes of a tree; ``scopes`` maps each scope-making node to its scope."""

    def __init__(self) -> None:
        self.scopes: dict[ast.AST, Scope] = {}
        self._pending: set[ast.AST] = set()

    def run(self, tree: ast.Module) -> dict[ast.AST, Scope]:
        """Analyse ``tree``.

        Raises:
            RecursionError: the source is nested too deeply.
        """
        top = Scope("module", None)
        self.scopes[tree] = top
        self._all(tree.body, top)
        _resolve(top)
        return self.scopes

    def finish(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        """Look at the body of a function whose analysis was put off."""
        if node in self._pending:
            self._pending.discard(node)
            scope = self.scopes[node]
            self._body(node, scope)
            _resolve(scope)

    def _child(self, node: ast.AST, kind: Kind, parent: Scope) -> Scope:
        scope = Scope(kind, parent)
        parent.children.append(scope)
        self.scopes[node] = scope
        return scope

    def _all(self, nodes: Iterable[ast.AST | None], scope: Scope) -> None:
        for node in nodes:
            if node is not None:
                self._visit(node, scope)

    def _visit(self, node: ast.AST, scope: Scope) -> None:
        kind = type(node)
        if kind is ast.Name:
            self._name(node, scope)  # type: ignore[arg-type]
        elif kind is ast.Constant:
            return
        elif isinstance(node, _FUNCTIONS):
            self._function(node, scope)
        elif isinstance(node, _COMPREHENSIONS):
            self._comprehension(node, scope)
        elif isinstance(node, ast.ClassDef):
            scope.bound.add(node.name)
            self._all((*node.decorator_list, *node.bases, *(k.value for k in node.keywords)), scope)
            inner = self._child(node, "class", scope)
            inner.bound.add("__class__")
            self._all(node.body, inner)
        else:
            self._bind(node, scope)
            if isinstance(node, ast.AnnAssign):
                parts = [node.target, node.value]
                self._all([*parts, node.annotation] if scope.kind == "class" else parts, scope)
            else:
                self._all(ast.iter_child_nodes(node), scope)

    @staticmethod
    def _name(node: ast.Name, scope: Scope) -> None:
        if isinstance(node.ctx, ast.Load):
            scope.used.add(node.id)
            if node.id == "super":
                scope.used.add("__class__")
        else:
            scope.bound.add(node.id)

    @staticmethod
    def _bind(node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.Import(names) | ast.ImportFrom(names=names):
                for alias in names:
                    scope.bound.add(alias.asname or alias.name.partition(".")[0])
            case ast.Global(names):
                scope.declared_global.update(names)
            case ast.Nonlocal(names):
                scope.declared_nonlocal.update(names)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(str(name)):
                scope.bound.add(name)
            case ast.MatchMapping(rest=str(name)):
                scope.bound.add(name)
            case ast.NamedExpr(ast.Name(name)):
                owner = scope
                inner: list[Scope] = []
                while owner.kind == "comprehension" and owner.parent is not None:
                    inner.append(owner)
                    owner = owner.parent
                owner.bound.add(name)
                for one in inner:
                    one.used.add(name)
                    (one.declared_global if owner.kind == "module" else one.declared_nonlocal).add(name)
            case ast.Yield() | ast.YieldFrom():
                scope.yields = True

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope) -> None:
        if not isinstance(node, ast.Lambda):
            scope.bound.add(node.name)
            self._all(node.decorator_list, scope)
        arguments = node.args
        self._all((*arguments.defaults, *arguments.kw_defaults), scope)
        inner = self._child(node, "function", scope)
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            inner.bound.add(argument.arg)
        for extra in (arguments.vararg, arguments.kwarg):
            if extra is not None:
                inner.bound.add(extra.arg)
        if _stands_alone(scope):
            self._pending.add(node)
            if scope.kind == "class":
                scope.cells.add("__class__")
                inner.free.add("__class__")
        else:
            self._body(node, inner)

    def _body(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, inner: Scope) -> None:
        if isinstance(node, ast.Lambda):
            self._visit(node.body, inner)
        else:
            self._all(node.body, inner)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, scope: Scope) -> None:
        self._visit(node.generators[0].iter, scope)
        inner = self._child(node, "comprehension", scope)
        inner.bound.add(".0")
        for index, generator in enumerate(node.generators):
            self._visit(generator.target, inner)
            if index:
                self._visit(generator.iter, inner)
            self._all(generator.ifs, inner)
        if isinstance(node, ast.DictComp):
            self._all((node.key, node.value), inner)
        else:
            self._visit(node.elt, inner)


def _stands_alone(scope: Scope) -> bool:
    """Whether no function or comprehension encloses ``scope``: what is defined there can capture no variable."""
    outer: Scope | None = scope
    while outer is not None:
        if outer.kind in ("function", "comprehension"):
            return False
        outer = outer.parent
    return True


def _resolve(scope: Scope) -> None:
    for child in scope.children:
        _resolve(child)
    scope.bound -= scope.declared_global | scope.declared_nonlocal
    if scope.kind == "module":
        return
    for name in (scope.used | scope.declared_nonlocal) - scope.bound - scope.declared_global:
        _capture(name, scope)
    if scope.kind == "class":
        return


def _capture(name: str, scope: Scope) -> None:
    passed = [scope]
    outer = scope.parent
    while outer is not None and outer.kind != "module":
        if name in outer.declared_global:
            return
        holds = name == "__class__" if outer.kind == "class" else True
        if holds and name in outer.bound - outer.declared_nonlocal:
            outer.cells.add(name)
            for inner in passed:
                inner.free.add(name)
            return
        passed.append(outer)
        outer = outer.parent
