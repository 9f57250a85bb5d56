"""Normalisation layers' functions: batch, layer, group, instance, RMS, local response, spectral."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.engine.engine import Mode
from oarlock_profiler.core.engine.shapes import axis_of, numel
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Context, Value
from oarlock_profiler.core.overlays.calling import engine_of, integer, integers, operator, tensor
from oarlock_profiler.core.overlays.convolution import channels_last

LIBRARIES = ("torch", "paddle")

STATISTIC = 4
"""Bytes of one kept mean or variance (float32 whatever the input)."""


def _parameters(*candidates: Value) -> list[Tensor]:
    return [t for t in candidates if isinstance(t, Tensor)]


def batch_norm(
    context: Context,
    input: Value,
    mean: Value,
    variance: Value,
    weight: Value,
    bias: Value,
    training: bool,
    data_format: Value = None,
) -> Tensor:
    """Keeps input, weight and the batch's statistics."""
    engine = engine_of(context)
    x = tensor(context, input)
    shape = x.shape or ()
    channels = shape[-1] if channels_last(data_format) else shape[1] if len(shape) > 1 else shape[0]
    saved: list[Any] = [x, *_parameters(weight)]
    if training:
        saved += [channels * STATISTIC, channels * STATISTIC]
    elif engine.framework == "paddle":
        saved += _parameters(mean, variance)
    return engine.apply(
        "batch_norm", [x, *_parameters(weight, bias)], shape, x.dtype, saved=saved, flops=8 * numel(shape)
    )


@operator(
    ["torch.nn.functional.batch_norm", "paddle.nn.functional.batch_norm", "torch.batch_norm"],
    rename={"input": "x", "momentum": "_", "epsilon": "eps"},
)
def batch_norm_(
    context: Context,
    x: Value,
    running_mean: Value = None,
    running_var: Value = None,
    weight: Value = None,
    bias: Value = None,
    training: Value = False,
    *args: Value,
    data_format: Value = None,
    **kwargs: Value,
) -> Value:
    """Batch normalisation."""
    del args, kwargs
    return batch_norm(context, x, running_mean, running_var, weight, bias, training is True, data_format)


def layer_norm(context: Context, input: Value, normalized: Value, weight: Value, bias: Value) -> Tensor:
    """Keeps input, parameters and two statistics a row."""
    engine = engine_of(context)
    x = tensor(context, input)
    shape = x.shape or ()
    inner = integers(normalized)
    rows = numel(shape[: len(shape) - len(inner)])
    saved: list[Any] = [x, *_parameters(weight, bias), rows * STATISTIC, rows * STATISTIC]
    dtype = None if engine.autocast is not None else x.dtype
    scratch = 2 * x.nbytes if engine.kernels == "cpu" and engine.framework == "paddle" else 0
    return engine.apply(
        "layer_norm",
        [x, *_parameters(weight, bias)],
        shape,
        dtype,
        saved=saved,
        flops=8 * numel(shape),
        backward_workspace_bytes=scratch,
    )


@operator(
    ["torch.nn.functional.layer_norm", "paddle.nn.functional.layer_norm", "torch.layer_norm"], rename={"input": "x"}
)
def layer_norm_(
    context: Context,
    x: Value,
    normalized_shape: Value,
    weight: Value = None,
    bias: Value = None,
    *args: Value,
    **kwargs: Value,
) -> Value:
    """Layer normalisation."""
    del args, kwargs
    return layer_norm(context, x, normalized_shape, weight, bias)


def group_norm(context: Context, input: Value, groups: int, weight: Value, bias: Value) -> Tensor:
    """Keeps input (and output in PaddlePaddle), parameters and two statistics a group."""
    engine = engine_of(context)
    x = tensor(context, input)
    shape = x.shape or ()
    rows = (shape[0] if shape else 1) * groups
    saved: list[Any] = [x, *_parameters(weight), rows * STATISTIC, rows * STATISTIC]
    if engine.framework == "paddle":
        saved += ["output"]
    modes: tuple[Mode, ...] = ("reuse", "fresh", "fresh") if engine.framework == "paddle" else ("fresh",) * 3
    return engine.apply(
        "group_norm",
        [x, *_parameters(weight, bias)],
        shape,
        None if engine.autocast else x.dtype,
        saved=saved,
        grad=modes,
        flops=8 * numel(shape),
    )


