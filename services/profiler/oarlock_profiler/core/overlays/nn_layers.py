"""Linear, embedding, dropout and pooling layers."""

from __future__ import annotations

from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Context, Native, Unknown, Value
from oarlock_profiler.core.overlays import attention, creation, elementwise, embedding, losses, resampling, shaping  # noqa: F401 - registered by import
from oarlock_profiler.core.overlays.assumed_sizes import CLASSES, VOCABULARY, counted
from oarlock_profiler.core.overlays.calling import (
    engine_of,
    integer,
    tensor,
)
from oarlock_profiler.core.overlays.dropout import dropout, feature_dropout
from oarlock_profiler.core.overlays.layer_class import demanded, layer, placement
from oarlock_profiler.core.overlays.linear_algebra import bilinear, linear
from oarlock_profiler.core.overlays.nn_module import parameter
from oarlock_profiler.core.overlays.pooling import adaptive, pool

LIBRARIES = ("torch", "paddle")


def _torch_linear_init(
    context: Context,
    self: LayerInstance,
    in_features: Value,
    out_features: Value,
    bias: Value = True,
    device: Value = None,
    dtype: Value = None,
) -> None:
    self.attrs["in_features"], self.attrs["out_features"] = in_features, out_features
    rows, columns = counted(context, out_features, "outputs of a Linear", CLASSES), integer(in_features)
    made = placement(context, device, dtype)
    self.attrs["weight"] = parameter(context, (rows, columns), **made)
    self.attrs["bias"] = parameter(context, (rows,), **made) if bias is not False and bias is not None else None


def _linear_forward(context: Context, self: LayerInstance, input: Value) -> Value:
    weight = self.attrs["weight"]
    transposed = context.engine.framework == "torch"
    width = (weight.shape or (1, 1))[1 if transposed else 0]
    x = demanded(context, input, (width,), "the input of a Linear")
    return linear(context, x, weight, self.attrs.get("bias"), transposed=transposed)


def _paddle_linear_init(
    context: Context,
    self: LayerInstance,
    in_features: Value,
    out_features: Value,
    weight_attr: Value = None,
    bias_attr: Value = None,
    name: Value = None,
) -> None:
    del name
    self.attrs["in_features"], self.attrs["out_features"] = in_features, out_features
    rows, columns = integer(in_features), counted(context, out_features, "outputs of a Linear", CLASSES)
    self.attrs["weight"] = parameter(context, (rows, columns), weight_attr)
    self.attrs["bias"] = parameter(context, (columns,), bias_attr) if bias_attr is not False else None


LINEAR = {
    "torch": layer("torch", "Linear", _torch_linear_init, _linear_forward, "NonDynamicallyQuantizableLinear"),
    "paddle": layer("paddle", "Linear", _paddle_linear_init, _linear_forward),
}


def _lazy_linear_init(
    context: Context, self: LayerInstance, out_features: Value, bias: Value = True, **kwargs: Value
) -> None:
    del context, kwargs
    self.config.update(out=integer(out_features), bias=bias is not False)


def _lazy_linear_forward(context: Context, self: LayerInstance, input: Value) -> Value:
    x = tensor(context, input)
    if "weight" not in self.attrs:
        self.attrs["weight"] = parameter(context, (self.config["out"], (x.shape or (1,))[-1]), device=x.device)
        self.attrs["bias"] = parameter(context, (self.config["out"],), device=x.device) if self.config["bias"] else None
    return linear(context, x, self.attrs["weight"], self.attrs["bias"], transposed=True)


layer("torch", "LazyLinear", _lazy_linear_init, _lazy_linear_forward)


def _bilinear_init(
    context: Context,
    self: LayerInstance,
    in1_features: Value,
    in2_features: Value,
    out_features: Value,
    *args: Value,
    bias: Value = True,
    bias_attr: Value = None,
    weight_attr: Value = None,
    **kwargs: Value,
) -> None:
    del args, kwargs
    out = integer(out_features)
    self.attrs["weight"] = parameter(context, (out, integer(in1_features), integer(in2_features)), weight_attr)
    shape = (out,) if context.engine.framework == "torch" else (1, out)
    self.attrs["bias"] = parameter(context, shape, bias_attr) if bias is not False and bias_attr is not False else None


