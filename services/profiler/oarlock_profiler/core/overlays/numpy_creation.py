"""``numpy.zeros``, ``numpy.array``, ``numpy.random.*``: where arrays come from."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from oarlock_profiler.core.interpreter import cut_lists
from oarlock_profiler.core.interpreter.values import MISSING, Context, Instance, Native, Unknown, Value
from oarlock_profiler.core.overlays import array_shapes as shapes
from oarlock_profiler.core.overlays.numpy_arrays import (
    KEPT_ELEMENTS,
    NdArray,
    NumpyType,
    _real,
    dtype_name,
    known_dtype,
    new,
)
from oarlock_profiler.core.overlays.registry import entry, get, native_class, register

LIBRARIES = ("numpy",)

register("numpy.ndarray", native_class("numpy.ndarray"))
for _name in shapes.ITEM_BYTES:
    register(f"numpy.{_name}", NumpyType(_name))
for _alias, _name in {
    "bool_": "bool", "float_": "float64", "int_": "int64", "double": "float64", "single": "float32", "half": "float16",
    "object_": "object", "str_": "str", "longlong": "int64", "intc": "int32",
}.items():  # fmt: skip
    register(f"numpy.{_alias}", NumpyType(_name))
for _family, _name in {
    "generic": "float64", "number": "float64", "integer": "int64", "signedinteger": "int64",
    "unsignedinteger": "uint64", "inexact": "float64", "floating": "float64", "complexfloating": "complex128",
    "flexible": "str", "character": "str",
}.items():  # fmt: skip
    register(f"numpy.{_family}", NumpyType(_name, _family))
register("numpy.pi", math.pi)
register("numpy.e", math.e)
register("numpy.inf", math.inf)
register("numpy.Inf", math.inf)
register("numpy.nan", math.nan)
register("numpy.newaxis", None)


def shape_of(context: Context, value: Value) -> shapes.Shape | None:
    """A shape argument (an int, a sequence, an integer array); None with a gap when part of it is unknown."""
    if isinstance(value, bool) or value is None:
        return ()
    if isinstance(value, int):
        return (max(0, value),)
    if isinstance(value, NdArray) and value.data is not None:
        value = [int(n) for n in value.data.reshape(-1)]
    if isinstance(value, list | tuple):
        sizes = [int(n) if isinstance(n, float) else n for n in value]
        if all(isinstance(n, int) for n in sizes):
            return tuple(max(0, n) for n in sizes)
    context.unknown("the array's shape is not known", hint="tuple")
    return None


def as_array(context: Context, value: Value, dtype: str | None = None, op: str = "array") -> NdArray:
    """``numpy.array(value)``."""
    if isinstance(value, NdArray):
        return value if dtype in (None, value.dtype) else value.cast(context, dtype or value.dtype)
    if isinstance(value, bool | int | float):
        return NdArray((), dtype or _scalar_dtype(value), None, _real(lambda: _numpy().array(value, dtype=dtype)))
    if context.is_open(value) and value:
        row, found = _nested(context, value[0], 1)
        return NdArray(None, dtype or found or "float64", row=row)
    if isinstance(value, Unknown) and (cut := cut_lists.listed(context, value)) is not None:
        value = cut
    if isinstance(value, list | tuple | range):
        plain = _plain(value)
        if plain is not None:
            data = _real(lambda: _numpy().array(plain, dtype=None if dtype == "str" else dtype))
            if data is not None:
                return new(context, tuple(data.shape), known_dtype(str(data.dtype)), op=op, data=data)
        shape, found = _nested(context, value, 0)
        return new(context, shape, dtype or found or "float64", op=op)
    if isinstance(getattr(value, "dtype", None), str) and hasattr(value, "shape"):
        return NdArray(value.shape, dtype or value.dtype)
    if isinstance(value, Instance) and (method := value.cls.lookup("__array__")) is not MISSING:
        made = context.call(method, (value,))
        return as_array(context, made, dtype) if isinstance(made, NdArray) else NdArray(None, dtype or "float64")
    size = getattr(value, "array_shape", None)
    if size is not None:
        return new(context, size, dtype or "uint8", op=op)
    return NdArray(None, dtype or "float64")


def _numpy() -> Any:
    import numpy  # noqa: PLC0415 - only scripts that hold known arrays pay for the import

    return numpy


def _scalar_dtype(value: Value) -> str:
    return "bool" if isinstance(value, bool) else ("int64" if isinstance(value, int) else "float64")


def _plain(value: Value, budget: int = KEPT_ELEMENTS) -> Any:
    """Nested lists of numbers as host values; None when anything in them is not known or they are many."""
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, NdArray) and value.data is not None:
        return value.data
    if isinstance(value, list | tuple | range) and len(value) <= budget:
        items = []
        for item in value:
            plain = _plain(item, budget)
            if plain is None:
                return None
            items.append(plain)
        return items
    return None


def _nested(context: Context, value: Value, depth: int) -> tuple[shapes.Shape | None, str | None]:
    """Shape and dtype of nested sequences, from their first elements."""
    if isinstance(value, NdArray):
        return value.shape, value.dtype
    if isinstance(value, list | tuple | range):
        if not value or context.is_open(value):
            return (None, None) if value else ((0,), None)
        inner, dtype = _nested(context, value[0], depth + 1) if depth < 16 else (None, None)
        return (None, dtype) if inner is None else ((len(value), *inner), dtype)
    if isinstance(value, bool | int | float):
        return (), _scalar_dtype(value)
    if isinstance(value, str):
        return (), "str"
    if isinstance(value, Unknown):
        if value.hint in ("int", "float", "bool", "number", None):
            return (), {"int": "int64", "bool": "bool"}.get(value.hint or "", "float64")
        return None, None
    if hasattr(value, "array_shape"):
        return value.array_shape, "uint8"
    if hasattr(value, "shape"):
        return value.shape, getattr(value, "dtype", None)
    return (), "object"


@entry("numpy.array", "numpy.asarray", "numpy.ascontiguousarray", "numpy.asanyarray", "numpy.asfortranarray")
def array(context: Context, object: Value, dtype: Value = None, **options: Value) -> Value:
    """Copies (``array``) or passes through; sized alike."""
    return as_array(context, object, dtype_name(dtype))


def _filled(name: str, default: str = "float64", fill: float | None = None) -> None:
    def create(context: Context, shape: Value = (), *args: Value, dtype: Value = None, **options: Value) -> Value:
        rest = list(args)
        if name == "full":
            value = rest.pop(0) if rest else options.get("fill_value", 0.0)
            chosen = _scalar_dtype(value) if isinstance(value, bool | int | float) else "float64"
        else:
            value, chosen = fill, default
        if rest and dtype is None:
            dtype = rest[0]
        size = shape_of(context, shape)
        known = dtype_name(dtype) or chosen
        data = None
        if size is not None and math.prod(size) <= KEPT_ELEMENTS and isinstance(value, int | float):
            data = _real(lambda: _numpy().full(size, value, dtype=known))
        return new(context, size, known, op=name, data=data)

    register(f"numpy.{name}", Native(f"numpy.{name}", create))

    def create_like(context: Context, a: Value, *args: Value, dtype: Value = None, **options: Value) -> Value:
        like = as_array(context, a)
        data = None
        if fill is not None and like.shape is not None and math.prod(like.shape) <= KEPT_ELEMENTS:
            data = _real(lambda: _numpy().full(like.shape, fill, dtype=dtype_name(dtype) or like.dtype))
        return new(context, like.shape, dtype_name(dtype) or like.dtype, op=f"{name}_like", data=data)

    register(f"numpy.{name}_like", Native(f"numpy.{name}_like", create_like))


for _name, _fill in (("zeros", 0), ("ones", 1), ("empty", None), ("full", None)):
    _filled(_name, fill=_fill)


@entry("numpy.arange")
def arange(context: Context, *bounds: Value, dtype: Value = None, **options: Value) -> Value:
    """Known bounds give known values."""
    if all(isinstance(b, int | float) for b in bounds) and bounds:
        start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        length = max(0, math.ceil((stop - start) / step)) if step else 0
        if length <= KEPT_ELEMENTS:
            return as_array(context, list(_numpy().arange(start, stop, step).tolist()), dtype_name(dtype), op="arange")
        real = any(isinstance(b, float) for b in bounds)
        return new(context, (length,), dtype_name(dtype) or ("float64" if real else "int64"), op="arange")
    return NdArray(None, dtype_name(dtype) or "int64")


@entry("numpy.linspace", "numpy.logspace", "numpy.geomspace")
def linspace(context: Context, start: Value, stop: Value, num: Value = 50, *args: Value, **options: Value) -> Value:
    """Known bounds give known values."""
    if not isinstance(num, int):
        return NdArray(None, "float64")
    dtype = dtype_name(options.get("dtype")) or "float64"
    if num <= KEPT_ELEMENTS and isinstance(start, int | float) and isinstance(stop, int | float):
        return new(
            context, (num,), dtype, op="linspace", data=_real(lambda: _numpy().linspace(start, stop, num, dtype=dtype))
        )
    return new(context, (num,), dtype, op="linspace")


@entry("numpy.eye", "numpy.identity")
def eye(context: Context, N: Value, M: Value = None, k: Value = 0, dtype: Value = None, **options: Value) -> Value:
    """Identity matrix."""
    size = shape_of(context, (N, N if M is None else M))
    return new(context, size, dtype_name(dtype) or "float64", op="eye")


@entry("numpy.dtype")
def dtype(context: Context, spec: Value, **options: Value) -> Value:
    """A dtype by its name."""
    name = dtype_name(spec)
    return NumpyType(name) if name else Unknown("an unusual dtype", context.where)


@entry("numpy.load", "numpy.loadtxt", "numpy.genfromtxt")
def load(context: Context, *args: Value, dtype: Value = None, **options: Value) -> Value:
    """A file's contents are not known, nor what shape they have."""
    _file_gap(context, args)
    return NdArray(None, dtype_name(dtype) or "float64")


