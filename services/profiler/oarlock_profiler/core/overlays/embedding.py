"""Look-up tables."""

from __future__ import annotations

from oarlock_profiler.core.interpreter.values import Context, Value
from oarlock_profiler.core.overlays.calling import engine_of, operator, tensor

LIBRARIES = ("torch", "paddle")


@operator(["torch.nn.functional.embedding", "paddle.nn.functional.embedding"], rename={"x": "input"})
def embedding(context: Context, input: Value, weight: Value, *args: Value, **kwargs: Value) -> Value:
    """Rows of ``weight`` by index; keeps the indices. The weight's gradient is dense."""
    del args, kwargs
    idx, w = tensor(context, input), tensor(context, weight)
    return engine_of(context).apply(
        "embedding", [idx, w], (*(idx.shape or ()), (w.shape or ())[-1]), w.dtype, saved=[idx], grad=("none", "fresh")
    )


@operator(["torch.nn.functional.embedding_bag"], rename={})
def embedding_bag(
    context: Context, input: Value, weight: Value, offsets: Value = None, *args: Value, **kwargs: Value
) -> Value:
    """Sums or means of rows per bag; keeps indices, offsets and which bag each index is in."""
    del args, kwargs
    idx, w = tensor(context, input), tensor(context, weight)
    shape = idx.shape or ()
    bags = tensor(context, offsets).shape or () if offsets is not None else shape[:1]
    saved = [idx, 8 * (shape[0] if shape else 1) * (shape[1] if len(shape) > 1 else 1), 8 * (bags[0] if bags else 1)]
    return engine_of(context).apply(
        "embedding_bag",
        [idx, w],
        (bags[0] if bags else 1, (w.shape or ())[-1]),
        w.dtype,
        saved=saved,
        grad=("none", "fresh"),
    )
