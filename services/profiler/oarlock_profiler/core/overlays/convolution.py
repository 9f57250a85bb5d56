"""Convolutions and transposed convolutions of one to three dimensions."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.engine.dtypes import size_of
from oarlock_profiler.core.engine.shapes import ShapeError, numel, window
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.engine.trace import Filters
from oarlock_profiler.core.interpreter.values import Context, Value
from oarlock_profiler.core.overlays.calling import engine_of, integer, integers, operator, repeat, tensor
from oarlock_profiler.core.overlays.elementwise import binary

LIBRARIES = ("torch", "paddle", "torchvision")

Pads = list[tuple[int, int]]


def channels_last(data_format: Value) -> bool:
    """Whether the layout string puts channels last (``NHWC``)."""
    return isinstance(data_format, str) and data_format.endswith("C") and len(data_format) > 2


def paddings(
    padding: Value,
    rank: int,
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
) -> Pads:
    """Padding before and after each spatial axis, from every way of writing it."""
    if isinstance(padding, str):
        if padding.upper() == "VALID":
            return [(0, 0)] * rank
        result = []
        for i in range(rank):
            total = max(0, (-(-sizes[i] // stride[i]) - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1 - sizes[i])
            result.append((total // 2, total - total // 2))
        return result
    if isinstance(padding, (list, tuple)) and padding and isinstance(padding[0], (list, tuple)):
        pairs = [tuple(integers(p)) for p in padding]
        return (
            [(p[0], p[1]) for p in pairs[-rank:]] if len(pairs) == rank else [(p[0], p[1]) for p in pairs[2 : 2 + rank]]
        )
    found = integers(padding)
    if len(found) == 1:
        return [(found[0], found[0])] * rank
    if len(found) == 2 * rank:
        return [(found[2 * i], found[2 * i + 1]) for i in range(rank)]
    return [(p, p) for p in found]


def convolve(
    context: Context,
    input: Value,
    weight: Value,
    bias: Value,
    stride: Value,
    padding: Value,
    dilation: Value,
    groups: Value,
    rank: int,
    data_format: Value = None,
) -> Tensor:
    """Convolution of ``rank`` spatial dimensions; keeps input and weight."""
    x, w = tensor(context, input), tensor(context, weight)
    shape, kernel_shape = x.shape or (), w.shape or ()
    last = channels_last(data_format)
    batched = len(shape) == rank + 2
    if not batched and len(shape) != rank + 1:
        raise ShapeError(f"conv{rank}d of {len(shape)} dimensions")
    full = shape if batched else (1, *shape)
    spatial = full[1:-1] if last else full[2:]
    channels = full[-1] if last else full[1]
    group_count = integer(groups, 1)
    kernel = kernel_shape[2:]
    if channels != kernel_shape[1] * group_count:
        raise ShapeError(f"conv{rank}d of {channels} channels with a weight for {kernel_shape[1] * group_count}")
    steps, spread = repeat(stride, rank), repeat(dilation, rank)
    pads = paddings(padding, rank, spatial, kernel, steps, spread)
    out = tuple(window(spatial[i], kernel[i], steps[i], *pads[i], spread[i]) for i in range(rank))
    features = kernel_shape[0]
    result = (full[0], *out, features) if last else (full[0], features, *out)
    if not batched:
        result = result[1:]
    flops = 2 * full[0] * features * numel(out) * kernel_shape[1] * numel(kernel)
    depthwise = group_count == channels and group_count > 1
    kernel_name = f"depthwise_conv{rank}d" if depthwise and rank == 2 else f"conv{rank}d" if rank > 1 else "conv2d"
    plain = numel(kernel) == 1 and set(steps) == {1} and not any(map(sum, pads))
    columns = 0 if plain else kernel_shape[1] * numel(kernel) * numel(out)
    filters = Filters(channels, features, int(numel(kernel)), group_count, int(numel(out)))
    return _with_bias(context, f"conv{rank}d", x, w, bias, result, flops, kernel_name, last, rank, columns, filters)


def _with_bias(
    context: Context,
    name: str,
    x: Tensor,
    w: Tensor,
    bias: Value,
    result: tuple[int, ...],
    flops: int,
    kernel: str,
    last: bool,
    rank: int,
    columns: int,
    filters: Filters,
) -> Tensor:
    """``columns``: values that PaddlePaddle's CPU kernels unfold one sample into, forward and backward."""
    engine = engine_of(context)
    # PaddlePaddle keeps the input of a frozen layer too.
    saved: list[Any] = [x, w] if engine.framework == "paddle" else [(x, w), (w, x)]
    if rank == 1 and engine.framework == "paddle":
        saved.append(w.nbytes)  # the weight is given a second spatial axis by a copy
    # phi/kernels/impl/conv_kernel_impl.h: a buffer of columns, unless the kernel is one plain product
    scratch = columns * int(size_of(x.dtype)) if engine.kernels == "cpu" and engine.framework == "paddle" else 0
    if not isinstance(bias, Tensor):
        return engine.apply(
            name, [x, w], result, saved=saved, flops=flops, matmul=True, kernel=kernel, workspace_bytes=scratch,
            backward_workspace_bytes=scratch, filters=filters,
        )  # fmt: skip
    if engine.framework == "torch":
        return engine.apply(
            name, [x, w, bias], result, saved=saved, flops=flops, matmul=True, kernel=kernel, filters=filters
        )
    # PaddlePaddle adds the bias in an operator of its own.
    product = engine.apply(
        name, [x, w], result, saved=saved, flops=flops, matmul=True, kernel=kernel, workspace_bytes=scratch,
        backward_workspace_bytes=scratch, filters=filters,
    )  # fmt: skip
    view = engine.apply(
        "reshape",
        [bias],
        (1, *(1,) * rank, result[-1]) if last else (1, result[1], *(1,) * rank),
        bias.dtype,
        view=bias,
        grad="alias",
    )
    return binary(context, "add", product, view)  # type: ignore[no-any-return]


