"""Optimisers as the script sees them: parameter groups, ``step``, ``zero_grad``/``clear_grad``, states made lazily.

What each optimiser keeps and allocates is in :mod:`optimizer_rules`; here it is written into the trace.
"""

from __future__ import annotations

import math
import weakref
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from oarlock_profiler.core.engine.dtypes import size_of
from oarlock_profiler.core.engine.engine import GRADIENT_SHARDS
from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.engine.trace import Storage
from oarlock_profiler.core.interpreter.values import BoundMethod, Class, Context, Instance, Native, Value
from oarlock_profiler.core.overlays.optimizer_rules import OTHERS, PADDLE, TORCH, Rule, adjusted, state_tensors
from oarlock_profiler.core.overlays.registry import native_class, register
from oarlock_profiler.core.overlays.training_notes import Batch, notes
from oarlock_profiler.core.reading import OptimizerInfo

LIBRARIES = (
    "torch",
    "paddle",
    "transformers",
    "apex",
    "deepspeed",
    "lion_pytorch",
    "torch_optimizer",
    "timm",
    "bitsandbytes",
)

LBFGS_CLOSURES = 2
"""How often a reading runs LBFGS's closure per step: the second run shows the steady state."""


class OptimizerInstance(Instance):
    """An optimiser of the script, or the base part of one that the script defines itself."""

    def __init__(self, cls: Class) -> None:
        super().__init__(cls)
        self.rule: Rule | None = cls.lookup("_rule") or None
        self.options: dict[str, Value] = {}
        self.states: dict[int, list[Tensor]] = {}
        self.master: dict[int, Tensor] = {}
        self.steps = 0
        self.shards = 1
        self.offload = False
        self.grad_clip: Value = None
        self.regularised = False

    def parameters(self) -> list[Tensor]:
        """All parameters of all groups, each once."""
        found: dict[int, Tensor] = {}
        for group in self.attrs.get("param_groups", ()):
            for parameter in group.get("params", ()):
                if isinstance(parameter, Tensor):
                    found.setdefault(id(parameter), parameter)
        return list(found.values())