def _bilinear_forward(context: Context, self: LayerInstance, input1: Value, input2: Value) -> Value:
    return bilinear(context, input1, input2, self.attrs["weight"], self.attrs["bias"])


for _framework in ("torch", "paddle"):
    layer(_framework, "Bilinear", _bilinear_init, _bilinear_forward)


def _torch_embedding_init(
    context: Context,
    self: LayerInstance,
    num_embeddings: Value,
    embedding_dim: Value,
    padding_idx: Value = None,
    max_norm: Value = None,
    norm_type: Value = 2.0,
    scale_grad_by_freq: Value = False,
    sparse: Value = False,
    _weight: Value = None,
    _freeze: Value = False,
    device: Value = None,
    dtype: Value = None,
) -> None:
    del max_norm, norm_type, scale_grad_by_freq, sparse
    self.attrs.update(num_embeddings=num_embeddings, embedding_dim=embedding_dim, padding_idx=padding_idx)
    self.attrs["weight"] = parameter(
        context,
        (counted(context, num_embeddings, "rows of an Embedding", VOCABULARY), integer(embedding_dim)),
        **placement(context, device, dtype),
    )
    if _freeze is True:
        self.attrs["weight"].requires_grad = False
    del _weight


def _paddle_embedding_init(
    context: Context,
    self: LayerInstance,
    num_embeddings: Value,
    embedding_dim: Value,
    padding_idx: Value = None,
    sparse: Value = False,
    weight_attr: Value = None,
    *args: Value,
    **kwargs: Value,
) -> None:
    del args, kwargs
    self.attrs.update(
        _num_embeddings=num_embeddings, _embedding_dim=embedding_dim, _padding_idx=padding_idx, _sparse=sparse
    )
    self.attrs["weight"] = parameter(
        context,
        (counted(context, num_embeddings, "rows of an Embedding", VOCABULARY), integer(embedding_dim)),
        weight_attr,
    )


def _indices(context: Context, value: Value) -> Tensor:
    if isinstance(value, Tensor) and value.shape is not None:
        return value
    if not isinstance(value, (Tensor, Unknown)):
        return tensor(context, value)
    engine = engine_of(context)
    made = engine.tensor((engine.assumed_batch or 32, 128), "int64", kind="input", op="assumed")
    context.findings.gap(
        "the indices of an Embedding", context.where, value.why or "not known", assumed=list(made.shape or ())
    )
    return made


def _embedding_forward(context: Context, self: LayerInstance, input: Value) -> Value:
    return embedding.embedding(context, _indices(context, input), self.attrs["weight"])


_EMBEDDING = layer("torch", "Embedding", _torch_embedding_init, _embedding_forward)
layer("paddle", "Embedding", _paddle_embedding_init, _embedding_forward)


def _from_pretrained(context: Context, embeddings: Value, freeze: Value = True, **kwargs: Value) -> Value:
    del kwargs
    made = LayerInstance(_EMBEDDING)
    weight = tensor(context, embeddings)
    rows, columns = weight.shape or (0, 0)
    _torch_embedding_init(context, made, rows, columns)
    made.attrs["weight"].requires_grad = freeze is False
    return made


_EMBEDDING.namespace["from_pretrained"] = Native("torch.nn.Embedding.from_pretrained", _from_pretrained)


def _bag_init(
    context: Context, self: LayerInstance, num_embeddings: Value, embedding_dim: Value, *args: Value, **kwargs: Value
) -> None:
    del args
    self.attrs["weight"] = parameter(
        context,
        (counted(context, num_embeddings, "rows of an Embedding", VOCABULARY), integer(embedding_dim)),
        **placement(context, kwargs.get("device"), kwargs.get("dtype")),
    )