@entry("numpy.fromfile", "numpy.memmap", "numpy.fromstring", "numpy.frombuffer")
def from_file(context: Context, *args: Value, dtype: Value = None, shape: Value = None, **options: Value) -> Value:
    """Raw numbers: one dimension, unless the call gives a shape. How many there are depends on the file."""
    if dtype is None and len(args) > 1:
        dtype = args[1]
    size = shape_of(context, shape) if shape is not None else None
    if size is not None:
        return NdArray(size, dtype_name(dtype) or "uint8")
    _file_gap(context, args)
    return NdArray(None, dtype_name(dtype) or "float64", row=() if shape is None else None)


def _file_gap(context: Context, args: tuple[Value, ...]) -> None:
    named = f"array read from {args[0]}" if args and isinstance(args[0], str) else "array read from a file"
    context.findings.gap(named[:120], context.where, "the file's contents are not in the script")


def _sampler(name: str, dtype: str, low: float | None = None, high: float | None = None) -> Callable[..., Value]:
    """A drawing function whose ``size`` (or, for rand and randn, whose arguments) is the shape."""

    def draw(context: Context, *args: Value, size: Value = ..., dtype_: Value = None, **options: Value) -> Value:
        given = list(args)
        chosen = dtype_name(options.get("dtype")) or dtype
        if name in ("rand", "randn"):
            size = tuple(given) if given else None
        elif size is ...:
            place = _SIZE_PLACE.get(name, 2)
            size = given[place] if len(given) > place else options.get("shape")
        bounds = (low, high)
        if name in ("randint", "integers", "random_integers") and given and isinstance(given[0], int):
            top = given[1] if len(given) > 1 and isinstance(given[1], int) else options.get("high")
            bounds = (given[0], top) if isinstance(top, int) else (0, given[0])
        elif name == "uniform" and len(given) >= 2 and all(isinstance(g, int | float) for g in given[:2]):
            bounds = (float(given[0]), float(given[1]))
        if size is None:
            hint = "int" if "int" in chosen else "float"
            return Unknown("drawn at random", context.where, hint=hint, low=bounds[0], high=bounds[1])
        result = new(context, shape_of(context, size), chosen, op=f"random.{name}")
        if bounds[0] is not None and bounds[1] is not None:
            result.value_range = (bounds[0], bounds[1])
        return result

    return draw