def tensors_of(context: Context, value: Value) -> list[Value]:
    """Parameters out of a list, generator, dict of named parameters, layer, or ``(name, parameter)`` pairs."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, LayerInstance):
        return [p for _, p in value.named_parameters()]
    if isinstance(value, dict):
        value = list(value.values())
    items: Iterable[Value] = value if isinstance(value, list | tuple) else context.iterate(value).items
    found: list[Value] = []
    for item in items:
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], Tensor):
            item = item[1]
        if isinstance(item, Tensor):
            found.append(item)
        elif isinstance(item, list | tuple | LayerInstance):
            found.extend(tensors_of(context, item))
    return found


def groups_of(context: Context, value: Value) -> list[dict[str, Value]]:
    """Parameter groups from what the script gave."""
    if value is None:
        return []
    items = value if isinstance(value, list | tuple) else [value]
    if isinstance(value, dict) and "params" in value:
        items = [value]
    if items and all(isinstance(item, dict) and "params" in item for item in items):
        return [{**item, "params": tensors_of(context, item["params"])} for item in items]
    return [{"params": tensors_of(context, value)}]


# --- construction ----------------------------------------------------------------------------------------------

_TORCH_PLACES: dict[str, tuple[str, ...]] = {
    "SGD": ("params", "lr", "momentum", "dampening", "weight_decay", "nesterov"),
    "RMSprop": ("params", "lr", "alpha", "eps", "weight_decay", "momentum", "centered"),
    "Adagrad": ("params", "lr", "lr_decay", "weight_decay", "initial_accumulator_value"),
    "LBFGS": ("params", "lr", "max_iter", "max_eval"),
}
_ADAM_PLACES = ("params", "lr", "betas", "eps", "weight_decay", "amsgrad")
_DEFAULTS: dict[str, dict[str, Value]] = {
    "AdamW": {"weight_decay": 0.01},
    "LBFGS": {"max_iter": 20, "history_size": 100},
}
_DEFAULT_RATE = {
    "SGD": 1e-3,
    "RMSprop": 1e-2,
    "Adagrad": 1e-2,
    "Adadelta": 1.0,
    "LBFGS": 1.0,
    "ASGD": 1e-2,
    "Rprop": 1e-2,
}


def _torch_init(context: Context, self: OptimizerInstance, *args: Value, **kwargs: Value) -> None:
    name = self.rule.name if self.rule else self.cls.name
    options = dict(zip(_TORCH_PLACES.get(name, _ADAM_PLACES), args, strict=False)) | kwargs
    options = {"lr": _DEFAULT_RATE.get(name, 1e-3), **_DEFAULTS.get(name, {}), **options}
    params = options.pop("params", None)
    _start(context, self, params, options)


def _base_init(
    context: Context, self: OptimizerInstance, params: Value = None, defaults: Value = None, **more: Value
) -> None:
    _start(context, self, params, dict(defaults) if isinstance(defaults, dict) else {})


def _start(context: Context, self: OptimizerInstance, params: Value, options: dict[str, Value]) -> None:
    self.options = options
    if self.rule is not None:
        self.rule = adjusted(self.rule, options)
    self.attrs["defaults"] = {k: v for k, v in options.items() if k != "parameters"}
    self.attrs["state"] = defaultdict(dict)
    self.attrs["param_groups"] = []
    for group in groups_of(context, params):
        _add_group(context, self, group)
    _watch_own_step(context, self)
    announce(context, self)
    if self.rule is not None and self.rule.eager:
        for parameter in self.parameters():
            _ensure_state(context, self, parameter)


def _add_group(context: Context, self: OptimizerInstance, param_group: Value) -> None:
    [group] = groups_of(context, param_group)[:1] or [{"params": []}]
    for key, value in self.options.items():
        group.setdefault(key, value)
    self.attrs["param_groups"].append(group)


def _watch_own_step(context: Context, self: OptimizerInstance) -> None:
    """A step that the script defines itself still ends a training step (PyTorch wraps it likewise)."""
    own = self.cls.lookup("step")
    if own in (TORCH_OPTIMIZER.namespace["step"], PADDLE_OPTIMIZER.namespace["step"]):
        return
    me = weakref.ref(self)

    def step(inner: Context, *args: Value, **kwargs: Value) -> Value:
        alive = me()
        engine = inner.engine
        before, engine.trace.phase = engine.trace.phase, "optimizer"
        done = engine.trace.steps
        try:
            return inner.call(BoundMethod(own, alive), args, kwargs)
        finally:
            engine.trace.phase = before
            if alive is not None and engine.trace.steps == done:
                finish_step(inner, alive)

    self.attrs["step"] = Native(f"{self.cls.qualname}.step", step)


_PADDLE_PLACES: dict[str, tuple[str, ...]] = {
    "SGD": ("learning_rate", "parameters", "weight_decay", "grad_clip", "multi_precision"),
    "Momentum": ("learning_rate", "momentum", "parameters", "use_nesterov", "weight_decay", "grad_clip"),
    "Adam": ("learning_rate", "beta1", "beta2", "epsilon", "parameters", "weight_decay", "grad_clip"),
    "AdamW": (
        "learning_rate",
        "beta1",
        "beta2",
        "epsilon",
        "parameters",
        "weight_decay",
        "lr_ratio",
        "apply",
        "grad_clip",
    ),
    "Adamax": ("learning_rate", "beta1", "beta2", "epsilon", "parameters", "weight_decay", "grad_clip"),
    "Adagrad": ("learning_rate", "epsilon", "parameters", "weight_decay", "grad_clip"),
    "Adadelta": ("learning_rate", "epsilon", "rho", "parameters", "weight_decay", "grad_clip"),
    "RMSProp": ("learning_rate", "rho", "epsilon", "momentum", "centered", "parameters", "weight_decay", "grad_clip"),
    "Lamb": ("learning_rate", "lamb_weight_decay", "beta1", "beta2", "epsilon", "parameters", "grad_clip"),
    "NAdam": (
        "learning_rate",
        "beta1",
        "beta2",
        "epsilon",
        "momentum_decay",
        "parameters",
        "weight_decay",
        "grad_clip",
    ),
    "RAdam": ("learning_rate", "beta1", "beta2", "epsilon", "parameters", "weight_decay", "grad_clip"),
    "ASGD": ("learning_rate", "batch_num", "parameters", "weight_decay", "grad_clip"),
    "Rprop": ("learning_rate", "learning_rate_range", "parameters", "etas", "grad_clip"),
    "LBFGS": (
        "learning_rate",
        "max_iter",
        "max_eval",
        "tolerance_grad",
        "tolerance_change",
        "history_size",
        "line_search_fn",
        "parameters",
    ),
}


def _paddle_init(context: Context, self: OptimizerInstance, *args: Value, **kwargs: Value) -> None:
    name = self.rule.name if self.rule else self.cls.name
    places = _PADDLE_PLACES.get(name, ("learning_rate", "parameters", "weight_decay", "grad_clip"))
    options = dict(zip(places, args, strict=False)) | kwargs
    if name == "LBFGS":
        options = {"history_size": 100, **options}
    params = options.pop("parameters", options.pop("parameter_list", None))
    self.grad_clip = options.get("grad_clip")
    decay = options.get("weight_decay", options.get("regularization"))
    self.regularised = bool(self.rule and self.rule.decay and decay not in (None, 0, 0.0))
    _start(context, self, params, options)
    self.attrs["_parameter_list"] = self.parameters()
    self.attrs["_param_groups"] = self.attrs["param_groups"]
    self.attrs["_learning_rate"] = options.get("learning_rate", 0.001)
    self.attrs["_grad_clip"] = self.grad_clip
    self.attrs["_multi_precision"] = bool(options.get("multi_precision"))


def announce(context: Context, self: OptimizerInstance) -> None:
    """Note what the optimiser is; the one with most elements stands for the script."""
    if self.rule is None:
        name = self.cls.name
    else:
        name = self.rule.name
    parameters = [p for p in self.parameters() if p.requires_grad]
    elements = sum(math.prod(p.shape or ()) for p in parameters)
    info = OptimizerInfo(
        name,
        elements,
        foreach=_uses_foreach(self, parameters),
        fused=bool(self.options.get("fused"))
        or bool(self.rule and self.rule.fused_only)
        or context.engine.framework == "paddle",
        master_weights=bool(self.attrs.get("_multi_precision")),
        eight_bit=bool(self.rule and self.rule.eight_bit),
    )
    context.findings.fact("optimizer", name, context.where)
    found = notes(context)
    if found.optimizer is None or info.elements >= found.optimizer.elements:
        found.optimizer = info


def _uses_foreach(self: OptimizerInstance, parameters: Sequence[Tensor]) -> bool:
    rule = self.rule
    if rule is None or rule.fused_only or self.options.get("fused") or rule.name in PADDLE_ONLY:
        return False
    chosen = self.options.get("foreach")
    if chosen is not None:
        return bool(chosen)
    if rule.name in ("SparseAdam", "LBFGS", "Adafactor", "Muon") or rule.float32_states or rule.name not in TORCH:
        return False
    return bool(parameters) and all(p.device != "cpu" for p in parameters)


PADDLE_ONLY = frozenset(PADDLE) - frozenset(TORCH)

# --- the step --------------------------------------------------------------------------------------------------


def _step(context: Context, self: OptimizerInstance, closure: Value = None, *args: Value, **kwargs: Value) -> Value:
    result = None
    if closure is not None:
        for _ in range(LBFGS_CLOSURES if self.rule is not None and self.rule.history else 1):
            context.engine.unstepped = 0  # an optimiser that asks again does not accumulate
            result = context.call(closure)
    apply_step(context, self)
    return result


def apply_step(context: Context, self: OptimizerInstance) -> None:
    """Update every parameter that has a gradient: states on the first step, temporaries as the framework makes them."""
    engine = context.engine
    before, engine.trace.phase = engine.trace.phase, "optimizer"
    parameters = [p for p in self.parameters() if p.requires_grad and p.shape is not None]
    live = [p for p in parameters if p.grad is not None and not p.cleared]
    if not live and parameters:
        _assume_gradients(context, parameters)
        live = parameters
    if self.rule is not None:
        if engine.framework == "paddle":
            _paddle_update(context, self, live)
        else:
            _torch_update(context, self, live)
    engine.trace.phase = before
    finish_step(context, self)


def finish_step(context: Context, self: OptimizerInstance) -> None:
    """End a training step. Of several optimisers in one loop, the one that is furthest counts the steps."""
    self.steps += 1
    context.engine.steps_of[id(self)] = self.steps
    found = notes(context)
    if found.batch is not None:
        found.trained = found.batch
    elif context.engine.step_inputs:
        inputs = context.engine.step_inputs
        found.trained = Batch(inputs[0].shape[0], inputs, None, context.where)
    if found.batches and self.steps > context.engine.trace.steps:
        found.batches_per_step, found.batches = found.batches, 0
    if self.steps > context.engine.trace.steps:
        context.engine.training_step_done()


def _assume_gradients(context: Context, parameters: list[Tensor]) -> None:
    context.findings.gap(
        "gradients", context.where, "no parameter had a gradient when the optimiser stepped", "one for every parameter"
    )
    for parameter in parameters:
        parameter.grad = context.engine.tensor(
            parameter.shape, parameter.dtype, kind="gradient", device=parameter.device
        )
        parameter.cleared = False
        context.engine.learning.add(id(parameter))


def _ensure_state(context: Context, self: OptimizerInstance, parameter: Tensor) -> None:
    if id(parameter) in self.states or self.rule is None:
        return
    engine = context.engine
    made = []
    device = "cpu" if self.offload else parameter.device
    spread = (parameter.attrs or {}).get(GRADIENT_SHARDS, 1)
    shards = max(self.shards, spread if isinstance(spread, int) else 1)
    dtype = parameter.dtype
    if self.attrs.get("_multi_precision") and dtype in ("float16", "bfloat16"):
        made.append(
            engine.tensor(
                _shard(parameter.shape or (), shards), "float32", kind="optimizer", device=device, op="master"
            )
        )
        dtype = "float32"
    for name, shape, kept in state_tensors(self.rule, parameter.shape or (), dtype):
        sharded = _shard(shape, shards)
        made.append(engine.tensor(sharded, kept, kind="optimizer", device=device, op=name))
    if self.rule.name == "ASGD" and engine.framework == "paddle":
        batches = self.options.get("batch_num", 1)
        if isinstance(batches, int) and batches > 1:
            made[1] = engine.tensor((batches, *(parameter.shape or ())), kept, kind="optimizer", device=device, op="y")
    self.states[id(parameter)] = made


def _shard(shape: tuple[int, ...], shards: int) -> tuple[int, ...]:
    return shape if shards <= 1 else (-(-math.prod(shape) // shards),)


def _history(context: Context, self: OptimizerInstance, live: list[Tensor]) -> list[Storage]:
    """LBFGS: the flat gradient, the direction, and up to ``history_size`` pairs of past steps."""
    engine = context.engine
    elements = sum(math.prod(p.shape or ()) for p in live)
    device = live[0].device if live else engine.default_device
    if not self.states and live:
        size = self.options.get("history_size", 100)
        pairs = 2 * size if isinstance(size, int) else 200
        context.findings.gap("LBFGS history", context.where, "grows with the steps taken", f"{pairs // 2} pairs")
        flat = [
            engine.tensor((elements,), live[0].dtype, kind="optimizer", device=device, op="history")
            for _ in range(pairs + 2)
        ]
        self.states[0] = flat
    return [engine.allocate(int(elements * size_of("float32")), "temporary", device, "flat_grad") for _ in range(2)]


def _record(context: Context, self: OptimizerInstance, name: str, parameters: list[Tensor]) -> None:
    elements = sum(math.prod(p.shape or ()) for p in parameters)
    states = len(self.rule.states) if self.rule else 0
    context.engine.record(
        name, name, parameters[0].dtype if parameters else "float32", (elements,), flops=elements * (4 + 4 * states),
        bytes_moved=sum(p.nbytes for p in parameters) * (3 + 2 * states),
    )  # fmt: skip


def _torch_update(context: Context, self: OptimizerInstance, live: list[Tensor]) -> None:
    rule, engine = self.rule, context.engine
    if rule is None:
        return
    if rule.history:
        held = _history(context, self, live)
        del held
        return
    for parameter in live:
        _ensure_state(context, self, parameter)
    decayed = _decayed(self, live) if rule.decay else []
    if self.offload:
        return
    if _uses_foreach(self, live):
        copies = [engine.allocate(p.nbytes, "temporary", p.device, "foreach_add") for p in decayed]
        if rule.drops_decay:
            copies.clear()
        sets = [
            [engine.allocate(p.nbytes, "temporary", p.device, f"foreach_{rule.name}") for p in live]
            for _ in range(rule.foreach)
        ]
        _record(context, self, f"foreach_{rule.name.lower()}", live)
        del copies, sets
        return
    if self.options.get("fused") or rule.fused_only:
        _record(context, self, f"fused_{rule.name.lower()}", live)
        return
    needing = {id(p) for p in decayed}
    for parameter in live:
        copy = (
            engine.allocate(parameter.nbytes, "temporary", parameter.device, "add")
            if id(parameter) in needing
            else None
        )
        scratch = [
            engine.allocate(parameter.nbytes, "temporary", parameter.device, rule.name.lower())
            for _ in range(rule.single)
        ]
        _record(context, self, rule.name.lower(), [parameter])
        del copy, scratch


def _decayed(self: OptimizerInstance, live: list[Tensor]) -> list[Tensor]:
    wanted = set()
    for group in self.attrs["param_groups"]:
        if group.get("weight_decay") not in (None, 0, 0.0):
            wanted |= {id(p) for p in group["params"]}
    return [p for p in live if id(p) in wanted]


def _clips_in_place(clip: Value) -> bool:
    """Clipping by the global norm scales gradients in place; by each one's norm or by value makes new ones."""
    return isinstance(clip, Instance) and clip.cls.name == "ClipGradByGlobalNorm"