layer(
    "torch",
    "EmbeddingBag",
    _bag_init,
    lambda context, self, input, offsets=None, per_sample_weights=None: embedding.embedding_bag(
        context, input, self.attrs["weight"], offsets
    ),
)


def _dropout_init(
    context: Context, self: LayerInstance, p: Value = 0.5, inplace: Value = False, *args: Value, **kwargs: Value
) -> None:
    del context, args
    self.attrs["p"] = p
    self.attrs["inplace"] = inplace if isinstance(inplace, bool) else False
    self.config["axis"] = kwargs.get(
        "axis", inplace if isinstance(inplace, (int, list)) and not isinstance(inplace, bool) else None
    )


def _dropout_forward(context: Context, self: LayerInstance, input: Value) -> Value:
    return dropout(context, input, self.attrs["p"], self.training, self.attrs["inplace"] is True, self.config["axis"])


for _framework in ("torch", "paddle"):
    for _name in ("Dropout", "AlphaDropout", "FeatureAlphaDropout"):
        layer(_framework, _name, _dropout_init, _dropout_forward)
for _rank in (1, 2, 3):

    def _channel_dropout(context: Context, self: LayerInstance, input: Value, _rank: int = _rank) -> Value:
        return feature_dropout(context, input, self.attrs["p"], self.training, self.attrs["inplace"] is True, _rank)

    layer("torch", f"Dropout{_rank}d", _dropout_init, _channel_dropout)
    if _rank > 1:
        layer("paddle", f"Dropout{_rank}D", _dropout_init, _channel_dropout)


def _pool(rank: int, kind: str) -> None:
    def init(
        context: Context,
        self: LayerInstance,
        kernel_size: Value,
        stride: Value = None,
        padding: Value = 0,
        *args: Value,
        **kwargs: Value,
    ) -> None:
        torch = context.engine.framework == "torch"
        if kind == "max":
            order = ("dilation", "return_indices", "ceil_mode") if torch else ("return_mask", "ceil_mode")
        elif torch:
            order = ("ceil_mode", "count_include_pad", "divisor_override")
        else:
            order = ("exclusive", "ceil_mode") if rank == 1 else ("ceil_mode", "exclusive", "divisor_override")
        given = {**dict(zip(order, args, strict=False)), **kwargs}
        self.attrs.update(
            kernel_size=kernel_size,
            stride=stride if stride is not None else kernel_size,
            padding=padding,
            dilation=given.get("dilation", 1),
            ceil_mode=given.get("ceil_mode", False),
        )
        self.config.update(
            indices=given.get("return_indices", given.get("return_mask", False)), data_format=given.get("data_format")
        )

    def forward(context: Context, self: LayerInstance, input: Value) -> Value:
        attrs = self.attrs
        return pool(
            context,
            input,
            kind,
            rank,
            attrs["kernel_size"],
            attrs["stride"],
            attrs["padding"],
            attrs["dilation"],
            attrs["ceil_mode"],
            self.config["indices"],
            self.config["data_format"],
        )

    def adaptive_init(context: Context, self: LayerInstance, output_size: Value, *args: Value, **kwargs: Value) -> None:
        del context
        indices = next(
            (a for a in args if isinstance(a, bool)), kwargs.get("return_indices", kwargs.get("return_mask", False))
        )
        self.attrs["output_size"] = output_size
        self.config.update(
            indices=indices, data_format=kwargs.get("data_format", next((a for a in args if isinstance(a, str)), None))
        )

    def adaptive_forward(context: Context, self: LayerInstance, input: Value) -> Value:
        return adaptive(
            context, input, kind, rank, self.attrs["output_size"], self.config["indices"], self.config["data_format"]
        )

    word = "Max" if kind == "max" else "Avg"
    for framework, suffix in (("torch", "d"), ("paddle", "D")):
        layer(framework, f"{word}Pool{rank}{suffix}", init, forward)
        layer(framework, f"Adaptive{word}Pool{rank}{suffix}", adaptive_init, adaptive_forward)


for _rank in (1, 2, 3):
    for _kind in ("max", "avg"):
        _pool(_rank, _kind)
