"""Convolution layers."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.interpreter.values import Context, Value
from oarlock_profiler.core.overlays import attention, creation, elementwise, embedding, losses, resampling, shaping  # noqa: F401 - registered by import
from oarlock_profiler.core.overlays.calling import engine_of, integer, integers, repeat
from oarlock_profiler.core.overlays.convolution import channels_last, convolve, convolve_transposed
from oarlock_profiler.core.overlays.layer_class import demanded, layer, placement
from oarlock_profiler.core.overlays.nn_module import parameter
from oarlock_profiler.core.overlays.registry import register

LIBRARIES = ("torch", "paddle")


def _conv(rank: int, transposed: bool) -> None:
    name = f"ConvTranspose{rank}d" if transposed else f"Conv{rank}d"

    def build(
        context: Context,
        self: LayerInstance,
        in_channels: Value,
        out_channels: Value,
        kernel_size: Value,
        groups: Value,
        weight_attr: Value,
        bias_attr: Value,
        factory: dict[str, Any],
    ) -> None:
        inward, outward, count = integer(in_channels), integer(out_channels), integer(groups, 1)
        kernel = repeat(kernel_size, rank)
        self.attrs.update(in_channels=in_channels, out_channels=out_channels, kernel_size=kernel, groups=count)
        shape = (inward, outward // count, *kernel) if transposed else (outward, inward // count, *kernel)
        self.attrs["weight"] = parameter(context, shape, weight_attr, **factory)
        self.attrs["bias"] = parameter(context, (outward,), bias_attr, **factory) if bias_attr is not False else None

    def torch_init(
        context: Context,
        self: LayerInstance,
        in_channels: Value,
        out_channels: Value,
        kernel_size: Value,
        stride: Value = 1,
        padding: Value = 0,
        *rest: Value,
        **kwargs: Value,
    ) -> None:
        order = (
            ("output_padding", "groups", "bias", "dilation", "padding_mode", "device", "dtype")
            if transposed
            else ("dilation", "groups", "bias", "padding_mode", "device", "dtype")
        )
        given = {**dict(zip(order, rest, strict=False)), **kwargs}
        bias = given.get("bias", True)
        build(
            context,
            self,
            in_channels,
            out_channels,
            kernel_size,
            given.get("groups", 1),
            None,
            None if bias is not False else False,
            placement(context, given.get("device"), given.get("dtype")),
        )
        self.attrs["stride"] = repeat(stride, rank)
        self.attrs["padding"] = padding if isinstance(padding, str) else repeat(padding, rank)
        self.attrs["dilation"] = repeat(given.get("dilation", 1), rank)
        self.attrs["output_padding"] = repeat(given.get("output_padding", 0), rank)
        self.attrs["padding_mode"] = given.get("padding_mode", "zeros")
        self.attrs["transposed"] = transposed

    def paddle_init(
        context: Context,
        self: LayerInstance,
        in_channels: Value,
        out_channels: Value,
        kernel_size: Value,
        stride: Value = 1,
        padding: Value = 0,
        *rest: Value,
        **kwargs: Value,
    ) -> None:
        if transposed:
            order = (
                ("output_padding", "groups", "dilation", "weight_attr", "bias_attr", "data_format")
                if rank == 1
                else ("output_padding", "dilation", "groups", "weight_attr", "bias_attr", "data_format")
            )
        else:
            order = ("dilation", "groups", "padding_mode", "weight_attr", "bias_attr", "data_format")
        given = {**dict(zip(order, rest, strict=False)), **kwargs}
        build(
            context,
            self,
            in_channels,
            out_channels,
            kernel_size,
            given.get("groups", 1),
            given.get("weight_attr"),
            given.get("bias_attr"),
            {},
        )
        self.attrs.update(
            _stride=stride,
            _padding=padding,
            _dilation=given.get("dilation", 1),
            _groups=given.get("groups", 1),
            output_padding=given.get("output_padding", 0),
        )
        self.attrs.update(
            stride=stride,
            padding=padding,
            dilation=given.get("dilation", 1),
            padding_mode=given.get("padding_mode", "zeros"),
        )
        self.attrs.update(
            _in_channels=in_channels,
            _out_channels=out_channels,
            _kernel_size=list(repeat(kernel_size, rank)),
            data_format=given.get("data_format"),
        )

    def forward(context: Context, self: LayerInstance, input: Value, output_size: Value = None) -> Value:
        attrs = self.attrs
        channels = integer(attrs["in_channels"])
        typical = {1: (1024,), 2: (224, 224), 3: (16, 112, 112)}[rank]
        last = channels_last(attrs.get("data_format"))
        x = demanded(context, input, (*typical, channels) if last else (channels, *typical), f"the input of a {name}")
        if transposed:
            return convolve_transposed(
                context,
                x,
                attrs["weight"],
                attrs["bias"],
                attrs["stride"],
                attrs["padding"],
                attrs["output_padding"],
                attrs["groups"],
                attrs["dilation"],
                rank,
                attrs.get("data_format"),
                output_size,
            )
        padding = attrs["padding"]
        if attrs.get("padding_mode", "zeros") not in ("zeros", None) and not isinstance(padding, str):
            amounts = [p for p in reversed(repeat(padding, rank)) for _ in range(2)]
            x = shaping.pad(context, x, amounts, attrs["padding_mode"])
            padding = 0
        return convolve(
            context,
            x,
            attrs["weight"],
            attrs["bias"],
            attrs["stride"],
            padding,
            attrs["dilation"],
            attrs["groups"],
            rank,
            attrs.get("data_format"),
        )

    layer("torch", name, torch_init, forward, base=_BASES["torch"])
    made = layer(
        "paddle",
        f"Conv{rank}DTranspose" if transposed else f"Conv{rank}D",
        paddle_init,
        forward,
        *([f"Conv{rank}d"] if not transposed else []),
        base=_BASES["paddle"],
    )
    _RANKS[rank, transposed] = made.namespace["__init__"]


_RANKS: dict[tuple[int, bool], Value] = {}
"""PaddlePaddle's constructors by number of dimensions and direction."""


