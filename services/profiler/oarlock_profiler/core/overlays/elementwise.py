"""Element-wise operators: arithmetic, comparison, activations, casts. What autograd keeps follows PyTorch's
``derivatives.yaml`` and PaddlePaddle's ``backward.yaml``.
"""

from __future__ import annotations

import math
from typing import Any

from oarlock_profiler.core.engine.dtypes import COMPLEX, FLOATING, promote_operands
from oarlock_profiler.core.engine.engine import Mode, promoted_dtype
from oarlock_profiler.core.engine.shapes import Shape, broadcast, numel
from oarlock_profiler.core.engine.strides import is_dense
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Context, Native, Unknown, Value
from oarlock_profiler.core.overlays import routing
from oarlock_profiler.core.overlays.calling import dtype_name, engine_of, guarded, names, operator, tensor
from oarlock_profiler.core.overlays.registry import register

LIBRARIES = ("torch", "paddle")

# What backward needs in PyTorch and in PaddlePaddle: "in" keeps the input, "out" the output, "" nothing.
UNARY: dict[str, tuple[str, str]] = {
    "exp": ("out", "out"),
    "log": ("in", "in"),
    "log2": ("in", "in"),
    "log10": ("in", "in"),
    "log1p": ("in", "in"),
    "expm1": ("out", "out"),
    "sqrt": ("out", "out"),
    "rsqrt": ("out", "out"),
    "square": ("in", "in"),
    "abs": ("in", "in"),
    "sin": ("in", "in"),
    "cos": ("in", "in"),
    "tan": ("out", "in"),
    "asin": ("in", "in"),
    "acos": ("in", "in"),
    "atan": ("in", "in"),
    "sinh": ("in", "in"),
    "cosh": ("in", "in"),
    "asinh": ("in", "in"),
    "acosh": ("in", "in"),
    "atanh": ("in", "in"),
    "tanh": ("out", "out"),
    "sigmoid": ("out", "out"),
    "erf": ("in", "in"),
    "erfinv": ("out", "out"),
    "reciprocal": ("out", "out"),
    "lgamma": ("in", "in"),
    "digamma": ("in", "in"),
    "neg": ("", ""),
    "sign": ("", ""),
    "floor": ("", ""),
    "ceil": ("", ""),
    "round": ("", ""),
    "trunc": ("", ""),
    "frac": ("", ""),
    "deg2rad": ("", ""),
    "rad2deg": ("", ""),
    "sinc": ("in", "in"),
    "i0": ("in", "in"),
    "angle": ("in", "in"),
    "conj": ("", ""),
    "nan_to_num": ("in", "in"),
    "logit": ("in", "in"),
}
ACTIVATIONS: dict[str, tuple[str, str]] = {
    "relu": ("out", "out"),
    "relu6": ("in", "out"),
    "elu": ("in", "both"),
    "selu": ("out", "out"),
    "celu": ("in", "in"),
    "gelu": ("in", "in"),
    "silu": ("in", "both"),
    "swish": ("in", "in"),
    "mish": ("in", "in"),
    "hardswish": ("in", "in"),
    "hardsigmoid": ("in", "out"),
    "hardtanh": ("in", "in"),
    "leaky_relu": ("in", "in"),
    "softplus": ("in", "in"),
    "softsign": ("", "in"),
    "softshrink": ("in", "in"),
    "hardshrink": ("in", "in"),
    "tanhshrink": ("out", "in"),
    "logsigmoid": ("in", "in"),
    "log_sigmoid": ("in", "in"),
    "threshold": ("in", "in"),
    "thresholded_relu": ("in", "in"),
    "rrelu": ("in", "in"),
    "stanh": ("in", "in"),
}
# Gradients that PaddlePaddle writes over the incoming one (``inplace`` in backward.yaml).
PADDLE_REUSE = frozenset({
    "relu", "relu6", "sigmoid", "tanh", "exp", "sqrt", "rsqrt", "square", "reciprocal", "elu", "leaky_relu",
    "hardsigmoid", "hardswish", "swish", "silu", "celu", "mish", "log", "log2", "log10", "log1p", "sin", "cos", "tan",
    "floor", "ceil", "round", "softplus", "softsign", "softshrink", "hardshrink", "tanhshrink", "logsigmoid",
    "log_sigmoid", "thresholded_relu", "expm1", "atan", "asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh",
    "hardtanh", "scale",
})  # fmt: skip
KERNELS = {
    "swish": "swish",
    "neg": "scale",
    "logsigmoid": "logsigmoid",
    "log_sigmoid": "logsigmoid",
    "tanhshrink": "tanh_shrink",
}


