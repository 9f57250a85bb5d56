"""Normalisation layers: parameters, running statistics, and what each keeps."""

from __future__ import annotations

from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.engine.shapes import numel
from oarlock_profiler.core.interpreter.values import Class, Context, Native, Value
from oarlock_profiler.core.overlays import attention, creation, elementwise, embedding, losses, resampling, shaping  # noqa: F401 - registered by import
from oarlock_profiler.core.overlays.calling import (
    engine_of,
    integer,
    integers,
)
from oarlock_profiler.core.overlays.layer_class import demanded, layer, placement
from oarlock_profiler.core.overlays.nn_module import parameter
from oarlock_profiler.core.overlays.normalization import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from oarlock_profiler.core.overlays.registry import get, register

LIBRARIES = ("torch", "paddle")


def _torch_batch_norm(name: str, base: Class | None = None, *, sync: bool = False) -> Class:
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
        made = placement(context, device, dtype)
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

    cls = layer("torch", name, init, forward, base=base)
    if sync:
        cls.namespace["convert_sync_batchnorm"] = Native(
            "convert_sync_batchnorm", lambda context, module, *args, **kwargs: module
        )
    return cls


# What scripts ask for with ``isinstance``, and derive from, though it is not in the documentation.
_TORCH_BASE = _torch_batch_norm("_BatchNorm")
register("torch.nn.modules.batchnorm._NormBase", _TORCH_BASE)
for _name in ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"):
    _torch_batch_norm(_name, _TORCH_BASE)
_torch_batch_norm("SyncBatchNorm", _TORCH_BASE, sync=True)


def _paddle_batch_norm(name: str, base: Class | None = None) -> Class:
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
        bias_attr = given.get("bias_attr")
        self.attrs["weight"] = parameter(context, (count,), weight_attr) if weight_attr is not False else None
        self.attrs["bias"] = parameter(context, (count,), bias_attr) if bias_attr is not False else None
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

    cls = layer("paddle", name, init, forward, base=base)
    if name == "SyncBatchNorm":
        cls.namespace["convert_sync_batchnorm"] = Native(
            "convert_sync_batchnorm", lambda context, module, *args, **kwargs: module
        )
    return cls


_paddle_batch_norm("BatchNorm")
_PADDLE_BASE = _paddle_batch_norm("_BatchNormBase")
for _name in ("BatchNorm1D", "BatchNorm2D", "BatchNorm3D", "SyncBatchNorm"):
    _paddle_batch_norm(_name, _PADDLE_BASE)


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
    made = placement(context, device, dtype)
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
    name: Value = None,
) -> None:
    del name
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
        parameter(context, shape, **placement(context, device, dtype)) if elementwise_affine is not False else None
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
    made = {} if paddle else placement(context, kwargs.get("device"), kwargs.get("dtype"))
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
    name: Value = None,
) -> None:
    del epsilon, momentum, data_format, name
    count = integer(num_features)
    self.attrs["num_features"] = num_features
    both = weight_attr is not False and bias_attr is not False
    self.attrs["scale"] = parameter(context, (count,), weight_attr) if both else None
    self.attrs["bias"] = parameter(context, (count,), bias_attr) if both else None


def _instance_norm_forward(context: Context, self: LayerInstance, input: Value) -> Value:
    x = demanded(context, input, (integer(self.attrs["num_features"]), 56, 56), "the input of an InstanceNorm")
    return instance_norm(context, x, self.attrs.get("weight", self.attrs.get("scale")), self.attrs["bias"])


_TORCH_INSTANCE = layer("torch", "_InstanceNorm", _torch_instance_norm_init, _instance_norm_forward)
_PADDLE_INSTANCE = layer("paddle", "_InstanceNormBase", _paddle_instance_norm_init, _instance_norm_forward)
for _rank in (1, 2, 3):
    layer("torch", f"InstanceNorm{_rank}d", _torch_instance_norm_init, _instance_norm_forward, base=_TORCH_INSTANCE)
    layer("paddle", f"InstanceNorm{_rank}D", _paddle_instance_norm_init, _instance_norm_forward, base=_PADDLE_INSTANCE)


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