def _nd_init(
    context: Context,
    self: LayerInstance,
    in_channels: Value,
    out_channels: Value,
    kernel_size: Value,
    transposed: Value,
    dims: Value,
    **options: Value,
) -> None:
    """A script's own layer over PaddlePaddle's base class of all convolutions."""
    options.pop("padding_mode" if transposed is True else "output_padding", None)
    init = _RANKS[integer(dims), transposed is True]
    context.call(init, (self, in_channels, out_channels, kernel_size), options)


def _torch_nd_init(
    context: Context,
    self: LayerInstance,
    in_channels: Value,
    out_channels: Value,
    kernel_size: Value,
    stride: Value,
    padding: Value,
    dilation: Value,
    transposed: Value,
    output_padding: Value,
    groups: Value,
    bias: Value,
    padding_mode: Value = "zeros",
    device: Value = None,
    dtype: Value = None,
) -> None:
    """The same over PyTorch's."""
    inward, outward, count = integer(in_channels), integer(out_channels), integer(groups, 1)
    kernel = integers(kernel_size)
    factory = placement(context, device, dtype)
    shape = (inward, outward // count, *kernel) if transposed is True else (outward, inward // count, *kernel)
    self.attrs.update(
        in_channels=in_channels, out_channels=out_channels, kernel_size=kernel, stride=stride, padding=padding,
        dilation=dilation, transposed=transposed, output_padding=output_padding, groups=count,
        padding_mode=padding_mode,
    )  # fmt: skip
    self.attrs["weight"] = parameter(context, shape, None, **factory)
    self.attrs["bias"] = parameter(context, (outward,), None, **factory) if bias is not False else None


def _nd_forward(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> Value:
    return engine_of(context).unknown_tensor("the base class of all convolutions computes nothing")


_BASES = {
    "torch": layer("torch", "_ConvNd", _torch_nd_init, _nd_forward),
    "paddle": layer("paddle", "_ConvNd", _nd_init, _nd_forward),
}
register("torch.nn.modules.conv._ConvTransposeNd", _BASES["torch"])

for _rank in (1, 2, 3):
    _conv(_rank, False)
    _conv(_rank, True)