# Temporaries of PyTorch's backward formulas, in tensors of the input's size (read off its allocator).
TORCH_BACKWARD_TEMPORARIES = {
    "tanhshrink": 2, "log2": 1, "log10": 1, "log1p": 1, "expm1": 1, "sqrt": 1, "rsqrt": 2, "square": 2, "abs": 1,
    "sin": 1, "cos": 2, "tan": 2, "erf": 4, "reciprocal": 2, "atan": 2, "sinh": 1, "cosh": 1, "asin": 3, "acos": 3,
    "erfinv": 3,
}  # fmt: skip
FROM_RESULT = frozenset({"leaky_relu", "elu", "celu"})


def _saved(rule: str, input: Tensor) -> list[Any]:
    return (
        [input]
        if rule == "in"
        else ["output"]
        if rule == "out"
        else [input, "output"]
        if rule == "both"
        else [numel(input.shape or ())]
        if rule == "mask"
        else []
    )


_COMPUTE_UNARY: dict[str, Any] = {
    "exp": math.exp, "log": math.log, "log2": math.log2, "log10": math.log10, "sqrt": math.sqrt, "abs": abs,
    "neg": lambda v: -v, "floor": math.floor, "ceil": math.ceil, "round": round, "trunc": math.trunc, "square": lambda
    v: v * v, "sin": math.sin, "cos": math.cos, "tanh": math.tanh, "reciprocal": lambda v: 1 / v,
}  # fmt: skip


def _small_unary(name: str, known: Any) -> Any:
    """The known result over a small known operand, or None."""
    compute = _COMPUTE_UNARY.get(name)
    if compute is None or known is None:
        return None
    try:
        return [compute(v) for v in known] if isinstance(known, list) else compute(known)
    except (ArithmeticError, ValueError, TypeError):
        return None


_KNOWN: dict[str, Any] = {
    "exp": math.exp, "log": math.log, "log2": math.log2, "log10": math.log10, "log1p": math.log1p, "sqrt": math.sqrt,
    "abs": abs, "floor": math.floor, "ceil": math.ceil, "round": round, "trunc": math.trunc, "neg": lambda v: -v,
    "sin": math.sin, "cos": math.cos, "tanh": math.tanh, "square": lambda v: v * v, "reciprocal": lambda v: 1 / v,
    "rsqrt": lambda v: 1 / math.sqrt(v), "sign": lambda v: (v > 0) - (v < 0), "relu": lambda v: max(v, 0),
}  # fmt: skip


def known_result(name: str, value: Any, floating: bool) -> Any:
    """The content of a small known tensor after ``name``, or None."""
    compute = _KNOWN.get(name)
    if compute is None or value is None:
        return None
    try:
        if isinstance(value, list):
            return [float(compute(v)) if floating else compute(v) for v in value]
        return float(compute(value)) if floating else compute(value)
    except (ArithmeticError, ValueError, TypeError):
        return None


def unary(context: Context, name: str, input: Value, *, inplace: bool = False, value: Any = None) -> Tensor:
    """Apply the element-wise operator ``name``."""
    engine = engine_of(context)
    x = tensor(context, input)
    value = _small_unary(name, x.value) if value is None else value
    keeps = UNARY.get(name) or ACTIVATIONS.get(name) or ("in", "in")
    paddle = engine.framework == "paddle"
    if name == "softsign" and not paddle:
        return binary(context, "divide", x, binary(context, "add", unary(context, "abs", x), 1.0))  # type: ignore[no-any-return]
    saved = _saved(keeps[1] if paddle else keeps[0], x)
    if name == "logsigmoid" and engine.kernels == "cpu" and not paddle:
        saved.append(x.nbytes)
    if inplace and saved and saved[0] is x:
        # In place, PyTorch has formulas over the result for some; for the others it keeps a copy of the input.
        saved = ["output"] if paddle or name in FROM_RESULT else [x.nbytes]
    dtype = x.dtype
    if dtype not in FLOATING and dtype not in COMPLEX and keeps != ("", "") and name not in ("abs", "square", "relu"):
        dtype = engine.default_dtype
    if name == "abs" and dtype in COMPLEX:
        dtype = "float32"
    if value is None:
        value = known_result(name, x.value, dtype in FLOATING)
    mode: Mode = "reuse" if paddle and name in PADDLE_REUSE else "fresh"
    made = engine.apply(
        name, [x], x.shape or (), dtype, saved=saved, inplace=x if inplace and dtype == x.dtype else None, grad=mode,
        kernel=KERNELS.get(name, name), value=value,
        backward_workspace_bytes=0 if paddle else x.nbytes * TORCH_BACKWARD_TEMPORARIES.get(name, 0),
    )  # fmt: skip
    return keep_order(made, x)


