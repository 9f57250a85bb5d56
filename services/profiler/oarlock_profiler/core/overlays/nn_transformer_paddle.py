"""PaddlePaddle's multi-head attention and transformer layers, operator by operator as it runs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Context, Instance, Native, Value
from oarlock_profiler.core.overlays import nn_containers, nn_layers, nn_norms  # noqa: F401 - built by name below
from oarlock_profiler.core.overlays.calling import engine_of, integer, tensor
from oarlock_profiler.core.overlays.dropout import dropout
from oarlock_profiler.core.overlays.elementwise import binary, cast
from oarlock_profiler.core.overlays.layer_class import demanded, layer
from oarlock_profiler.core.overlays.linear_algebra import matmul, paddle_product
from oarlock_profiler.core.overlays.registry import get, native_class, register
from oarlock_profiler.core.overlays.shaping import (
    permute,
    reshaped,
)
from oarlock_profiler.core.overlays.transformer_parts import (
    MODEL_ORDER,
    accepting,
    activation_of,
    build,
    call,
    square_mask,
    stack_init,
)

LIBRARIES = ("torch", "paddle")


def _paddle_mha_init(
    context: Context,
    self: LayerInstance,
    embed_dim: Value,
    num_heads: Value,
    dropout: Value = 0.0,
    kdim: Value = None,
    vdim: Value = None,
    need_weights: Value = False,
    weight_attr: Value = None,
    bias_attr: Value = None,
) -> None:
    width = integer(embed_dim)
    self.attrs.update(
        embed_dim=width,
        num_heads=integer(num_heads),
        head_dim=width // integer(num_heads),
        dropout=dropout,
        need_weights=need_weights,
        kdim=kdim,
        vdim=vdim,
    )
    for name, inner in (
        ("q_proj", width),
        ("k_proj", integer(kdim, width)),
        ("v_proj", integer(vdim, width)),
        ("out_proj", width),
    ):
        self.attrs[name] = build(context, "paddle.nn.Linear", inner, width, weight_attr, bias_attr)


def _heads(context: Context, self: LayerInstance, x: Value) -> Tensor:
    shape = x.shape or (1, 1, 1)
    split_heads = reshaped(context, x, (shape[0], shape[1], self.attrs["num_heads"], self.attrs["head_dim"]))
    turned: Tensor = permute(context, split_heads, [0, 2, 1, 3])
    return turned


def _paddle_mask(context: Context, mask: Value, dtype: str) -> Value:
    if not isinstance(mask, Tensor) or mask.dtype not in ("bool", "int64", "int32"):
        return mask
    changed = cast(context, mask, dtype)
    return binary(context, "multiply", binary(context, "subtract", changed, 1.0), 1e9)


def _paddle_mha(
    context: Context,
    self: LayerInstance,
    query: Value,
    key: Value = None,
    value: Value = None,
    attn_mask: Value = None,
    cache: Value = None,
) -> Value:
    q_in = demanded(context, query, (128, self.attrs["embed_dim"]), "the input of an attention")
    k_in = q_in if key is None or key is query else tensor(context, key)
    v_in = q_in if value is None or value is query else tensor(context, value)
    q = _heads(context, self, call(context, self, "q_proj", q_in))
    fixed = isinstance(cache, Instance) and cache.cls.name == "StaticCache"
    if fixed:
        k, v = cache.attrs["k"], cache.attrs["v"]
    else:
        k, v = (
            _heads(context, self, call(context, self, "k_proj", k_in)),
            _heads(context, self, call(context, self, "v_proj", v_in)),
        )
    if isinstance(cache, Instance) and not fixed:
        join = get("paddle.concat")
        k, v = join.call(context, [cache.attrs["k"], k], 2), join.call(context, [cache.attrs["v"], v], 2)
        cache = _cache(context, None, k, v)
    scores: Value = paddle_product(context, binary(context, "multiply", q, 0.125), k, False, True)
    if attn_mask is not None:
        scores = binary(context, "add", scores, _paddle_mask(context, attn_mask, scores.dtype))
    weights = get("paddle.nn.functional.softmax").call(context, scores)
    del scores
    if self.attrs["dropout"]:
        weights = dropout(context, weights, self.attrs["dropout"], self.training)
    out = permute(context, matmul(context, weights, v), [0, 2, 1, 3])
    shape = out.shape or (1, 1, 1, 1)
    out = call(context, self, "out_proj", reshaped(context, out, (shape[0], shape[1], shape[2] * shape[3])))
    outs = [out]
    if self.attrs["need_weights"] is True:
        outs.append(weights)
    if cache is not None:
        outs.append(cache)
    return out if len(outs) == 1 else tuple(outs)


_MHA = layer("paddle", "MultiHeadAttention", _paddle_mha_init, _paddle_mha)


_CACHES = {name: native_class(f"paddle.nn.MultiHeadAttention.{name}") for name in ("Cache", "StaticCache")}


def _cache(context: Context, cls: Value, k: Value = None, v: Value = None, kind: str = "Cache") -> Instance:
    del context, cls
    return Instance(_CACHES[kind], {"k": k, "v": v})


for _name, _cls in _CACHES.items():
    _cls.namespace["__init__"] = Native("Cache", lambda context, self, k=None, v=None: self.attrs.update(k=k, v=v))
    _MHA.namespace[_name] = _cls
    register(f"paddle.nn.MultiHeadAttention.{_name}", _cls)


def _gen_cache(context: Context, self: LayerInstance, key: Value, value: Value = None, type: Value = None) -> Value:
    if type is _CACHES["StaticCache"]:
        k = _heads(context, self, call(context, self, "k_proj", key))
        return _cache(
            context,
            None,
            k,
            _heads(context, self, call(context, self, "v_proj", value if value is not None else key)),
            "StaticCache",
        )
    if value is not None:
        return _cache(context, None, key, value)
    shape = ((key.shape or (1,))[0], self.attrs["num_heads"], 0, self.attrs["head_dim"])
    return _cache(context, None, engine_of(context).tensor(shape), engine_of(context).tensor(shape))


_MHA.namespace["gen_cache"] = Native("gen_cache", _gen_cache)


def _each(attr: Value, count: int) -> Sequence[Value]:
    return list(attr) if isinstance(attr, (list, tuple)) else [attr] * count


_PADDLE_ORDER = (
    "dim_feedforward",
    "dropout",
    "activation",
    "attn_dropout",
    "act_dropout",
    "normalize_before",
    "weight_attr",
    "bias_attr",
    "layer_norm_eps",
)


def _paddle_layer_init(norms: int) -> Any:
    def init(
        context: Context, self: LayerInstance, d_model: Value, nhead: Value, *args: Value, **kwargs: Value
    ) -> None:
        given = {**dict(zip(_PADDLE_ORDER, args, strict=False)), **kwargs}
        p = given.get("dropout", 0.1)
        attention = p if given.get("attn_dropout") is None else given["attn_dropout"]
        inside = p if given.get("act_dropout") is None else given["act_dropout"]
        feedforward = given.get("dim_feedforward", 2048)
        weights, biases = _each(given.get("weight_attr"), norms), _each(given.get("bias_attr"), norms)
        self.attrs["normalize_before"] = given.get("normalize_before") is True
        self.attrs["self_attn"] = build(
            context,
            "paddle.nn.MultiHeadAttention",
            d_model,
            nhead,
            attention,
            weight_attr=weights[0],
            bias_attr=biases[0],
        )
        if norms == 3:
            self.attrs["cross_attn"] = build(
                context,
                "paddle.nn.MultiHeadAttention",
                d_model,
                nhead,
                attention,
                weight_attr=weights[1],
                bias_attr=biases[1],
            )
        self.attrs["linear1"] = build(context, "paddle.nn.Linear", d_model, feedforward, weights[-1], biases[-1])
        self.attrs["dropout"] = build(context, "paddle.nn.Dropout", inside)
        self.attrs["linear2"] = build(context, "paddle.nn.Linear", feedforward, d_model, weights[-1], biases[-1])
        for number in range(1, norms + 1):
            self.attrs[f"norm{number}"] = build(context, "paddle.nn.LayerNorm", d_model)
        for number in range(1, norms + 1):
            self.attrs[f"dropout{number}"] = build(context, "paddle.nn.Dropout", p)
        self.attrs["activation"] = activation_of(context, given.get("activation", "relu"))

    return init


def _cached(result: Value) -> tuple[Value, Value]:
    return (result[0], result[-1]) if isinstance(result, tuple) else (result, None)


def _paddle_block(context: Context, self: LayerInstance, x: Value, number: int, run: Any) -> tuple[Value, Value]:
    """Residual, normalisation before or after, dropout: one of the layer's parts."""
    residual = x
    first = self.attrs["normalize_before"]
    if first:
        x = call(context, self, f"norm{number}", x)
    made, extra = _cached(run(x))
    del x
    made = binary(context, "add", residual, call(context, self, f"dropout{number}", made))
    del residual
    if not first:
        made = call(context, self, f"norm{number}", made)
    return made, extra


