"""What the transformer layers of both frameworks share."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.interpreter.values import Class, Context, Value
from oarlock_profiler.core.overlays import nn_containers, nn_layers, nn_norms  # noqa: F401 - built by name below
from oarlock_profiler.core.overlays.calling import engine_of, integer
from oarlock_profiler.core.overlays.devices import place_of
from oarlock_profiler.core.overlays.nn_module import deepcopy
from oarlock_profiler.core.overlays.registry import get

LIBRARIES = ("torch", "paddle")


def build(context: Context, name: str, *args: Value, **kwargs: Value) -> LayerInstance:
    """An instance of the overlay layer ``name``."""
    cls: Class = get(name)
    made = LayerInstance(cls)
    cls.namespace["__init__"].call(context, made, *args, **kwargs)
    return made


def call(context: Context, owner: LayerInstance, name: str, *args: Value) -> Value:
    """Call the child ``name``, whatever the script put there."""
    return context.call(owner.attrs[name], list(args))


def activation_of(context: Context, given: Value) -> Value:
    if isinstance(given, str):
        return get(f"{context.engine.framework}.nn.functional.{given}")
    return given


def clones(context: Context, module: Value, count: Value) -> LayerInstance:
    """``count`` copies in a list (PyTorch copies all; PaddlePaddle keeps the first and builds others like it)."""
    paddle = context.engine.framework == "paddle"
    made = LayerInstance(get("paddle.nn.LayerList" if paddle else "torch.nn.ModuleList"))
    if not isinstance(module, LayerInstance):
        return made
    for number in range(integer(count)):
        made.attrs[str(number)] = module if number == 0 and paddle else deepcopy(context, module)
    return made


def stack_init(
    context: Context,
    self: LayerInstance,
    layer_: Value,
    num_layers: Value,
    norm: Value = None,
    *args: Value,
    **kwargs: Value,
) -> None:
    del args, kwargs
    self.attrs["layers"] = clones(context, layer_, num_layers)
    self.attrs["num_layers"] = num_layers
    self.attrs["norm"] = norm


def accepting(init: Any, first: str) -> Any:
    def call_init(context: Context, self: LayerInstance, *args: Value, **kwargs: Value) -> None:
        if first in kwargs:
            args = (kwargs.pop(first), *args)
        init(context, self, *args, **kwargs)

    return call_init


MODEL_ORDER = (
    "d_model",
    "nhead",
    "num_encoder_layers",
    "num_decoder_layers",
    "dim_feedforward",
    "dropout",
    "activation",
)


def square_mask(context: Context, *args: Value, **kwargs: Value) -> Value:
    size = next((a for a in (*args, kwargs.get("sz"), kwargs.get("length")) if isinstance(a, int)), None)
    if size is None:
        return engine_of(context).unknown_tensor("the size of a causal mask is not known")
    return engine_of(context).tensor(
        (size, size), kind="temporary", device=place_of(context, kwargs.get("device")), op="mask"
    )
