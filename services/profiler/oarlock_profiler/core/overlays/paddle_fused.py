"""PaddlePaddle's fused layers and small in-place helpers, as the operators they stand for."""

from __future__ import annotations

from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.interpreter.values import Context, Value
from oarlock_profiler.core.overlays import nn_transformer_paddle  # noqa: F401 - its layers are built by name
from oarlock_profiler.core.overlays.calling import engine_of, operator, tensor
from oarlock_profiler.core.overlays.dropout import dropout
from oarlock_profiler.core.overlays.elementwise import binary
from oarlock_profiler.core.overlays.layer_class import layer
from oarlock_profiler.core.overlays.linear_algebra import linear
from oarlock_profiler.core.overlays.nn_layers import LINEAR
from oarlock_profiler.core.overlays.registry import get, register
from oarlock_profiler.core.overlays.transformer_parts import build

LIBRARIES = ("paddle",)


@operator(["paddle.increment", "paddle.tensor.increment", "paddle.Tensor.increment"], rename={})
def increment(context: Context, x: Value, value: Value = 1.0, **kwargs: Value) -> Value:
    """One more, in place."""
    return binary(context, "add", x, value, inplace=True)


@operator(
    ["paddle.incubate.nn.functional.fused_matmul_bias", "paddle.incubate.nn.functional.fused_linear_activation"],
    rename={"input": "x"},
)
def fused_matmul_bias(context: Context, x: Value, y: Value, bias: Value = None, *args: Value, **kwargs: Value) -> Value:
    """``x · y + b`` in one kernel."""
    return linear(context, x, y, bias, transposed=False)


@operator(["paddle.incubate.nn.functional.fused_dropout_add"], rename={})
def fused_dropout_add(
    context: Context, x: Value, y: Value, p: Value = 0.5, training: Value = True, *args: Value, **kwargs: Value
) -> Value:
    """``dropout(x) + y``; keeps a seed instead of a mask."""
    a, b = tensor(context, x), tensor(context, y)
    if training is False or p == 0:
        return binary(context, "add", a, b)
    return engine_of(context).apply(
        "fused_dropout_add", [a, b], a.shape or (), a.dtype, saved=[16], grad=("fresh", "alias")
    )


def _dropout_add_init(context: Context, self: LayerInstance, p: Value = 0.5, *args: Value, **kwargs: Value) -> None:
    self.attrs["p"] = p


_DROPOUT_ADD = layer(
    "paddle", "FusedDropoutAdd", _dropout_add_init,
    lambda context, self, x, y: fused_dropout_add(context, x, y, self.attrs["p"], self.training),
)  # fmt: skip
for _name in ("paddle.incubate.nn.FusedDropoutAdd", "paddle.incubate.nn.layer.fused_dropout_add.FusedDropoutAdd"):
    register(_name, _DROPOUT_ADD)
for _name in ("paddle.incubate.nn.FusedLinear", "paddle.incubate.nn.layer.fused_linear.FusedLinear"):
    register(_name, LINEAR["paddle"])
register("paddle.incubate.nn.FusedMultiHeadAttention", get("paddle.nn.MultiHeadAttention"))


def _fused_encoder_init(
    context: Context,
    self: LayerInstance,
    d_model: Value,
    nhead: Value,
    dim_feedforward: Value,
    dropout_rate: Value = 0.1,
    activation: Value = "relu",
    attn_dropout_rate: Value = None,
    act_dropout_rate: Value = None,
    normalize_before: Value = False,
    *args: Value,
    **kwargs: Value,
) -> None:
    self.attrs["inner"] = build(
        context,
        "paddle.nn.TransformerEncoderLayer",
        d_model,
        nhead,
        dim_feedforward,
        dropout_rate,
        activation,
        attn_dropout_rate,
        act_dropout_rate,
        normalize_before,
    )


def _fused_encoder(
    context: Context, self: LayerInstance, src: Value, src_mask: Value = None, cache: Value = None
) -> Value:
    return context.call(self.attrs["inner"], (src, src_mask))


register(
    "paddle.incubate.nn.FusedTransformerEncoderLayer",
    layer("paddle", "FusedTransformerEncoderLayer", _fused_encoder_init, _fused_encoder),
)


@operator(["paddle.incubate.nn.functional.fused_bias_dropout_residual_layer_norm"], rename={})
def fused_residual_norm(
    context: Context,
    x: Value,
    residual: Value,
    bias: Value = None,
    ln_scale: Value = None,
    ln_bias: Value = None,
    dropout_rate: Value = 0.5,
    *args: Value,
    training: Value = True,
    **kwargs: Value,
) -> Value:
    """``layer_norm(residual + dropout(x + bias))``."""
    a = tensor(context, x)
    if bias is not None:
        a = binary(context, "add", a, bias)
    summed = binary(context, "add", dropout(context, a, dropout_rate, training is not False), residual)
    return get("paddle.nn.functional.layer_norm").call(context, summed, [(a.shape or (1,))[-1]], ln_scale, ln_bias)
