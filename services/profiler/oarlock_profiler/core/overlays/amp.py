"""Automatic mixed precision: autocast contexts, loss scalers, and PaddlePaddle's ``decorate``."""

from __future__ import annotations

import math
from typing import Any

from oarlock_profiler.core.engine.autocast import Autocast, paddle_autocast, torch_autocast
from oarlock_profiler.core.engine.dtypes import canonical, is_floating
from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import (
    BoundMethod,
    Class,
    Context,
    Function,
    Instance,
    Native,
    Unknown,
    Value,
)
from oarlock_profiler.core.overlays.optimizers import OptimizerInstance
from oarlock_profiler.core.overlays.registry import entry, native_class, register
from oarlock_profiler.core.overlays.training_notes import notes

LIBRARIES = ("torch", "paddle")


def dtype_of(value: Value, default: str) -> str:
    """A floating type out of what a script writes for it."""
    if value is None or isinstance(value, Unknown):
        return default
    text = value if isinstance(value, str) else getattr(value, "name", None) or str(value)
    return canonical(text) or default


class AutocastInstance(Instance):
    """A ``with`` context that pushes ``make()`` on the engine's autocast stack."""

    def __init__(self, cls: Class) -> None:
        super().__init__(cls)
        self.entry: Autocast | None = None


def _enter(context: Context, self: AutocastInstance) -> Value:
    if self.entry is not None:
        entry_ = self.entry
        fresh = Autocast(entry_.dtype, entry_.lower, entry_.float32, entry_.promote, entry_.level, entry_.use_cache)
        if fresh.dtype is not None and context.engine.grad_enabled:
            found = notes(context)
            found.amp_dtype, found.amp_level = found.amp_dtype or fresh.dtype, found.amp_level or fresh.level
            context.findings.fact("precision", f"amp_{fresh.dtype}", context.where)
        context.engine.push_autocast(fresh)
    return self


def _exit(context: Context, self: AutocastInstance, *args: Value) -> Value:
    if self.entry is not None:
        context.engine.pop_autocast()
    return False


def _decorates(context: Context, self: AutocastInstance, function: Value) -> Value:
    def inside(inner: Context, *args: Value, **kwargs: Value) -> Value:
        _enter(inner, self)
        try:
            return inner.call(function, args, kwargs)
        finally:
            _exit(inner, self)

    if isinstance(function, Function | Native | BoundMethod):
        return Native(getattr(function, "name", "autocast"), inside)
    return function


def _torch_init(
    context: Context,
    self: AutocastInstance,
    device_type: Value = "cuda",
    dtype: Value = None,
    enabled: Value = True,
    cache_enabled: Value = True,
) -> None:
    _torch(context, self, device_type, dtype, enabled, cache_enabled)


def _torch_cuda_init(
    context: Context, self: AutocastInstance, enabled: Value = True, dtype: Value = None, cache_enabled: Value = True
) -> None:
    _torch(context, self, "cuda", dtype, enabled, cache_enabled)


def _torch(context: Context, self: AutocastInstance, device: Value, dtype: Value, enabled: Value, cache: Value) -> None:
    on_cpu = isinstance(device, str) and device.startswith("cpu")
    chosen = dtype_of(dtype, "bfloat16" if on_cpu else "float16") if enabled is not False else None
    if chosen == "float32":
        chosen = None
    self.entry = torch_autocast(chosen, cache is not False)


def _names(value: Value) -> frozenset[str]:
    return frozenset(v for v in value if isinstance(v, str)) if isinstance(value, list | tuple | set) else frozenset()


def _paddle_init(
    context: Context,
    self: AutocastInstance,
    enable: Value = True,
    custom_white_list: Value = None,
    custom_black_list: Value = None,
    level: Value = "O1",
    dtype: Value = "float16",
    use_promote: Value = True,
    **more: Value,
) -> None:
    level = level if isinstance(level, str) else "O1"
    if enable is False or level.upper() in ("O0", "OD"):
        self.entry = paddle_autocast(None)
        return
    white, black = _names(custom_white_list), _names(custom_black_list)
    self.entry = paddle_autocast(dtype_of(dtype, "float16"), level.upper(), white, black)


_SHARED: dict[str, Any] = {"__enter__": _enter, "__exit__": _exit, "__call__": _decorates}
for _qualname, _init, _publics in (
    (
        "torch.autocast", _torch_init,
        ("torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast", "torch.cpu.amp.autocast"),
    ),
    (
        "torch.cuda.amp.autocast", _torch_cuda_init,
        ("torch.cuda.amp.autocast", "torch.cuda.amp.autocast_mode.autocast"),
    ),
    (
        "paddle.amp.auto_cast", _paddle_init,
        ("paddle.amp.auto_cast", "paddle.amp.amp_guard", "paddle.amp.autocast", "paddle.fluid.dygraph.amp_guard",
         "paddle.static.amp.fp16_guard"),
    ),
):  # fmt: skip
    for _name in _publics:
        register(_name, native_class(_qualname, make=AutocastInstance, **{**_SHARED, "__init__": _init}))


# --- loss scaling ----------------------------------------------------------------------------------------------


def _scaler_init(context: Context, self: Instance, *args: Value, **kwargs: Value) -> None:
    enabled = kwargs.get("enabled", kwargs.get("enable", True))
    if args and isinstance(args[0], bool):
        enabled = args[0]
    self.attrs["_enabled"] = enabled is not False