def _paddle_feed_forward(context: Context, self: LayerInstance, x: Value) -> Value:
    for name in ("linear1", "activation", "dropout", "linear2"):
        x = call(context, self, name, x)
    return x


def _paddle_encoder_layer(
    context: Context, self: LayerInstance, src: Value, src_mask: Value = None, cache: Value = None
) -> Value:
    mask = _paddle_mask(context, src_mask, "float32")
    more = () if cache is None else (cache,)
    x, kept = _paddle_block(
        context, self, src, 1, lambda h: context.call(self.attrs["self_attn"], (h, h, h, mask, *more))
    )
    x, _ = _paddle_block(context, self, x, 2, lambda h: _paddle_feed_forward(context, self, h))
    return x if cache is None else (x, kept)


def _paddle_decoder_layer(
    context: Context,
    self: LayerInstance,
    tgt: Value,
    memory: Value,
    tgt_mask: Value = None,
    memory_mask: Value = None,
    cache: Value = None,
) -> Value:
    mask, other = _paddle_mask(context, tgt_mask, "float32"), _paddle_mask(context, memory_mask, "float32")
    own = () if cache is None else (cache[0],)
    cross = () if cache is None else (cache[1],)
    x, kept = _paddle_block(
        context, self, tgt, 1, lambda h: context.call(self.attrs["self_attn"], (h, h, h, mask, *own))
    )
    x, static = _paddle_block(
        context, self, x, 2, lambda h: context.call(self.attrs["cross_attn"], (h, memory, memory, other, *cross))
    )
    x, _ = _paddle_block(context, self, x, 3, lambda h: _paddle_feed_forward(context, self, h))
    return x if cache is None else (x, (kept, static))