def convolve_transposed(
    context: Context,
    input: Value,
    weight: Value,
    bias: Value,
    stride: Value,
    padding: Value,
    output_padding: Value,
    groups: Value,
    dilation: Value,
    rank: int,
    data_format: Value = None,
    output_size: Value = None,
) -> Tensor:
    """Transposed convolution; the weight is ``(in, out / groups, *kernel)``."""
    x, w = tensor(context, input), tensor(context, weight)
    shape, kernel_shape = x.shape or (), w.shape or ()
    last = channels_last(data_format)
    batched = len(shape) == rank + 2
    full = shape if batched else (1, *shape)
    spatial = full[1:-1] if last else full[2:]
    channels = full[-1] if last else full[1]
    if channels != kernel_shape[0]:
        raise ShapeError(f"conv_transpose{rank}d of {channels} channels with a weight for {kernel_shape[0]}")
    kernel = kernel_shape[2:]
    steps, spread = repeat(stride, rank), repeat(dilation, rank)
    extra = repeat(output_padding if output_padding is not None else 0, rank)
    pads = paddings(padding, rank, spatial, kernel, steps, spread)
    if output_size is not None:
        out = integers(output_size)[-rank:]
    else:
        out = tuple(
            (spatial[i] - 1) * steps[i] - sum(pads[i]) + spread[i] * (kernel[i] - 1) + extra[i] + 1 for i in range(rank)
        )  # fmt: skip
    features = kernel_shape[1] * integer(groups, 1)
    result = (full[0], *out, features) if last else (full[0], features, *out)
    if not batched:
        result = result[1:]
    flops = 2 * full[0] * channels * numel(spatial) * kernel_shape[1] * numel(kernel)
    columns = kernel_shape[1] * numel(kernel) * numel(spatial)
    kernel_name = f"conv{max(rank, 2)}d_transpose"
    # The other way round it is the convolution whose gradient it computes.
    filters = Filters(features, channels, int(numel(kernel)), integer(groups, 1), int(numel(spatial)))
    name = f"conv_transpose{rank}d"
    return _with_bias(context, name, x, w, bias, result, flops, kernel_name, last, rank, columns, filters)