_SIZE_PLACE = {
    "random": 0, "random_sample": 0, "ranf": 0, "sample": 0, "standard_normal": 0, "standard_exponential": 0,
    "poisson": 1, "exponential": 1, "dirichlet": 1, "standard_gamma": 1, "binomial": 2, "multivariate_normal": 2,
    "geometric": 1, "rayleigh": 1, "choice": 1,
}  # fmt: skip

_DRAWS = {
    "rand": "float64", "randn": "float64", "random": "float64", "random_sample": "float64", "ranf": "float64",
    "sample": "float64", "standard_normal": "float64", "uniform": "float64", "normal": "float64", "beta": "float64",
    "gamma": "float64", "exponential": "float64", "laplace": "float64", "lognormal": "float64", "randint": "int64",
    "integers": "int64", "random_integers": "int64", "binomial": "int64", "poisson": "int64", "standard_gamma":
    "float64",
    "geometric": "int64", "logistic": "float64", "gumbel": "float64", "triangular": "float64", "vonmises": "float64",
    "rayleigh": "float64", "weibull": "float64", "standard_exponential": "float64",
}  # fmt: skip


def choice(context: Context, a: Value, size: Value = None, *args: Value, **options: Value) -> Value:
    """Elements of ``a`` (or of ``range(a)``)."""
    source = as_array(context, a) if not isinstance(a, int) else NdArray((a,), "int64")
    if size is None:
        if isinstance(a, list | tuple) and a:
            return (
                a[0] if len({repr(x) for x in a[:64]}) == 1 else Unknown("chosen at random", context.where, item=a[0])
            )
        return Unknown("chosen at random", context.where, hint="int" if "int" in source.dtype else "float")
    return new(context, shape_of(context, size), source.dtype, op="random.choice")