_ENCODER_LAYER = layer("paddle", "TransformerEncoderLayer", _paddle_layer_init(2), _paddle_encoder_layer)


_DECODER_LAYER = layer("paddle", "TransformerDecoderLayer", _paddle_layer_init(3), _paddle_decoder_layer)


_ENCODER_LAYER.namespace["gen_cache"] = Native(
    "gen_cache", lambda context, self, src: _gen_cache(context, self.attrs["self_attn"], src)
)


_DECODER_LAYER.namespace["gen_cache"] = Native(
    "gen_cache",
    lambda context, self, memory: (
        _gen_cache(context, self.attrs["self_attn"], memory),
        _gen_cache(context, self.attrs["cross_attn"], memory, memory, _CACHES["StaticCache"]),
    ),
)


def _paddle_stack(context: Context, self: LayerInstance, x: Value, rest: Sequence[Value], cache: Value) -> Value:
    kept = []
    for number, (_, one) in enumerate(list(self.attrs["layers"].children())):
        handed = [x, *rest] if not isinstance(cache, (list, tuple)) else [x, *rest, cache[number]]
        del x
        x = context.call(one, handed)
        if cache is not None and isinstance(x, tuple):
            kept.append(x[1])
            x = x[0]
    norm = self.attrs.get("norm")
    x = context.call(norm, [x]) if norm is not None else x
    return x if cache is None else (x, kept)


