"""How a layer class of a framework is made, published, and fed when its input is not known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Class, Context, Native, Unknown, Value
from oarlock_profiler.core.overlays import attention, creation, elementwise, embedding, losses, resampling, shaping  # noqa: F401 - registered by import
from oarlock_profiler.core.overlays.calling import (
    Unknowable,
    count_internal_error,
    dtype_name,
    engine_of,
    guarded,
    tensor,
)
from oarlock_profiler.core.overlays.devices import place_of
from oarlock_profiler.core.overlays.nn_module import MODULE
from oarlock_profiler.core.overlays.registry import native_class, register

LIBRARIES = ("torch", "paddle")

SUBMODULES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    # words in the class name, the module it is defined in (torch.nn.modules.…, paddle.nn.layer.…)
    (("Transformer", "MultiHead"), "transformer", "transformer"),
    (("Multihead",), "activation", "activation"),
    (("Loss",), "loss", "loss"),
    (("BatchNorm",), "batchnorm", "norm"),
    (("InstanceNorm",), "instancenorm", "norm"),
    (("Norm",), "normalization", "norm"),
    (("ConvTranspose", "Conv"), "conv", "conv"),
    (("Pool", "Unpool"), "pooling", "pooling"),
    (("Dropout",), "dropout", "common"),
    (("Embedding",), "sparse", "common"),
    (("LSTM", "GRU", "RNN"), "rnn", "rnn"),
    (("Upsampl",), "upsampling", "common"),
    (("Pixel",), "pixelshuffle", "vision"),
    (("Pad",), "padding", "common"),
    (("atten",), "flatten", "common"),
    (("old",), "fold", "common"),
    (("Linear", "Identity", "Bilinear"), "linear", "common"),
    (("Distance", "Cosine"), "distance", "distance"),
)


def submodule(framework: str, name: str) -> str:
    """The module that the frameworks define a layer class in."""
    for words, torch_module, paddle_module in SUBMODULES:
        if any(word in name for word in words):
            return torch_module if framework == "torch" else paddle_module
    return "activation"


def publish(framework: str, cls: Class, *short: str) -> None:
    """Register a layer class under its public names and the modules it is defined in."""
    root = "torch.nn.modules" if framework == "torch" else "paddle.nn.layer"
    for name in short or (cls.name,):
        register(f"{framework}.nn.{name}", cls)
        register(f"{root}.{name}", cls)
        register(f"{root}.{submodule(framework, name)}.{name}", cls)
        if framework == "paddle":
            register(f"paddle.nn.loss.{name}", cls)


def layer(
    framework: str,
    name: str,
    init: Callable[..., Any],
    forward: Callable[..., Value],
    *aliases: str,
    base: Class | None = None,
) -> Class:
    """A layer class of one framework; ``base`` is the class that the framework derives it from."""

    def initialise(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> None:
        self.where = self.where or context.where
        kwargs.pop("name", None)
        self.config["given"] = {k: v for k, v in kwargs.items() if not isinstance(v, Tensor | LayerInstance)}
        try:
            init(context, self, *args, **kwargs)
        except Unknowable as reason:
            self.config["unknown"] = str(reason)
            context.findings.gap(f"{framework}.nn.{name}", context.where, str(reason))
        except (TypeError, ValueError, AttributeError, KeyError, IndexError, ZeroDivisionError) as error:
            self.config["unknown"] = f"{name}: {error}"
            count_internal_error(context, f"{framework}.nn.{name}", error)

    def run(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> Value:
        if "unknown" in self.config:
            return engine_of(context).unknown_tensor(self.config["unknown"])
        return guarded(context, lambda c: forward(c, self, *args, **kwargs), (), {})

    run.__name__ = initialise.__name__ = name
    run.__wrapped__ = forward  # type: ignore[attr-defined] # what ``inspect.signature`` follows
    cls = native_class(f"{framework}.nn.{name}", bases=(base or MODULE[framework],), __init__=initialise, forward=run)
    cls.namespace["reset_parameters"] = Native("reset_parameters", lambda context, self: None)
    publish(framework, cls, name, *aliases)
    return cls


def demanded(context: Context, value: Value, shape: tuple[int, ...], what: str) -> Tensor:
    """``value`` as a tensor; one of unknown shape is taken to be ``shape`` after the batch, as the layer demands."""
    if isinstance(value, Tensor) and value.shape is not None:
        return value
    if not isinstance(value, (Tensor, Unknown)):
        return tensor(context, value)
    engine = engine_of(context)
    batch = engine.assumed_batch or 32
    why = value.why or "the input is not known"
    lineage = value.lineage if isinstance(value, Tensor) else None
    if lineage is not None:
        made = engine.apply("reshape", [lineage], (batch, *shape), lineage.dtype)
    else:
        made = engine.tensor((batch, *shape), kind="input", op="assumed")
    context.findings.gap(what, context.where, why, assumed=list(made.shape or ()))
    return made


def placement(context: Context, device: Value, dtype: Value) -> dict[str, Any]:
    return {"device": place_of(context, device), "dtype": dtype_name(dtype)}
