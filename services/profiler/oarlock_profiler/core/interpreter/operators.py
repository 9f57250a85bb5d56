"""Operators over any values: plain ones are computed within bounds, others are asked, unknowns spread."""

# ruff: noqa: ARG001 - the signatures are Python's own

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oarlock_profiler.core.interpreter import cut_lists
from oarlock_profiler.core.interpreter.slices import columns
from oarlock_profiler.core.interpreter.values import (
    MISSING,
    BoundMethod,
    Class,
    Function,
    HostObject,
    Instance,
    Module,
    Native,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from oarlock_profiler.core.interpreter.machine import Machine

TOKENS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
UNARY_TOKENS: dict[type[ast.unaryop], str] = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not"}
COMPARE_TOKENS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_DUNDERS = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "@": "matmul",
    "&": "and", "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift",
    "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge",
}  # fmt: skip
_MIRROR = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_HOST: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "@": operator.matmul, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_UNARY: dict[str, Callable[[Any], Any]] = {"-": operator.neg, "+": operator.pos, "~": operator.invert}
_OPAQUE = (Instance, HostObject, Unknown)
_SEQUENCES = (str, bytes, bytearray, list, tuple)


def too_big(m: Machine, op: str, a: Value, b: Value) -> str | None:
    """Why computing ``a op b`` would be too large, or None."""
    limits = m.budget.limits
    if isinstance(a, int) and isinstance(b, int):
        if op == "**" and b > 0 and a.bit_length() * b > limits.bits and a not in (0, 1, -1):
            return "the power is too large to compute"
        if op == "<<" and b > 0 and a.bit_length() + b > limits.bits:
            return "the shift is too large to compute"
        if op == "*" and a.bit_length() + b.bit_length() > limits.bits:
            return "the product is too large to compute"
        return None
    if op == "*":
        sized, times = (a, b) if isinstance(a, _SEQUENCES) else (b, a)
        if isinstance(sized, _SEQUENCES) and isinstance(times, int) and len(sized) * max(times, 0) > limits.size:
            return f"a repetition of more than {limits.size:,} items"
    elif op == "+":
        if isinstance(a, _SEQUENCES) and isinstance(b, _SEQUENCES) and len(a) + len(b) > limits.size:
            return f"a sequence of more than {limits.size:,} items"
    elif op == "%" and isinstance(a, (str, bytes)):
        return None if _modest_format(a if isinstance(a, str) else a.decode("latin1"), b) else "a giant format width"
    return None


def _modest_format(text: str, value: Value) -> bool:
    digits = 0
    for char in text:
        digits = digits + 1 if char.isdigit() else 0
        if digits > 4:
            return False
    items = value if isinstance(value, tuple) else (value,)
    return not ("*" in text and any(isinstance(i, int) and abs(i) > 10_000 for i in items))


def plain(m: Machine, op: str, a: Value, b: Value) -> Value:
    """Both operands are host values."""
    reason = too_big(m, op, a, b)
    if reason is not None:
        kind = "int" if isinstance(a, int) and isinstance(b, int) else None
        if kind is None:
            sized = a if isinstance(a, _SEQUENCES) else b
            kind = type(sized).__name__
            item = sized[0] if isinstance(sized, (list, tuple)) and sized else None
            return m.unknown(reason, hint=kind, item=item)
        return m.unknown(reason, hint=kind)
    if op == "%" and isinstance(a, (str, bytes)):
        from oarlock_profiler.core.interpreter.formatting import percent  # noqa: PLC0415 - formatting uses us

        return percent(m, a, b)
    try:
        result = _HOST[op](a, b)
    except Exception as error:
        return m.fail_host(error)
    if isinstance(result, _SEQUENCES) and len(result) > 1000:
        # what takes memory is charged, so that the budget bounds it too
        m.spend(len(result) >> (6 if isinstance(result, (str, bytes)) else 3))
    return m.open_lists.copied(result, a, b) if type(result) is list else result