def _register(rank: int) -> None:
    def torch_conv(
        context: Context,
        input: Value,
        weight: Value,
        bias: Value = None,
        stride: Value = 1,
        padding: Value = 0,
        dilation: Value = 1,
        groups: Value = 1,
    ) -> Value:
        return convolve(context, input, weight, bias, stride, padding, dilation, groups, rank)

    def paddle_conv(
        context: Context,
        x: Value,
        weight: Value,
        bias: Value = None,
        stride: Value = 1,
        padding: Value = 0,
        dilation: Value = 1,
        groups: Value = 1,
        data_format: Value = None,
    ) -> Value:
        return convolve(context, x, weight, bias, stride, padding, dilation, groups, rank, data_format)

    def torch_transposed(
        context: Context,
        input: Value,
        weight: Value,
        bias: Value = None,
        stride: Value = 1,
        padding: Value = 0,
        output_padding: Value = 0,
        groups: Value = 1,
        dilation: Value = 1,
    ) -> Value:
        return convolve_transposed(
            context, input, weight, bias, stride, padding, output_padding, groups, dilation, rank
        )

    def paddle_transposed(
        context: Context,
        x: Value,
        weight: Value,
        bias: Value = None,
        stride: Value = 1,
        padding: Value = 0,
        output_padding: Value = 0,
        groups: Value = 1,
        dilation: Value = 1,
        data_format: Value = None,
        output_size: Value = None,
    ) -> Value:
        return convolve_transposed(
            context, x, weight, bias, stride, padding, output_padding, groups, dilation, rank, data_format, output_size
        )

    torch_conv.__name__ = paddle_conv.__name__ = f"conv{rank}d"
    torch_transposed.__name__ = paddle_transposed.__name__ = f"conv_transpose{rank}d"
    operator([f"torch.nn.functional.conv{rank}d", f"torch.conv{rank}d"], rename={})(torch_conv)
    operator([f"paddle.nn.functional.conv{rank}d"], rename={"input": "x"})(paddle_conv)
    operator([f"torch.nn.functional.conv_transpose{rank}d", f"torch.conv_transpose{rank}d"], rename={})(
        torch_transposed
    )
    operator([f"paddle.nn.functional.conv{rank}d_transpose"], rename={"input": "x"})(paddle_transposed)


for _rank in (1, 2, 3):
    _register(_rank)


@operator(["torchvision.ops.deform_conv2d", "paddle.vision.ops.deform_conv2d"], rename={"input": "x"})
def deform_conv2d(
    context: Context,
    x: Value,
    offset: Value,
    weight: Value,
    bias: Value = None,
    stride: Value = 1,
    padding: Value = 0,
    dilation: Value = 1,
    *args: Value,
    mask: Value = None,
    **kwargs: Value,
) -> Value:
    """Convolution at learned offsets; the gathered columns live while the kernel runs."""
    del args, kwargs
    engine = engine_of(context)
    a, o, w = tensor(context, x), tensor(context, offset), tensor(context, weight)
    kernel = (w.shape or ())[2:]
    steps, spread = repeat(stride, 2), repeat(dilation, 2)
    shape = a.shape or ()
    pads = paddings(padding, 2, shape[2:], kernel, steps, spread)
    out = tuple(window(shape[2 + i], kernel[i], steps[i], *pads[i], spread[i]) for i in range(2))
    features = (w.shape or ())[0]
    inputs = [a, o, w, *(t for t in (mask, bias) if isinstance(t, Tensor))]
    flops = 2 * shape[0] * features * numel(out) * (w.shape or ())[1] * numel(kernel)
    columns = 4 * shape[1] * numel(kernel) * numel(out) * min(shape[0], 32)
    return engine.apply(
        "deform_conv2d",
        inputs,
        (shape[0], features, *out),
        a.dtype,
        saved=inputs,
        flops=flops,
        matmul=True,
        workspace_bytes=columns,
        kernel="deformable_conv",
    )
