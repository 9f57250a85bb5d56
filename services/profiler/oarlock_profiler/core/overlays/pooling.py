"""Pooling: maximum, average, adaptive, global."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.engine.shapes import ShapeError, numel, window
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Context, Value
from oarlock_profiler.core.overlays.calling import engine_of, integer, integers, operator, repeat, tensor
from oarlock_profiler.core.overlays.convolution import channels_last, paddings

LIBRARIES = ("torch", "paddle")


def _split(x: Tensor, rank: int, last: bool) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Leading, spatial and trailing sizes."""
    shape = x.shape or ()
    if len(shape) not in (rank + 1, rank + 2):
        raise ShapeError(f"pooling over {rank} dimensions of a tensor of {len(shape)}")
    return (shape[: -rank - 1], shape[-rank - 1 : -1], shape[-1:]) if last else (shape[:-rank], shape[-rank:], ())


def pool(
    context: Context,
    input: Value,
    kind: str,
    rank: int,
    kernel: Value,
    stride: Value = None,
    padding: Value = 0,
    dilation: Value = 1,
    ceil: Value = False,
    indices: Value = False,
    data_format: Value = None,
) -> Value:
    """Max or average pooling with a window."""
    engine = engine_of(context)
    x = tensor(context, input)
    last = channels_last(data_format)
    lead, spatial, trail = _split(x, rank, last)
    size = repeat(kernel, rank)
    steps = repeat(stride, rank) if stride not in (None, [], ()) else size
    spread = repeat(dilation, rank)
    pads = paddings(padding, rank, spatial, size, steps, spread)
    out = tuple(window(spatial[i], size[i], steps[i], *pads[i], spread[i], ceil is True) for i in range(rank))
    return _finish(context, engine.framework, x, kind, rank, (*lead, *out, *trail), indices is True)


def _finish(
    context: Context, framework: str, x: Tensor, kind: str, rank: int, shape: tuple[int, ...], indices: bool
) -> Value:
    engine = engine_of(context)
    name = f"{kind}_pool{rank}d"
    kernel = f"pool{max(rank, 2)}d"
    if kind == "max" and (framework == "torch" or indices):
        index_type = "int64" if framework == "torch" else "int32"
        if framework == "torch":
            made = engine.apply_multi(
                name,
                [x],
                [(shape, x.dtype), (shape, index_type)],
                saved=[x, ("output", 1)],
                kernel="max_pool2d_with_index",
            )
        else:
            made = engine.apply_multi(
                name,
                [x],
                [(shape, x.dtype), (shape, index_type)],
                saved=[x, ("output", 1)],
                kernel="max_pool2d_with_index",
            )
        return tuple(made) if indices else made[0]
    saved: list[Any] = [x] if framework == "torch" else [x, "output"]
    return engine.apply(name, [x], shape, x.dtype, saved=saved, kernel=kernel)


def adaptive(
    context: Context,
    input: Value,
    kind: str,
    rank: int,
    output: Value,
    indices: Value = False,
    data_format: Value = None,
) -> Value:
    """Pooling to a given output size."""
    engine = engine_of(context)
    x = tensor(context, input)
    lead, spatial, trail = _split(x, rank, channels_last(data_format))
    wanted = list(output) if isinstance(output, (list, tuple)) else [output]
    wanted = wanted * rank if len(wanted) == 1 else wanted
    out = tuple(spatial[i] if wanted[i] is None else integer(wanted[i]) for i in range(rank))
    shape = (*lead, *out, *trail)
    torch = engine.framework == "torch"
    if kind == "avg" and torch and numel(out) == 1 and rank > 1:
        return engine.apply("mean", [x], shape, x.dtype)
    if kind == "avg":
        return engine.apply(
            f"adaptive_avg_pool{rank}d",
            [x],
            shape,
            x.dtype,
            saved=[x] if torch else [x, "output"],
            kernel=f"pool{max(rank, 2)}d",
        )
    return _adaptive_max(context, x, rank, shape, indices is True)


def _adaptive_max(context: Context, x: Tensor, rank: int, shape: tuple[int, ...], indices: bool) -> Value:
    engine = engine_of(context)
    index_type = "int64" if engine.framework == "torch" else "int32"
    made = engine.apply_multi(
        f"adaptive_max_pool{rank}d",
        [x],
        [(shape, x.dtype), (shape, index_type)],
        saved=[x, ("output", 1)],
        kernel="max_pool2d_with_index",
    )
    return tuple(made) if indices else made[0]


