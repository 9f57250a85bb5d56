"""``contextvars``: one context is current; ``copy_context().run`` works on a copy."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.interpreter.errors import OBJECT
from oarlock_profiler.core.interpreter.values import MISSING, Class, HostObject, Native, Value
from oarlock_profiler.core.overlays.registry import entry, linearise, register

LIBRARIES = ("contextvars",)

_ABSENT = Class("MISSING", "contextvars.Token.MISSING", (OBJECT,), {})
_ABSENT.mro = linearise(_ABSENT)


def _current(m: Any) -> dict[int, tuple[ContextVar, Value]]:
    found: dict[int, tuple[ContextVar, Value]] = m.state.setdefault("contextvars", {})
    return found


class ContextVar(HostObject):
    """``contextvars.ContextVar``."""

    def __init__(self, name: Value, default: Value) -> None:
        self.name = name
        self.default = default

    def py_type(self) -> str:
        return "contextvars.ContextVar"

    def get(self, m: Any, default: Value = MISSING) -> Value:
        """The value in the current context, else a default."""
        held = _current(m).get(id(self))
        if held is not None:
            return held[1]
        for value in (default, self.default):
            if value is not MISSING:
                return value
        return m.fail("LookupError", f"context variable {self.name} has no value")

    def set(self, m: Any, value: Value) -> Value:
        """Give it a value; the token undoes it."""
        old = _current(m).get(id(self), (self, _ABSENT))[1]
        _current(m)[id(self)] = (self, value)
        return Token(self, old)

    def reset(self, m: Any, token: Value) -> None:
        """What it was before the ``set`` that gave ``token``."""
        if not isinstance(token, Token):
            return
        if token.old is _ABSENT:
            _current(m).pop(id(self), None)
        else:
            _current(m)[id(self)] = (self, token.old)

    def py_getattr(self, context: Any, name: str) -> Value:
        if name in ("get", "set", "reset"):
            return Native(f"ContextVar.{name}", getattr(self, name))
        return self.name if name == "name" else MISSING


class Token(HostObject):
    """What ``ContextVar.set`` returns; in Python 3.14 also a context that resets."""

    def __init__(self, var: ContextVar, old: Value) -> None:
        self.var = var
        self.old = old

    def py_type(self) -> str:
        return "contextvars.Token"

    def py_getattr(self, context: Any, name: str) -> Value:
        if name == "__enter__":
            return Native("Token.__enter__", lambda _m: self)
        if name == "__exit__":
            return Native("Token.__exit__", lambda m, *_error: self.var.reset(m, self))
        return {"var": self.var, "old_value": self.old, "MISSING": _ABSENT}.get(name, MISSING)


class CopiedContext(HostObject):
    """``contextvars.copy_context()``."""

    def __init__(self, values: dict[int, tuple[ContextVar, Value]]) -> None:
        self.values = values

    def py_type(self) -> str:
        return "contextvars.Context"

    def run(self, m: Any, function: Value, *args: Value, **kwargs: Value) -> Value:
        """Call ``function`` with this context current."""
        before = m.state.get("contextvars", {})
        m.state["contextvars"] = self.values
        try:
            return m.call(function, args, kwargs)
        finally:
            m.state["contextvars"] = before

    def py_getattr(self, context: Any, name: str) -> Value:
        values = self.values
        match name:
            case "run":
                return Native("Context.run", self.run)
            case "copy":
                return Native("Context.copy", lambda _m: CopiedContext(dict(values)))
            case "get":
                return Native("Context.get", lambda _m, var, default=None: values.get(id(var), (None, default))[1])
            case "keys" | "values" | "items":
                shown = dict(values.values())
                return Native(f"Context.{name}", lambda _m: list(getattr(shown, name)()))
        return MISSING

    def py_getitem(self, context: Any, key: Value) -> Value:
        held = self.values.get(id(key))
        return context.fail("KeyError", "not in the context") if held is None else held[1]

    def py_binary(self, context: Any, op: str, other: Value, reflected: bool) -> Value:
        return id(other) in self.values if op == "in" else MISSING

    def py_len(self, context: Any) -> Value:
        return len(self.values)


@entry("contextvars.ContextVar")
def context_variable(m: Any, name: Value = "", *, default: Value = MISSING) -> Value:
    return ContextVar(name, default)


@entry("contextvars.copy_context")
def copy_context(m: Any) -> Value:
    return CopiedContext(dict(_current(m)))


@entry("contextvars.Context")
def make_context(m: Any) -> Value:
    return CopiedContext({})


register("contextvars.Token.MISSING", _ABSENT)
register("contextvars.Token", Class("Token", "contextvars.Token", (OBJECT,), {"MISSING": _ABSENT}))
