"""Tables of numbers written out entry by entry, such as sinusoidal positions.

For example ``[[pos / 10000 ** (2 * j / d) for j in …] for pos in …]``. Of a large one only the size matters to a
reading, so after some rows the rest is filled with numbers that are not known.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from oarlock_profiler.core.interpreter.values import Unknown, Value

if TYPE_CHECKING:
    from oarlock_profiler.core.interpreter.machine import Machine

SAMPLE = 16
"""Entries (or rows) that are computed before the rest is filled in."""

_LARGE = 65_536
_LARGEST = 1 << 24
"""A table of pointers beyond this would cost the reader itself too much memory."""
_MODULES = {"np", "numpy", "math", "random", "torch", "paddle"}
_FUNCTIONS = {"float", "int", "abs", "round", "min", "max", "pow", "range", "sum"}
_ARITHMETIC = (
    ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.operator, ast.unaryop, ast.cmpop,
    ast.expr_context, ast.comprehension, ast.ListComp,
)  # fmt: skip


def is_arithmetic(node: ast.AST) -> bool:
    """Whether an expression only computes numbers: leaving its later rounds out changes nothing else."""
    if isinstance(node, ast.Call):
        func = node.func
        known = (isinstance(func, ast.Name) and func.id in _FUNCTIONS) or (
            isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in _MODULES
        )
        return known and all(is_arithmetic(a) for a in node.args) and not node.keywords
    return isinstance(node, _ARITHMETIC) and all(is_arithmetic(c) for c in ast.iter_child_nodes(node))


def fill(m: Machine, made: list[Value], items: Value) -> bool:
    """Complete the list of a comprehension over ``items`` whose first entries are ``made``, if it is a large table."""
    if not isinstance(items, range) or type(made[0]) not in (float, list):
        return False
    row = len(made[0]) if type(made[0]) is list else 1
    rest = len(items) - len(made)
    if len(items) * row < _LARGE or len(items) * row > _LARGEST or len(items) > m.budget.limits.size:
        return False
    entry = Unknown("an entry of a computed table", m.where, "float")
    if row == 1 and all(type(v) is float for v in made):
        made.extend([entry] * rest)
        return True
    if all(type(r) is list and len(r) == row and all(isinstance(v, (float, Unknown)) for v in r) for r in made):
        made.extend([entry] * row for _ in range(rest))
        m.spend(rest)
        return True
    return False