def _dunder(m: Machine, obj: Instance, name: str, other: Value) -> Value:
    method = obj.cls.lookup(name)
    if method is MISSING:
        return MISSING
    result = m.call(m.bind(method, obj, obj.cls), [other])
    return MISSING if result is NotImplemented else result


def binary(m: Machine, op: str, a: Value, b: Value) -> Value:
    """``a op b``."""
    if isinstance(a, _OPAQUE) or isinstance(b, _OPAQUE):
        result = _asked(m, op, a, b)
        if result is not MISSING:
            return result
        if isinstance(a, Unknown) or isinstance(b, Unknown):
            joined = cut_lists.joined(m, a, b) if op == "+" else None
            return _spread(op, a, b) if joined is None else joined
        if not (_is_host(a) and _is_host(b)):
            return m.fail("TypeError", f"unsupported operand types for {op}: {m.type_name(a)} and {m.type_name(b)}")
    elif (isinstance(a, (Class, Function, Native)) and op == "|") or (a is None and isinstance(b, Class) and op == "|"):
        return m.union(a, b)
    return plain(m, op, a, b)


def _is_host(value: Value) -> bool:
    """Whether host operators may be applied: plain values, and instances of subclasses of builtin types."""
    return not isinstance(value, (Instance, HostObject)) or isinstance(value, (int, float, str, tuple, list, dict, set))


def _asked(m: Machine, op: str, a: Value, b: Value) -> Value:
    if isinstance(a, HostObject):
        result = a.py_binary(m, op, b, False)
        if result is not MISSING and result is not NotImplemented:
            return result
    if isinstance(a, Instance):
        result = _dunder(m, a, f"__{_DUNDERS[op]}__", b)
        if result is not MISSING:
            return result
    if isinstance(b, HostObject):
        result = b.py_binary(m, op, a, True)
        if result is not MISSING and result is not NotImplemented:
            return result
    if isinstance(b, Instance):
        name = _MIRROR.get(op)
        result = _dunder(m, b, f"__{_DUNDERS[name]}__" if name else f"__r{_DUNDERS[op]}__", a)
        if result is not MISSING:
            return result
    return MISSING


def _spread(op: str, a: Value, b: Value) -> Unknown:
    """An arithmetic result that is not known, with the bounds that still hold."""
    source: Unknown = a if isinstance(a, Unknown) else b
    if op == "%" and isinstance(a, str):
        return Unknown(source.why, source.where, "str", name=source.name)
    if op == "*" and type(a) is list and len(a) == 1:
        return Unknown(source.why, source.where, "list", item=a[0], name=source.name)
    hint = _numeric_hint(op, a, b)
    low = high = None
    (al, ah), (bl, bh) = _range(a), _range(b)
    if None not in (al, ah, bl, bh) and op in ("+", "-", "*"):
        corners = [_HOST[op](x, y) for x in (al, ah) for y in (bl, bh)]
        low, high = min(corners), max(corners)
    return Unknown(source.why, source.where, hint, low, high, name=source.name, origin=_origin(op, a, b))


def _origin(op: str, a: Value, b: Value) -> tuple[Unknown, int] | None:
    """What ``a op b`` is counted from, for an unknown integer and a known one."""
    if op == "+" and type(a) is int:
        a, b = b, a
    if op not in ("+", "-") or type(b) is not int or not isinstance(a, Unknown):
        return None
    start, far = a.origin or (a, 0)
    return start, far + (b if op == "+" else -b)


def _numeric_hint(op: str, a: Value, b: Value) -> str | None:
    kinds = {x.hint if isinstance(x, Unknown) else type(x).__name__ for x in (a, b)}
    if "tensor" in kinds:
        return "tensor"
    if kinds <= {"int", "bool"}:
        return "float" if op == "/" else "int"
    if kinds <= {"int", "float", "bool"}:
        return "float"
    if len(kinds) == 1 or (kinds & {"list", "str"} and op in ("+", "*")):
        return next((k for k in ("list", "str") if k in kinds), next(iter(kinds)))
    return None