def _paddle_encoder(
    context: Context, self: LayerInstance, src: Value, src_mask: Value = None, cache: Value = None
) -> Value:
    return _paddle_stack(context, self, src, (_paddle_mask(context, src_mask, "float32"),), cache)


def _paddle_decoder(
    context: Context,
    self: LayerInstance,
    tgt: Value,
    memory: Value,
    tgt_mask: Value = None,
    memory_mask: Value = None,
    cache: Value = None,
) -> Value:
    masks = (_paddle_mask(context, tgt_mask, "float32"), _paddle_mask(context, memory_mask, "float32"))
    return _paddle_stack(context, self, tgt, (memory, *masks), cache)


def _all_caches(context: Context, self: LayerInstance, source: Value, do_zip: Value = False) -> Value:
    del do_zip
    return [context.call(context.getattr(one, "gen_cache"), (source,)) for _, one in self.attrs["layers"].children()]


for _name, _first, _run in (
    ("TransformerEncoder", "encoder_layer", _paddle_encoder),
    ("TransformerDecoder", "decoder_layer", _paddle_decoder),
):
    layer("paddle", _name, accepting(stack_init, _first), _run).namespace["gen_cache"] = Native(
        "gen_cache", _all_caches
    )


def _paddle_transformer_init(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> None:
    order = (
        *MODEL_ORDER,
        "attn_dropout",
        "act_dropout",
        "normalize_before",
        "weight_attr",
        "bias_attr",
        "custom_encoder",
        "custom_decoder",
    )
    given = {**dict(zip(order, args, strict=False)), **kwargs}
    width, heads = given.get("d_model", 512), given.get("nhead", 8)
    rest = {k: given[k] for k in _PADDLE_ORDER if k in given and k not in ("weight_attr", "bias_attr")}
    for name, kind, count in (
        ("encoder", "Encoder", given.get("num_encoder_layers", 6)),
        ("decoder", "Decoder", given.get("num_decoder_layers", 6)),
    ):
        custom = given.get(f"custom_{name}")
        if custom is not None:
            self.attrs[name] = custom
            continue
        one = build(context, f"paddle.nn.Transformer{kind}Layer", width, heads, **rest)
        self.attrs[name] = build(
            context, f"paddle.nn.Transformer{kind}", one, count, build(context, "paddle.nn.LayerNorm", width)
        )
    self.attrs.update(d_model=width, nhead=heads)


def _paddle_transformer(
    context: Context,
    self: LayerInstance,
    src: Value,
    tgt: Value,
    src_mask: Value = None,
    tgt_mask: Value = None,
    memory_mask: Value = None,
) -> Value:
    memory = context.call(self.attrs["encoder"], (src, src_mask))
    return context.call(self.attrs["decoder"], (tgt, memory, tgt_mask, memory_mask))


layer("paddle", "Transformer", _paddle_transformer_init, _paddle_transformer).namespace[
    "generate_square_subsequent_mask"
] = Native("paddle.nn.Transformer.generate_square_subsequent_mask", square_mask)


def _convert_mask(context: Context, attn_mask: Value, dtype: Value = None) -> Value:
    del dtype
    return _paddle_mask(context, attn_mask, "float32")


register("paddle.nn.layer.transformer._convert_attention_mask", Native("_convert_attention_mask", _convert_mask))


register(
    "paddle.nn.layer.transformer._convert_param_attr_to_list",
    Native("_convert_param_attr_to_list", lambda context, attr, n: list(_each(attr, n))),
)
