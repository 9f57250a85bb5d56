"""PyTorch's multi-head attention and transformer layers, operator by operator as it runs them."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Context, Native, Value
from oarlock_profiler.core.overlays import nn_containers, nn_layers, nn_norms  # noqa: F401 - built by name below
from oarlock_profiler.core.overlays.attention import torch_attention
from oarlock_profiler.core.overlays.calling import dtype_name, engine_of, integer, tensor
from oarlock_profiler.core.overlays.devices import place_of
from oarlock_profiler.core.overlays.dropout import dropout
from oarlock_profiler.core.overlays.elementwise import binary
from oarlock_profiler.core.overlays.indexing import index
from oarlock_profiler.core.overlays.layer_class import demanded, layer
from oarlock_profiler.core.overlays.linear_algebra import linear, matmul
from oarlock_profiler.core.overlays.nn_module import parameter
from oarlock_profiler.core.overlays.registry import get
from oarlock_profiler.core.overlays.shaping import (
    contiguous,
    expand,
    permute,
    reshaped,
    split,
    squeeze,
    transpose,
    unflatten,
    unsqueeze,
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


def _mha_init(
    context: Context,
    self: LayerInstance,
    embed_dim: Value,
    num_heads: Value,
    dropout: Value = 0.0,
    bias: Value = True,
    add_bias_kv: Value = False,
    add_zero_attn: Value = False,
    kdim: Value = None,
    vdim: Value = None,
    batch_first: Value = False,
    device: Value = None,
    dtype: Value = None,
) -> None:
    width = integer(embed_dim)
    keys, values = integer(kdim, width), integer(vdim, width)
    made: dict[str, Any] = {"device": place_of(context, device), "dtype": dtype_name(dtype)}
    self.attrs.update(
        embed_dim=width,
        num_heads=integer(num_heads),
        dropout=dropout,
        batch_first=batch_first is True,
        head_dim=width // integer(num_heads),
        kdim=keys,
        vdim=values,
    )
    self.config["zero"] = add_zero_attn is True
    same = keys == width and values == width
    self.attrs["_qkv_same_embed_dim"] = same
    if same:
        self.attrs["in_proj_weight"] = parameter(context, (3 * width, width), **made)
    else:
        for name, inner in (("q_proj_weight", width), ("k_proj_weight", keys), ("v_proj_weight", values)):
            self.attrs[name] = parameter(context, (width, inner), **made)
    self.attrs["in_proj_bias"] = parameter(context, (3 * width,), **made) if bias is not False else None
    self.attrs["out_proj"] = build(
        context, "torch.nn.Linear", width, width, bias is not False, device=device, dtype=dtype
    )
    for name in ("bias_k", "bias_v"):
        self.attrs[name] = parameter(context, (1, 1, width), **made) if add_bias_kv is True else None


def _packed_projection(context: Context, x: Tensor, weight: Value, bias: Value, parts: int) -> list[Tensor]:
    width = (x.shape or ())[-1]
    projected: Value = linear(context, x, weight, bias, transposed=True)
    projected = unflatten(context, projected, -1, [parts, width])
    projected = contiguous(context, squeeze(context, transpose(context, unsqueeze(context, projected, 0), 0, -2), -2))
    return [index(context, projected, i) for i in range(parts)]


def _projections(
    context: Context, self: LayerInstance, query: Tensor, key: Tensor, value: Tensor, same_all: bool, same_pair: bool
) -> list[Tensor]:
    attrs = self.attrs
    bias = attrs["in_proj_bias"]
    width = attrs["embed_dim"]
    if attrs["_qkv_same_embed_dim"]:
        weight = attrs["in_proj_weight"]
        if same_all:
            return _packed_projection(context, query, weight, bias, 3)
        if same_pair:
            first, rest = split(context, weight, [width, 2 * width], 0)
            first_bias, rest_bias = split(context, bias, [width, 2 * width], 0) if bias is not None else (None, None)
            return [
                linear(context, query, first, first_bias, transposed=True),
                *_packed_projection(context, key, rest, rest_bias, 2),
            ]
        weights = split(context, weight, width, 0)
    else:
        weights = [attrs["q_proj_weight"], attrs["k_proj_weight"], attrs["v_proj_weight"]]
    biases = split(context, bias, width, 0) if bias is not None else (None, None, None)
    return [
        linear(context, x, w, b, transposed=True) for x, w, b in zip((query, key, value), weights, biases, strict=True)
    ]


def _masks(
    context: Context, attn_mask: Value, padding: Value, batch: int, heads: int, length: int, dtype: str
) -> Tensor | None:
    def floating(mask: Value) -> Tensor:
        found = tensor(context, mask)
        if found.dtype == "bool":
            return engine_of(context).apply("masked_fill", [found], found.shape or (), dtype, grad="none")
        return found

    merged: Value = floating(attn_mask) if attn_mask is not None else None
    if merged is not None and len(merged.shape or ()) == 2:
        merged = unsqueeze(context, merged, 0)
    if padding is not None:
        found: Value = reshaped(context, floating(padding), (batch, 1, 1, length))
        found = reshaped(context, expand(context, found, -1, heads, -1, -1), (batch * heads, 1, length))
        merged = found if merged is None else binary(context, "add", merged, found)
    result: Tensor | None = merged
    return result


def _mha_forward(
    context: Context,
    self: LayerInstance,
    query: Value,
    key: Value,
    value: Value,
    key_padding_mask: Value = None,
    need_weights: Value = True,
    attn_mask: Value = None,
    average_attn_weights: Value = True,
    is_causal: Value = False,
) -> Value:
    attrs = self.attrs
    width, heads, size = attrs["embed_dim"], attrs["num_heads"], attrs["head_dim"]
    same_all, same_pair = query is key and key is value, key is value
    q = demanded(context, query, (128, width), "the input of an attention")
    k = q if key is query else demanded(context, key, (128, width), "the keys of an attention")
    v = k if same_pair else demanded(context, value, (128, width), "the values of an attention")
    batched = len(q.shape or ()) == 3
    if not batched:
        q, k, v = (unsqueeze(context, t, 1) for t in (q, k, v))
    elif attrs["batch_first"]:
        if same_all:
            q = k = v = transpose(context, q, 0, 1)
        else:
            q = transpose(context, q, 0, 1)
            k = transpose(context, k, 0, 1)
            v = k if same_pair else transpose(context, v, 0, 1)
    rows, batch, _ = q.shape or (1, 1, 1)
    length = (k.shape or (1,))[0]
    parts = _projections(context, self, q, k, v, same_all, same_pair)
    del q, k, v
    split_heads = [
        transpose(context, reshaped(context, p, ((p.shape or (1,))[0], batch * heads, size)), 0, 1) for p in parts
    ]
    del parts
    q3, k3, v3 = split_heads
    del split_heads
    mask = _masks(context, attn_mask, key_padding_mask, batch, heads, length, q3.dtype)
    p = attrs["dropout"] if self.training else 0.0
    weights: Value = None
    if need_weights is not False:
        scaled = binary(context, "multiply", q3, 0.125)
        turned = transpose(context, k3, -2, -1)
        if mask is not None:
            scores = get("torch.baddbmm").call(context, mask, scaled, turned)
        else:
            scores = get("torch.bmm").call(context, scaled, turned)
        del scaled, turned, q3, k3
        weights = get("torch.softmax").call(context, scores, -1)
        del scores
        weights = dropout(context, weights, p, self.training)
        out: Value = matmul(context, weights, v3)
        del v3
        out = reshaped(context, transpose(context, out, 0, 1), (rows * batch, width))
    else:
        shape4 = [(batch, heads, n, size) for n in (rows, length, length)]
        q4, k4, v4 = (reshaped(context, t, s) for t, s in zip((q3, k3, v3), shape4, strict=True))
        del q3, k3, v3
        if mask is not None:
            mask = (
                unsqueeze(context, mask, 0)
                if (mask.shape or (0,))[0] == 1
                else reshaped(context, mask, (batch, heads, *(mask.shape or ())[1:]))
            )
        out = torch_attention(context, q4, k4, v4, mask, p, is_causal)
        del q4, k4, v4
        out = reshaped(context, contiguous(context, permute(context, out, 2, 0, 1, 3)), (batch * rows, width))
    out = call(context, self, "out_proj", out)
    out = reshaped(context, out, (rows, batch, width))
    if weights is not None:
        weights = reshaped(context, weights, (batch, heads, rows, length))
        if average_attn_weights is not False:
            weights = get("torch.mean").call(context, weights, 1)
    if not batched:
        return (squeeze(context, out, 1), squeeze(context, weights, 0) if weights is not None else None)
    if attrs["batch_first"]:
        out = transpose(context, out, 1, 0)
    return (out, weights)


layer("torch", "MultiheadAttention", _mha_init, _mha_forward)


def _torch_sublayers(
    context: Context,
    self: LayerInstance,
    d_model: Value,
    nhead: Value,
    feedforward: Value,
    dropout: Value,
    activation: Value,
    given: dict[str, Value],
    norms: int,
) -> None:
    bias = given.get("bias", True)
    factory = {"device": given.get("device"), "dtype": given.get("dtype")}
    batch_first = given.get("batch_first", False)
    eps = given.get("layer_norm_eps", 1e-5)
    self.attrs["self_attn"] = build(
        context, "torch.nn.MultiheadAttention", d_model, nhead, dropout, bias, batch_first=batch_first, **factory
    )
    if norms == 3:
        self.attrs["multihead_attn"] = build(
            context, "torch.nn.MultiheadAttention", d_model, nhead, dropout, bias, batch_first=batch_first, **factory
        )
    self.attrs["linear1"] = build(context, "torch.nn.Linear", d_model, feedforward, bias, **factory)
    self.attrs["dropout"] = build(context, "torch.nn.Dropout", dropout)
    self.attrs["linear2"] = build(context, "torch.nn.Linear", feedforward, d_model, bias, **factory)
    self.attrs["norm_first"] = given.get("norm_first") is True
    for number in range(1, norms + 1):
        self.attrs[f"norm{number}"] = build(context, "torch.nn.LayerNorm", d_model, eps, True, bias, **factory)
    for number in range(1, norms + 1):
        self.attrs[f"dropout{number}"] = build(context, "torch.nn.Dropout", dropout)
    self.attrs["activation"] = activation_of(context, activation)


_TORCH_ORDER = (
    "dim_feedforward",
    "dropout",
    "activation",
    "layer_norm_eps",
    "batch_first",
    "norm_first",
    "bias",
    "device",
    "dtype",
)


def _torch_layer_init(norms: int) -> Any:
    def init(
        context: Context, self: LayerInstance, d_model: Value, nhead: Value, *args: Value, **kwargs: Value
    ) -> None:
        given = {**dict(zip(_TORCH_ORDER, args, strict=False)), **kwargs}
        _torch_sublayers(
            context,
            self,
            d_model,
            nhead,
            given.get("dim_feedforward", 2048),
            given.get("dropout", 0.1),
            given.get("activation", "relu"),
            given,
            norms,
        )

    return init


def _attend(
    context: Context, self: LayerInstance, name: str, x: Value, memory: Value, mask: Value, padding: Value, drop: str
) -> Value:
    attended = context.call(
        self.attrs[name], (x, memory, memory), {"attn_mask": mask, "key_padding_mask": padding, "need_weights": False}
    )
    first = attended[0] if isinstance(attended, tuple) else attended
    del attended, x, memory
    return call(context, self, drop, first)


def _feed_forward(context: Context, self: LayerInstance, x: Value, drop: str) -> Value:
    x = call(context, self, "linear1", x)
    x = call(context, self, "activation", x)
    x = call(context, self, "dropout", x)
    x = call(context, self, "linear2", x)
    return call(context, self, drop, x)


def _encoder_layer(
    context: Context,
    self: LayerInstance,
    src: Value,
    src_mask: Value = None,
    src_key_padding_mask: Value = None,
    is_causal: Value = False,
) -> Value:
    del is_causal
    x = src
    del src
    if self.attrs["norm_first"]:
        normed = call(context, self, "norm1", x)
        x = binary(
            context,
            "add",
            x,
            _attend(context, self, "self_attn", normed, normed, src_mask, src_key_padding_mask, "dropout1"),
        )
        del normed
        return binary(context, "add", x, _feed_forward(context, self, call(context, self, "norm2", x), "dropout2"))
    x = call(
        context,
        self,
        "norm1",
        binary(
            context, "add", x, _attend(context, self, "self_attn", x, x, src_mask, src_key_padding_mask, "dropout1")
        ),
    )
    return call(context, self, "norm2", binary(context, "add", x, _feed_forward(context, self, x, "dropout2")))


def _decoder_layer(
    context: Context,
    self: LayerInstance,
    tgt: Value,
    memory: Value,
    tgt_mask: Value = None,
    memory_mask: Value = None,
    tgt_key_padding_mask: Value = None,
    memory_key_padding_mask: Value = None,
    *args: Value,
    **kwargs: Value,
) -> Value:
    del args, kwargs
    x = tgt
    del tgt
    if self.attrs["norm_first"]:
        normed = call(context, self, "norm1", x)
        x = binary(
            context,
            "add",
            x,
            _attend(context, self, "self_attn", normed, normed, tgt_mask, tgt_key_padding_mask, "dropout1"),
        )
        del normed
        x = binary(
            context,
            "add",
            x,
            _attend(
                context,
                self,
                "multihead_attn",
                call(context, self, "norm2", x),
                memory,
                memory_mask,
                memory_key_padding_mask,
                "dropout2",
            ),
        )
        return binary(context, "add", x, _feed_forward(context, self, call(context, self, "norm3", x), "dropout3"))
    x = call(
        context,
        self,
        "norm1",
        binary(
            context, "add", x, _attend(context, self, "self_attn", x, x, tgt_mask, tgt_key_padding_mask, "dropout1")
        ),
    )
    x = call(
        context,
        self,
        "norm2",
        binary(
            context,
            "add",
            x,
            _attend(context, self, "multihead_attn", x, memory, memory_mask, memory_key_padding_mask, "dropout2"),
        ),
    )
    return call(context, self, "norm3", binary(context, "add", x, _feed_forward(context, self, x, "dropout3")))


layer("torch", "TransformerEncoderLayer", _torch_layer_init(2), _encoder_layer)


layer("torch", "TransformerDecoderLayer", _torch_layer_init(3), _decoder_layer)


def _through(context: Context, self: LayerInstance, x: Value, *rest: Value) -> Value:
    for _, one in list(self.attrs["layers"].children()):
        handed = [x, *rest]
        del x
        x = context.call(one, handed)
    norm = self.attrs.get("norm")
    return context.call(norm, [x]) if norm is not None else x


def _torch_encoder(
    context: Context,
    self: LayerInstance,
    src: Value,
    mask: Value = None,
    src_key_padding_mask: Value = None,
    is_causal: Value = None,
) -> Value:
    del is_causal
    return _through(context, self, src, mask, src_key_padding_mask)


def _torch_decoder(
    context: Context,
    self: LayerInstance,
    tgt: Value,
    memory: Value,
    tgt_mask: Value = None,
    memory_mask: Value = None,
    tgt_key_padding_mask: Value = None,
    memory_key_padding_mask: Value = None,
    *args: Value,
    **kwargs: Value,
) -> Value:
    del args, kwargs
    return _through(context, self, tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)


layer("torch", "TransformerEncoder", accepting(stack_init, "encoder_layer"), _torch_encoder)


layer("torch", "TransformerDecoder", accepting(stack_init, "decoder_layer"), _torch_decoder)


def _torch_transformer_init(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> None:
    order = (
        *MODEL_ORDER,
        "custom_encoder",
        "custom_decoder",
        "layer_norm_eps",
        "batch_first",
        "norm_first",
        "bias",
        "device",
        "dtype",
    )
    given = {**dict(zip(order, args, strict=False)), **kwargs}
    width, heads = given.get("d_model", 512), given.get("nhead", 8)
    rest = {
        k: given[k]
        for k in (
            "dim_feedforward",
            "dropout",
            "activation",
            "layer_norm_eps",
            "batch_first",
            "norm_first",
            "bias",
            "device",
            "dtype",
        )
        if k in given
    }
    for name, kind, count in (
        ("encoder", "Encoder", given.get("num_encoder_layers", 6)),
        ("decoder", "Decoder", given.get("num_decoder_layers", 6)),
    ):
        custom = given.get(f"custom_{name}")
        if custom is not None:
            self.attrs[name] = custom
            continue
        one = build(context, f"torch.nn.Transformer{kind}Layer", width, heads, **rest)
        norm = build(context, "torch.nn.LayerNorm", width, given.get("layer_norm_eps", 1e-5))
        self.attrs[name] = build(context, f"torch.nn.Transformer{kind}", one, count, norm)
    self.attrs.update(d_model=width, nhead=heads, batch_first=given.get("batch_first", False))


def _torch_transformer(
    context: Context,
    self: LayerInstance,
    src: Value,
    tgt: Value,
    src_mask: Value = None,
    tgt_mask: Value = None,
    memory_mask: Value = None,
    src_key_padding_mask: Value = None,
    tgt_key_padding_mask: Value = None,
    memory_key_padding_mask: Value = None,
    *args: Value,
    **kwargs: Value,
) -> Value:
    del args, kwargs
    memory = context.call(self.attrs["encoder"], (src, src_mask, src_key_padding_mask))
    return context.call(
        self.attrs["decoder"], (tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
    )


_TRANSFORMER = layer("torch", "Transformer", _torch_transformer_init, _torch_transformer)


_TRANSFORMER.namespace["generate_square_subsequent_mask"] = Native(
    "torch.nn.Transformer.generate_square_subsequent_mask", square_mask
)