def _paddle_update(context: Context, self: OptimizerInstance, live: list[Tensor]) -> None:
    """Clip and regularise into new gradients that live until the step ends, then update in place."""
    engine, rule = context.engine, self.rule
    if rule is None:
        return
    if rule.history:
        held = _history(context, self, live)
        del held
        return
    clipped: list[Storage] = []
    if self.grad_clip is not None and not _clips_in_place(self.grad_clip):
        clipped = [engine.allocate(p.nbytes, "temporary", p.device, "clip") for p in live]
        _record(context, self, "clip", live)
    if self.regularised:
        grown = []
        for parameter in live:
            term = engine.allocate(parameter.nbytes, "temporary", parameter.device, "scale")
            grown.append(engine.allocate(parameter.nbytes, "temporary", parameter.device, "add_n"))
            del term
        clipped = grown
        del grown
    for parameter in live:
        _ensure_state(context, self, parameter)
    for parameter in live:
        scratch = [
            engine.allocate(parameter.nbytes, "temporary", parameter.device, rule.name.lower())
            for _ in range(rule.single)
        ]
        _record(context, self, rule.name.lower(), [parameter])
        del scratch
    del clipped


# --- gradients -------------------------------------------------------------------------------------------------


def _zero_grad(context: Context, self: OptimizerInstance, set_to_none: Value = True) -> None:
    for parameter in self.parameters():
        if set_to_none is False:
            continue
        parameter.grad = None