def _range(value: Value) -> tuple[Any, Any]:
    if isinstance(value, Unknown):
        return value.low, value.high
    return (value, value) if type(value) in (int, float) else (None, None)


def inplace(m: Machine, op: str, a: Value, b: Value) -> Value:
    """``a op= b``."""
    if isinstance(a, HostObject):
        result = a.py_binary(m, op + "=", b, False)
        if result is not MISSING and result is not NotImplemented:
            return result
    if isinstance(a, Instance):
        result = _dunder(m, a, f"__i{_DUNDERS[op]}__", b)
        if result is not MISSING:
            return result
    if isinstance(a, list) and op == "+" and not isinstance(b, Unknown):
        items = m.listed(b)
        if len(a) + len(items) <= m.budget.limits.size:
            a.extend(items)
            m.open_lists.grown(a, items)
            return m.open_lists.copied(a, b)
        return m.unknown(f"a list of more than {m.budget.limits.size:,} items", hint="list")
    if isinstance(a, (set, dict)) and isinstance(b, (set, frozenset, dict)):
        try:
            if op == "|":
                a.update(b)
                return a
        except TypeError as error:
            return m.fail_host(error)
    return binary(m, op, a, b)


def unary(m: Machine, op: str, a: Value) -> Value:
    """``-a``, ``+a``, ``~a``."""
    if isinstance(a, HostObject):
        result = a.py_unary(m, op)
        if result is not MISSING:
            return result
    if isinstance(a, Instance):
        name = {"-": "__neg__", "+": "__pos__", "~": "__invert__"}[op]
        method = a.cls.lookup(name)
        if method is not MISSING:
            return m.call(m.bind(method, a, a.cls))
    if isinstance(a, Unknown):
        low, high = (None, None) if a.low is None or a.high is None or op != "-" else (-a.high, -a.low)
        return Unknown(a.why, a.where, a.hint, low, high, name=a.name)
    try:
        return _UNARY[op](a)
    except Exception as error:
        return m.fail_host(error)


def compare(m: Machine, op: str, a: Value, b: Value) -> Value:
    """``a op b`` for comparisons, identity and membership."""
    if op in ("==", "!=", "<", "<=", ">", ">="):
        return _ordered(m, op, a, b)
    if op in ("is", "is not"):
        same = _same(m, a, b)
        return same if op == "is" or isinstance(same, Unknown) else not same
    found = contains(m, b, a)
    if op == "in":
        return found
    truth = m.truth(found)
    return truth if isinstance(truth, Unknown) else not truth


def _same(m: Machine, a: Value, b: Value) -> bool | Unknown:
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Unknown) and one is not other:
            if other is None and one.hint not in (None, "optional"):
                return False
            return Unknown(one.why, one.where, "bool", name=one.name)
    if isinstance(a, BoundMethod) and isinstance(b, BoundMethod):
        return a.function is b.function and a.receiver is b.receiver
    if type(a) is type(b) and isinstance(a, (int, str, float, bytes)) and not isinstance(a, Instance):
        return bool(a == b)
    return a is b


def _ordered(m: Machine, op: str, a: Value, b: Value) -> Value:
    if isinstance(a, _OPAQUE) or isinstance(b, _OPAQUE):
        result = _asked(m, op, a, b)
        if result is not MISSING:
            return result
        if op == "!=" and (isinstance(a, Instance) or isinstance(b, Instance)):
            result = _asked(m, "==", a, b)
            if result is not MISSING:
                truth = m.truth(result)
                return truth if isinstance(truth, Unknown) else not truth
        if isinstance(a, Unknown) or isinstance(b, Unknown):
            return _bounded(op, a, b)
    if op in ("==", "!="):
        try:
            equal = a is b or bool(a == b)
        except Exception as error:
            return m.fail_host(error)
        if not equal and isinstance(a, (list, tuple, dict)) and type(a) is type(b) and len(a) == len(b):
            equal_deep = _deep_equal(m, a, b, 0)
            if isinstance(equal_deep, Unknown):
                return equal_deep
            equal = equal_deep
        return equal is (op == "==")
    try:
        return _HOST[op](a, b)
    except Exception as error:
        return m.fail_host(error)


