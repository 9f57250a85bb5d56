"""How long a slice is when neither end is known: ``data[i : i + n]`` has ``n`` items wherever ``i`` lies.

The ends are compared as sums of products over what the script names, so ``data[i + 1 : i + 1 + n]`` and
``data[k * n : (k + 1) * n]`` are found too; what was computed beforehand (``end = start + n``) is compared by the
origin that unknown numbers carry (:attr:`Unknown.origin`).
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import Any

from oarlock_profiler.core.interpreter.values import Unknown, Value

_CALM = (ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.operator, ast.expr_context, ast.UnaryOp, ast.unaryop)
_MOST_TERMS = 16
MOST_COLUMNS = 64

Term = tuple[str, ...]


def terms(node: ast.expr) -> Counter[Term] | None:
    """``node`` as a sum: how often each product of names and numbers counts. None: not such a sum."""
    match node:
        case ast.BinOp(left, ast.Add() | ast.Sub() as op, right):
            one, other = terms(left), terms(right)
            if one is None or other is None:
                return None
            total = Counter(one)
            for term, times in other.items():
                total[term] += times if isinstance(op, ast.Add) else -times
            return total
        case ast.BinOp(left, ast.Mult(), right):
            one, other = terms(left), terms(right)
            if one is None or other is None or len(one) * len(other) > _MOST_TERMS:
                return None
            product: Counter[Term] = Counter()
            for mine, times in one.items():
                for theirs, again in other.items():
                    product[tuple(sorted(mine + theirs))] += times * again
            return product
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return Counter({(): value})
        case ast.Name() | ast.Attribute():
            return Counter({(ast.unparse(node),): 1})
    return None


def width_node(node: ast.Slice) -> ast.expr | None:
    """An expression for ``upper - lower`` in which what both ends share is gone; None when nothing is."""
    if node.lower is None or node.upper is None:
        return None
    if not all(isinstance(n, _CALM) for end in (node.lower, node.upper) for n in ast.walk(end)):
        return None
    lower, upper = terms(node.lower), terms(node.upper)
    if lower is None or upper is None:
        return None
    left = Counter(upper)
    left.subtract(lower)
    remaining = {term: times for term, times in left.items() if times}
    if not remaining or not lower or set(lower) <= {()}:
        return None
    text = " + ".join("*".join((str(times), *term)) for term, times in sorted(remaining.items()))
    made = ast.parse(text, mode="eval").body
    for inner in ast.walk(made):
        ast.copy_location(inner, node)
    return made


def same_origin(lower: Value, upper: Value) -> int | None:
    """``upper - lower`` of two unknown numbers that were counted from the same one."""
    if not (isinstance(lower, Unknown) and isinstance(upper, Unknown)):
        return None
    start, begun = lower.origin or (lower, 0)
    end, ended = upper.origin or (upper, 0)
    return ended - begun if start is end else None


def columns(key: slice) -> int | None:
    """How many items a slice such as ``row[1:27]`` takes of a row of unknown length: those who write it count on them.

    None for ends that are not known, and for what rather limits a list than picks fields (:data:`MOST_COLUMNS`).
    """
    start, stop, step = 0 if key.start is None else key.start, key.stop, 1 if key.step is None else key.step
    if not all(type(v) is int for v in (start, stop, step)) or step < 1 or (start < 0) is not (stop < 0):
        return None
    count = len(range(start, stop, step))
    return count if count <= MOST_COLUMNS else None


def open_ended(value: Any) -> bool:
    """Whether an end of a slice is a number that is not known."""
    return value is not None and not isinstance(value, (int, str)) and getattr(value, "value", None) is None