def _clear_grad(context: Context, self: OptimizerInstance, set_to_zero: Value = True) -> None:
    for parameter in self.parameters():
        clear(parameter, keep=set_to_zero is not False)


def clear(parameter: Tensor, *, keep: bool) -> None:
    """PaddlePaddle zeroes a gradient and keeps its memory unless told otherwise."""
    if keep and parameter.grad is not None:
        parameter.cleared = True
    else:
        parameter.grad = None


def _minimize(context: Context, self: OptimizerInstance, loss: Value, *args: Value, **kwargs: Value) -> Value:
    """In dygraph the script has called ``backward`` itself; a static program's backward belongs to ``minimize``."""
    program = context.state.get("static")
    if program is not None and program.building:  # a static program's run does what is minimised
        program.minimize(context, self, loss)
        return [], []
    apply_step(context, self)
    return [], []


def _get_lr(context: Context, self: OptimizerInstance) -> Value:
    rate = self.attrs.get("_learning_rate", 0.001)
    if isinstance(rate, Instance):
        return context.call(context.getattr(rate, "get_lr"))
    return rate


def _set_lr(context: Context, self: OptimizerInstance, value: Value) -> None:
    self.attrs["_learning_rate"] = value


def _state_dict(context: Context, self: OptimizerInstance) -> Value:
    return {"state": {}, "param_groups": []}


