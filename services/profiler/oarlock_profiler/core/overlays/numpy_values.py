"""NumPy functions whose result depends on the values: computed by NumPy where few values are known, else unknown.

Only functions whose result is not larger than what they are given are computed, and only on arrays that keep their
values, so that no script can make the reader work or hold much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oarlock_profiler.core.interpreter.values import MISSING, Context, Native, Value
from oarlock_profiler.core.overlays.numpy_arrays import (
    KEPT_ELEMENTS,
    NdArray,
    NumpyType,
    _real,
    known_dtype,
    new,
)
from oarlock_profiler.core.overlays.registry import register

LIBRARIES = ("numpy",)

_ROUNDS = 64
"""How often a difference may be taken of itself."""


def computed(context: Context, name: str, args: Sequence[Value], options: Mapping[str, Value]) -> Value:
    """What ``numpy.<name>`` gives for known arguments; ``MISSING`` where one is not known or NumPy refuses."""
    if name == "diff" and any(isinstance(v, int) and v > _ROUNDS for v in (*args[1:], *options.values())):
        return MISSING
    plain = [_plain(v) for v in args]
    named = {k: _plain(v) for k, v in options.items()}
    if any(v is MISSING for v in (*plain, *named.values())):
        return MISSING
    import numpy  # noqa: PLC0415 - only scripts that compute with known arrays pay for the import

    result = _real(lambda: getattr(numpy, name)(*plain, **named))
    return MISSING if result is None else _value(context, name, result)


def _plain(value: Value) -> Any:
    """As NumPy takes it, MISSING when part of it is unknown or it is large."""
    if isinstance(value, NdArray):
        return MISSING if value.data is None else value.data
    if isinstance(value, NumpyType):
        return value.dtype
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple | range) and len(value) <= KEPT_ELEMENTS:
        items = [_plain(v) for v in value]
        return MISSING if any(v is MISSING for v in items) else type(value)(items) if type(value) is tuple else items
    return MISSING


def _value(context: Context, name: str, result: Any) -> Value:
    if isinstance(result, tuple | list):
        return type(result)(_value(context, name, item) for item in result)
    if getattr(result, "shape", None):
        return new(context, tuple(result.shape), known_dtype(str(result.dtype)), op=name, data=result)
    return result.item() if hasattr(result, "item") else result


def _valued(name: str, dtype: str | None) -> Callable[..., Value]:
    def function(context: Context, *args: Value, **options: Value) -> Value:
        found = computed(context, name, args, options)
        if found is not MISSING:
            return found
        first = args[0] if args else None
        array = NdArray(None, dtype or (first.dtype if isinstance(first, NdArray) else "float64"))
        more = sum(v is True for k, v in options.items() if k.startswith("return_"))
        if name == "nonzero":
            rank = len(first.shape) if isinstance(first, NdArray) and first.shape else 1
            return (array,) * rank
        return (array, *(NdArray(None, "int64") for _ in range(more))) if more else array

    return function


_LIKE_THE_FIRST = (
    "unique", "diff", "ediff1d", "delete", "insert", "intersect1d", "setdiff1d", "union1d", "rot90", "extract",
    "compress", "select", "choose",
)  # fmt: skip
_WHOLE = (
    "nonzero",
    "argwhere",
    "flatnonzero",
    "searchsorted",
    "digitize",
    "lexsort",
    "unravel_index",
    "ravel_multi_index",
)
_REAL = ("interp", "convolve", "correlate", "gradient", "polyval", "cross")
_METHODS = ("nonzero", "searchsorted", "compress")

for _dtype, _names in ((None, _LIKE_THE_FIRST), ("int64", _WHOLE), ("float64", _REAL)):
    for _name in _names:
        register(f"numpy.{_name}", Native(f"numpy.{_name}", _valued(_name, _dtype)))
        if _name in _METHODS:
            register(f"numpy.ndarray.{_name}", Native(f"numpy.ndarray.{_name}", _valued(_name, _dtype)))