def _register(rank: int) -> None:
    def torch_max(
        context: Context,
        input: Value,
        kernel_size: Value,
        stride: Value = None,
        padding: Value = 0,
        dilation: Value = 1,
        ceil_mode: Value = False,
        return_indices: Value = False,
    ) -> Value:
        return pool(context, input, "max", rank, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

    def paddle_max(
        context: Context,
        x: Value,
        kernel_size: Value,
        stride: Value = None,
        padding: Value = 0,
        ceil_mode: Value = False,
        return_mask: Value = False,
        data_format: Value = None,
    ) -> Value:
        if isinstance(ceil_mode, bool) is False:
            ceil_mode = False
        return pool(context, x, "max", rank, kernel_size, stride, padding, 1, ceil_mode, return_mask, data_format)

    def paddle_max_first(
        context: Context,
        x: Value,
        kernel_size: Value,
        stride: Value = None,
        padding: Value = 0,
        return_mask: Value = False,
        ceil_mode: Value = False,
        data_format: Value = None,
    ) -> Value:
        return pool(context, x, "max", rank, kernel_size, stride, padding, 1, ceil_mode, return_mask, data_format)

    def average(
        context: Context,
        x: Value,
        kernel_size: Value,
        stride: Value = None,
        padding: Value = 0,
        ceil_mode: Value = False,
        *args: Value,
        data_format: Value = None,
        **kwargs: Value,
    ) -> Value:
        del args, kwargs
        return pool(context, x, "avg", rank, kernel_size, stride, padding, 1, ceil_mode, False, data_format)

    def paddle_average_1d(
        context: Context,
        x: Value,
        kernel_size: Value,
        stride: Value = None,
        padding: Value = 0,
        exclusive: Value = True,
        ceil_mode: Value = False,
    ) -> Value:
        del exclusive
        return pool(context, x, "avg", rank, kernel_size, stride, padding, 1, ceil_mode)

    def adaptive_average(context: Context, x: Value, output_size: Value, data_format: Value = None) -> Value:
        return adaptive(context, x, "avg", rank, output_size, False, data_format)

    def adaptive_maximum(context: Context, x: Value, output_size: Value, return_indices: Value = False) -> Value:
        return adaptive(context, x, "max", rank, output_size, return_indices)

    for fn in (torch_max, paddle_max, paddle_max_first):
        fn.__name__ = f"max_pool{rank}d"
    average.__name__ = paddle_average_1d.__name__ = f"avg_pool{rank}d"
    adaptive_average.__name__, adaptive_maximum.__name__ = f"adaptive_avg_pool{rank}d", f"adaptive_max_pool{rank}d"
    operator(
        [
            f"torch.nn.functional.max_pool{rank}d",
            f"torch.max_pool{rank}d",
            f"torch.nn.functional.max_pool{rank}d_with_indices",
        ],
        rename={},
    )(torch_max)
    operator([f"paddle.nn.functional.max_pool{rank}d"], rename={"input": "x"})(
        paddle_max_first if rank == 1 else paddle_max
    )
    operator([f"torch.nn.functional.avg_pool{rank}d", f"torch.avg_pool{rank}d"], rename={"input": "x"})(average)
    operator([f"paddle.nn.functional.avg_pool{rank}d"], rename={"input": "x"})(
        paddle_average_1d if rank == 1 else average
    )
    operator(
        [f"{p}.adaptive_avg_pool{rank}d" for p in ("torch.nn.functional", "paddle.nn.functional", "torch")],
        rename={"input": "x"},
    )(adaptive_average)
    operator(
        [f"{p}.adaptive_max_pool{rank}d" for p in ("torch.nn.functional", "paddle.nn.functional", "torch")],
        rename={"input": "x", "return_mask": "return_indices"},
    )(adaptive_maximum)


for _rank in (1, 2, 3):
    _register(_rank)


@operator([f"{f}.nn.functional.lp_pool{r}d" for f in ("torch", "paddle") for r in (1, 2, 3)], rename={"x": "input"})
def lp_pool(
    context: Context,
    input: Value,
    norm_type: Value,
    kernel_size: Value,
    stride: Value = None,
    ceil_mode: Value = False,
    **kwargs: Value,
) -> Value:
    """Power-average pooling."""
    del norm_type, kwargs
    x = tensor(context, input)
    return pool(context, x, "avg", len(x.shape or ()) - 2, kernel_size, stride, 0, 1, ceil_mode)


@operator([f"{f}.nn.functional.max_unpool{r}d" for f in ("torch", "paddle") for r in (1, 2, 3)], rename={"input": "x"})
def max_unpool(
    context: Context,
    x: Value,
    indices: Value,
    kernel_size: Value,
    stride: Value = None,
    padding: Value = 0,
    output_size: Value = None,
    **kwargs: Value,
) -> Value:
    """Values put back where a max pooling took them from."""
    del kwargs
    a, idx = tensor(context, x), tensor(context, indices)
    shape = a.shape or ()
    rank = len(shape) - 2
    kernel = repeat(kernel_size, rank)
    steps = repeat(stride, rank) if stride is not None else kernel
    pads = repeat(padding, rank)
    out = (
        integers(output_size)[-rank:]
        if output_size is not None
        else tuple((shape[2 + i] - 1) * steps[i] - 2 * pads[i] + kernel[i] for i in range(rank))
    )
    return engine_of(context).apply("unpool", [a], (*shape[:2], *out), a.dtype, saved=[idx])
