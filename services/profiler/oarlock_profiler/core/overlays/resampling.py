"""Interpolation, sampling by a grid, and columns of patches."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.engine.shapes import ShapeError, numel, window
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Context, Unknown, Value
from oarlock_profiler.core.overlays.calling import Unknowable, engine_of, integer, integers, operator, repeat, tensor
from oarlock_profiler.core.overlays.convolution import channels_last, paddings

LIBRARIES = ("torch", "paddle", "torchvision")

KERNELS = {
    "nearest": "nearest_interp",
    "bilinear": "bilinear_interp",
    "bicubic": "bicubic_interp",
    "linear": "linear_interp",
    "trilinear": "trilinear_interp",
}


def interpolate(
    context: Context, input: Value, size: Value, scale: Value, mode: Value, data_format: Value = None
) -> Tensor:
    """Resized to ``size`` or by ``scale``."""
    engine = engine_of(context)
    x = tensor(context, input)
    shape = x.shape or ()
    rank = len(shape) - 2
    if rank < 1:
        raise ShapeError(f"interpolation of {len(shape)} dimensions")
    last = channels_last(data_format)
    spatial = shape[1:-1] if last else shape[2:]
    if size is not None:
        if isinstance(size, Tensor) and size.value is None:
            raise Unknowable("the size to interpolate to is held in a tensor")
        out = repeat(size, rank)
    else:
        factors = scale if isinstance(scale, (list, tuple)) else [scale] * rank
        factors = list(factors) * rank if len(factors) == 1 else list(factors)
        numbers: list[float] = []
        for factor in factors:
            if isinstance(factor, Tensor) and isinstance(factor.value, (int, float)):
                factor = factor.value
            if isinstance(factor, Unknown) or not isinstance(factor, (int, float)):
                raise Unknowable("the factor to interpolate by is not known")
            numbers.append(float(factor))
        out = tuple(int(s * f) for s, f in zip(spatial, numbers, strict=True))
    result = (shape[0], *out, shape[-1]) if last else (*shape[:2], *out)
    if mode == "area":
        return engine.apply("interpolate", [x], result, x.dtype, saved=[x])
    return engine.apply(
        "interpolate", [x], result, x.dtype, kernel=KERNELS.get(str(mode), "nearest_interp"), flops=8 * numel(result)
    )


@operator(
    [
        *(
            f"{f}.nn.functional.{n}"
            for f in ("torch", "paddle")
            for n in ("interpolate", "upsample", "upsample_nearest", "upsample_bilinear")
        )
    ],
    rename={"x": "input"},
)
def interpolate_(
    context: Context,
    input: Value,
    size: Value = None,
    scale_factor: Value = None,
    mode: Value = "nearest",
    *args: Value,
    data_format: Value = None,
    **kwargs: Value,
) -> Value:
    """Resized."""
    del args, kwargs
    return interpolate(context, input, size, scale_factor, mode, data_format)


@operator([*(f"{f}.nn.functional.grid_sample" for f in ("torch", "paddle"))], rename={"x": "input"})
def grid_sample(context: Context, input: Value, grid: Value, *args: Value, **kwargs: Value) -> Value:
    """Sampled where a grid says; keeps input and grid."""
    del args, kwargs
    x, g = tensor(context, input), tensor(context, grid)
    return engine_of(context).apply("grid_sample", [x, g], (*(x.shape or ())[:2], *(g.shape or ())[1:-1]), saved=[x, g])


@operator([*(f"{f}.nn.functional.affine_grid" for f in ("torch", "paddle"))], rename={"size": "out_shape"})
def affine_grid(context: Context, theta: Value, out_shape: Value, align_corners: Value = None) -> Value:
    """The grid of an affine map."""
    del align_corners
    t = tensor(context, theta)
    dims = integers(out_shape)
    shape = (dims[0], *dims[2:], len(dims) - 2)
    return engine_of(context).apply(
        "affine_grid", [t], shape, t.dtype, saved=[int(4 * numel(dims[2:]) * (len(dims) - 1) * dims[0])]
    )


@operator(
    [*(f"{f}.nn.functional.unfold" for f in ("torch", "paddle"))],
    rename={
        "x": "input",
        "kernel_sizes": "kernel_size",
        "paddings": "padding",
        "strides": "stride",
        "dilations": "dilation",
    },
)
def unfold(context: Context, input: Value, kernel_size: Value, *args: Value, **kwargs: Value) -> Value:
    """Patches as columns."""
    x = tensor(context, input)
    order = (
        ("dilation", "padding", "stride") if context.engine.framework == "torch" else ("stride", "padding", "dilation")
    )
    given: dict[str, Any] = {**dict(zip(order, args, strict=False)), **kwargs}
    kernel = repeat(kernel_size, 2)
    steps, spread = repeat(given.get("stride", 1), 2), repeat(given.get("dilation", 1), 2)
    shape = x.shape or ()
    padding = given.get("padding", 0)
    found = integers(padding)
    pads = (
        [(found[0], found[2]), (found[1], found[3])]
        if len(found) == 4
        else paddings(padding, 2, shape[2:], kernel, steps, spread)
    )
    places = numel(window(shape[2 + i], kernel[i], steps[i], *pads[i], spread[i]) for i in range(2))
    return engine_of(context).apply(
        "unfold", [x], (shape[0], shape[1] * numel(kernel), places), x.dtype, kernel="unfold"
    )


@operator(
    [*(f"{f}.nn.functional.fold" for f in ("torch", "paddle"))],
    rename={"x": "input", "output_sizes": "output_size", "kernel_sizes": "kernel_size"},
)
def fold(
    context: Context, input: Value, output_size: Value, kernel_size: Value, *args: Value, **kwargs: Value
) -> Value:
    """Columns summed back to an image."""
    del args, kwargs
    x = tensor(context, input)
    kernel = repeat(kernel_size, 2)
    shape = x.shape or ()
    return engine_of(context).apply(
        "fold", [x], (shape[0], shape[1] // numel(kernel), *repeat(output_size, 2)), x.dtype, kernel="fold"
    )


@operator(["paddle.nn.functional.temporal_shift"], rename={})
def temporal_shift(context: Context, x: Value, seg_num: Value, *args: Value, **kwargs: Value) -> Value:
    """Channels moved along time (a copy)."""
    del args, kwargs
    integer(seg_num)
    a = tensor(context, x)
    return engine_of(context).apply("temporal_shift", [a], a.shape or (), a.dtype)


def _roi(context: Context, input: Value, boxes: Value, output_size: Value) -> Value:
    x = tensor(context, input)
    rois = tensor(context, boxes) if not isinstance(boxes, (list, tuple)) else None
    count = (rois.shape or (0,))[0] if rois is not None else sum((tensor(context, b).shape or (0,))[0] for b in boxes)
    return engine_of(context).apply(
        "roi_align",
        [x],
        (count, (x.shape or ())[1], *repeat(output_size, 2)),
        x.dtype,
        saved=[rois] if rois is not None else [],
    )


@operator(["torchvision.ops.roi_align", "torchvision.ops.roi_pool"], rename={})
def torchvision_roi(
    context: Context, input: Value, boxes: Value, output_size: Value, *args: Value, **kwargs: Value
) -> Value:
    """Features of boxes, resampled."""
    del args, kwargs
    return _roi(context, input, boxes, output_size)


@operator(
    ["paddle.vision.ops.roi_align", "paddle.vision.ops.roi_pool", "paddle.vision.ops.psroi_pool"], rename={"input": "x"}
)
def paddle_roi(
    context: Context, x: Value, boxes: Value, boxes_num: Value, output_size: Value, *args: Value, **kwargs: Value
) -> Value:
    """Features of boxes, resampled."""
    del boxes_num, args, kwargs
    return _roi(context, x, boxes, output_size)