def keep_order(made: Tensor, x: Tensor) -> Tensor:
    """An element-wise result has its input's memory order (channels last stays channels last)."""
    if x.strides is not None and made is not x and made.shape == x.shape and is_dense(x.shape or (), x.strides):
        made.strides = x.strides
    return made


def _register_unary(name: str, functional: bool) -> None:
    def call(context: Context, input: Value, *args: Value, inplace: Value = False, **kwargs: Value) -> Value:
        del args, kwargs
        return unary(context, name, input, inplace=inplace is True)

    def call_inplace(context: Context, input: Value, *args: Value, **kwargs: Value) -> Value:
        del args, kwargs
        return unary(context, name, input, inplace=True)

    call.__name__ = call_inplace.__name__ = name
    aliases = {
        "abs": ("absolute",),
        "neg": ("negative",),
        "tan": (),
        "silu": (),
        "acos": ("arccos",),
        "asin": ("arcsin",),
    }.get(name, ())
    operator(names(name, *aliases, functional=functional))(call)
    operator(names(name + "_", functional=functional))(call_inplace)


for _name in UNARY:
    _register_unary(_name, functional=_name in ("tanh", "sigmoid"))
for _name in ACTIVATIONS:
    _register_unary(_name, functional=True)
operator(["torch.special.expit"])(lambda context, input: unary(context, "sigmoid", input))


@operator(names("gelu_approximate", method=False))
def gelu_approximate(context: Context, input: Value) -> Value:
    """GELU by tanh (same memory)."""
    return unary(context, "gelu", input)


# --- binary
# ------------------------------------------------------------------------------------------------------------
_COMPUTE: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "floor_divide": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "maximum": max,
    "minimum": min,
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less_than": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater_than": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "pow": lambda a, b: a**b if abs(a) < 1e9 and abs(b) < 64 else None,
}


def small_value(name: str, a: Tensor, b: Tensor) -> Any:
    """The known result over small known operands, or None."""
    compute = _COMPUTE.get(name)
    if compute is None or a.value is None or b.value is None:
        return None
    try:
        if isinstance(a.value, list) and isinstance(b.value, list):
            return [compute(x, y) for x, y in zip(a.value, b.value, strict=True)]
        if isinstance(a.value, list):
            return [compute(x, b.value) for x in a.value]
        if isinstance(b.value, list):
            return [compute(a.value, y) for y in b.value]
        return compute(a.value, b.value)
    except (ArithmeticError, ValueError, TypeError):
        return None


def _broadcast_inside(shape: Shape, whole: Shape) -> bool:
    """Whether ``shape`` is repeated along other than leading axes to become ``whole`` (a bias of channels)."""
    own = shape[next((i for i, size in enumerate(shape) if size != 1), len(shape)) :]
    return bool(own) and own != whole[len(whole) - len(own) :]


def binary(context: Context, name: str, left: Value, right: Value, *, inplace: bool = False) -> Value:
    """Apply an arithmetic operator with broadcasting and type promotion."""
    engine = engine_of(context)
    a = tensor(context, left, right if isinstance(right, Tensor) else None)
    b = tensor(context, right, a)
    shape = broadcast(a.shape or (), b.shape or ())
    paddle = engine.framework == "paddle"
    dtype = promoted_dtype([a, b])
    if dtype == "float64" and not a.shape and not b.shape and (a.storage is None or b.storage is None):
        dtype = _real_dtype(a, b, engine.default_dtype)
    if name == "divide" and dtype not in FLOATING and dtype not in COMPLEX:
        dtype = engine.default_dtype
    value = small_value(name, a, b)
    inputs = [t for t in (a, b) if t.storage is not None]
    if not inputs:
        return engine.tensor(shape, dtype, kind="temporary", value=value, op=name)
    saved: list[Any] = []
    number = a.storage is None or b.storage is None
    if name in ("multiply",):
        # PaddlePaddle keeps both sides once either learns (its tensor wrappers ask no further).
        saved = [] if number else [a, b] if paddle else [(a, b), (b, a)]
    elif name == "divide":
        if number:
            saved = (
                []
                if b.storage is None
                else ["output", b, b.nbytes]
                if paddle
                else [b] + ([a] if a.storage is not None else [])
            )
        elif paddle:
            saved = [a, b, ("output", 0)]
        else:
            saved = [b, (a, b)]
    elif name in ("maximum", "minimum", "fmax", "fmin", "atan2", "hypot", "copysign"):
        saved = [a, b]
    elif name == "pow":
        saved = [a] if b.storage is None else [a, b, ("output", 0)]
    elif name in ("remainder", "fmod"):
        saved = [] if number else [(b, b)] if not paddle else [(a, b), (b, b)]
    elif name == "floor_divide":
        saved = []
    linear = name in ("add", "subtract")
    modes: list[Any] = []
    for t in inputs:
        same = t.shape == shape and t.dtype == dtype
        if linear and same and not number and not (name == "subtract" and t is b and not paddle):
            # PyTorch hands the same gradient to both sides; PaddlePaddle writes one of them over the incoming one.
            modes.append("reuse" if paddle else "alias")
        elif linear and number and same and not paddle and t is a:
            modes.append("alias")
        elif name == "pow" and number and same and paddle:
            modes.append("reuse")
        else:
            modes.append("fresh")
    if linear and not number and paddle and all(m == "reuse" for m in modes):
        modes = ["reuse", "fresh"] if a.requires_grad and b.requires_grad else ["reuse", "reuse"]
    kernel = (
        "scale"
        if number and paddle and name in ("add", "subtract", "multiply", "divide")
        else KERNEL_OF.get(name, name)
    )
    target = a if inplace and a.storage is not None and shape == a.shape else None
    if target is not None:
        dtype = a.dtype
    whole = int(numel(shape) * 4)
    temporaries = 0
    if not paddle:
        if name == "divide" and b.storage is not None and b.requires_grad:
            temporaries = (2 if a.storage is not None else 4) * whole
        elif name == "pow":
            temporaries = 2 * whole
        elif name in ("maximum", "minimum"):
            temporaries = whole * 3 // 2
    elif (
        linear
        and engine.kernels == "cpu"
        and any(t.requires_grad and _broadcast_inside(t.shape or (), shape) for t in inputs)
    ):
        temporaries = 2 * whole  # the CPU kernel walks such a gradient by index, into copies
    made = engine.apply(
        name, inputs, shape, dtype if engine.autocast is None or number or dtype not in FLOATING else None,
        saved=saved, inplace=target, grad=modes, kernel=kernel, value=value, backward_workspace_bytes=temporaries,
    )  # fmt: skip
    return keep_order(made, a if a.shape == shape else b)