def _nothing(context: Context, *args: Value, **kwargs: Value) -> None:
    return None


_SHARED: dict[str, Any] = {
    "step": _step,
    "state_dict": _state_dict,
    "load_state_dict": _nothing,
    "set_state_dict": _nothing,
    "register_step_post_hook": _nothing,
    "register_step_pre_hook": _nothing,
    "train": _nothing,
    "eval": _nothing,
}

TORCH_OPTIMIZER = native_class(
    "torch.optim.Optimizer", make=OptimizerInstance, __init__=_base_init, zero_grad=_zero_grad,
    add_param_group=_add_group, _rule=None, **_SHARED,
)  # fmt: skip
PADDLE_OPTIMIZER = native_class(
    "paddle.optimizer.Optimizer", make=OptimizerInstance, __init__=_paddle_init, clear_grad=_clear_grad,
    clear_gradients=_clear_grad, minimize=_minimize, get_lr=_get_lr, set_lr=_set_lr, set_lr_scheduler=_set_lr,
    backward=_nothing,
    _rule=None, **_SHARED,
)  # fmt: skip


def _install() -> None:
    for name in ("torch.optim.Optimizer", "torch.optim.optimizer.Optimizer"):
        register(name, TORCH_OPTIMIZER)
    for name in ("paddle.optimizer.Optimizer", "paddle.optimizer.optimizer.Optimizer"):
        register(name, PADDLE_OPTIMIZER)
    for rule in TORCH.values():
        cls = native_class(
            f"torch.optim.{rule.name}",
            bases=(TORCH_OPTIMIZER,),
            make=OptimizerInstance,
            _rule=rule,
            __init__=_torch_init,
        )
        register(f"torch.optim.{rule.name}", cls)
        register(f"torch.optim.{rule.name.lower()}.{rule.name}", cls)
    for name, rule in OTHERS.items():
        cls = native_class(name, bases=(TORCH_OPTIMIZER,), make=OptimizerInstance, _rule=rule, __init__=_torch_init)
        register(name, cls)
        register(name.replace("bitsandbytes.optim.", "bnb.optim."), cls)
        if name.startswith("transformers."):
            register(name.replace("transformers.", "transformers.optimization."), cls)
    for rule in PADDLE.values():
        cls = native_class(
            f"paddle.optimizer.{rule.name}", bases=(PADDLE_OPTIMIZER,), make=OptimizerInstance, _rule=rule
        )
        register(f"paddle.optimizer.{rule.name}", cls)
        register(f"paddle.optimizer.{rule.name.lower()}.{rule.name}", cls)
        for alias in (f"{rule.name}Optimizer", rule.name):
            register(f"paddle.fluid.optimizer.{alias}", cls)
        if rule.name == "RMSProp":
            register("paddle.optimizer.RMSprop", cls)
    register(
        "paddle.incubate.optimizer.LBFGS",
        native_class(
            "paddle.incubate.optimizer.LBFGS", bases=(PADDLE_OPTIMIZER,), make=OptimizerInstance, _rule=PADDLE["LBFGS"]
        ),
    )
    register("paddle.incubate.optimizer.LarsMomentumOptimizer", native_class(
        "paddle.incubate.optimizer.LarsMomentumOptimizer", bases=(PADDLE_OPTIMIZER,), make=OptimizerInstance,
        _rule=PADDLE["LarsMomentum"]))  # fmt: skip


_install()
