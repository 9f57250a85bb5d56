"""Layers with parameters of their own and layers that only call a function, for both frameworks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.engine.shapes import numel
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Class, Context, Native, Unknown, Value
from oarlock_profiler.core.overlays import attention, creation, elementwise, embedding, losses, resampling, shaping  # noqa: F401 - registered by import
from oarlock_profiler.core.overlays.calling import (
    Unknowable,
    count_internal_error,
    dtype_name,
    engine_of,
    guarded,
    integer,
    integers,
    repeat,
    tensor,
)
from oarlock_profiler.core.overlays.convolution import channels_last, convolve, convolve_transposed
from oarlock_profiler.core.overlays.devices import place_of
from oarlock_profiler.core.overlays.dropout import dropout, feature_dropout
from oarlock_profiler.core.overlays.linear_algebra import bilinear, linear
from oarlock_profiler.core.overlays.nn_module import MODULE, parameter
from oarlock_profiler.core.overlays.normalization import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from oarlock_profiler.core.overlays.pooling import adaptive, pool
from oarlock_profiler.core.overlays.reductions import norm
from oarlock_profiler.core.overlays.registry import get, native_class, register

LIBRARIES = ("torch", "paddle")

SUBMODULES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    # words in the class name, the module it is defined in (torch.nn.modules.…, paddle.nn.layer.…)
    (("Transformer", "MultiHead"), "transformer", "transformer"),
    (("Multihead",), "activation", "activation"),
    (("Loss",), "loss", "loss"),
    (("BatchNorm",), "batchnorm", "norm"),
    (("InstanceNorm",), "instancenorm", "norm"),
    (("Norm",), "normalization", "norm"),
    (("ConvTranspose", "Conv"), "conv", "conv"),
    (("Pool", "Unpool"), "pooling", "pooling"),
    (("Dropout",), "dropout", "common"),
    (("Embedding",), "sparse", "common"),
    (("LSTM", "GRU", "RNN"), "rnn", "rnn"),
    (("Upsampl",), "upsampling", "common"),
    (("Pixel",), "pixelshuffle", "vision"),
    (("Pad",), "padding", "common"),
    (("atten",), "flatten", "common"),
    (("old",), "fold", "common"),
    (("Linear", "Identity", "Bilinear"), "linear", "common"),
    (("Distance", "Cosine"), "distance", "distance"),
)


def submodule(framework: str, name: str) -> str:
    """The module that the frameworks define a layer class in."""
    for words, torch_module, paddle_module in SUBMODULES:
        if any(word in name for word in words):
            return torch_module if framework == "torch" else paddle_module
    return "activation"


def publish(framework: str, cls: Class, *short: str) -> None:
    """Register a layer class under its public names and the modules it is defined in."""
    root = "torch.nn.modules" if framework == "torch" else "paddle.nn.layer"
    for name in short or (cls.name,):
        register(f"{framework}.nn.{name}", cls)
        register(f"{root}.{name}", cls)
        register(f"{root}.{submodule(framework, name)}.{name}", cls)
        if framework == "paddle":
            register(f"paddle.nn.loss.{name}", cls)


def layer(framework: str, name: str, init: Callable[..., Any], forward: Callable[..., Value], *aliases: str) -> Class:
    """A layer class of one framework."""

    def initialise(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> None:
        self.where = self.where or context.where
        kwargs.pop("name", None)
        try:
            init(context, self, *args, **kwargs)
        except Unknowable as reason:
            self.config["unknown"] = str(reason)
            context.findings.gap(f"{framework}.nn.{name}", context.where, str(reason))
        except (TypeError, ValueError, AttributeError, KeyError, IndexError, ZeroDivisionError) as error:
            self.config["unknown"] = f"{name}: {error}"
            count_internal_error(context, f"{framework}.nn.{name}", error)

    def run(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> Value:
        if "unknown" in self.config:
            return engine_of(context).unknown_tensor(self.config["unknown"])
        return guarded(context, lambda c: forward(c, self, *args, **kwargs), (), {})

    run.__name__ = initialise.__name__ = name
    cls = native_class(f"{framework}.nn.{name}", bases=(MODULE[framework],), __init__=initialise, forward=run)
    cls.namespace["reset_parameters"] = Native("reset_parameters", lambda context, self: None)
    publish(framework, cls, name, *aliases)
    return cls


def demanded(context: Context, value: Value, shape: tuple[int, ...], what: str) -> Tensor:
    """``value`` as a tensor; one of unknown shape is taken to be ``shape`` after the batch, as the layer demands."""
    if isinstance(value, Tensor) and value.shape is not None:
        return value
    if not isinstance(value, (Tensor, Unknown)):
        return tensor(context, value)
    engine = engine_of(context)
    batch = engine.assumed_batch or 32
    why = value.why or "the input is not known"
    made = engine.tensor((batch, *shape), kind="input", op="assumed")
    context.findings.gap(what, context.where, why, assumed=list(made.shape or ()))
    return made


def _factory(context: Context, device: Value, dtype: Value) -> dict[str, Any]:
    return {"device": place_of(context, device), "dtype": dtype_name(dtype)}


# --- linear
# ------------------------------------------------------------------------------------------------------------
def _torch_linear_init(
    context: Context,
    self: LayerInstance,
    in_features: Value,
    out_features: Value,
    bias: Value = True,
    device: Value = None,
    dtype: Value = None,
) -> None:
    self.attrs["in_features"], self.attrs["out_features"] = in_features, out_features
    rows, columns = integer(out_features), integer(in_features)
    made = _factory(context, device, dtype)
    self.attrs["weight"] = parameter(context, (rows, columns), **made)
    self.attrs["bias"] = parameter(context, (rows,), **made) if bias is not False and bias is not None else None


def _linear_forward(context: Context, self: LayerInstance, input: Value) -> Value:
    weight = self.attrs["weight"]
    transposed = context.engine.framework == "torch"
    width = (weight.shape or (1, 1))[1 if transposed else 0]
    x = demanded(context, input, (width,), "the input of a Linear")
    return linear(context, x, weight, self.attrs.get("bias"), transposed=transposed)


def _paddle_linear_init(
    context: Context,
    self: LayerInstance,
    in_features: Value,
    out_features: Value,
    weight_attr: Value = None,
    bias_attr: Value = None,
) -> None:
    self.attrs["in_features"], self.attrs["out_features"] = in_features, out_features
    rows, columns = integer(in_features), integer(out_features)
    self.attrs["weight"] = parameter(context, (rows, columns), weight_attr)
    self.attrs["bias"] = parameter(context, (columns,), bias_attr) if bias_attr is not False else None


LINEAR = {
    "torch": layer("torch", "Linear", _torch_linear_init, _linear_forward, "NonDynamicallyQuantizableLinear"),
    "paddle": layer("paddle", "Linear", _paddle_linear_init, _linear_forward),
}


def _lazy_linear_init(
    context: Context, self: LayerInstance, out_features: Value, bias: Value = True, **kwargs: Value
) -> None:
    del context, kwargs
    self.config.update(out=integer(out_features), bias=bias is not False)


def _lazy_linear_forward(context: Context, self: LayerInstance, input: Value) -> Value:
    x = tensor(context, input)
    if "weight" not in self.attrs:
        self.attrs["weight"] = parameter(context, (self.config["out"], (x.shape or (1,))[-1]), device=x.device)
        self.attrs["bias"] = parameter(context, (self.config["out"],), device=x.device) if self.config["bias"] else None
    return linear(context, x, self.attrs["weight"], self.attrs["bias"], transposed=True)


layer("torch", "LazyLinear", _lazy_linear_init, _lazy_linear_forward)


def _bilinear_init(
    context: Context,
    self: LayerInstance,
    in1_features: Value,
    in2_features: Value,
    out_features: Value,
    *args: Value,
    bias: Value = True,
    bias_attr: Value = None,
    weight_attr: Value = None,
    **kwargs: Value,
) -> None:
    del args, kwargs
    out = integer(out_features)
    self.attrs["weight"] = parameter(context, (out, integer(in1_features), integer(in2_features)), weight_attr)
    shape = (out,) if context.engine.framework == "torch" else (1, out)
    self.attrs["bias"] = parameter(context, shape, bias_attr) if bias is not False and bias_attr is not False else None


def _bilinear_forward(context: Context, self: LayerInstance, input1: Value, input2: Value) -> Value:
    return bilinear(context, input1, input2, self.attrs["weight"], self.attrs["bias"])


for _framework in ("torch", "paddle"):
    layer(_framework, "Bilinear", _bilinear_init, _bilinear_forward)


# --- convolution
# -------------------------------------------------------------------------------------------------------
def _conv(rank: int, transposed: bool) -> None:
    name = f"ConvTranspose{rank}d" if transposed else f"Conv{rank}d"

    def build(
        context: Context,
        self: LayerInstance,
        in_channels: Value,
        out_channels: Value,
        kernel_size: Value,
        groups: Value,
        weight_attr: Value,
        bias_attr: Value,
        factory: dict[str, Any],
    ) -> None:
        inward, outward, count = integer(in_channels), integer(out_channels), integer(groups, 1)
        kernel = repeat(kernel_size, rank)
        self.attrs.update(in_channels=in_channels, out_channels=out_channels, kernel_size=kernel, groups=count)
        shape = (inward, outward // count, *kernel) if transposed else (outward, inward // count, *kernel)
        self.attrs["weight"] = parameter(context, shape, weight_attr, **factory)
        self.attrs["bias"] = parameter(context, (outward,), bias_attr, **factory) if bias_attr is not False else None

    def torch_init(
        context: Context,
        self: LayerInstance,
        in_channels: Value,
        out_channels: Value,
        kernel_size: Value,
        stride: Value = 1,
        padding: Value = 0,
        *rest: Value,
        **kwargs: Value,
    ) -> None:
        order = (
            ("output_padding", "groups", "bias", "dilation", "padding_mode", "device", "dtype")
            if transposed
            else ("dilation", "groups", "bias", "padding_mode", "device", "dtype")
        )
        given = {**dict(zip(order, rest, strict=False)), **kwargs}
        bias = given.get("bias", True)
        build(
            context,
            self,
            in_channels,
            out_channels,
            kernel_size,
            given.get("groups", 1),
            None,
            None if bias is not False else False,
            _factory(context, given.get("device"), given.get("dtype")),
        )
        self.attrs["stride"] = repeat(stride, rank)
        self.attrs["padding"] = padding if isinstance(padding, str) else repeat(padding, rank)
        self.attrs["dilation"] = repeat(given.get("dilation", 1), rank)
        self.attrs["output_padding"] = repeat(given.get("output_padding", 0), rank)
        self.attrs["padding_mode"] = given.get("padding_mode", "zeros")
        self.attrs["transposed"] = transposed

    def paddle_init(
        context: Context,
        self: LayerInstance,
        in_channels: Value,
        out_channels: Value,
        kernel_size: Value,
        stride: Value = 1,
        padding: Value = 0,
        *rest: Value,
        **kwargs: Value,
    ) -> None:
        if transposed:
            order = (
                ("output_padding", "groups", "dilation", "weight_attr", "bias_attr", "data_format")
                if rank == 1
                else ("output_padding", "dilation", "groups", "weight_attr", "bias_attr", "data_format")
            )
        else:
            order = ("dilation", "groups", "padding_mode", "weight_attr", "bias_attr", "data_format")
        given = {**dict(zip(order, rest, strict=False)), **kwargs}
        build(
            context,
            self,
            in_channels,
            out_channels,
            kernel_size,
            given.get("groups", 1),
            given.get("weight_attr"),
            given.get("bias_attr"),
            {},
        )
        self.attrs.update(
            _stride=stride,
            _padding=padding,
            _dilation=given.get("dilation", 1),
            _groups=given.get("groups", 1),
            output_padding=given.get("output_padding", 0),
        )
        self.attrs.update(
            stride=stride,
            padding=padding,
            dilation=given.get("dilation", 1),
            padding_mode=given.get("padding_mode", "zeros"),
        )
        self.attrs.update(
            _in_channels=in_channels,
            _out_channels=out_channels,
            _kernel_size=list(repeat(kernel_size, rank)),
            data_format=given.get("data_format"),
        )

    def forward(context: Context, self: LayerInstance, input: Value, output_size: Value = None) -> Value:
        attrs = self.attrs
        channels = integer(attrs["in_channels"])
        typical = {1: (1024,), 2: (224, 224), 3: (16, 112, 112)}[rank]
        last = channels_last(attrs.get("data_format"))
        x = demanded(context, input, (*typical, channels) if last else (channels, *typical), f"the input of a {name}")
        if transposed:
            return convolve_transposed(
                context,
                x,
                attrs["weight"],
                attrs["bias"],
                attrs["stride"],
                attrs["padding"],
                attrs["output_padding"],
                attrs["groups"],
                attrs["dilation"],
                rank,
                attrs.get("data_format"),
                output_size,
            )
        padding = attrs["padding"]
        if attrs.get("padding_mode", "zeros") not in ("zeros", None) and not isinstance(padding, str):
            amounts = [p for p in reversed(repeat(padding, rank)) for _ in range(2)]
            x = shaping.pad(context, x, amounts, attrs["padding_mode"])
            padding = 0
        return convolve(
            context,
            x,
            attrs["weight"],
            attrs["bias"],
            attrs["stride"],
            padding,
            attrs["dilation"],
            attrs["groups"],
            rank,
            attrs.get("data_format"),
        )

    layer("torch", name, torch_init, forward)
    layer(
        "paddle",
        f"Conv{rank}DTranspose" if transposed else f"Conv{rank}D",
        paddle_init,
        forward,
        *([f"Conv{rank}d"] if not transposed else []),
    )


for _rank in (1, 2, 3):
    _conv(_rank, False)
    _conv(_rank, True)


# --- normalisation
# -----------------------------------------------------------------------------------------------------
def _torch_batch_norm(name: str, sync: bool = False) -> None:
    def init(
        context: Context,
        self: LayerInstance,
        num_features: Value,
        eps: Value = 1e-5,
        momentum: Value = 0.1,
        affine: Value = True,
        track_running_stats: Value = True,
        *args: Value,
        device: Value = None,
        dtype: Value = None,
        **kwargs: Value,
    ) -> None:
        del args, kwargs
        count = integer(num_features)
        made = _factory(context, device, dtype)
        self.attrs.update(
            num_features=num_features,
            eps=eps,
            momentum=momentum,
            affine=affine,
            track_running_stats=track_running_stats,
        )
        self.attrs["weight"] = parameter(context, (count,), **made) if affine is not False else None
        self.attrs["bias"] = parameter(context, (count,), **made) if affine is not False else None
        for buffer in ("running_mean", "running_var"):
            self.attrs[buffer] = (
                engine_of(context).tensor((count,), made["dtype"], kind="buffer", device=made["device"], op=buffer)
                if track_running_stats is not False
                else None
            )
            self.buffer_names[buffer] = True
        if track_running_stats is not False:
            self.attrs["num_batches_tracked"] = engine_of(context).tensor(
                (), "int64", kind="buffer", device=made["device"], op="num_batches_tracked"
            )
            self.buffer_names["num_batches_tracked"] = True

    def forward(context: Context, self: LayerInstance, input: Value) -> Value:
        x = demanded(
            context,
            input,
            (integer(self.attrs["num_features"]), 56, 56)[: 1 if "1d" in name else 3],
            f"the input of a {name}",
        )
        training = self.training or self.attrs["running_mean"] is None
        return batch_norm(
            context,
            x,
            self.attrs["running_mean"],
            self.attrs["running_var"],
            self.attrs["weight"],
            self.attrs["bias"],
            training,
        )

    cls = layer("torch", name, init, forward)
    if sync:
        cls.namespace["convert_sync_batchnorm"] = Native(
            "convert_sync_batchnorm", lambda context, module, *args, **kwargs: module
        )


for _name in ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"):
    _torch_batch_norm(_name)
_torch_batch_norm("SyncBatchNorm", sync=True)


def _paddle_batch_norm(name: str) -> None:
    def init(context: Context, self: LayerInstance, num_features: Value = None, *args: Value, **kwargs: Value) -> None:
        order = (
            ("act", "is_test", "momentum", "epsilon", "param_attr", "bias_attr", "dtype", "data_layout")
            if name == "BatchNorm"
            else ("momentum", "epsilon", "weight_attr", "bias_attr", "data_format", "use_global_stats")
        )
        given = {**dict(zip(order, args, strict=False)), **kwargs}
        if num_features is None:
            num_features = given.get("num_channels")
        count = integer(num_features)
        weight_attr = given.get("weight_attr", given.get("param_attr"))
        self.attrs.update(
            _num_features=num_features,
            _act=given.get("act"),
            _data_format=given.get("data_format", given.get("data_layout")),
        )
        self.config["global"] = given.get("use_global_stats") is True
        self.attrs["weight"] = parameter(context, (count,), weight_attr)
        if weight_attr is False:
            self.attrs["weight"].requires_grad = False
        bias_attr = given.get("bias_attr")
        self.attrs["bias"] = parameter(context, (count,), bias_attr)
        if bias_attr is False:
            self.attrs["bias"].requires_grad = False
        for statistic in ("_mean", "_variance"):
            # PaddlePaddle keeps running statistics as parameters that are not trained: parameters() gives them too.
            made = engine_of(context).parameter((count,), None, False)
            self.attrs[statistic] = made

    def forward(context: Context, self: LayerInstance, input: Value) -> Value:
        x = demanded(
            context,
            input,
            (integer(self.attrs["_num_features"]), 56, 56)[: 1 if "1D" in name else 3],
            f"the input of a {name}",
        )
        out = batch_norm(
            context,
            x,
            self.attrs["_mean"],
            self.attrs["_variance"],
            self.attrs["weight"],
            self.attrs["bias"],
            self.training and not self.config["global"],
            self.attrs["_data_format"],
        )
        act = self.attrs.get("_act")
        return elementwise.unary(context, act, out) if isinstance(act, str) else out

    cls = layer("paddle", name, init, forward)
    if name == "SyncBatchNorm":
        cls.namespace["convert_sync_batchnorm"] = Native(
            "convert_sync_batchnorm", lambda context, module, *args, **kwargs: module
        )


for _name in ("BatchNorm", "BatchNorm1D", "BatchNorm2D", "BatchNorm3D", "SyncBatchNorm"):
    _paddle_batch_norm(_name)


def _torch_layer_norm_init(
    context: Context,
    self: LayerInstance,
    normalized_shape: Value,
    eps: Value = 1e-5,
    elementwise_affine: Value = True,
    bias: Value = True,
    device: Value = None,
    dtype: Value = None,
) -> None:
    shape = integers(normalized_shape)
    made = _factory(context, device, dtype)
    self.attrs.update(normalized_shape=shape, eps=eps, elementwise_affine=elementwise_affine)
    self.attrs["weight"] = parameter(context, shape, **made) if elementwise_affine is not False else None
    self.attrs["bias"] = (
        parameter(context, shape, **made) if elementwise_affine is not False and bias is not False else None
    )


def _paddle_layer_norm_init(
    context: Context,
    self: LayerInstance,
    normalized_shape: Value,
    epsilon: Value = 1e-5,
    weight_attr: Value = None,
    bias_attr: Value = None,
) -> None:
    shape = integers(normalized_shape)
    self.attrs.update(_normalized_shape=list(shape), normalized_shape=shape, _epsilon=epsilon)
    self.attrs["weight"] = parameter(context, (numel(shape),), weight_attr) if weight_attr is not False else None
    self.attrs["bias"] = parameter(context, (numel(shape),), bias_attr) if bias_attr is not False else None


def _layer_norm_forward(context: Context, self: LayerInstance, input: Value) -> Value:
    shape = self.attrs["normalized_shape"]
    x = demanded(context, input, (128, *shape), "the input of a LayerNorm")
    return layer_norm(context, x, list(shape), self.attrs["weight"], self.attrs["bias"])


layer("torch", "LayerNorm", _torch_layer_norm_init, _layer_norm_forward)
layer("paddle", "LayerNorm", _paddle_layer_norm_init, _layer_norm_forward)


def _rms_norm_init(
    context: Context,
    self: LayerInstance,
    normalized_shape: Value,
    eps: Value = None,
    elementwise_affine: Value = True,
    device: Value = None,
    dtype: Value = None,
    **kwargs: Value,
) -> None:
    del eps, kwargs
    shape = integers(normalized_shape)
    self.attrs["normalized_shape"] = shape
    self.attrs["weight"] = (
        parameter(context, shape, **_factory(context, device, dtype)) if elementwise_affine is not False else None
    )


for _framework in ("torch", "paddle"):
    layer(
        _framework,
        "RMSNorm",
        _rms_norm_init,
        lambda context, self, input: rms_norm(
            context, input, list(self.attrs["normalized_shape"]), self.attrs["weight"]
        ),
    )


def _group_norm_init(
    context: Context,
    self: LayerInstance,
    num_groups: Value,
    num_channels: Value,
    eps: Value = 1e-5,
    affine: Value = True,
    bias_attr: Value = None,
    *args: Value,
    **kwargs: Value,
) -> None:
    del args
    paddle = context.engine.framework == "paddle"
    if paddle:  # GroupNorm(num_groups, num_channels, epsilon, weight_attr, bias_attr)
        weight_attr = kwargs.get("weight_attr", affine if affine is not True else None)
        keep_weight, keep_bias = weight_attr is not False, bias_attr is not False
    else:
        weight_attr, bias_attr, keep_weight, keep_bias = None, None, affine is not False, affine is not False
    count = integer(num_channels)
    made = {} if paddle else _factory(context, kwargs.get("device"), kwargs.get("dtype"))
    self.attrs.update(num_groups=num_groups, num_channels=num_channels, eps=eps)
    self.attrs["weight"] = parameter(context, (count,), weight_attr, **made) if keep_weight else None
    self.attrs["bias"] = parameter(context, (count,), bias_attr, **made) if keep_bias else None


def _group_norm_forward(context: Context, self: LayerInstance, input: Value) -> Value:
    x = demanded(context, input, (integer(self.attrs["num_channels"]), 56, 56), "the input of a GroupNorm")
    return group_norm(context, x, integer(self.attrs["num_groups"]), self.attrs["weight"], self.attrs["bias"])


for _framework in ("torch", "paddle"):
    layer(_framework, "GroupNorm", _group_norm_init, _group_norm_forward)


def _torch_instance_norm_init(
    context: Context,
    self: LayerInstance,
    num_features: Value,
    eps: Value = 1e-5,
    momentum: Value = 0.1,
    affine: Value = False,
    track_running_stats: Value = False,
    **kwargs: Value,
) -> None:
    del eps, momentum, kwargs
    count = integer(num_features)
    self.attrs["num_features"] = num_features
    self.attrs["weight"] = parameter(context, (count,)) if affine is True else None
    self.attrs["bias"] = parameter(context, (count,)) if affine is True else None
    if track_running_stats is True:
        for buffer in ("running_mean", "running_var"):
            self.attrs[buffer] = engine_of(context).tensor((count,), kind="buffer", op=buffer)
            self.buffer_names[buffer] = True


def _paddle_instance_norm_init(
    context: Context,
    self: LayerInstance,
    num_features: Value,
    epsilon: Value = 1e-5,
    momentum: Value = 0.9,
    weight_attr: Value = None,
    bias_attr: Value = None,
    data_format: Value = None,
) -> None:
    del epsilon, momentum, data_format
    count = integer(num_features)
    self.attrs["num_features"] = num_features
    both = weight_attr is not False and bias_attr is not False
    self.attrs["scale"] = parameter(context, (count,), weight_attr) if both else None
    self.attrs["bias"] = parameter(context, (count,), bias_attr) if both else None


def _instance_norm_forward(context: Context, self: LayerInstance, input: Value) -> Value:
    x = demanded(context, input, (integer(self.attrs["num_features"]), 56, 56), "the input of an InstanceNorm")
    return instance_norm(context, x, self.attrs.get("weight", self.attrs.get("scale")), self.attrs["bias"])


for _rank in (1, 2, 3):
    layer("torch", f"InstanceNorm{_rank}d", _torch_instance_norm_init, _instance_norm_forward)
    layer("paddle", f"InstanceNorm{_rank}D", _paddle_instance_norm_init, _instance_norm_forward)


def _lrn_init(context: Context, self: LayerInstance, size: Value, *args: Value, **kwargs: Value) -> None:
    del context, args, kwargs
    self.config["size"] = size


for _framework in ("torch", "paddle"):
    layer(
        _framework,
        "LocalResponseNorm",
        _lrn_init,
        lambda context, self, input: get("torch.nn.functional.local_response_norm").call(
            context, input, self.config["size"]
        ),
    )


# --- embedding
# ---------------------------------------------------------------------------------------------------------
def _torch_embedding_init(
    context: Context,
    self: LayerInstance,
    num_embeddings: Value,
    embedding_dim: Value,
    padding_idx: Value = None,
    max_norm: Value = None,
    norm_type: Value = 2.0,
    scale_grad_by_freq: Value = False,
    sparse: Value = False,
    _weight: Value = None,
    _freeze: Value = False,
    device: Value = None,
    dtype: Value = None,
) -> None:
    del max_norm, norm_type, scale_grad_by_freq, sparse
    self.attrs.update(num_embeddings=num_embeddings, embedding_dim=embedding_dim, padding_idx=padding_idx)
    self.attrs["weight"] = parameter(
        context, (integer(num_embeddings), integer(embedding_dim)), **_factory(context, device, dtype)
    )
    if _freeze is True:
        self.attrs["weight"].requires_grad = False
    del _weight


def _paddle_embedding_init(
    context: Context,
    self: LayerInstance,
    num_embeddings: Value,
    embedding_dim: Value,
    padding_idx: Value = None,
    sparse: Value = False,
    weight_attr: Value = None,
    *args: Value,
    **kwargs: Value,
) -> None:
    del args, kwargs
    self.attrs.update(
        _num_embeddings=num_embeddings, _embedding_dim=embedding_dim, _padding_idx=padding_idx, _sparse=sparse
    )
    self.attrs["weight"] = parameter(context, (integer(num_embeddings), integer(embedding_dim)), weight_attr)


def _indices(context: Context, value: Value) -> Tensor:
    if isinstance(value, Tensor) and value.shape is not None:
        return value
    if not isinstance(value, (Tensor, Unknown)):
        return tensor(context, value)
    engine = engine_of(context)
    made = engine.tensor((engine.assumed_batch or 32, 128), "int64", kind="input", op="assumed")
    context.findings.gap(
        "the indices of an Embedding", context.where, value.why or "not known", assumed=list(made.shape or ())
    )
    return made


def _embedding_forward(context: Context, self: LayerInstance, input: Value) -> Value:
    return embedding.embedding(context, _indices(context, input), self.attrs["weight"])


_EMBEDDING = layer("torch", "Embedding", _torch_embedding_init, _embedding_forward)
layer("paddle", "Embedding", _paddle_embedding_init, _embedding_forward)


def _from_pretrained(context: Context, embeddings: Value, freeze: Value = True, **kwargs: Value) -> Value:
    del kwargs
    made = LayerInstance(_EMBEDDING)
    weight = tensor(context, embeddings)
    rows, columns = weight.shape or (0, 0)
    _torch_embedding_init(context, made, rows, columns)
    made.attrs["weight"].requires_grad = freeze is False
    return made


_EMBEDDING.namespace["from_pretrained"] = Native("torch.nn.Embedding.from_pretrained", _from_pretrained)


def _bag_init(
    context: Context, self: LayerInstance, num_embeddings: Value, embedding_dim: Value, *args: Value, **kwargs: Value
) -> None:
    del args
    self.attrs["weight"] = parameter(
        context,
        (integer(num_embeddings), integer(embedding_dim)),
        **_factory(context, kwargs.get("device"), kwargs.get("dtype")),
    )


layer(
    "torch",
    "EmbeddingBag",
    _bag_init,
    lambda context, self, input, offsets=None, per_sample_weights=None: embedding.embedding_bag(
        context, input, self.attrs["weight"], offsets
    ),
)


# --- dropout
# -----------------------------------------------------------------------------------------------------------
def _dropout_init(
    context: Context, self: LayerInstance, p: Value = 0.5, inplace: Value = False, *args: Value, **kwargs: Value
) -> None:
    del context, args
    self.attrs["p"] = p
    self.attrs["inplace"] = inplace if isinstance(inplace, bool) else False
    self.config["axis"] = kwargs.get(
        "axis", inplace if isinstance(inplace, (int, list)) and not isinstance(inplace, bool) else None
    )


def _dropout_forward(context: Context, self: LayerInstance, input: Value) -> Value:
    return dropout(context, input, self.attrs["p"], self.training, self.attrs["inplace"] is True, self.config["axis"])


for _framework in ("torch", "paddle"):
    for _name in ("Dropout", "AlphaDropout", "FeatureAlphaDropout"):
        layer(_framework, _name, _dropout_init, _dropout_forward)
for _rank in (1, 2, 3):

    def _channel_dropout(context: Context, self: LayerInstance, input: Value, _rank: int = _rank) -> Value:
        return feature_dropout(context, input, self.attrs["p"], self.training, self.attrs["inplace"] is True, _rank)

    layer("torch", f"Dropout{_rank}d", _dropout_init, _channel_dropout)
    if _rank > 1:
        layer("paddle", f"Dropout{_rank}D", _dropout_init, _channel_dropout)


# --- pooling
# -----------------------------------------------------------------------------------------------------------
def _pool(rank: int, kind: str) -> None:
    def init(
        context: Context,
        self: LayerInstance,
        kernel_size: Value,
        stride: Value = None,
        padding: Value = 0,
        *args: Value,
        **kwargs: Value,
    ) -> None:
        torch = context.engine.framework == "torch"
        if kind == "max":
            order = ("dilation", "return_indices", "ceil_mode") if torch else ("return_mask", "ceil_mode")
        elif torch:
            order = ("ceil_mode", "count_include_pad", "divisor_override")
        else:
            order = ("exclusive", "ceil_mode") if rank == 1 else ("ceil_mode", "exclusive", "divisor_override")
        given = {**dict(zip(order, args, strict=False)), **kwargs}
        self.attrs.update(
            kernel_size=kernel_size,
            stride=stride if stride is not None else kernel_size,
            padding=padding,
            dilation=given.get("dilation", 1),
            ceil_mode=given.get("ceil_mode", False),
        )
        self.config.update(
            indices=given.get("return_indices", given.get("return_mask", False)), data_format=given.get("data_format")
        )

    def forward(context: Context, self: LayerInstance, input: Value) -> Value:
        attrs = self.attrs
        return pool(
            context,
            input,
            kind,
            rank,
            attrs["kernel_size"],
            attrs["stride"],
            attrs["padding"],
            attrs["dilation"],
            attrs["ceil_mode"],
            self.config["indices"],
            self.config["data_format"],
        )

    def adaptive_init(context: Context, self: LayerInstance, output_size: Value, *args: Value, **kwargs: Value) -> None:
        del context
        indices = next(
            (a for a in args if isinstance(a, bool)), kwargs.get("return_indices", kwargs.get("return_mask", False))
        )
        self.attrs["output_size"] = output_size
        self.config.update(
            indices=indices, data_format=kwargs.get("data_format", next((a for a in args if isinstance(a, str)), None))
        )

    def adaptive_forward(context: Context, self: LayerInstance, input: Value) -> Value:
        return adaptive(
            context, input, kind, rank, self.attrs["output_size"], self.config["indices"], self.config["data_format"]
        )

    word = "Max" if kind == "max" else "Avg"
    for framework, suffix in (("torch", "d"), ("paddle", "D")):
        layer(framework, f"{word}Pool{rank}{suffix}", init, forward)
        layer(framework, f"Adaptive{word}Pool{rank}{suffix}", adaptive_init, adaptive_forward)


for _rank in (1, 2, 3):
    for _kind in ("max", "avg"):
        _pool(_rank, _kind)


# --- layers that call a function
# ---------------------------------------------------------------------------------------
def _calls(
    framework: str,
    name: str,
    function: str,
    order: tuple[str, ...] = (),
    fixed: dict[str, Value] | None = None,
    *aliases: str,
) -> None:
    """A layer that keeps its arguments and hands them to a function with its inputs."""

    def init(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> None:
        del context
        self.config["given"] = {**(fixed or {}), **dict(zip(order, args, strict=False)), **kwargs}
        for key, value in self.config["given"].items():
            if key not in ("training",):
                self.attrs.setdefault(key, value)

    def forward(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> Value:
        target = get(f"{framework}.nn.functional.{function}")
        return target.call(context, *args, **{**self.config["given"], **kwargs})

    layer(framework, name, init, forward, *aliases)


_ACTIVATIONS = {
    "ReLU": ("relu", ("inplace",)),
    "ReLU6": ("relu6", ("inplace",)),
    "ELU": ("elu", ("alpha", "inplace")),
    "SELU": ("selu", ("inplace",)),
    "CELU": ("celu", ("alpha", "inplace")),
    "GELU": ("gelu", ("approximate",)),
    "Mish": ("mish", ("inplace",)),
    "Hardswish": ("hardswish", ("inplace",)),
    "Hardsigmoid": ("hardsigmoid", ("inplace",)),
    "Hardtanh": ("hardtanh", ("min_val", "max_val", "inplace")),
    "LeakyReLU": ("leaky_relu", ("negative_slope", "inplace")),
    "Softplus": ("softplus", ("beta", "threshold")),
    "Softsign": ("softsign", ()),
    "Softshrink": ("softshrink", ("lambd",)),
    "Hardshrink": ("hardshrink", ("lambd",)),
    "Tanhshrink": ("tanhshrink", ()),
    "LogSigmoid": ("logsigmoid", ()),
    "Threshold": ("threshold", ("threshold", "value", "inplace")),
    "Sigmoid": ("sigmoid", ()),
    "Tanh": ("tanh", ()),
    "Softmax": ("softmax", ("dim",)),
    "LogSoftmax": ("log_softmax", ("dim",)),
    "Softmin": ("softmin", ("dim",)),
    "Softmax2d": ("softmax", ()),
    "GLU": ("glu", ("dim",)),
    "RReLU": ("rrelu", ("lower", "upper", "inplace")),
}
for _name, (_function, _order) in _ACTIVATIONS.items():
    _calls("torch", _name, _function, _order)
    _plain = tuple("axis" if o == "dim" else o for o in _order if o != "inplace")
    _calls(
        "paddle",
        _name,
        _function if _function != "logsigmoid" else "log_sigmoid",
        _plain,
        None,
        *({"Softmax2d": ("Softmax2D",)}.get(_name, ())),
    )
_calls("torch", "SiLU", "silu", ("inplace",))
for _name in ("Silu", "SiLU"):
    _calls("paddle", _name, "silu")
_calls("paddle", "Swish", "swish")
_calls("paddle", "ThresholdedReLU", "thresholded_relu", ("threshold",))
_calls("paddle", "Maxout", "maxout", ("groups", "axis"))

_LOSSES = {
    "MSELoss": ("mse_loss", ("reduction",)),
    "L1Loss": ("l1_loss", ("reduction",)),
    "SmoothL1Loss": ("smooth_l1_loss", ("reduction", "delta")),
    "BCELoss": ("binary_cross_entropy", ("weight", "reduction")),
    "BCEWithLogitsLoss": ("binary_cross_entropy_with_logits", ("weight", "reduction", "pos_weight")),
    "KLDivLoss": ("kl_div", ("reduction",)),
    "NLLLoss": ("nll_loss", ("weight", "ignore_index", "reduction")),
    "HuberLoss": ("huber_loss", ("reduction", "delta")),
    "MarginRankingLoss": ("margin_ranking_loss", ("margin", "reduction")),
    "CosineEmbeddingLoss": ("cosine_embedding_loss", ("margin", "reduction")),
    "TripletMarginLoss": ("triplet_margin_loss", ("margin", "p")),
    "HingeEmbeddingLoss": ("hinge_embedding_loss", ("margin", "reduction")),
    "SoftMarginLoss": ("soft_margin_loss", ("reduction",)),
    "MultiLabelSoftMarginLoss": ("multi_label_soft_margin_loss", ("weight", "reduction")),
    "MultiMarginLoss": ("multi_margin_loss", ("p", "margin", "weight", "reduction")),
    "MultiLabelMarginLoss": ("multilabel_margin_loss", ("reduction",)),
    "PoissonNLLLoss": ("poisson_nll_loss", ("log_input", "full", "epsilon", "reduction")),
    "GaussianNLLLoss": ("gaussian_nll_loss", ("full", "epsilon", "reduction")),
    "TripletMarginWithDistanceLoss": (
        "triplet_margin_with_distance_loss",
        ("distance_function", "margin", "swap", "reduction"),
    ),
}
for _name, (_function, _order) in _LOSSES.items():
    _calls("paddle", _name, _function, _order)
    _torch_order = tuple(o for o in _order if o != "reduction") if _name not in ("HuberLoss",) else _order
    _head = (
        _torch_order[:1]
        if _name
        in (
            "BCELoss",
            "BCEWithLogitsLoss",
            "NLLLoss",
            "MarginRankingLoss",
            "CosineEmbeddingLoss",
            "TripletMarginLoss",
            "HingeEmbeddingLoss",
        )
        else ()
    )
    _calls(
        "torch", _name, _function, (*_head, "size_average", "reduce", "reduction") if _name != "HuberLoss" else _order
    )
_calls(
    "torch",
    "CrossEntropyLoss",
    "cross_entropy",
    ("weight", "size_average", "ignore_index", "reduce", "reduction", "label_smoothing"),
)
_calls(
    "paddle",
    "CrossEntropyLoss",
    "cross_entropy",
    ("weight", "ignore_index", "reduction", "soft_label", "axis", "use_softmax", "label_smoothing"),
)
_calls("torch", "CTCLoss", "ctc_loss", ("blank", "reduction", "zero_infinity"))
_calls("paddle", "CTCLoss", "ctc_loss", ("blank", "reduction"))
_calls("torch", "NLLLoss2d", "nll_loss", ("weight",))

for _framework in ("torch", "paddle"):
    _axis = "dim" if _framework == "torch" else "axis"
    _calls(_framework, "CosineSimilarity", "cosine_similarity", (_axis, "eps"))
    _calls(
        _framework,
        "PixelShuffle",
        "pixel_shuffle",
        ("upscale_factor", "data_format")[: 1 if _framework == "torch" else 2],
    )
    _calls(
        _framework,
        "PixelUnshuffle",
        "pixel_unshuffle",
        ("downscale_factor", "data_format")[: 1 if _framework == "torch" else 2],
    )
    _calls(_framework, "ChannelShuffle", "channel_shuffle", ("groups",))
    _calls(
        _framework,
        "Fold",
        "fold",
        (
            "output_size" if _framework == "torch" else "output_sizes",
            "kernel_size" if _framework == "torch" else "kernel_sizes",
        ),
    )
_calls("torch", "Unfold", "unfold", ("kernel_size", "dilation", "padding", "stride"))
_calls("paddle", "Unfold", "unfold", ("kernel_sizes", "dilations", "paddings", "strides"))
_calls("torch", "Upsample", "interpolate", ("size", "scale_factor", "mode", "align_corners"))
_calls(
    "paddle", "Upsample", "interpolate", ("size", "scale_factor", "mode", "align_corners", "align_mode", "data_format")
)
for _framework, _suffix in (("torch", "2d"), ("paddle", "2D")):
    _calls(_framework, f"UpsamplingNearest{_suffix}", "interpolate", ("size", "scale_factor"), {"mode": "nearest"})
    _calls(_framework, f"UpsamplingBilinear{_suffix}", "interpolate", ("size", "scale_factor"), {"mode": "bilinear"})
    for _rank in (1, 2, 3):
        _calls(
            _framework, f"MaxUnpool{_rank}{_suffix[-1]}", f"max_unpool{_rank}d", ("kernel_size", "stride", "padding")
        )
for _rank in (1, 2):
    _calls("torch", f"LPPool{_rank}d", f"lp_pool{_rank}d", ("norm_type", "kernel_size", "stride", "ceil_mode"))
    _calls("paddle", f"LPPool{_rank}D", f"lp_pool{_rank}d", ("norm_type", "kernel_size", "stride", "ceil_mode"))


def _padding(framework: str, name: str, rank: int, mode: str | None) -> None:
    def init(context: Context, self: LayerInstance, padding: Value, *args: Value, **kwargs: Value) -> None:
        del context
        self.attrs["padding"] = padding
        chosen = mode
        if mode is None:  # PaddlePaddle's Pad2D(padding, mode, value, data_format)
            chosen = args[0] if args and isinstance(args[0], str) else kwargs.get("mode", "constant")
        self.config.update(mode=chosen, data_format=kwargs.get("data_format"))

    def forward(context: Context, self: LayerInstance, input: Value) -> Value:
        amounts = integers(self.attrs["padding"])
        amounts = amounts * (2 * rank) if len(amounts) == 1 else amounts
        return shaping.pad(
            context, input, list(amounts), self.config["mode"], 0.0, self.config["data_format"] or "NCHW"
        )

    layer(framework, name, init, forward)


for _rank in (1, 2, 3):
    for _word, _mode in (
        ("Zero", "constant"),
        ("Constant", "constant"),
        ("Reflection", "reflect"),
        ("Replication", "replicate"),
        ("Circular", "circular"),
    ):
        _padding("torch", f"{_word}Pad{_rank}d", _rank, _mode)
    _padding("paddle", f"Pad{_rank}D", _rank, None)
    _padding("paddle", f"ZeroPad{_rank}D", _rank, "constant")


def _nothing(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> None:
    del context, self, args, kwargs


for _framework in ("torch", "paddle"):
    layer(_framework, "Identity", _nothing, lambda context, self, input, *args, **kwargs: input)


def _flatten_init(context: Context, self: LayerInstance, start: Value = 1, stop: Value = -1, **kwargs: Value) -> None:
    del context
    self.config.update(
        start=kwargs.get("start_dim", kwargs.get("start_axis", start)),
        stop=kwargs.get("end_dim", kwargs.get("stop_axis", stop)),
    )


for _framework in ("torch", "paddle"):
    layer(
        _framework,
        "Flatten",
        _flatten_init,
        lambda context, self, input: shaping.flatten_(context, input, self.config["start"], self.config["stop"]),
    )


def _unflatten_init(context: Context, self: LayerInstance, axis: Value, shape: Value = None, **kwargs: Value) -> None:
    del context
    self.config.update(axis=axis, shape=shape if shape is not None else kwargs.get("unflattened_size"))


for _framework in ("torch", "paddle"):
    layer(
        _framework,
        "Unflatten",
        _unflatten_init,
        lambda context, self, input: shaping.unflatten(context, input, self.config["axis"], self.config["shape"]),
    )


def _prelu_init(
    context: Context,
    self: LayerInstance,
    num_parameters: Value = 1,
    init: Value = 0.25,
    weight_attr: Value = None,
    *args: Value,
    **kwargs: Value,
) -> None:
    del init, args, kwargs
    self.attrs["num_parameters"] = num_parameters
    weight = parameter(context, (integer(num_parameters),), weight_attr if weight_attr is not False else None)
    self.attrs["weight" if context.engine.framework == "torch" else "_weight"] = weight


for _framework in ("torch", "paddle"):
    layer(
        _framework,
        "PReLU",
        _prelu_init,
        lambda context, self, input: elementwise.prelu(
            context, input, self.attrs.get("weight", self.attrs.get("_weight"))
        ),
    )


def _pairwise_init(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> None:
    del context, self, args, kwargs


def _pairwise(context: Context, self: LayerInstance, x: Value, y: Value) -> Value:
    del self
    return norm(context, elementwise.binary(context, "subtract", x, y), 2, -1)


for _framework in ("torch", "paddle"):
    layer(_framework, "PairwiseDistance", _pairwise_init, _pairwise)


def _spectral_init(
    context: Context, self: LayerInstance, weight_shape: Value, axis: Value = 0, *args: Value, **kwargs: Value
) -> None:
    del args, kwargs
    shape = integers(weight_shape)
    at = integer(axis)
    for name, size in (("weight_u", shape[at]), ("weight_v", numel(shape) // max(shape[at], 1))):
        self.attrs[name] = engine_of(context).parameter((size,), None, False)


layer(
    "paddle",
    "SpectralNorm",
    _spectral_init,
    lambda context, self, weight: elementwise.binary(context, "divide", weight, 1.0),
)