KERNEL_OF = {
    "add": "add",
    "floor_divide": "floor_divide",
    "remainder": "remainder",
    "pow": "elementwise_pow",
    "fmod": "remainder",
}


def _real_dtype(a: Tensor, b: Tensor, default: str) -> str:
    kinds = [t.dtype for t in (a, b) if t.storage is not None]
    if kinds:
        return promote_operands([(k, False) for k in kinds] + [(t.dtype, True) for t in (a, b) if t.storage is None])
    return default


def compare(context: Context, name: str, left: Value, right: Value) -> Value:
    """A comparison or logical operator: a bool tensor without gradient."""
    engine = engine_of(context)
    a = tensor(context, left, right if isinstance(right, Tensor) else None)
    b = tensor(context, right, a)
    shape = broadcast(a.shape or (), b.shape or ())
    value = small_value(name, a, b)
    inputs = [t for t in (a, b) if t.storage is not None]
    if not inputs:
        return engine.tensor(shape, "bool", kind="temporary", value=value, op=name)
    return engine.apply(name, inputs, shape, "bool", grad="none", value=value)


def _register_binary(name: str, aliases: tuple[str, ...], dunder: str | None) -> None:
    def call(
        context: Context, input: Value, other: Value, alpha: Value = 1, rounding_mode: Value = None, axis: Value = -1
    ) -> Value:
        del alpha, axis
        if name == "divide" and rounding_mode is not None:
            return binary(context, "floor_divide", input, other)
        return binary(context, name, input, other)

    def call_inplace(
        context: Context, input: Value, other: Value, alpha: Value = 1, rounding_mode: Value = None
    ) -> Value:
        del alpha, rounding_mode
        return binary(context, name, input, other, inplace=True)

    def reflected(context: Context, input: Value, other: Value) -> Value:
        return binary(context, name, other, input)

    call.__name__ = call_inplace.__name__ = reflected.__name__ = name
    operator(names(name, *aliases))(call)
    operator(names(*(f"{n}_" for n in (name, *aliases))))(call_inplace)
    if dunder:
        operator([f"{f}.Tensor.__{dunder}__" for f in ("torch", "paddle")])(call)
        operator([f"{f}.Tensor.__i{dunder}__" for f in ("torch", "paddle")])(call_inplace)
        operator([f"{f}.Tensor.__r{dunder}__" for f in ("torch", "paddle")])(reflected)


for _name, _aliases, _dunder in (
    ("add", (), "add"),
    ("subtract", ("sub",), "sub"),
    ("multiply", ("mul",), "mul"),
    ("divide", ("div", "true_divide"), "truediv"),
    ("floor_divide", (), "floordiv"),
    ("remainder", ("mod", "floor_mod"), "mod"),
    ("pow", ("float_power",), "pow"),
    ("maximum", (), None),
    ("minimum", (), None),
    ("fmax", (), None),
    ("fmin", (), None),
    ("fmod", (), None),
    ("atan2", ("arctan2",), None),
    ("hypot", (), None),
    ("copysign", (), None),
    ("heaviside", (), None),
    ("xlogy", (), None),
    ("logaddexp", (), None),
    ("gcd", (), None),
    ("lcm", (), None),
    ("elementwise_add", (), None),
):
    _register_binary(_name, _aliases, _dunder)