def permutation(context: Context, x: Value, *args: Value, **options: Value) -> Value:
    """Indices or rows in another order."""
    if isinstance(x, int):
        return new(context, (x,), "int64", op="random.permutation")
    source = as_array(context, x)
    return new(context, source.shape, source.dtype, op="random.permutation")


def dirichlet(context: Context, alpha: Value, size: Value = None) -> Value:
    """One vector as long as ``alpha``, or ``size`` of them."""
    tail = as_array(context, alpha).shape
    lead = () if size is None else shape_of(context, size)
    return new(context, None if tail is None or lead is None else (*lead, *tail), "float64", op="random.dirichlet")


def multivariate_normal(
    context: Context, mean: Value, cov: Value = None, size: Value = None, **options: Value
) -> Value:
    """``size`` vectors as long as ``mean``."""
    tail = as_array(context, mean).shape
    lead = () if size is None else shape_of(context, size)
    shape = None if tail is None or lead is None else (*lead, *tail)
    return new(context, shape, "float64", op="random.multivariate_normal")


def _nothing(context: Context, *args: Value, **options: Value) -> Value:
    return None


def _as_method(function: Callable[..., Value]) -> Callable[..., Value]:
    def method(context: Context, self: Value, *args: Value, **options: Value) -> Value:
        return function(context, *args, **options)

    return method


def _install_random() -> None:
    draws: dict[str, Callable[..., Value]] = {
        n: _sampler(n, d, *_BOUNDS.get(n, (None, None))) for n, d in _DRAWS.items()
    }
    draws |= {"choice": choice, "permutation": permutation, "permuted": permutation, "dirichlet": dirichlet,
              "multivariate_normal": multivariate_normal, "shuffle": _nothing, "seed": _nothing,
              "set_state": _nothing, "get_state": _nothing}  # fmt: skip
    for name, function in draws.items():
        register(f"numpy.random.{name}", Native(f"numpy.random.{name}", function))
    methods: dict[str, Any] = {name: _as_method(function) for name, function in draws.items()}
    methods["__init__"] = lambda context, self, *a, **k: None
    for owner in ("numpy.random.RandomState", "numpy.random.Generator"):
        register(owner, native_class(owner, **methods))
    generator = get("numpy.random.Generator")
    register("numpy.random.default_rng", Native("numpy.random.default_rng", lambda c, *a, **k: c.call(generator)))


_BOUNDS: dict[str, tuple[float, float]] = dict.fromkeys(
    ("rand", "random", "random_sample", "ranf", "sample", "uniform", "beta"), (0.0, 1.0)
)


_install_random()