def _scale(context: Context, self: Instance, outputs: Value) -> Value:
    if not self.attrs["_enabled"]:
        return outputs
    if isinstance(outputs, list | tuple):
        return type(outputs)([_scale(context, self, o) for o in outputs])
    if not isinstance(outputs, Tensor) or outputs.shape is None:
        return outputs
    return context.engine.apply("scale", [outputs], outputs.shape)


def _scaler_step(context: Context, self: Instance, optimizer: Value, *args: Value, **kwargs: Value) -> Value:
    return context.call(context.getattr(optimizer, "step"), args, kwargs)


def _scaler_minimize(context: Context, self: Instance, optimizer: Value, *args: Value, **kwargs: Value) -> Value:
    return context.call(context.getattr(optimizer, "step"))


def _nothing(context: Context, *args: Value, **kwargs: Value) -> None:
    return None


def _get_scale(context: Context, self: Instance) -> Value:
    return 65536.0


def _enabled(context: Context, self: Instance) -> Value:
    return self.attrs["_enabled"]


_SCALER = native_class(
    "torch.cuda.amp.GradScaler", __init__=_scaler_init, scale=_scale, step=_scaler_step, minimize=_scaler_minimize,
    unscale_=_nothing, update=_nothing, get_scale=_get_scale, is_enabled=_enabled, is_enable=_enabled,
    is_use_dynamic_loss_scaling=_enabled, state_dict=lambda context, self: {}, load_state_dict=_nothing,
    get_init_loss_scaling=_get_scale, set_init_loss_scaling=_nothing,
)  # fmt: skip
for _name in (
    "torch.cuda.amp.GradScaler",
    "torch.amp.GradScaler",
    "torch.amp.grad_scaler.GradScaler",
    "paddle.amp.GradScaler",
    "paddle.amp.AmpScaler",
    "paddle.fluid.dygraph.AmpScaler",
    "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler",
):
    register(_name, _SCALER)


# --- whole models in a lower type ------------------------------------------------------------------------------

_STAY = ("BatchNorm", "BatchNorm1D", "BatchNorm2D", "BatchNorm3D", "SyncBatchNorm")
_STAY_FLOAT16 = ("LayerNorm", "InstanceNorm1D", "InstanceNorm2D", "InstanceNorm3D")


def cast_layer(context: Context, layer: LayerInstance, dtype: str, *, amp: bool = False) -> None:
    """Turn floating parameters and buffers into ``dtype`` in place. ``amp``: norms keep float32 as PaddlePaddle's
    O2 does.

    Source: ``need_keep_fp32`` in ``python/paddle/amp/auto_cast.py`` (release 3.3).
    """
    engine = context.engine
    for _, module in layer.named_modules():
        names = {cls.name for cls in (module.cls.mro or (module.cls,)) if cls.module is None}
        if amp and (names & set(_STAY) or (dtype == "float16" and names & set(_STAY_FLOAT16))):
            continue
        for _, tensor in [*module.own_parameters(), *module.own_buffers()]:
            if tensor.shape is None or not is_floating(tensor.dtype) or tensor.dtype == dtype:
                continue
            kind = "parameter" if tensor.is_parameter else "buffer"
            made = engine.tensor(tensor.shape, dtype, kind=kind, device=tensor.device, op="cast")
            tensor.storage, tensor.dtype = made.storage, dtype


@entry("paddle.amp.decorate", "paddle.amp.amp_decorate", "paddle.fluid.dygraph.amp_decorate")
def decorate(
    context: Context, models: Value, optimizers: Value = None, level: Value = "O1", dtype: Value = "float16",
    master_weight: Value = None, save_dtype: Value = None, master_grad: Value = False, excluded_layers: Value = None,
) -> Value:  # fmt: skip
    """O2: parameters in the lower type, optimisers with float32 master weights."""
    chosen = dtype_of(dtype, "float16")
    if isinstance(level, str) and level.upper() == "O2":
        found = notes(context)
        found.amp_dtype, found.amp_level = chosen, "O2"
        for layer in models if isinstance(models, list | tuple) else [models]:
            if isinstance(layer, LayerInstance):
                cast_layer(context, layer, chosen, amp=True)
        for optimizer in optimizers if isinstance(optimizers, list | tuple) else [optimizers]:
            if isinstance(optimizer, OptimizerInstance) and master_weight is not False:
                optimizer.attrs["_multi_precision"] = True
                if found.optimizer is not None:
                    found.optimizer.master_weights = True
        elements = (
            sum(math.prod(p.shape or ()) for p in optimizers.parameters())
            if isinstance(optimizers, OptimizerInstance)
            else None
        )
        context.findings.fact(
            "amp.decorate", f"O2 {chosen}" + (f", {elements:,} elements" if elements else ""), context.where
        )
    return models if optimizers is None else (models, optimizers)


for _name in ("paddle.amp.is_bfloat16_supported", "paddle.amp.is_float16_supported", "torch.cuda.is_bf16_supported"):
    register(_name, Native(_name, lambda context, *args, **kwargs: True))
for _name in ("torch.is_autocast_enabled",):
    register(_name, Native(_name, lambda context, *args: context.engine.autocast is not None))