@operator(["torch.rsub", "torch.Tensor.rsub"])
def rsub(context: Context, input: Value, other: Value, alpha: Value = 1) -> Value:
    """``other - input``."""
    del alpha
    return binary(context, "subtract", other, input)


def _register_compare(name: str, aliases: tuple[str, ...], dunder: str | None) -> None:
    def call(context: Context, input: Value, other: Value = None) -> Value:
        if other is None and dunder in ("eq", "ne"):
            return dunder == "ne"
        result = compare(context, name, input, other)
        return routing.compared(context, input, result) if name == "equal" else result

    call.__name__ = name
    operator(names(name, *aliases))(call)
    operator(names(*(f"{n}_" for n in (name, *aliases))))(call)
    if dunder:
        operator([f"{f}.Tensor.__{dunder}__" for f in ("torch", "paddle")])(call)


for _name, _aliases, _dunder in (
    ("equal", ("eq",), "eq"),
    ("not_equal", ("ne", "neq"), "ne"),
    ("less_than", ("lt", "less"), "lt"),
    ("less_equal", ("le",), "le"),
    ("greater_than", ("gt", "greater"), "gt"),
    ("greater_equal", ("ge",), "ge"),
    ("logical_and", (), None),
    ("logical_or", (), None),
    ("logical_xor", (), None),
    ("isclose", (), None),
):
    _register_compare(_name, _aliases, _dunder)


@operator(["torch.equal", "torch.Tensor.equal", *names("equal_all", only="paddle"), *names("allclose")])
def all_equal(context: Context, input: Value, other: Value, *args: Value, **kwargs: Value) -> Value:
    """Whether two tensors hold the same values: not knowable."""
    del args, kwargs
    a, b = tensor(context, input), tensor(context, other)
    if a.shape != b.shape:
        return False
    if context.engine.framework == "paddle":
        return engine_of(context).apply("equal_all", [a], (), "bool", grad="none")
    return Unknown("whether two tensors are equal", context.where, hint="bool")


def _bitwise(name: str, dunder: str) -> None:
    def call(context: Context, input: Value, other: Value) -> Value:
        engine = engine_of(context)
        a = tensor(context, input, other if isinstance(other, Tensor) else None)
        b = tensor(context, other, a)
        inputs = [t for t in (a, b) if t.storage is not None]
        return engine.apply(name, inputs, broadcast(a.shape or (), b.shape or ()), promoted_dtype([a, b]), grad="none")

    call.__name__ = name
    operator(
        [
            *names(name),
            *names(name + "_"),
            *(
                f"{f}.Tensor.{d}"
                for f in ("torch", "paddle")
                for d in (f"__{dunder}__", f"__r{dunder}__", f"__i{dunder}__")
            ),
        ]
    )(call)


for _name, _dunder in (
    ("bitwise_and", "and"), ("bitwise_or", "or"), ("bitwise_xor", "xor"), ("bitwise_left_shift", "lshift"),
    ("bitwise_right_shift", "rshift"),
):  # fmt: skip
    _bitwise(_name, _dunder)


@operator(
    [
        *names("logical_not", "bitwise_not"),
        *names("logical_not_"),
        *(f"{f}.Tensor.__invert__" for f in ("torch", "paddle")),
    ]
)
def logical_not(context: Context, input: Value) -> Value:
    """Inverted flags or bits."""
    x = tensor(context, input)
    value = (not x.value) if isinstance(x.value, bool) else None
    return engine_of(context).apply("logical_not", [x], x.shape or (), x.dtype, grad="none", value=value)


@operator([*names("isnan", "isinf", "isfinite", "signbit", "isreal", "isposinf", "isneginf")])
def is_special(context: Context, input: Value) -> Value:
    """Element-wise test: a bool tensor."""
    x = tensor(context, input)
    return engine_of(context).apply("isnan", [x], x.shape or (), "bool", grad="none")


@operator([f"{f}.Tensor.__neg__" for f in ("torch", "paddle")])
def negate(context: Context, input: Value) -> Value:
    """``-x``."""
    x = tensor(context, input)
    value = (
        -x.value if isinstance(x.value, (int, float)) else [-v for v in x.value] if isinstance(x.value, list) else None
    )
    return unary(context, "neg", x, value=value)


@operator([*(f"{f}.Tensor.__pos__" for f in ("torch", "paddle")), "torch.positive", "paddle.positive"])
def positive(context: Context, input: Value) -> Value:
    """``+x``."""
    del context
    return input


