"""``math``, ``cmath``, ``operator``, ``statistics``; ``random`` as unknowns within their range."""

# ruff: noqa: PLW0108 - tables

from __future__ import annotations

import cmath
import math
import statistics
from typing import Any

from oarlock_profiler.core.interpreter import operators
from oarlock_profiler.core.interpreter.values import Class, Native, Unknown, Value
from oarlock_profiler.core.overlays.host_functions import nothing, pure
from oarlock_profiler.core.overlays.registry import entry, native_class, register

LIBRARIES = ("math", "cmath", "operator", "statistics", "random", "secrets")
_LARGE = 5_000

for _name in [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "copysign",
    "cos",
    "cosh",
    "degrees",
    "dist",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "fmod",
    "fsum",
    "gamma",
    "hypot",
    "ldexp",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "radians",
    "remainder",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "ulp",
    "nextafter",
]:
    if hasattr(math, _name):
        pure(f"math.{_name}", getattr(math, _name), "float")
for _name in ("ceil", "floor", "trunc", "gcd", "lcm", "isqrt"):
    pure(f"math.{_name}", getattr(math, _name), "int")
for _name in ("isclose", "isfinite", "isinf", "isnan"):
    pure(f"math.{_name}", getattr(math, _name), "bool")
for _name in ("frexp", "modf"):
    pure(f"math.{_name}", getattr(math, _name), "tuple")
for _name in ("e", "pi", "tau", "inf", "nan"):
    register(f"math.{_name}", getattr(math, _name))
for _name in ("sqrt", "exp", "log", "phase", "polar", "rect"):
    pure(f"cmath.{_name}", getattr(cmath, _name), "complex")
for _name in ("mean", "median", "stdev", "variance", "pstdev", "fmean", "mode"):
    pure(f"statistics.{_name}", getattr(statistics, _name), "float")


@entry("math.factorial")
def factorial(m: Any, n: Value) -> Value:
    if not isinstance(n, int):
        return m.derived("factorial of an unknown", "int")
    return m.host(math.factorial, n) if n <= _LARGE else m.unknown("the factorial is too large", hint="int")


@entry("math.comb", "math.perm")
def comb(m: Any, n: Value, k: Value = None) -> Value:
    if not isinstance(n, int) or not isinstance(k, int) or n > _LARGE:
        return m.derived("a binomial that is not known", "int")
    return m.host(math.comb, n, k)


@entry("math.pow")
def power(m: Any, a: Value, b: Value) -> Value:
    result = operators.binary(m, "**", a, b)
    return float(result) if isinstance(result, int) and result.bit_length() < 1000 else result


@entry("math.prod")
def prod(m: Any, items: Value, *, start: Value = 1) -> Value:
    if isinstance(items, Unknown):
        return m.part(items)
    total = start
    for item in m.iterate(items).items:
        m.spend()
        total = operators.binary(m, "*", total, item)
    return total


# -- operator --------------------------------------------------------------------------------------------------------

_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "and_": "&", "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "concat": "+",
}  # fmt: skip
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "is_": "is", "is_not": "is not"}
for _name, _op in _BINARY.items():
    register(f"operator.{_name}", Native(f"operator.{_name}", lambda m, a, b, _op=_op: operators.binary(m, _op, a, b)))
    register(
        f"operator.i{_name.rstrip('_')}",
        Native(f"operator.i{_name}", lambda m, a, b, _op=_op: operators.inplace(m, _op, a, b)),
    )
for _name, _op in _COMPARE.items():
    register(f"operator.{_name}", Native(f"operator.{_name}", lambda m, a, b, _op=_op: operators.compare(m, _op, a, b)))
register("operator.neg", Native("operator.neg", lambda m, a: operators.unary(m, "-", a)))
register("operator.not_", Native("operator.not_", lambda m, a: operators.compare(m, "==", m.truth(a), False)))
register("operator.contains", Native("operator.contains", lambda m, a, b: operators.contains(m, a, b)))
register("operator.getitem", Native("operator.getitem", lambda m, a, b: operators.getitem(m, a, b)))
register("operator.index", Native("operator.index", lambda m, a: a))


@entry("operator.itemgetter")
def itemgetter(m: Any, *keys: Value) -> Value:
    def get(m: Any, value: Value) -> Value:
        found = tuple(operators.getitem(m, value, key) for key in keys)
        return found[0] if len(keys) == 1 else found

    return Native("operator.itemgetter", get)


@entry("operator.attrgetter")
def attrgetter(m: Any, *names: Value) -> Value:
    def one(m: Any, value: Value, dotted: str) -> Value:
        for name in dotted.split("."):
            value = m.getattr(value, name)
        return value

    def get(m: Any, value: Value) -> Value:
        found = tuple(one(m, value, name) for name in names)
        return found[0] if len(names) == 1 else found

    return Native("operator.attrgetter", get)


