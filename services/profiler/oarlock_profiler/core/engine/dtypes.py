"""Data types: names, sizes in bytes and promotion, as both frameworks define them.

A data type is its canonical lower-case name (``float32``, ``bfloat16``, ``int64``, ``bool`` …).
"""

from __future__ import annotations

SIZES: dict[str, float] = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8,
    "bool": 1, "complex64": 8, "complex128": 16, "complex32": 4, "int4": 0.5,
}  # fmt: skip
"""Bytes of one element."""

ALIASES: dict[str, str] = {
    "float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32",
    "short": "int16", "bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp64": "float64",
    "cfloat": "complex64", "cdouble": "complex128", "chalf": "complex32", "bool_": "bool",
    "float_": "float64", "int_": "int64",
}  # fmt: skip

FLOATING = frozenset({"float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"})
COMPLEX = frozenset({"complex32", "complex64", "complex128"})
INTEGRAL = frozenset({"int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "int4"})

_ORDER = {
    "bool": 0, "uint8": 1, "int8": 1, "uint16": 2, "int16": 2, "uint32": 3, "int32": 3, "uint64": 4,
    "int64": 4, "float8_e4m3fn": 10, "float8_e5m2": 10, "float16": 11, "bfloat16": 11, "float32": 12,
    "float64": 13, "complex32": 20, "complex64": 21, "complex128": 22,
}  # fmt: skip


def canonical(name: str) -> str | None:
    """The canonical name of ``name`` (``torch.float``, ``paddle.float32``, ``fp16``, ``<f4`` …), or None."""
    short = name.strip().rsplit(".", 1)[-1].strip("'\">").lower()
    if short in SIZES:
        return short
    if short in ALIASES:
        return ALIASES[short]
    if len(short) >= 2 and short[0] in "<>=|":
        short = short[1:]
    if len(short) == 2 and short[0] in "fiu" and short[1].isdigit():
        return {"f": "float", "i": "int", "u": "uint"}[short[0]] + str(int(short[1]) * 8)
    return None


def size_of(dtype: str) -> float:
    """Bytes of one element of ``dtype`` (4 for an unheard-of one)."""
    return SIZES.get(dtype, 4)


def is_floating(dtype: str) -> bool:
    """Whether ``dtype`` is a real floating-point type."""
    return dtype in FLOATING


def is_differentiable(dtype: str) -> bool:
    """Whether gradients can flow through ``dtype``."""
    return dtype in FLOATING or dtype in COMPLEX


def _category(dtype: str) -> int:
    return 0 if dtype == "bool" else 1 if dtype in INTEGRAL else 2 if dtype in FLOATING else 3


def promote(first: str, second: str) -> str:
    """The type that both operands are brought to."""
    if first == second:
        return first
    a, b = _ORDER.get(first, 12), _ORDER.get(second, 12)
    if a == b:
        pair = {first, second}
        if pair == {"float16", "bfloat16"}:
            return "float32"
        if pair == {"uint8", "int8"}:
            return "int16"
        return first
    if b > a:
        first, second = second, first
    if second == "uint8" and first == "int8":
        return "int16"
    return first


def promote_operands(operands: list[tuple[str, bool]]) -> str:
    """Result type of an element-wise operator over ``(dtype, is_scalar)`` operands.

    Zero-dimensional tensors and Python numbers only win by category (an int tensor times a float number is a
    float tensor of the default type; a half tensor times a float number stays half), as both frameworks do.
    """
    dimensioned: str | None = None
    scalar: str | None = None
    for dtype, is_scalar in operands:
        if is_scalar:
            scalar = dtype if scalar is None else promote(scalar, dtype)
        else:
            dimensioned = dtype if dimensioned is None else promote(dimensioned, dtype)
    if dimensioned is None:
        return scalar or "float32"
    if scalar is None or _category(scalar) <= _category(dimensioned):
        return dimensioned
    return "float32" if scalar == "float64" else scalar