@operator([f"{f}.Tensor.__abs__" for f in ("torch", "paddle")])
def absolute(context: Context, input: Value) -> Value:
    """``abs(x)``."""
    return unary(context, "abs", input)


def _clip(context: Context, input: Value, low: Value, high: Value, inplace: bool) -> Value:
    engine = engine_of(context)
    x = tensor(context, input)
    bounds = [b for b in (low, high) if isinstance(b, Tensor) and b.storage is not None and b.shape]
    shape = broadcast(x.shape or (), *(b.shape or () for b in bounds))
    value = None
    if (
        isinstance(x.value, (int, float))
        and isinstance(low, (int, float, type(None)))
        and isinstance(high, (int, float, type(None)))
    ):
        value = x.value
        value = max(value, low) if low is not None else value
        value = min(value, high) if high is not None else value
    return engine.apply(
        "clip",
        [x, *bounds],
        shape,
        x.dtype,
        saved=[x],
        inplace=x if inplace else None,
        grad="reuse" if engine.framework == "paddle" else "fresh",
        value=value,
        backward_workspace_bytes=0 if engine.framework == "paddle" else x.nbytes // 2,
    )


@operator(names("clip", "clamp"))
def clip(context: Context, input: Value, min: Value = None, max: Value = None) -> Value:
    """Bounded between ``min`` and ``max``."""
    return _clip(context, input, min, max, inplace=False)


@operator(names("clip_", "clamp_"))
def clip_(context: Context, input: Value, min: Value = None, max: Value = None) -> Value:
    """Bounded in place."""
    return _clip(context, input, min, max, inplace=True)


@operator(names("clamp_min", "clamp_max", only="torch"))
def clamp_one(context: Context, input: Value, bound: Value = None, **kwargs: Value) -> Value:
    """Bounded on one side."""
    del kwargs
    return _clip(context, input, bound, None, inplace=False)


@operator(names("clamp_min_", "clamp_max_", only="torch"))
def clamp_one_(context: Context, input: Value, bound: Value = None, **kwargs: Value) -> Value:
    """Bounded on one side, in place."""
    del kwargs
    return _clip(context, input, bound, None, inplace=True)


@operator(names("scale", "scale_", only="paddle"))
def scale(
    context: Context,
    input: Value,
    scale: Value = 1.0,
    bias: Value = 0.0,
    bias_after_scale: Value = True,
    act: Value = None,
) -> Value:
    """``input * scale + bias``."""
    del scale, bias, bias_after_scale, act
    x = tensor(context, input)
    return engine_of(context).apply("scale", [x], x.shape or (), x.dtype, grad="reuse")


@operator(names("lerp"), rename={"x": "input", "y": "end"})
def lerp(context: Context, input: Value, end: Value, weight: Value) -> Value:
    """``input + weight * (end - input)``."""
    a, b = tensor(context, input), tensor(context, end)
    saved: list[Any] = [weight] if isinstance(weight, Tensor) else []
    if engine_of(context).framework == "paddle":
        saved += [a, b, "output"]
    return engine_of(context).apply("lerp", [a, b], broadcast(a.shape or (), b.shape or ()), saved=saved)


@operator(names("lerp_"), rename={"x": "input", "y": "end"})
def lerp_(context: Context, input: Value, end: Value, weight: Value) -> Value:
    """``lerp`` in place."""
    del weight
    a, b = tensor(context, input), tensor(context, end)
    return engine_of(context).apply("lerp", [a, b], a.shape or (), inplace=a)


def _fused(name: str, inplace: bool) -> Any:
    def call(context: Context, input: Value, tensor1: Value, tensor2: Value = None, value: Value = 1) -> Value:
        del value
        if tensor2 is None or isinstance(tensor1, (int, float)):
            raise TypeError(f"{name} with a scalar first")
        a, b, c = tensor(context, input), tensor(context, tensor1), tensor(context, tensor2)
        inputs = [t for t in (a, b, c) if t.storage is not None]
        shape = broadcast(a.shape or (), b.shape or (), c.shape or ())
        return engine_of(context).apply(
            name,
            inputs,
            shape,
            saved=[(b, c), (c, b)],
            inplace=a if inplace else None,
            grad=("alias", "fresh", "fresh"),
        )

    call.__name__ = name
    return call


for _name in ("addcmul", "addcdiv"):
    operator(names(_name, only="torch"))(_fused(_name, inplace=False))
    operator(names(_name + "_", only="torch"))(_fused(_name, inplace=True))


