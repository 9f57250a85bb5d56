"""Recomputation (activation checkpointing): forward keeps only its inputs, backward runs it again."""

from __future__ import annotations

from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.interpreter.values import Context, Native, Value
from oarlock_profiler.core.overlays.registry import entry, register
from oarlock_profiler.core.overlays.training_notes import notes

LIBRARIES = ("torch", "paddle", "deepspeed")

_OPTIONS = (
    "use_reentrant",
    "preserve_rng_state",
    "determinism_check",
    "debug",
    "context_fn",
    "offload_indices",
    "early_stop",
)


@entry(
    "torch.utils.checkpoint.checkpoint", "paddle.distributed.fleet.utils.recompute",
    "paddle.distributed.fleet.recompute.recompute",
    "paddle.distributed.fleet.recompute.recompute.recompute", "deepspeed.checkpointing.checkpoint",
    "paddle.distributed.fleet.auto.recompute", "paddle.incubate.distributed.fleet.recompute_sequential_unit",
)  # fmt: skip
def checkpoint(context: Context, function: Value, *args: Value, **kwargs: Value) -> Value:
    """Run ``function`` now and again in backward."""
    given = {key: value for key, value in kwargs.items() if key not in _OPTIONS}
    notes(context).recompute = True
    context.findings.fact("recompute", True, context.where)
    return context.engine.checkpoint(context, function, args, given)


@entry("torch.utils.checkpoint.checkpoint_sequential")
def checkpoint_sequential(
    context: Context, functions: Value, segments: Value, input: Value, *args: Value, **kwargs: Value
) -> Value:
    """All segments but the last are recomputed."""
    return _sequential(context, functions, segments, input, last=False)


@entry("paddle.distributed.fleet.recompute_sequential", "paddle.incubate.distributed.fleet.recompute_sequential")
def recompute_sequential(context: Context, ctx: Value, functions: Value, *args: Value, **kwargs: Value) -> Value:
    """``ctx`` holds the number of segments; every segment is recomputed."""
    segments = ctx.get("segments", 1) if isinstance(ctx, dict) else 1
    return _sequential(context, functions, segments, args[0] if args else None, last=True)


@entry("paddle.incubate.distributed.fleet.recompute_hybrid", "paddle.distributed.fleet.recompute.recompute_hybrid")
def recompute_hybrid(context: Context, ctx: Value, function: Value, *args: Value, **kwargs: Value) -> Value:
    """Recomputation in model-parallel groups."""
    return checkpoint(context, function, *args, **kwargs)


def _sequential(context: Context, functions: Value, segments: Value, value: Value, *, last: bool) -> Value:
    if isinstance(functions, LayerInstance):
        layers: list[Value] = [child for _, child in functions.children()]
    else:
        layers = list(functions) if isinstance(functions, list | tuple) else list(context.iterate(functions).items)
    count = segments if isinstance(segments, int) and segments > 0 else 1
    size = max(1, len(layers) // count)
    groups = [layers[i * size : (i + 1) * size] for i in range(count - 1)] + [layers[(count - 1) * size :]]
    for index, group in enumerate(groups):
        run = _chain(group)
        if index == len(groups) - 1 and not last:
            value = context.call(run, (value,))
        else:
            value = checkpoint(context, run, value)
    return value


def _chain(layers: list[Value]) -> Native:
    def run(context: Context, value: Value) -> Value:
        for layer in layers:
            value = context.call(layer, (value,))
        return value

    return Native("segment", run)


for _name in ("torch.utils.checkpoint.set_checkpoint_early_stop", "deepspeed.checkpointing.configure"):
    register(_name, Native(_name, lambda context, *args, **kwargs: None))


def _wrapper(context: Context, module: Value, *args: Value, **kwargs: Value) -> Value:
    """A layer whose forward is recomputed from now on."""
    if isinstance(module, LayerInstance):
        forward = context.getattr(module, "forward")
        module.attrs["forward"] = Native("checkpointed", lambda inner, *a, **k: checkpoint(inner, forward, *a, **k))
    return module


def _apply_wrapper(context: Context, model: Value, *args: Value, check_fn: Value = None, **kwargs: Value) -> None:
    if isinstance(model, LayerInstance):
        for _, module in list(model.named_modules()):
            if module is not model and (check_fn is None or context.truth(context.call(check_fn, (module,))) is True):
                _wrapper(context, module)


_OWNER = "torch.distributed.algorithms._checkpoint.checkpoint_wrapper"
register(f"{_OWNER}.checkpoint_wrapper", Native(f"{_OWNER}.checkpoint_wrapper", _wrapper))
register(f"{_OWNER}.apply_activation_checkpointing", Native(f"{_OWNER}.apply_activation_checkpointing", _apply_wrapper))
for _name in ("NO_REENTRANT", "REENTRANT"):
    register(f"{_OWNER}.CheckpointImpl.{_name}", _name)
