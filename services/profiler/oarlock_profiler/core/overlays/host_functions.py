"""Trusted host functions given to scripts: applied when every argument is known, unknown otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oarlock_profiler.core.interpreter.values import MISSING, HostObject, Instance, Native, Unknown, Value
from oarlock_profiler.core.overlays.registry import register

_DEPTH = 4


def first_unknown(values: Any, depth: int = 0) -> Unknown | None:
    """The first unknown among ``values``, looking a little into containers."""
    for value in values:
        if isinstance(value, Unknown):
            return value
        if depth < _DEPTH and isinstance(value, (list, tuple, set)):
            found = first_unknown(list(value)[:1000], depth + 1)
            if found is not None:
                return found
        elif depth < _DEPTH and isinstance(value, dict):
            found = first_unknown(list(value.values())[:1000], depth + 1)
            if found is not None:
                return found
    return None


def pure(name: str, function: Callable[..., Any], hint: str | None = None) -> None:
    """Register ``function`` (host, pure, cheap for any bounded argument) as ``name``."""

    def call(m: Any, *args: Value, **kwargs: Value) -> Value:
        doubt = first_unknown((*args, *kwargs.values()))
        if doubt is not None:
            return Unknown(doubt.why, doubt.where, hint, name=doubt.name)
        args = tuple(_plain(m, a) for a in args)
        doubt = first_unknown(args)
        if doubt is not None:
            return Unknown(doubt.why, doubt.where, hint, name=doubt.name)
        try:
            return function(*args, **kwargs)
        except Exception as error:
            return m.fail_host(error)

    register(name, Native(name, call))


def _plain(m: Any, value: Value) -> Value:
    """A number or path inside a script object or tensor, where its own conversion gives one."""
    if isinstance(value, (Instance, HostObject)) and not isinstance(value, (int, float, str, list, tuple, dict)):
        for hook in ("__index__", "__float__", "__fspath__"):
            method = m.find(value, hook)
            if method is not MISSING and not isinstance(method, Unknown):
                return m.call(method)
        return Unknown("a value that the host function cannot take", m.where)
    return value


def nothing(*names: str) -> None:
    """Register functions that do nothing worth modelling and return None."""
    for name in names:
        register(name, Native(name, lambda _m, *_args, **_kwargs: None))


def unknown_result(hint: str | None, why: str, *names: str, quiet: bool = True) -> None:
    """Register functions whose result cannot be known without running something."""

    def make(name: str) -> Native:
        def call(m: Any, *_args: Value, **_kwargs: Value) -> Value:
            if quiet:
                return Unknown(why, m.where, hint, name=name)
            return m.unknown(why, hint=hint, name=name)

        return Native(name, call)

    for name in names:
        register(name, make(name))
