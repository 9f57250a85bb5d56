"""Where library names find their meaning: a table from public dotted names to values.

An overlay file registers natives, classes and constants under every public name they go by; the interpreter asks
:func:`resolve` for each attribute of a library module. Registering is all that a new operator needs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from oarlock_profiler.core.interpreter.values import MISSING, Class, Module, Native, Value

_ENTRIES: dict[str, Value] = {}
_PREFIXES: set[str] = set()


def register(name: str, value: Value) -> None:
    """Give the dotted public ``name`` (``paddle.nn.functional.relu``) its meaning; later entries replace earlier."""
    _ENTRIES[name] = value
    end = name.rfind(".")
    while end > 0 and (prefix := name[:end]) not in _PREFIXES:
        _PREFIXES.add(prefix)
        end = name.rfind(".", 0, end)


def declare_package(name: str) -> None:
    """Make ``name`` an importable package although no entry lies below it (its members are library text)."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        _PREFIXES.add(".".join(parts[:end]))


def entry(*names: str) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register a host function ``fn(context, ...)`` under ``names``. Arguments are bound as the script gives them."""

    def decorate(fn: Callable[..., Value]) -> Callable[..., Value]:
        for name in names:
            register(name, Native(name, fn, fn.__doc__ or ""))
        return fn

    return decorate


def known(name: str) -> bool:
    """Whether ``name`` has an entry of its own."""
    return name in _ENTRIES


def names() -> list[str]:
    """Every registered name, sorted (for ``make coverage-api``)."""
    return sorted(_ENTRIES)


def get(name: str) -> Value:
    """The entry of ``name``, or ``MISSING``."""
    return _ENTRIES.get(name, MISSING)


def members(package: str) -> dict[str, Value]:
    """The entries directly below ``package``, by their last name."""
    if package not in _PREFIXES:
        return {}
    prefix = f"{package}."
    found = {full[len(prefix) :]: value for full, value in _ENTRIES.items() if full.startswith(prefix)}
    return {name: value for name, value in found.items() if "." not in name}


def is_package(name: str) -> bool:
    """Whether some registered name lies below ``name``."""
    return name in _PREFIXES


def resolve(name: str) -> Value:
    """The entry of ``name``; a :class:`Module` for a package that holds entries; else ``MISSING``."""
    value = _ENTRIES.get(name, MISSING)
    if value is not MISSING:
        return value
    if name in _PREFIXES:
        return Module(name, resolve=partial(_below, name))
    return MISSING


def _below(package: str, attribute: str) -> Value:
    return resolve(f"{package}.{attribute}")


def native_class(
    qualname: str, *, bases: tuple[Class, ...] = (), make: Callable[[Class], Any] | None = None, **methods: Value
) -> Class:
    """Build a :class:`Class` whose methods are host functions ``fn(context, self, ...)``; computes its MRO (C3)."""
    namespace = {
        key: Native(f"{qualname}.{key}", value) if callable(value) and not isinstance(value, Class) else value
        for key, value in methods.items()
    }
    cls = Class(qualname.rsplit(".", 1)[-1], qualname, bases, namespace, make=make)
    cls.mro = linearise(cls)
    return cls


def linearise(cls: Class) -> tuple[Class, ...]:
    """C3 linearisation (Python's method resolution order).

    Raises:
        TypeError: the bases admit no consistent order.
    """
    sequences = [list(base.mro or linearise(base)) for base in cls.bases] + [list(cls.bases)]
    order = [cls]
    while sequences := [s for s in sequences if s]:
        for sequence in sequences:
            head = sequence[0]
            if not any(head in other[1:] for other in sequences):
                break
        else:
            raise TypeError(f"cannot order the bases of class {cls.qualname}")
        order.append(head)
        for sequence in sequences:
            if sequence and sequence[0] is head:
                del sequence[0]
    return tuple(order)
