"""Private names: inside a class, ``__name`` is ``_Class__name``."""

from __future__ import annotations

import ast
import re

_PRIVATE = re.compile(r"__[A-Za-z0-9]\w*(?<!__)\b")
"""Begins with plain text, which the matcher finds fast; it also meets the tail of ``name__more``."""


def mangle(tree: ast.Module, source: str) -> ast.Module:
    """Rewrite private names in place; sources without any are left alone."""
    if any(_starts_name(source, match.start()) for match in _PRIVATE.finditer(source)):
        _Mangler().visit(tree)
    return tree


def _starts_name(source: str, start: int) -> bool:
    before = source[start - 1] if start else " "
    return not (before == "_" or before.isalnum())


class _Mangler(ast.NodeTransformer):
    def __init__(self) -> None:
        self.cls: str | None = None

    def _name(self, name: str) -> str:
        if self.cls is None or not name.startswith("__") or name.endswith("__") or "." in name:
            return name
        return f"_{self.cls.lstrip('_')}{name}"

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        outer, self.cls = self.cls, node.name
        node.body = [self.visit(n) for n in node.body]
        self.cls = outer
        node.bases = [self.visit(n) for n in node.bases]
        node.decorator_list = [self.visit(n) for n in node.decorator_list]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.Attribute:
        node.attr = self._name(node.attr)
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self._name(node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self._name(node.arg)
        self.generic_visit(node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.name = self._name(node.name)
        self.generic_visit(node)
        return node