# --- casts and copies
# --------------------------------------------------------------------------------------------------
def cast(context: Context, input: Value, dtype: str | None) -> Value:
    """Another type; the same tensor when it has it already."""
    if isinstance(input, Tensor) and input.shape is None:
        return engine_of(context).unknown_tensor(input.why or "an unknown tensor", dtype)
    x = tensor(context, input)
    if dtype is None or dtype == x.dtype:
        return x
    made = engine_of(context).cast(x, dtype)
    made.value = _converted(x.value, dtype)
    return made


def _converted(value: Any, dtype: str) -> Any:
    """Small known content in another type."""
    if value is None:
        return None
    kind: Any = float if dtype in FLOATING else bool if dtype == "bool" else int
    try:
        return [kind(v) for v in value] if isinstance(value, list) else kind(value)
    except (ArithmeticError, ValueError, TypeError):
        return None


@operator(names("cast", "astype", only="paddle"))
def paddle_cast(context: Context, input: Value, dtype: Value) -> Value:
    """``x.astype(dtype)``; PaddlePaddle copies even when the type is the same for ``cast``."""
    return cast(context, input, dtype_name(dtype))


for _method, _to in (
    ("float", "float32"),
    ("double", "float64"),
    ("half", "float16"),
    ("bfloat16", "bfloat16"),
    ("long", "int64"),
    ("int", "int32"),
    ("short", "int16"),
    ("char", "int8"),
    ("byte", "uint8"),
    ("bool", "bool"),
):

    def _cast_to(context: Context, input: Value, _to: str = _to, **kwargs: Value) -> Value:
        del kwargs
        return cast(context, input, _to)

    _cast_to.__name__ = _method
    operator([f"torch.Tensor.{_method}", f"paddle.Tensor.{_method}"])(_cast_to)


@operator(["torch.Tensor.type_as", "torch.Tensor.to_dense", "paddle.Tensor.type_as"])
def type_as(context: Context, input: Value, other: Value = None) -> Value:
    """The type of ``other``."""
    return cast(context, input, other.dtype if isinstance(other, Tensor) else None)


@operator(
    [
        *names("clone"),
        "torch.Tensor.__deepcopy__",
        "paddle.Tensor.__deepcopy__",
        "paddle.assign",
        "paddle.tensor.assign",
    ]
)
def clone(context: Context, input: Value, output: Value = None, **kwargs: Value) -> Value:
    """A copy."""
    del kwargs
    x = tensor(context, input)
    if isinstance(output, Tensor):
        return output
    if x.storage is None:
        return engine_of(context).tensor(
            x.shape or (), x.dtype if x.dtype != "float64" else context.engine.default_dtype, value=x.value
        )
    mode: Mode = "fresh" if context.engine.framework == "paddle" else "alias"
    return engine_of(context).apply("assign", [x], x.shape or (), x.dtype, grad=mode, value=x.value)


@operator(names("where"), rename={"input": "x", "other": "y"})
def where(context: Context, condition: Value, x: Value = None, y: Value = None) -> Value:
    """``x`` where the condition holds, else ``y``. With the condition alone, its true positions."""
    engine = engine_of(context)
    if x is None and y is None:
        flags = tensor(context, condition)
        chosen = routing.selected(context, flags)
        count = numel(flags.shape or ()) if chosen is None else chosen
        context.findings.gap("where", context.where, "how many elements are true is not known", assumed=count)
        return tuple(engine.apply("nonzero", [flags], (count,), "int64", grad="none") for _ in flags.shape or ())
    c = tensor(context, condition)
    a = tensor(context, x, c)
    b = tensor(context, y, c)
    inputs = [c, *(t for t in (a, b) if t.storage is not None)]
    shape = broadcast(c.shape or (), a.shape or (), b.shape or ())
    dtype = promoted_dtype([a, b])
    if dtype == "float64" and a.storage is None and b.storage is None:
        dtype = engine.default_dtype
    return engine.apply("where", inputs, shape, dtype, saved=[c], grad=("none", "fresh", "fresh"))


@operator(["torch.Tensor.where"])
def method_where(context: Context, input: Value, condition: Value, other: Value) -> Value:
    """``x.where(condition, other)``."""
    return where(context, condition, input, other)


def _register_constant_inplace(name: str) -> None:
    def call(context: Context, input: Value, *args: Value, **kwargs: Value) -> Value:
        del kwargs
        x = tensor(context, input)
        x.value = args[0] if name == "fill_" and args and isinstance(args[0], (int, float)) and not x.shape else None
        engine_of(context).record(name, "full", x.dtype, x.shape or (), bytes_moved=x.nbytes)
        return x

    call.__name__ = name
    operator(names(name))(call)


for _name in (
    "zero_", "fill_", "normal_", "uniform_", "random_", "exponential_", "bernoulli_", "log_normal_", "geometric_",
    "cauchy_", "fill_diagonal_", "copy_", "set_value", "set_", "trunc_normal_", "fill_diagonal_tensor_",
):  # fmt: skip
    _register_constant_inplace(_name)


