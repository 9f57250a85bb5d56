"""Turning values into text: ``str``, ``repr``, f-strings, ``format`` and ``%``. Widths are bounded."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

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

_DEPTH = 20


def doubtful(value: Value) -> Unknown:
    """A text that is not known because ``value`` is not."""
    if isinstance(value, Unknown):
        return Unknown(value.why, value.where, "str", name=value.name)
    return Unknown("text of a computed value", None, "str")


def text(m: Machine, value: Value, *, quote: bool = False, depth: int = 0) -> str | Unknown:
    """``str(value)``, or ``repr(value)`` when ``quote``."""
    m.spend()
    if isinstance(value, Unknown):
        return doubtful(value)
    if isinstance(value, Instance):
        for name in ("__repr__",) if quote else ("__str__", "__repr__"):
            method = value.cls.lookup(name)
            if method is not MISSING:
                result = m.call(m.bind(method, value, value.cls))
                return result if isinstance(result, (str, Unknown)) else doubtful(result)
        if not isinstance(value, (int, float, str, list, tuple, dict, set)):
            return doubtful(value) if isinstance(value, HostObject) else f"<{value.cls.qualname} object>"
    elif isinstance(value, HostObject):
        method = value.py_getattr(m, "__str__")
        return doubtful(value) if method is MISSING else m.call(method)
    if isinstance(value, Class):
        return f"<class '{value.qualname.removeprefix('builtins.')}'>"
    if isinstance(value, (Function, Native, BoundMethod, Module)):
        return f"<{type(value).__name__.lower()} {getattr(value, 'name', '')}>"
    if depth > _DEPTH:
        return "..."
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        return _container(m, value, depth)
    if isinstance(value, str) and not quote:
        return str(value)
    try:
        return repr(value)
    except Exception as error:
        result = m.fail_host(error)
        return result if isinstance(result, (str, Unknown)) else doubtful(result)


def _members(value: Value) -> list[Value]:
    if isinstance(value, Counter) and all(isinstance(count, int) for count in value.values()):
        return value.most_common()
    return list(value.items()) if isinstance(value, dict) else list(value)


def _container(m: Machine, value: Value, depth: int) -> str | Unknown:
    parts: list[str] = []
    size = 0
    for item in _members(value):
        pieces = [text(m, part, quote=True, depth=depth + 1) for part in (item if isinstance(value, dict) else (item,))]
        for piece in pieces:
            if isinstance(piece, Unknown):
                return piece
        joined = ": ".join(str(p) for p in pieces)
        size += len(joined)
        if size > m.budget.limits.size:
            return m.unknown("text too long", hint="str")
        parts.append(joined)
    body = ", ".join(parts)
    if isinstance(value, Counter):
        return f"Counter({{{body}}})" if parts else "Counter()"
    if isinstance(value, list):
        return f"[{body}]"
    if isinstance(value, tuple):
        return f"({body},)" if len(parts) == 1 else f"({body})"
    return f"{{{body}}}" if parts or isinstance(value, dict) else "set()"


def modest(spec: str) -> bool:
    """Whether no width or precision in a format specification has more than four digits."""
    digits = 0
    for char in spec:
        digits = digits + 1 if char.isdigit() else 0
        if digits > 4:
            return False
    return True


def format_value(m: Machine, value: Value, spec: Value, conversion: str) -> str | Unknown:
    """``format(value, spec)`` after ``!r``/``!s``/``!a``."""
    if isinstance(value, Unknown):
        return doubtful(value)
    if isinstance(spec, Unknown):
        return doubtful(spec)
    if conversion:
        value = text(m, value, quote=conversion in "ra")
        if isinstance(value, Unknown):
            return value
    if not modest(spec):
        return m.unknown("a giant format width", hint="str")
    if isinstance(value, (Instance, HostObject)) and not isinstance(value, (int, float, str)):
        method = m.find(value, "__format__")
        if method is not MISSING and not isinstance(method, Native):
            result = m.call(method, [spec])
            return result if isinstance(result, (str, Unknown)) else doubtful(result)
        value = text(m, value)
        if isinstance(value, Unknown):
            return value
        spec = spec if value.__class__ is str and not spec.endswith(("f", "d", "e", "g")) else ""
    elif not isinstance(value, (int, float, complex, str)) or not spec:
        value = text(m, value)
        if isinstance(value, Unknown):
            return value
    try:
        return format(value, spec)
    except Exception as error:
        result = m.fail_host(error)
        return result if isinstance(result, (str, Unknown)) else doubtful(result)


def join_parts(m: Machine, parts: list[str | Unknown]) -> str | Unknown:
    """The pieces of an f-string."""
    for part in parts:
        if isinstance(part, Unknown):
            return doubtful(part)
    joined = "".join(str(p) for p in parts)
    return joined if len(joined) <= m.budget.limits.size else m.unknown("text too long", hint="str")


def percent(m: Machine, template: str | bytes, value: Value) -> Value:
    """``template % value``."""
    if isinstance(value, dict):
        shown: Value = {k: simple(m, v) for k, v in value.items()}
        parts = list(shown.values())
    elif isinstance(value, tuple):
        shown = tuple(simple(m, v) for v in value)
        parts = list(shown)
    else:
        shown = simple(m, value)
        parts = [shown]
    for part in parts:
        if isinstance(part, Unknown):
            return doubtful(part)
    try:
        return template % shown
    except Exception as error:
        return m.fail_host(error)


def simple(m: Machine, value: Value) -> Value:
    """A host value that formats as ``value`` does."""
    if isinstance(value, (int, float, complex, str, bytes)) or value is None:
        return value
    return text(m, value)


def format_method(m: Machine, template: str, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
    """``template.format(*args, **kwargs)``, walking its fields ourselves so that attributes stay ours."""
    import string  # noqa: PLC0415 - only scripts that format need it

    out: list[str] = []
    automatic = 0
    try:
        fields = list(string.Formatter().parse(template))
    except ValueError as error:
        return m.fail_host(error)
    for literal, field, spec, conversion in fields:
        out.append(literal)
        if field is None:
            continue
        first, rest = _split_field(field)
        if first == "":
            first, automatic = str(automatic), automatic + 1
        value: Value = MISSING
        if first.isdigit():
            value = args[int(first)] if len(first) < 6 and int(first) < len(args) else MISSING
        else:
            value = kwargs.get(first, MISSING)
        if value is MISSING:
            return m.fail("IndexError" if first.isdigit() else "KeyError", f"format field {first!r} has no argument")
        for is_attribute, part in rest:
            value = m.getattr(value, part) if is_attribute else m.getitem(value, int(part) if part.isdigit() else part)
        if spec and "{" in spec:
            while "{}" in spec:
                inner = args[automatic] if automatic < len(args) else ""
                spec, automatic = spec.replace("{}", str(inner), 1), automatic + 1
            if "{" in spec:
                spec = format_method(m, spec, args, kwargs)
        piece = format_value(m, value, spec or "", conversion or "")
        if isinstance(piece, Unknown):
            return piece
        out.append(piece)
        if sum(map(len, out)) > m.budget.limits.size:
            return m.unknown("text too long", hint="str")
    return "".join(out)


def _split_field(field: str) -> tuple[str, list[tuple[bool, str]]]:
    import re  # noqa: PLC0415

    first = re.match(r"[^.\[]*", field)
    head = first.group() if first else ""
    rest = [(bool(a), a or b) for a, b in re.findall(r"\.([^.\[]+)|\[([^\]]*)\]", field[len(head) :])]
    return head, rest
