"""``ParamAttr`` and initialisers: they decide contents, names and whether a parameter is trained, never its size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import MISSING, Context, HostObject, Native, Value
from oarlock_profiler.core.overlays.registry import register

LIBRARIES = ("torch", "paddle")


class ParamAttr(HostObject):
    """``paddle.ParamAttr``."""

    def __init__(self, name: Value = None, trainable: Value = True, **fields: Value) -> None:
        self.parameter_name = name
        self.trainable = trainable
        self.fields = {
            "learning_rate": 1.0,
            "initializer": None,
            "regularizer": None,
            "need_clip": True,
            "do_model_average": True,
            **fields,
        }

    def py_type(self) -> str:
        return "paddle.ParamAttr"

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "name":
            return self.parameter_name
        if name == "trainable":
            return self.trainable
        return self.fields.get(name, MISSING)

    def py_setattr(self, context: Context, name: str, value: Value) -> bool:
        if name == "name":
            self.parameter_name = value
        elif name == "trainable":
            self.trainable = value
        else:
            self.fields[name] = value
        return True


def _attribute(
    context: Context,
    name: Value = None,
    initializer: Value = None,
    learning_rate: Value = 1.0,
    regularizer: Value = None,
    trainable: Value = True,
    *args: Value,
    **kwargs: Value,
) -> Value:
    del context, args
    return ParamAttr(
        name, trainable, initializer=initializer, learning_rate=learning_rate, regularizer=regularizer, **kwargs
    )


for _name in (
    "paddle.ParamAttr",
    "paddle.framework.ParamAttr",
    "paddle.fluid.ParamAttr",
    "paddle.fluid.param_attr.ParamAttr",
    "paddle.base.ParamAttr",
    "paddle.base.param_attr.ParamAttr",
    "paddle.static.WeightNormParamAttr",
):
    register(_name, Native(_name, _attribute))
register(
    "paddle.ParamAttr._to_attr",
    Native(
        "paddle.ParamAttr._to_attr",
        lambda context, attr=None: attr if attr is False or isinstance(attr, ParamAttr) else ParamAttr(),
    ),
)


class Initializer(HostObject):
    """An initialiser: called with a parameter, it fills it in place. What is assigned (``shape``) also shapes it."""

    def __init__(self, name: str, shape: tuple[int, ...] | None = None) -> None:
        self.name = name
        self.shape = shape

    def py_type(self) -> str:
        return self.name

    def py_call(self, context: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        return args[0] if args else None


INITIALIZERS = (
    "Assign", "Bilinear", "Constant", "Dirac", "KaimingNormal", "KaimingUniform", "Normal", "Orthogonal",
    "TruncatedNormal", "Uniform", "XavierNormal", "XavierUniform", "Initializer", "NumpyArrayInitializer", "MSRA",
    "Xavier", "ConstantInitializer", "NormalInitializer", "UniformInitializer", "XavierInitializer", "MSRAInitializer",
    "TruncatedNormalInitializer",
)  # fmt: skip
for _short in INITIALIZERS:
    for _prefix in ("paddle.nn.initializer", "paddle.fluid.initializer"):
        _full = f"{_prefix}.{_short}"
        register(_full, Native(_full, lambda context, *args, _full=_full, **kwargs: Initializer(_full)))


def _assign(context: Context, value: Value, name: Value = None) -> Value:
    """The parameter takes the shape of what is assigned, whatever it was asked to have."""
    del context, name
    shape = getattr(value, "shape", None)
    return Initializer("paddle.nn.initializer.Assign", shape if isinstance(shape, tuple) else None)


register("paddle.nn.initializer.Assign", Native("paddle.nn.initializer.Assign", _assign))
register(
    "paddle.nn.initializer.set_global_initializer",
    Native("set_global_initializer", lambda context, *args, **kwargs: None),
)
register("paddle.nn.initializer.calculate_gain", Native("calculate_gain", lambda context, *args, **kwargs: 1.0))


def _fill(context: Context, tensor: Value = None, *args: Value, **kwargs: Value) -> Value:
    """Filled in place: no memory of its own."""
    del context, args
    given = tensor if tensor is not None else kwargs.get("x", kwargs.get("param"))
    if isinstance(given, Tensor):
        given.value = None
    return given


for _short in (
    "zeros_", "ones_", "constant_", "normal_", "uniform_", "trunc_normal_", "kaiming_normal_", "kaiming_uniform_",
    "xavier_normal_", "xavier_uniform_", "orthogonal_", "eye_", "dirac_", "sparse_", "kaiming_normal",
    "kaiming_uniform", "xavier_normal", "xavier_uniform", "constant", "normal", "uniform", "orthogonal",
    "_no_grad_trunc_normal_", "_no_grad_normal_", "_no_grad_uniform_", "_no_grad_fill_",
):  # fmt: skip
    for _prefix in ("torch.nn.init", "paddle.nn.init", "timm.models.layers", "timm.layers"):
        if _prefix.startswith("timm") and _short not in ("trunc_normal_",):
            continue
        register(f"{_prefix}.{_short}", Native(f"{_prefix}.{_short}", _fill))


def _gain(context: Context, nonlinearity: Value = "linear", param: Value = None) -> Value:
    """Recommended gain (a number that decides contents only)."""
    del context, param
    return {"relu": 2.0**0.5, "tanh": 5.0 / 3, "leaky_relu": 2.0**0.5, "selu": 0.75}.get(str(nonlinearity), 1.0)


def _fans(context: Context, tensor: Value) -> Value:
    """Fan in and fan out of a weight."""
    if not isinstance(tensor, Tensor) or tensor.shape is None or len(tensor.shape) < 2:
        return (context.unknown("the fans of an unknown weight", hint="int"),) * 2
    field = 1
    for size in tensor.shape[2:]:
        field *= size
    return (tensor.shape[1] * field, tensor.shape[0] * field)


for _prefix in ("torch.nn.init", "paddle.nn.init"):
    register(f"{_prefix}.calculate_gain", Native("calculate_gain", _gain))
    register(f"{_prefix}._calculate_fan_in_and_fan_out", Native("fans", _fans))
    register(
        f"{_prefix}._calculate_correct_fan",
        Native("fan", lambda context, tensor, mode="fan_in": _fans(context, tensor)[0 if mode == "fan_in" else 1]),
    )
