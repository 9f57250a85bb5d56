"""Scaled dot-product attention: fused on GPUs, written out on CPUs where dropout or a mask asks for it."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.engine.shapes import ShapeError, broadcast, numel
from oarlock_profiler.core.engine.strides import packed_like
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Context, Value
from oarlock_profiler.core.overlays.calling import engine_of, operator, tensor
from oarlock_profiler.core.overlays.dropout import dropout
from oarlock_profiler.core.overlays.elementwise import binary
from oarlock_profiler.core.overlays.linear_algebra import matmul, paddle_product
from oarlock_profiler.core.overlays.shaping import permute, strides_of, transpose

LIBRARIES = ("torch", "paddle")


def fused(
    context: Context, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, heads_axis: int
) -> Tensor:
    """Flash or memory-efficient attention: keeps q, k, v, the output and one log-sum-exp a row.

    FLOPs as ``FlopCounterMode`` counts them: two products forward, five backward.
    """
    engine = engine_of(context)
    shape, keys = q.shape or (), k.shape or ()
    rows = -2 if heads_axis == -3 else -3
    queries, length = shape[rows], keys[rows]
    groups = numel(shape) // (queries * shape[-1])
    width = (v.shape or ())[-1]
    flops = 2 * groups * queries * length * (shape[-1] + width)
    del causal
    inputs = [q, k, v]
    saved: list[Any] = [q, k, v, "output", 4 * groups * queries]
    if mask is not None:
        saved.append(mask)
    return engine.apply(
        "scaled_dot_product_attention",
        inputs,
        (*shape[:-1], width),
        None if engine.autocast else q.dtype,
        saved=saved,
        flops=flops,
        backward_flops=flops * 5 // 2,
        matmul=True,
        kernel="flash_attn",
    )


def written_out(
    context: Context, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: Value, causal: bool, training: bool
) -> Tensor:
    """Scores, softmax, dropout and product as operators of their own; q, k, v are ``(…, rows, width)``."""
    engine = engine_of(context)
    scaled = binary(context, "multiply", q, 0.125)
    if engine.framework == "torch":
        turned = binary(context, "multiply", transpose(context, k, -2, -1), 0.125)
        scores = matmul(context, scaled, turned)
    else:
        scores = paddle_product(context, scaled, k, False, True)
    if mask is not None or causal:
        addend = (
            mask
            if mask is not None
            else engine.tensor((scores.shape or ())[-2:], scores.dtype, device=q.device, op="mask")
        )
        scores = binary(context, "add", scores, addend)
    weights = engine.apply(
        "softmax",
        [scores],
        scores.shape or (),
        None if engine.autocast else scores.dtype,
        saved=["output"],
        flops=5 * numel(scores.shape or ()),
    )
    del scores
    weights = dropout(context, weights, p, training)
    return matmul(context, weights, v)


@operator(["torch.nn.functional.scaled_dot_product_attention"], rename={})
def torch_attention(
    context: Context,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value = None,
    dropout_p: Value = 0.0,
    is_causal: Value = False,
    scale: Value = None,
    enable_gqa: Value = False,
) -> Value:
    """Attention over ``(…, heads, rows, width)``."""
    del scale
    engine = engine_of(context)
    q, k, v = tensor(context, query), tensor(context, key), tensor(context, value)
    if (q.shape or ())[-1] != (k.shape or ())[-1]:
        raise ShapeError(f"attention of queries {list(q.shape or ())} over keys {list(k.shape or ())}")
    mask = tensor(context, attn_mask) if attn_mask is not None else None
    if enable_gqa is not True:
        broadcast((q.shape or ())[:-2], (k.shape or ())[:-2])
    drops = not (isinstance(dropout_p, (int, float)) and dropout_p == 0)
    if engine.kernels == "cpu" and (drops or len(q.shape or ()) != 4 or (mask is not None and mask.requires_grad)):
        return written_out(context, q, k, v, mask, dropout_p, is_causal is True, drops)
    if q.device.startswith("gpu") and engine.autocast is None and q.dtype == "float64":
        return written_out(context, q, k, v, mask, dropout_p, is_causal is True, drops)
    out = fused(context, q, k, v, mask, is_causal is True, -3)
    # The kernels allocate the output like the queries, so that joining heads afterwards is usually a view.
    out.strides = packed_like(out.shape or (), strides_of(q))
    return out


@operator(
    [
        "paddle.nn.functional.scaled_dot_product_attention",
        "paddle.nn.functional.scaled_dot_product_attention_",
        "paddle.nn.functional.flash_attention.scaled_dot_product_attention",
    ],
    rename={},
)
def paddle_attention(
    context: Context,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value = None,
    dropout_p: Value = 0.0,
    is_causal: Value = False,
    training: Value = True,
    *args: Value,
    **kwargs: Value,
) -> Value:
    """Attention over ``(batch, rows, heads, width)``."""
    del args, kwargs
    engine = engine_of(context)
    q, k, v = tensor(context, query), tensor(context, key), tensor(context, value)
    mask = tensor(context, attn_mask) if attn_mask is not None else None
    if engine.kernels == "cpu":
        turned = [permute(context, t, [0, 2, 1, 3]) for t in (q, k, v)]
        out = written_out(
            context, turned[0], turned[1], turned[2], mask, dropout_p, is_causal is True, training is not False
        )
        return permute(context, out, [0, 2, 1, 3])
    return fused(context, q, k, v, mask, is_causal is True, -2)


@operator(
    [
        "paddle.nn.functional.flash_attention.flash_attention",
        "paddle.incubate.nn.memory_efficient_attention.memory_efficient_attention",
        "paddle.nn.functional.flash_attention",
    ],
    rename={"q": "query", "k": "key", "v": "value"},
)
def paddle_flash(
    context: Context,
    query: Value,
    key: Value,
    value: Value,
    dropout: Value = 0.0,
    causal: Value = False,
    return_softmax: Value = False,
    *args: Value,
    **kwargs: Value,
) -> Value:
    """Flash attention; gives ``(out, softmax or None)``."""
    del dropout, return_softmax, args, kwargs
    q, k, v = tensor(context, query), tensor(context, key), tensor(context, value)
    return (fused(context, q, k, v, None, causal is True, -2), None)


@operator(["paddle.incubate.softmax_mask_fuse_upper_triangle", "paddle.incubate.softmax_mask_fuse"], rename={})
def softmax_mask_fuse(context: Context, x: Value, mask: Value = None) -> Value:
    """Softmax with a causal or given mask in one kernel; keeps the output."""
    del mask
    a = tensor(context, x)
    return engine_of(context).apply(
        "softmax", [a], a.shape or (), a.dtype, saved=["output"], kernel="fused_softmax_mask"
    )


@operator(["paddle.incubate.nn.functional.fused_rotary_position_embedding"], rename={})
def fused_rotary(
    context: Context,
    q: Value,
    k: Value = None,
    v: Value = None,
    sin: Value = None,
    cos: Value = None,
    *args: Value,
    **kwargs: Value,
) -> Value:
    """Rotary position embedding of queries and keys; keeps the tables only."""
    del args, kwargs
    engine = engine_of(context)
    tables = [t for t in (sin, cos) if isinstance(t, Tensor)]
    made: list[Value] = []
    for part in (q, k, v):
        if part is None:
            made.append(None)
            continue
        x = tensor(context, part)
        made.append(engine.apply("fused_rotary_position_embedding", [x], x.shape or (), x.dtype, saved=tables))
    return tuple(made)
