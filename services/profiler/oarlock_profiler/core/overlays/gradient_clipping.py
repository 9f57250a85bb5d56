"""Clipping gradients, and re-parametrised weights (weight and spectral normalisation)."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.engine.engine import flatten_tensors
from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.engine.shapes import numel
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Context, Native, Value
from oarlock_profiler.core.overlays.calling import engine_of, integer
from oarlock_profiler.core.overlays.nn_module import parameter
from oarlock_profiler.core.overlays.registry import register

LIBRARIES = ("torch", "paddle")


def _with_gradients(context: Context, parameters: Value) -> list[Tensor]:
    if isinstance(parameters, LayerInstance):
        return [p for _, p in parameters.named_parameters() if p.grad is not None]
    if isinstance(parameters, Tensor):
        return [parameters] if parameters.grad is not None else []
    items = list(parameters) if isinstance(parameters, (list, tuple)) else list(context.iterate(parameters).items)
    return [p for p in flatten_tensors(items) if p.grad is not None]


def clip_grad_norm_(context: Context, parameters: Value, max_norm: Value = 1.0, *args: Value, **kwargs: Value) -> Value:
    """Scales all gradients in place by their total norm; one small tensor a parameter meanwhile."""
    engine = engine_of(context)
    live = _with_gradients(context, parameters)
    device = live[0].device if live else engine.default_device
    norms = [engine.allocate(4, "temporary", p.device, "norm") for p in live]
    for p in live:
        engine.record("norm", "p_norm", p.dtype, p.shape or (), bytes_moved=p.nbytes)
        engine.record("mul_", "scale", p.dtype, p.shape or (), bytes_moved=2 * p.nbytes)
    del norms
    return engine.tensor((), kind="temporary", device=device, op="total_norm")


def clip_grad_value_(
    context: Context, parameters: Value, clip_value: Value = 1.0, *args: Value, **kwargs: Value
) -> None:
    """Bounds each gradient in place."""
    engine = engine_of(context)
    for p in _with_gradients(context, parameters):
        engine.record("clamp_", "clip", p.dtype, p.shape or (), bytes_moved=2 * p.nbytes)


for _owner in ("torch.nn.utils", "torch.nn.utils.clip_grad", "paddle.nn.utils"):
    for _name in ("clip_grad_norm_", "clip_grad_norm"):
        register(f"{_owner}.{_name}", Native(f"{_owner}.{_name}", clip_grad_norm_))
    register(f"{_owner}.clip_grad_value_", Native(f"{_owner}.clip_grad_value_", clip_grad_value_))


def get_total_norm(context: Context, tensors: Value, *args: Value, **kwargs: Value) -> Value:
    """The norm of all."""
    return engine_of(context).tensor((), kind="temporary", op="total_norm")


register("torch.nn.utils.get_total_norm", Native("get_total_norm", get_total_norm))


def parameters_to_vector(context: Context, parameters: Value) -> Value:
    """All parameters in one vector (a copy)."""
    found = flatten_tensors(list(context.iterate(parameters).items))
    count = sum(numel(p.shape or ()) for p in found)
    return engine_of(context).apply("concat", found, (count,), found[0].dtype if found else None)


for _owner in ("torch.nn.utils", "paddle.nn.utils"):
    register(f"{_owner}.parameters_to_vector", Native("parameters_to_vector", parameters_to_vector))
    register(f"{_owner}.vector_to_parameters", Native("vector_to_parameters", lambda context, vec, parameters: None))


def weight_norm(context: Context, module: Value, name: Value = "weight", dim: Value = 0) -> Value:
    """The weight becomes a direction and a length: both trained, the weight itself made anew in each forward."""
    if not isinstance(module, LayerInstance) or not isinstance(name, str):
        return module
    weight = module.attrs.get(name)
    if not isinstance(weight, Tensor) or weight.shape is None:
        return module
    axis = integer(dim, -1) if dim is not None else -1
    torch = context.engine.framework == "torch"
    count = weight.shape[axis] if dim is not None else 1
    length = (
        tuple(count if i == axis % len(weight.shape) else 1 for i in range(len(weight.shape))) if torch else (count,)
    )
    del module.attrs[name]
    module.attrs[f"{name}_v"] = weight
    module.attrs[f"{name}_g"] = parameter(context, length, None, weight.dtype, weight.device)

    def rebuild(inner: Context, layer: Value, args: Value) -> None:
        v, g = layer.attrs[f"{name}_v"], layer.attrs[f"{name}_g"]
        layer.attrs[name] = engine_of(inner).apply(
            "weight_norm", [v, g], v.shape or (), v.dtype, saved=[v, g, g.nbytes]
        )

    module.pre_hooks.append(Native("weight_norm", rebuild))
    return module


def spectral_norm(context: Context, module: Value, name: Value = "weight", *args: Value, **kwargs: Value) -> Value:
    """The weight is divided by its largest singular value in each forward; two vectors are kept as buffers."""
    if not isinstance(module, LayerInstance) or not isinstance(name, str):
        return module
    weight = module.attrs.get(name)
    if not isinstance(weight, Tensor) or weight.shape is None:
        return module
    del module.attrs[name]
    module.attrs[f"{name}_orig"] = weight
    rows = weight.shape[0]
    for suffix, size in (("u", rows), ("v", numel(weight.shape) // max(rows, 1))):
        module.attrs[f"{name}_{suffix}"] = engine_of(context).tensor(
            (size,), weight.dtype, kind="buffer", device=weight.device, op="spectral_norm"
        )
        module.buffer_names[f"{name}_{suffix}"] = True

    def rebuild(inner: Context, layer: Value, given: Value) -> None:
        w = layer.attrs[f"{name}_orig"]
        layer.attrs[name] = engine_of(inner).apply("divide", [w], w.shape or (), w.dtype, saved=[w, 4])

    module.pre_hooks.append(Native("spectral_norm", rebuild))
    return module


def _same(context: Context, module: Value, *args: Value, **kwargs: Value) -> Value:
    return module


for _owner in ("torch.nn.utils", "torch.nn.utils.weight_norm", "torch.nn.utils.parametrizations", "paddle.nn.utils"):
    for _name, _function in (
        ("weight_norm", weight_norm),
        ("spectral_norm", spectral_norm),
        ("remove_weight_norm", _same),
        ("remove_spectral_norm", _same),
        ("orthogonal", _same),
    ):
        register(f"{_owner}.{_name}", Native(f"{_owner}.{_name}", _function))
for _name in ("register_parametrization", "remove_parametrizations"):
    register(f"torch.nn.utils.parametrize.{_name}", Native(_name, _same))


def fuse(context: Context, conv: Value, *args: Value, **kwargs: Value) -> Value:
    """A convolution with its normalisation folded in."""
    return conv


for _name in ("fuse_conv_bn_eval", "fuse_conv_bn_weights"):
    register(f"torch.nn.utils.fusion.{_name}", Native(_name, fuse))


def prune_all(*names: str) -> Any:
    """Pruning masks are not followed."""
    for name in names:
        register(f"torch.nn.utils.prune.{name}", Native(name, _same))


prune_all("l1_unstructured", "random_unstructured", "ln_structured", "global_unstructured", "remove", "identity")