def _deep_equal(m: Machine, a: Value, b: Value, depth: int) -> bool | Unknown:
    m.spend()
    if depth > 20:
        return False
    if isinstance(a, dict):
        if a.keys() != b.keys():
            return False
        pairs = [(a[k], b[k]) for k in a]
    else:
        pairs = list(zip(a, b, strict=True))
    doubt: Unknown | None = None
    for one, other in pairs:
        if one is other:
            continue
        nested = type(one) is type(other) and isinstance(one, (list, tuple, dict)) and len(one) == len(other)
        equal = _deep_equal(m, one, other, depth + 1) if nested else m.truth(_ordered(m, "==", one, other))
        if equal is False:
            return False
        if isinstance(equal, Unknown):
            doubt = equal
    return doubt if doubt is not None else True


def _bounded(op: str, a: Value, b: Value) -> Value:
    """A comparison with an unknown that its bounds decide, or an unknown."""
    source: Unknown = a if isinstance(a, Unknown) else b
    (al, ah), (bl, bh) = _range(a), _range(b)
    answer: bool | None = None
    if op in ("<", "<="):
        if ah is not None and bl is not None and _HOST[op](ah, bl):
            answer = True
        elif al is not None and bh is not None and not _HOST[op](al, bh):
            answer = False
    elif op in (">", ">="):
        if al is not None and bh is not None and _HOST[op](al, bh):
            answer = True
        elif ah is not None and bl is not None and not _HOST[op](ah, bl):
            answer = False
    elif None not in (al, ah, bl, bh) and (ah < bl or al > bh):
        answer = op == "!="
    elif a is None or b is None:
        other = b if a is None else a
        if isinstance(other, Unknown) and other.hint not in (None, "optional"):
            answer = op == "!="
    return answer if answer is not None else Unknown(source.why, source.where, "bool", name=source.name)


def contains(m: Machine, container: Value, item: Value) -> Value:
    """``item in container``."""
    if isinstance(container, HostObject):
        result = container.py_binary(m, "in", item, True)
        if result is not MISSING and result is not NotImplemented:
            return result
    if isinstance(container, Instance):
        method = container.cls.lookup("__contains__")
        if method is not MISSING:
            return m.call(m.bind(method, container, container.cls), [item])
    if isinstance(container, Unknown):
        return Unknown(container.why, container.where, "bool", name=container.name)
    if isinstance(container, Class) and container.meta is not None:
        return container.meta.contains(m, container, item)
    if isinstance(item, Unknown):
        if item.hint == "str" and isinstance(container, str) and not container:
            return False
        return False if not _host_len(container) else Unknown(item.why, item.where, "bool", name=item.name)
    if isinstance(container, (str, bytes, range, dict, set, frozenset)) or _is_view(container):
        try:
            return item in container or (isinstance(container, (dict, set)) and m.completed(item) and item in container)
        except TypeError as error:
            return m.fail_host(error)
    doubt: Unknown | None = None
    for other in m.iterate(container).items:
        m.spend()
        if other is item:
            return True
        equal = m.truth(_ordered(m, "==", item, other))
        if equal is True:
            return True
        if isinstance(equal, Unknown):
            doubt = equal
    return doubt if doubt is not None else False


def _is_view(value: Value) -> bool:
    return type(value) in (type({}.keys()), type({}.values()), type({}.items()))


def _host_len(value: Value) -> int:
    try:
        return len(value)
    except TypeError:
        return 1


