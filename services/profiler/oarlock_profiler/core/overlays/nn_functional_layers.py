"""Layers that keep their arguments and call a function: activations, losses, padding, resampling."""

from __future__ import annotations

from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.engine.shapes import numel
from oarlock_profiler.core.interpreter.values import Context, Value
from oarlock_profiler.core.overlays import attention, creation, elementwise, embedding, losses, resampling, shaping  # noqa: F401 - registered by import
from oarlock_profiler.core.overlays.calling import (
    engine_of,
    integer,
    integers,
)
from oarlock_profiler.core.overlays.layer_class import layer
from oarlock_profiler.core.overlays.nn_module import parameter
from oarlock_profiler.core.overlays.reductions import norm
from oarlock_profiler.core.overlays.registry import get

LIBRARIES = ("torch", "paddle")


def _calls(
    framework: str,
    name: str,
    function: str,
    order: tuple[str, ...] = (),
    fixed: dict[str, Value] | None = None,
    *aliases: str,
) -> None:
    """A layer that keeps its arguments and hands them to a function with its inputs."""

    def init(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> None:
        del context
        self.config["given"] = {**(fixed or {}), **dict(zip(order, args, strict=False)), **kwargs}
        for key, value in self.config["given"].items():
            if key not in ("training",):
                self.attrs.setdefault(key, value)

    def forward(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> Value:
        target = get(f"{framework}.nn.functional.{function}")
        return target.call(context, *args, **{**self.config["given"], **kwargs})

    forward.computed_by = f"{framework}.nn.functional.{function}"  # type: ignore[attr-defined]
    layer(framework, name, init, forward, *aliases)


_ACTIVATIONS = {
    "ReLU": ("relu", ("inplace",)),
    "ReLU6": ("relu6", ("inplace",)),
    "ELU": ("elu", ("alpha", "inplace")),
    "SELU": ("selu", ("inplace",)),
    "CELU": ("celu", ("alpha", "inplace")),
    "GELU": ("gelu", ("approximate",)),
    "Mish": ("mish", ("inplace",)),
    "Hardswish": ("hardswish", ("inplace",)),
    "Hardsigmoid": ("hardsigmoid", ("inplace",)),
    "Hardtanh": ("hardtanh", ("min_val", "max_val", "inplace")),
    "LeakyReLU": ("leaky_relu", ("negative_slope", "inplace")),
    "Softplus": ("softplus", ("beta", "threshold")),
    "Softsign": ("softsign", ()),
    "Softshrink": ("softshrink", ("lambd",)),
    "Hardshrink": ("hardshrink", ("lambd",)),
    "Tanhshrink": ("tanhshrink", ()),
    "LogSigmoid": ("logsigmoid", ()),
    "Threshold": ("threshold", ("threshold", "value", "inplace")),
    "Sigmoid": ("sigmoid", ()),
    "Tanh": ("tanh", ()),
    "Softmax": ("softmax", ("dim",)),
    "LogSoftmax": ("log_softmax", ("dim",)),
    "Softmin": ("softmin", ("dim",)),
    "Softmax2d": ("softmax", ()),
    "GLU": ("glu", ("dim",)),
    "RReLU": ("rrelu", ("lower", "upper", "inplace")),
}
for _name, (_function, _order) in _ACTIVATIONS.items():
    _calls("torch", _name, _function, _order)
    _plain = tuple("axis" if o == "dim" else o for o in _order if o != "inplace")
    _calls(
        "paddle",
        _name,
        _function if _function != "logsigmoid" else "log_sigmoid",
        _plain,
        None,
        *({"Softmax2d": ("Softmax2D",)}.get(_name, ())),
    )
_calls("torch", "SiLU", "silu", ("inplace",))
for _name in ("Silu", "SiLU"):
    _calls("paddle", _name, "silu")
_calls("paddle", "Swish", "swish")
_calls("paddle", "ThresholdedReLU", "thresholded_relu", ("threshold",))
_calls("paddle", "Maxout", "maxout", ("groups", "axis"))

_LOSSES = {
    "MSELoss": ("mse_loss", ("reduction",)),
    "L1Loss": ("l1_loss", ("reduction",)),
    "SmoothL1Loss": ("smooth_l1_loss", ("reduction", "delta")),
    "BCELoss": ("binary_cross_entropy", ("weight", "reduction")),
    "BCEWithLogitsLoss": ("binary_cross_entropy_with_logits", ("weight", "reduction", "pos_weight")),
    "KLDivLoss": ("kl_div", ("reduction",)),
    "NLLLoss": ("nll_loss", ("weight", "ignore_index", "reduction")),
    "HuberLoss": ("huber_loss", ("reduction", "delta")),
    "MarginRankingLoss": ("margin_ranking_loss", ("margin", "reduction")),
    "CosineEmbeddingLoss": ("cosine_embedding_loss", ("margin", "reduction")),
    "TripletMarginLoss": ("triplet_margin_loss", ("margin", "p")),
    "HingeEmbeddingLoss": ("hinge_embedding_loss", ("margin", "reduction")),
    "SoftMarginLoss": ("soft_margin_loss", ("reduction",)),
    "MultiLabelSoftMarginLoss": ("multi_label_soft_margin_loss", ("weight", "reduction")),
    "MultiMarginLoss": ("multi_margin_loss", ("p", "margin", "weight", "reduction")),
    "MultiLabelMarginLoss": ("multilabel_margin_loss", ("reduction",)),
    "PoissonNLLLoss": ("poisson_nll_loss", ("log_input", "full", "epsilon", "reduction")),
    "GaussianNLLLoss": ("gaussian_nll_loss", ("full", "epsilon", "reduction")),
    "TripletMarginWithDistanceLoss": (
        "triplet_margin_with_distance_loss",
        ("distance_function", "margin", "swap", "reduction"),
    ),
}
for _name, (_function, _order) in _LOSSES.items():
    _calls("paddle", _name, _function, _order)
    _torch_order = tuple(o for o in _order if o != "reduction") if _name not in ("HuberLoss",) else _order
    _head = (
        _torch_order[:1]
        if _name
        in (
            "BCELoss",
            "BCEWithLogitsLoss",
            "NLLLoss",
            "MarginRankingLoss",
            "CosineEmbeddingLoss",
            "TripletMarginLoss",
            "HingeEmbeddingLoss",
        )
        else ()
    )
    _calls(
        "torch", _name, _function, (*_head, "size_average", "reduce", "reduction") if _name != "HuberLoss" else _order
    )
_calls(
    "torch",
    "CrossEntropyLoss",
    "cross_entropy",
    ("weight", "size_average", "ignore_index", "reduce", "reduction", "label_smoothing"),
)
_calls(
    "paddle",
    "CrossEntropyLoss",
    "cross_entropy",
    ("weight", "ignore_index", "reduction", "soft_label", "axis", "use_softmax", "label_smoothing"),
)
_calls("torch", "CTCLoss", "ctc_loss", ("blank", "reduction", "zero_infinity"))
_calls("paddle", "CTCLoss", "ctc_loss", ("blank", "reduction"))
_calls("torch", "NLLLoss2d", "nll_loss", ("weight",))

for _framework in ("torch", "paddle"):
    _axis = "dim" if _framework == "torch" else "axis"
    _calls(_framework, "CosineSimilarity", "cosine_similarity", (_axis, "eps"))
    _calls(
        _framework,
        "PixelShuffle",
        "pixel_shuffle",
        ("upscale_factor", "data_format")[: 1 if _framework == "torch" else 2],
    )
    _calls(
        _framework,
        "PixelUnshuffle",
        "pixel_unshuffle",
        ("downscale_factor", "data_format")[: 1 if _framework == "torch" else 2],
    )
    _calls(_framework, "ChannelShuffle", "channel_shuffle", ("groups",))
    _calls(
        _framework,
        "Fold",
        "fold",
        (
            "output_size" if _framework == "torch" else "output_sizes",
            "kernel_size" if _framework == "torch" else "kernel_sizes",
        ),
    )
_calls("torch", "Unfold", "unfold", ("kernel_size", "dilation", "padding", "stride"))
_calls("paddle", "Unfold", "unfold", ("kernel_sizes", "dilations", "paddings", "strides"))
_calls("torch", "Upsample", "interpolate", ("size", "scale_factor", "mode", "align_corners"))
_calls(
    "paddle", "Upsample", "interpolate", ("size", "scale_factor", "mode", "align_corners", "align_mode", "data_format")
)
for _framework, _suffix in (("torch", "2d"), ("paddle", "2D")):
    _calls(_framework, f"UpsamplingNearest{_suffix}", "interpolate", ("size", "scale_factor"), {"mode": "nearest"})
    _calls(_framework, f"UpsamplingBilinear{_suffix}", "interpolate", ("size", "scale_factor"), {"mode": "bilinear"})
    for _rank in (1, 2, 3):
        _calls(
            _framework, f"MaxUnpool{_rank}{_suffix[-1]}", f"max_unpool{_rank}d", ("kernel_size", "stride", "padding")
        )
for _rank in (1, 2):
    _calls("torch", f"LPPool{_rank}d", f"lp_pool{_rank}d", ("norm_type", "kernel_size", "stride", "ceil_mode"))
    _calls("paddle", f"LPPool{_rank}D", f"lp_pool{_rank}d", ("norm_type", "kernel_size", "stride", "ceil_mode"))


def _padding(framework: str, name: str, rank: int, mode: str | None) -> None:
    def init(context: Context, self: LayerInstance, padding: Value, *args: Value, **kwargs: Value) -> None:
        del context
        self.attrs["padding"] = padding
        chosen = mode
        if mode is None:  # PaddlePaddle's Pad2D(padding, mode, value, data_format)
            chosen = args[0] if args and isinstance(args[0], str) else kwargs.get("mode", "constant")
        self.config.update(mode=chosen, data_format=kwargs.get("data_format"))

    def forward(context: Context, self: LayerInstance, input: Value) -> Value:
        amounts = integers(self.attrs["padding"])
        amounts = amounts * (2 * rank) if len(amounts) == 1 else amounts
        return shaping.pad(
            context, input, list(amounts), self.config["mode"], 0.0, self.config["data_format"] or "NCHW"
        )

    layer(framework, name, init, forward)


for _rank in (1, 2, 3):
    for _word, _mode in (
        ("Zero", "constant"),
        ("Constant", "constant"),
        ("Reflection", "reflect"),
        ("Replication", "replicate"),
        ("Circular", "circular"),
    ):
        _padding("torch", f"{_word}Pad{_rank}d", _rank, _mode)
    _padding("paddle", f"Pad{_rank}D", _rank, None)
    _padding("paddle", f"ZeroPad{_rank}D", _rank, "constant")


def _nothing(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> None:
    del context, self, args, kwargs


for _framework in ("torch", "paddle"):
    layer(_framework, "Identity", _nothing, lambda context, self, input, *args, **kwargs: input)


def _flatten_init(context: Context, self: LayerInstance, start: Value = 1, stop: Value = -1, **kwargs: Value) -> None:
    del context
    self.config.update(
        start=kwargs.get("start_dim", kwargs.get("start_axis", start)),
        stop=kwargs.get("end_dim", kwargs.get("stop_axis", stop)),
    )


for _framework in ("torch", "paddle"):
    layer(
        _framework,
        "Flatten",
        _flatten_init,
        lambda context, self, input: shaping.flatten_(context, input, self.config["start"], self.config["stop"]),
    )


def _unflatten_init(context: Context, self: LayerInstance, axis: Value, shape: Value = None, **kwargs: Value) -> None:
    del context
    self.config.update(axis=axis, shape=shape if shape is not None else kwargs.get("unflattened_size"))


for _framework in ("torch", "paddle"):
    layer(
        _framework,
        "Unflatten",
        _unflatten_init,
        lambda context, self, input: shaping.unflatten(context, input, self.config["axis"], self.config["shape"]),
    )


def _prelu_init(
    context: Context,
    self: LayerInstance,
    num_parameters: Value = 1,
    init: Value = 0.25,
    weight_attr: Value = None,
    *args: Value,
    **kwargs: Value,
) -> None:
    del init, args, kwargs
    self.attrs["num_parameters"] = num_parameters
    weight = parameter(context, (integer(num_parameters),), weight_attr if weight_attr is not False else None)
    self.attrs["weight" if context.engine.framework == "torch" else "_weight"] = weight


for _framework in ("torch", "paddle"):
    layer(
        _framework,
        "PReLU",
        _prelu_init,
        lambda context, self, input: elementwise.prelu(
            context, input, self.attrs.get("weight", self.attrs.get("_weight"))
        ),
    )


def _pairwise_init(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> None:
    del context, self, args, kwargs


def _pairwise(context: Context, self: LayerInstance, x: Value, y: Value) -> Value:
    del self
    return norm(context, elementwise.binary(context, "subtract", x, y), 2, -1)


for _framework in ("torch", "paddle"):
    layer(_framework, "PairwiseDistance", _pairwise_init, _pairwise)


def _spectral_init(
    context: Context, self: LayerInstance, weight_shape: Value, axis: Value = 0, *args: Value, **kwargs: Value
) -> None:
    del args, kwargs
    shape = integers(weight_shape)
    at = integer(axis)
    for name, size in (("weight_u", shape[at]), ("weight_v", numel(shape) // max(shape[at], 1))):
        self.attrs[name] = engine_of(context).parameter((size,), None, False)


layer(
    "paddle",
    "SpectralNorm",
    _spectral_init,
    lambda context, self, weight: elementwise.binary(context, "divide", weight, 1.0),
)