@operator(["torch.nn.functional.group_norm", "torch.group_norm"], rename={})
def torch_group_norm(
    context: Context, input: Value, num_groups: Value, weight: Value = None, bias: Value = None, eps: Value = 1e-5
) -> Value:
    """Group normalisation."""
    del eps
    return group_norm(context, input, integer(num_groups), weight, bias)


@operator(["paddle.nn.functional.group_norm"], rename={"input": "x"})
def paddle_group_norm(
    context: Context,
    x: Value,
    num_groups: Value,
    epsilon: Value = 1e-5,
    weight: Value = None,
    bias: Value = None,
    **kwargs: Value,
) -> Value:
    """Group normalisation."""
    del epsilon, kwargs
    return group_norm(context, x, integer(num_groups), weight, bias)


def instance_norm(context: Context, input: Value, weight: Value, bias: Value) -> Tensor:
    """Keeps input and two statistics an image and channel."""
    engine = engine_of(context)
    x = tensor(context, input)
    shape = x.shape or ()
    rows = numel(shape[:2])
    saved: list[Any] = [x, rows * STATISTIC, rows * STATISTIC, *_parameters(weight)]
    if engine.framework == "torch" and isinstance(weight, Tensor):
        saved += [rows * STATISTIC]  # the weight is repeated for each image
    return engine.apply(
        "instance_norm", [x, *_parameters(weight, bias)], shape, x.dtype, saved=saved, flops=8 * numel(shape)
    )


@operator(
    ["torch.nn.functional.instance_norm", "paddle.nn.functional.instance_norm", "torch.instance_norm"],
    rename={"input": "x"},
)
def instance_norm_(
    context: Context,
    x: Value,
    running_mean: Value = None,
    running_var: Value = None,
    weight: Value = None,
    bias: Value = None,
    *args: Value,
    **kwargs: Value,
) -> Value:
    """Instance normalisation."""
    del running_mean, running_var, args, kwargs
    return instance_norm(context, x, weight, bias)


def rms_norm(context: Context, input: Value, normalized: Value, weight: Value) -> Tensor:
    """Keeps input, weight and one statistic a row."""
    engine = engine_of(context)
    x = tensor(context, input)
    shape = x.shape or ()
    inner = integers(normalized)
    rows = numel(shape[: len(shape) - len(inner)])
    saved: list[Any] = [x, *_parameters(weight), rows * STATISTIC]
    if engine.kernels == "cpu" and engine.framework == "torch":
        saved.append(x.nbytes)  # written out of several operators there
    return engine.apply("rms_norm", [x, *_parameters(weight)], shape, x.dtype, saved=saved, flops=5 * numel(shape))


@operator(["torch.nn.functional.rms_norm", "torch.rms_norm", "paddle.nn.functional.rms_norm"], rename={"input": "x"})
def rms_norm_(
    context: Context, x: Value, normalized_shape: Value, weight: Value = None, *args: Value, **kwargs: Value
) -> Value:
    """Root-mean-square normalisation."""
    del args, kwargs
    return rms_norm(context, x, normalized_shape, weight)


@operator(["paddle.incubate.nn.functional.fused_rms_norm", "paddle.incubate.nn.functional.fused_layer_norm"], rename={})
def fused_norm(
    context: Context,
    x: Value,
    norm_weight: Value = None,
    norm_bias: Value = None,
    epsilon: Value = 1e-5,
    begin_norm_axis: Value = 1,
    *args: Value,
    **kwargs: Value,
) -> Value:
    """PaddlePaddle's fused normalisation; gives a list, as its kernels do."""
    del epsilon, args, kwargs
    a = tensor(context, x)
    shape = a.shape or ()
    at = axis_of(integer(begin_norm_axis), len(shape))
    rows = numel(shape[:at])
    out = engine_of(context).apply(
        "rms_norm",
        [a, *_parameters(norm_weight, norm_bias)],
        shape,
        a.dtype,
        saved=[a, *_parameters(norm_weight), rows * STATISTIC],
    )
    return (out, a)


@operator([*(f"{f}.nn.functional.local_response_norm" for f in ("torch", "paddle"))], rename={"input": "x"})
def local_response_norm(context: Context, x: Value, size: Value, *args: Value, **kwargs: Value) -> Value:
    """Each channel divided by its neighbours' squares: several operators, three kept tensors of the input's size."""
    del size, args, kwargs
    a = tensor(context, x)
    return engine_of(context).apply(
        "local_response_norm", [a], a.shape or (), a.dtype, saved=[a, a.nbytes, a.nbytes, a.nbytes]
    )