@operator(names("masked_fill"), rename={"x": "input"})
def masked_fill(context: Context, input: Value, mask: Value, value: Value = 0) -> Value:
    """``value`` where the mask holds."""
    del value
    x, m = tensor(context, input), tensor(context, mask)
    return engine_of(context).apply(
        "masked_fill", [x, m], broadcast(x.shape or (), m.shape or ()), x.dtype, saved=[m], grad=("fresh", "none")
    )


@operator(names("masked_fill_"), rename={"x": "input"})
def masked_fill_(context: Context, input: Value, mask: Value, value: Value = 0) -> Value:
    """``masked_fill`` in place."""
    del value
    x, m = tensor(context, input), tensor(context, mask)
    return engine_of(context).apply(
        "masked_fill", [x, m], x.shape or (), x.dtype, saved=[m], inplace=x, grad=("fresh", "none")
    )


def like_shape(x: Tensor) -> Shape:
    """The shape, known."""
    return x.shape or ()


@operator(
    [
        *(
            f"{f}.nn.functional.{n}"
            for f in ("torch", "paddle")
            for n in ("softmax", "log_softmax", "softmin", "gumbel_softmax", "softmax_")
        ),
        *names("softmax", "log_softmax"),
    ]
)
def softmax(
    context: Context, input: Value, axis: Value = -1, *args: Value, dtype: Value = None, **kwargs: Value
) -> Value:
    """Softmax over one axis; backward keeps the output."""
    del axis, args, kwargs
    return _softmax(context, input, dtype, "softmax")


def _softmax(context: Context, input: Value, dtype: Value, name: str) -> Value:
    x = tensor(context, input)
    wanted = dtype_name(dtype)
    if wanted is not None and wanted != x.dtype:
        x = engine_of(context).cast(x, wanted)
    return engine_of(context).apply(name, [x], x.shape or (), None, saved=["output"], flops=5 * numel(x.shape or ()))


for _framework in ("torch", "paddle"):
    for _prefix in (f"{_framework}.nn.functional", _framework, f"{_framework}.Tensor"):

        def _log_softmax(context: Context, input: Value, *args: Value, dtype: Value = None, **kwargs: Value) -> Value:
            del args, kwargs
            return guarded(context, lambda c: _softmax(c, input, dtype, "log_softmax"), (), {})

        register(f"{_prefix}.log_softmax", Native(f"{_prefix}.log_softmax", _log_softmax))


@operator(["torch.nn.functional.glu", "paddle.nn.functional.glu"])
def glu(context: Context, input: Value, axis: Value = -1) -> Value:
    """Gated linear unit: half of the channels gate the other half."""
    x = tensor(context, input)
    shape = list(x.shape or ())
    axis = axis if isinstance(axis, int) else -1
    shape[axis] //= 2
    if context.engine.framework == "torch":
        return engine_of(context).apply("glu", [x], shape, saved=[x])
    half = engine_of(context).apply("split", [x], shape)
    gate = unary(context, "sigmoid", engine_of(context).apply("split", [x], shape))
    return binary(context, "multiply", half, gate)


@operator(["torch.nn.functional.prelu", "paddle.nn.functional.prelu", "torch.prelu"])
def prelu(context: Context, input: Value, weight: Value, data_format: Value = "NCHW") -> Value:
    """Leaky ReLU with a learned slope."""
    del data_format
    x, w = tensor(context, input), tensor(context, weight)
    return engine_of(context).apply(
        "prelu",
        [x, w],
        x.shape or (),
        x.dtype,
        saved=[x, w],
        grad=("reuse", "fresh") if context.engine.framework == "paddle" else "fresh",
        backward_workspace_bytes=x.nbytes,
    )


@operator(["paddle.nn.functional.maxout"])
def maxout(context: Context, input: Value, groups: Value, axis: Value = 1) -> Value:
    """The largest of each group of channels."""
    x = tensor(context, input)
    shape = list(x.shape or ())
    shape[int(axis)] //= int(groups)
    return engine_of(context).apply("maxout", [x], shape, saved=[x, "output"])


@operator(["paddle.incubate.nn.functional.swiglu", "paddle.nn.functional.swiglu"])
def swiglu(context: Context, input: Value, other: Value = None) -> Value:
    """``silu(x) * y``."""
    x = tensor(context, input)
    if other is None:
        shape = (*(x.shape or ())[:-1], (x.shape or (2,))[-1] // 2)
        return engine_of(context).apply("swiglu", [x], shape, saved=[x])
    y = tensor(context, other)
    return engine_of(context).apply("swiglu", [x, y], x.shape or (), saved=[x, y])