def getitem(m: Machine, target: Value, key: Value) -> Value:
    """``target[key]``."""
    if isinstance(target, HostObject):
        return target.py_getitem(m, key)
    if isinstance(target, Instance):
        method = target.cls.lookup("__getitem__")
        if method is not MISSING:
            return m.call(m.bind(method, target, target.cls), [key])
    elif isinstance(target, Class):
        return m.class_getitem(target, key)
    if isinstance(target, Unknown):
        if isinstance(key, slice) and (target.item is not None or target.hint == "list"):
            count = columns(key)
            if count is not None:
                return [m.part(target, index=0)] * count
            return cut_lists.cut(m, target, key) or target
        return (cut_lists.cut(m, target, key) if isinstance(key, slice) else None) or m.part(target, key)
    if m.open_lists.holds(target) and isinstance(key, (int, slice)):
        count = (columns(key) or cut_lists.numbers(target, key)) if isinstance(key, slice) else None
        # as many as the slice says, as for a list of which nothing is known
        return m.open_lists.part(target, key) if count is None else m.open_lists.born((target * count)[:count])
    if _has_unknown(key):
        source = (
            key
            if isinstance(key, Unknown)
            else next(k for k in (key.start, key.stop, key.step) if isinstance(k, Unknown))
        )
        kind = None
        if isinstance(target, (list, tuple, str)):
            kind = type(target).__name__ if isinstance(key, slice) else _common_hint(target)
        elif isinstance(target, dict):
            kind = _common_hint(list(target.values()))
        return Unknown(source.why, source.where, kind, name=source.name)
    if (
        isinstance(target, (list, tuple, str, bytes, range, bytearray))
        and isinstance(key, Instance)
        and not isinstance(key, int)
    ):
        index = key.cls.lookup("__index__")
        if index is not MISSING:
            key = m.call(m.bind(index, key, key.cls))
    if isinstance(target, HostObject) or not hasattr(type(target), "__getitem__"):
        return m.fail("TypeError", f"{m.type_name(target)} cannot be indexed")
    try:
        return target[key]
    except Exception as error:
        if isinstance(error, KeyError) and m.completed(key) and key in target:
            return target[key]
        missing = getattr(type(target), "__missing__", None)
        if missing is None and isinstance(target, Instance) and isinstance(error, KeyError):
            hook = target.cls.lookup("__missing__")
            if hook is not MISSING:
                return m.call(m.bind(hook, target, target.cls), [key])
        return m.fail_host(error)


def _has_unknown(key: Value) -> bool:
    if isinstance(key, slice):
        return any(isinstance(k, Unknown) for k in (key.start, key.stop, key.step))
    return isinstance(key, Unknown)


def _common_hint(values: Any) -> str | None:
    kinds = {type(v).__name__ for v in list(values)[:100]}
    return (
        kinds.pop() if len(kinds) == 1 and kinds <= {"int", "float", "str", "list", "dict", "tuple", "bool"} else None
    )


def setitem(m: Machine, target: Value, key: Value, value: Value) -> None:
    """``target[key] = value``."""
    if isinstance(target, HostObject):
        target.py_setitem(m, key, value)
        return
    if isinstance(target, Instance):
        method = target.cls.lookup("__setitem__")
        if method is not MISSING:
            m.call(m.bind(method, target, target.cls), [key, value])
            return
    if isinstance(target, Unknown):
        return
    if isinstance(target, (list, bytearray)) and _has_unknown(key):
        return
    try:
        if isinstance(target, list) and isinstance(key, slice):
            value = m.listed(value)
        target[key] = value
    except Exception as error:
        m.fail_host(error)


def delitem(m: Machine, target: Value, key: Value) -> None:
    """``del target[key]``."""
    if isinstance(target, (HostObject, Instance)):
        method = m.find(target, "__delitem__")
        if method is not MISSING:
            m.call(method, [key])
            return
    if isinstance(target, (Unknown, Module, HostObject)) or _has_unknown(key):
        return
    try:
        del target[key]
    except Exception as error:
        m.fail_host(error)