@entry("operator.methodcaller")
def methodcaller(m: Any, name: Value, *args: Value, **kwargs: Value) -> Value:
    return Native("operator.methodcaller", lambda m, value: m.call(m.getattr(value, name), args, kwargs))


# -- random ----------------------------------------------------------------------------------------------------------


def _drawn(m: Any, hint: str | None, low: Any = None, high: Any = None, item: Value = None) -> Unknown:
    return Unknown("drawn at random", m.where, hint, low, high, item, "random")


def _bound(value: Value, upper: bool) -> Any:
    if isinstance(value, Unknown):
        return value.high if upper else value.low
    return value if isinstance(value, (int, float)) else None


def _integer(m: Any, low: Value, high: Value) -> Value:
    a, b = _bound(low, False), _bound(high, True)
    return a if a is not None and a == b else _drawn(m, "int", a, b)


def _choice(m: Any, items: Value, *_more: Value, **_kw: Value) -> Value:
    if isinstance(items, Unknown):
        return m.part(items)
    options = m.listed(items)
    if len(options) == 1:
        return options[0]
    numbers = [o for o in options if type(o) in (int, float)]
    if options and len(numbers) == len(options):
        if min(numbers) == max(numbers):
            return numbers[0]
        return _drawn(m, type(numbers[0]).__name__, min(numbers), max(numbers))
    kinds = {type(o).__name__ for o in options}
    # any of them may come: the first stands for all when they are of one kind that is not plain data
    if options and not kinds & {"str", "int", "float", "bool"}:
        return options[0]
    return _drawn(m, kinds.pop() if len(kinds) == 1 else None)


def _choices(m: Any, items: Value, weights: Value = None, *, cum_weights: Value = None, k: Value = 1) -> Value:
    picked = _choice(m, items)
    if isinstance(k, int) and k <= m.budget.limits.size:
        return [picked] * k
    return Unknown("drawn at random", m.where, "list", item=picked)


def _sample(m: Any, items: Value, k: Value = None, **_kw: Value) -> Value:
    if isinstance(items, Unknown):
        return Unknown("drawn at random", m.where, "list", item=items.item)
    if isinstance(items, range) and isinstance(k, int) and k <= m.budget.limits.size and len(items):
        return [_drawn(m, "int", items[0], items[-1]) for _ in range(min(k, len(items)))]
    options = m.listed(items)
    return (
        options[:k]
        if isinstance(k, int)
        else Unknown("drawn at random", m.where, "list", item=options[0] if options else None)
    )


def _uniform(m: Any, low: Value = 0.0, high: Value = 1.0, *_mode: Value) -> Value:
    a, b = _bound(low, False), _bound(high, True)
    return _drawn(m, "float", min(a, b), max(a, b)) if a is not None and b is not None else _drawn(m, "float")


def _randrange(m: Any, start: Value, stop: Value = None, step: Value = 1) -> Value:
    low, high = (0, start) if stop is None else (start, stop)
    return _integer(m, low, operators.binary(m, "-", high, 1))


_RANDOM: dict[str, Any] = {
    "random": lambda m: _drawn(m, "float", 0.0, 1.0),
    "uniform": _uniform,
    "triangular": _uniform,
    "randint": _integer,
    "randrange": _randrange,
    "choice": _choice,
    "choices": _choices,
    "sample": _sample,
    "getrandbits": lambda m, k: _drawn(m, "int", 0, 2**k - 1 if isinstance(k, int) and k < 256 else None),
    "betavariate": lambda m, *_a: _drawn(m, "float", 0.0, 1.0),
    "shuffle": lambda m, *_a: None,
    "seed": lambda m, *_a, **_k: None,
    "getstate": lambda m: (),
    "setstate": lambda m, *_a: None,
}
for _name in ("gauss", "normalvariate", "lognormvariate", "expovariate", "gammavariate", "vonmisesvariate"):
    _RANDOM[_name] = lambda m, *_a: _drawn(m, "float")
for _name, _function in _RANDOM.items():
    register(f"random.{_name}", Native(f"random.{_name}", _function))


def _method(name: str) -> Any:
    return lambda m, _self, *args, **kwargs: _RANDOM[name](m, *args, **kwargs)


_GENERATOR: Class = native_class(
    "random.Random", __init__=lambda _m, _self, *_args: None, **{name: _method(name) for name in _RANDOM}
)
register("random.Random", _GENERATOR)
register("random.SystemRandom", _GENERATOR)
for _name in ("choice", "randbelow", "token_hex"):
    register(
        f"secrets.{_name}", Native(f"secrets.{_name}", _choice if _name == "choice" else lambda m, *_a: _drawn(m, None))
    )
nothing("random.jumpahead")
