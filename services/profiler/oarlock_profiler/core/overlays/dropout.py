"""The dropout family. Masks are one byte an element on a GPU; PyTorch's CPU build multiplies by a float mask."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.engine.shapes import numel
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Context, Value
from oarlock_profiler.core.overlays.calling import engine_of, integers, operator, tensor

LIBRARIES = ("torch", "paddle")


def dropout(
    context: Context, input: Value, p: Value, training: bool, inplace: bool = False, axis: Value = None
) -> Tensor:
    """Random zeros; the tensor itself when nothing is dropped."""
    engine = engine_of(context)
    x = tensor(context, input)
    nothing = isinstance(p, (int, float)) and p == 0
    if not training or nothing:
        return x
    if axis is not None:
        kept = set(integers(axis))
        mask_shape = tuple(s if i in kept else 1 for i, s in enumerate(x.shape or ()))
        return _noise(context, x, mask_shape, inplace)
    count = numel(x.shape or ())
    if engine.framework == "torch" and (engine.kernels == "cpu" or inplace):
        return engine.apply("dropout", [x], x.shape or (), x.dtype, saved=[x.nbytes], inplace=x if inplace else None)
    return engine.apply("dropout", [x], x.shape or (), x.dtype, saved=[count])


def _noise(context: Context, x: Tensor, mask_shape: tuple[int, ...], inplace: bool) -> Tensor:
    """Multiplication by a smaller mask (whole channels are dropped)."""
    engine = engine_of(context)
    if engine.framework == "paddle":
        x = engine.apply("scale", [x], x.shape or (), x.dtype)
    noise = engine.tensor(mask_shape, x.dtype, device=x.device, kind="temporary", op="bernoulli")
    saved: list[Any] = [noise, x] if engine.framework == "paddle" else [noise]
    return engine.apply(
        "multiply",
        [x, noise],
        x.shape or (),
        x.dtype,
        saved=saved,
        inplace=x if inplace else None,
        grad=("fresh", "none"),
    )


def feature_dropout(context: Context, input: Value, p: Value, training: bool, inplace: bool, rank: int) -> Tensor:
    """Whole channels dropped."""
    x = tensor(context, input)
    if not training or (isinstance(p, (int, float)) and p == 0):
        return x
    shape = x.shape or ()
    lead = len(shape) - rank
    return _noise(context, x, (*shape[:lead], *(1,) * rank), inplace)


@operator(["torch.nn.functional.dropout", "torch.dropout"], rename={"train": "training"})
def torch_dropout(
    context: Context, input: Value, p: Value = 0.5, training: Value = True, inplace: Value = False
) -> Value:
    """Dropout."""
    return dropout(context, input, p, training is not False, inplace is True)


@operator(["paddle.nn.functional.dropout", "paddle.fluid.layers.dropout"], rename={"input": "x", "dropout_prob": "p"})
def paddle_dropout(
    context: Context,
    x: Value,
    p: Value = 0.5,
    axis: Value = None,
    training: Value = True,
    *args: Value,
    **kwargs: Value,
) -> Value:
    """Dropout, of elements or along axes."""
    del args, kwargs
    return dropout(context, x, p, training is not False, False, axis)


def _register(rank: int) -> None:
    def call(
        context: Context, x: Value, p: Value = 0.5, training: Value = True, inplace: Value = False, **kwargs: Value
    ) -> Value:
        del kwargs
        return feature_dropout(context, x, p, training is not False, inplace is True, rank)

    call.__name__ = f"dropout{rank}d"
    operator([f"{f}.nn.functional.dropout{rank}d" for f in ("torch", "paddle")], rename={"input": "x"})(call)


for _rank in (1, 2, 3):
    _register(_rank)


@operator(
    [*(f"{f}.nn.functional.{n}" for f in ("torch", "paddle") for n in ("alpha_dropout", "feature_alpha_dropout"))],
    rename={"input": "x"},
)
def alpha_dropout(
    context: Context, x: Value, p: Value = 0.5, training: Value = True, *args: Value, **kwargs: Value
) -> Value:
    """Dropout that keeps mean and variance."""
    del args, kwargs
    a = tensor(context, x)
    if training is False or p == 0:
        return a
    return engine_of(context).apply("dropout", [a], a.shape or (), a.dtype, saved=[a.nbytes])
