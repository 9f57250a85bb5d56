"""Calling: binding arguments to a script function's parameters, and running natives safely."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oarlock_profiler.core.interpreter.errors import Raised
from oarlock_profiler.core.interpreter.frames import RETURN, Cell, Closure, Frame
from oarlock_profiler.core.interpreter.values import MISSING, Function, Native, Unknown, Value

if TYPE_CHECKING:
    from oarlock_profiler.core.interpreter.machine import Machine


def function(m: Machine, fn: Function, args: list[Value], kwargs: dict[str, Value] | None) -> Value:
    """Run a function of the script. ``args`` and ``kwargs`` are emptied: the parameters own the values now."""
    closure: Closure = fn.closure
    code = closure.code
    body = code.body
    if body is None:
        body = code.ready()
        if body is None:
            return m.unknown(f"{fn.name} has no body")
    if not kwargs and len(args) == len(code.positional) and code.vararg is code.kwarg is None and not code.keyword_only:
        variables = dict(zip(code.positional, args, strict=True))
        args.clear()
    else:
        variables = bind(m, fn, args, kwargs)
    cells = closure.cells
    if code.own_cells or code.parameter_cells:
        cells = dict(cells)
        for name in code.own_cells:
            cells[name] = Cell()
        for name in code.parameter_cells:
            cells[name] = Cell(variables.pop(name))
    frame = Frame(variables, cells, fn.module, code, fn, getattr(code.node, "lineno", 0))
    del variables, cells
    if code.generator:
        return m.generator(frame, body, fn.name)
    if not m.enter(frame):
        return m.unknown(f"calls nested more than {m.budget.limits.depth} deep in {fn.qualname}")
    try:
        if body(frame) == RETURN:
            return frame.ret
        return None
    finally:
        m.frames.pop()


def bind(m: Machine, fn: Function, args: list[Value], kwargs: dict[str, Value] | None) -> dict[str, Value]:
    """Parameters to values, by Python's rules; what cannot be bound is noted and becomes unknown."""
    code = fn.closure.code
    names = code.positional
    variables: dict[str, Value] = dict(zip(names, args, strict=False))
    extra = args[len(names) :]
    args.clear()
    if code.vararg is not None:
        variables[code.vararg] = tuple(extra)
    elif extra:
        m.fail("TypeError", f"{fn.qualname}() takes {len(names)} positional arguments, {len(names) + len(extra)} given")
    del extra
    rest: dict[str, Value] = {}
    if kwargs:
        allowed = (*names[code.positional_only :], *code.keyword_only)
        for key in list(kwargs):
            value = kwargs.pop(key)
            if key in allowed:
                if key in variables:
                    m.fail("TypeError", f"{fn.qualname}() got two values for {key!r}")
                variables[key] = value
            elif code.kwarg is not None:
                rest[key] = value
            else:
                m.fail("TypeError", f"{fn.qualname}() has no parameter {key!r}")
            del value
    if code.kwarg is not None:
        variables[code.kwarg] = rest
    if fn.defaults:
        for name, value in zip(names[-len(fn.defaults) :], fn.defaults, strict=True):
            if name not in variables:
                variables[name] = value
    for name in code.keyword_only:
        if name not in variables and name in fn.kw_defaults:
            variables[name] = fn.kw_defaults[name]
    for name in (*names, *code.keyword_only):
        if name not in variables:
            variables[name] = m.fail("TypeError", f"{fn.qualname}() is not given its argument {name!r}")
    return variables


def native(m: Machine, fn: Native, args: list[Value], kwargs: dict[str, Value] | None) -> Value:
    """Run a host function; whatever goes wrong inside it becomes an unknown."""
    try:
        result = fn.call(m, *args, **kwargs) if kwargs else fn.call(m, *args)
    except Raised:
        raise
    except RecursionError:
        return m.unknown(f"{fn.name} recursed too deeply")
    except Exception as error:
        return m.native_failed(fn.name, error)
    if result is MISSING:
        return m.unknown(f"{fn.name} has no value here", name=fn.name)
    return result


def unknown(m: Machine, fn: Unknown) -> Unknown:
    """Call what is not known."""
    if fn.name is not None and fn.hint == "library":
        return m.unknown(fn.why, name=fn.name)
    return Unknown(fn.why, fn.where, _RESULT.get((fn.name or "").rpartition(".")[2]), name=fn.name, item=fn.item)


_RESULT = {
    "strip": "str", "lower": "str", "upper": "str", "format": "str", "join": "str", "replace": "str", "split": "list",
    "startswith": "bool", "endswith": "bool", "keys": "list", "values": "list", "items": "list", "read": "str",
}  # fmt: skip
