"""Learning-rate schedulers: they change numbers, not memory. Steps pass, rates stay known where they were known."""

from __future__ import annotations

from oarlock_profiler.core.interpreter.values import Context, Instance, Native, Unknown, Value
from oarlock_profiler.core.overlays.registry import native_class, register

LIBRARIES = ("torch", "paddle", "transformers", "timm", "diffusers", "paddlenlp", "warmup_scheduler")


def _init(context: Context, self: Instance, optimizer: Value = None, *args: Value, **kwargs: Value) -> None:
    self.attrs.update({"optimizer": optimizer, "last_epoch": 0, "_step_count": 1})
    for key, value in kwargs.items():
        self.attrs.setdefault(key, value)
    groups = context.getattr(optimizer, "param_groups", None) if optimizer is not None else None
    rates = [group.get("lr") for group in groups] if isinstance(groups, list) else []
    self.attrs["base_lrs"] = rates
    for group in groups if isinstance(groups, list) else ():
        group.setdefault("initial_lr", group.get("lr"))


def _step(context: Context, self: Instance, *args: Value, **kwargs: Value) -> None:
    epoch = self.attrs.get("last_epoch", 0)
    self.attrs["last_epoch"] = epoch + 1 if isinstance(epoch, int) else epoch


def _rates(context: Context, self: Instance) -> Value:
    return list(self.attrs.get("base_lrs", [])) or [Unknown("the scheduled learning rate", context.where, hint="float")]


def _state(context: Context, self: Instance) -> Value:
    return {"last_epoch": self.attrs.get("last_epoch", 0)}


def _nothing(context: Context, *args: Value, **kwargs: Value) -> None:
    return None


TORCH_BASE = native_class(
    "torch.optim.lr_scheduler.LRScheduler", __init__=_init, step=_step, get_last_lr=_rates, get_lr=_rates,
    state_dict=_state,
    load_state_dict=_nothing, print_lr=_nothing,
)  # fmt: skip
_TORCH = (
    "LambdaLR MultiplicativeLR StepLR MultiStepLR ConstantLR LinearLR ExponentialLR CosineAnnealingLR ChainedScheduler "
    "SequentialLR ReduceLROnPlateau CyclicLR OneCycleLR CosineAnnealingWarmRestarts PolynomialLR"
)
for _name in ("LRScheduler", "_LRScheduler"):
    register(f"torch.optim.lr_scheduler.{_name}", TORCH_BASE)
for _name in _TORCH.split():
    register(
        f"torch.optim.lr_scheduler.{_name}", native_class(f"torch.optim.lr_scheduler.{_name}", bases=(TORCH_BASE,))
    )
for _name in ("timm.scheduler.CosineLRScheduler", "timm.scheduler.StepLRScheduler", "timm.scheduler.PlateauLRScheduler",
              "warmup_scheduler.GradualWarmupScheduler"):  # fmt: skip
    register(_name, native_class(_name, bases=(TORCH_BASE,), step_update=_nothing))


def _scheduler(context: Context, *args: Value, optimizer: Value = None, **kwargs: Value) -> Value:
    if optimizer is None:
        optimizer = next((a for a in args if isinstance(a, Instance)), None)
    return context.call(TORCH_BASE, (optimizer,))


for _name in ("get_scheduler", "get_linear_schedule_with_warmup", "get_cosine_schedule_with_warmup",
              "get_constant_schedule_with_warmup", "get_constant_schedule", "get_polynomial_decay_schedule_with_warmup",
              "get_cosine_with_hard_restarts_schedule_with_warmup", "get_inverse_sqrt_schedule"):  # fmt: skip
    for _owner in ("transformers", "transformers.optimization", "diffusers.optimization"):
        register(f"{_owner}.{_name}", Native(f"transformers.{_name}", _scheduler))

# --- PaddlePaddle ----------------------------------------------------------------------------------------------


def _paddle_init(context: Context, self: Instance, *args: Value, **kwargs: Value) -> None:
    rate = kwargs.get("learning_rate", args[0] if args else 0.1)
    if isinstance(rate, Instance):
        rate = rate.attrs.get("base_lr", 0.1)
    self.attrs.update({"base_lr": rate, "last_lr": rate, "last_epoch": 0, "verbose": False})
    for key, value in kwargs.items():
        self.attrs.setdefault(key, value)


def _paddle_rate(context: Context, self: Instance) -> Value:
    return self.attrs.get("last_lr", Unknown("the scheduled learning rate", context.where, hint="float"))


PADDLE_BASE = native_class(
    "paddle.optimizer.lr.LRScheduler", __init__=_paddle_init, step=_step, get_lr=_paddle_rate, __call__=_paddle_rate,
    state_dict=_state, set_state_dict=_nothing, set_dict=_nothing, state_keys=_nothing, __float__=_paddle_rate,
)  # fmt: skip
_PADDLE = (
    "NoamDecay PiecewiseDecay NaturalExpDecay InverseTimeDecay PolynomialDecay LinearWarmup ExponentialDecay "
    "MultiStepDecay "
    "StepDecay LambdaDecay ReduceOnPlateau CosineAnnealingDecay MultiplicativeDecay OneCycleLR CyclicLR LinearLR "
    "CosineAnnealingWarmRestarts"
)
register("paddle.optimizer.lr.LRScheduler", PADDLE_BASE)
for _name in _PADDLE.split():
    register(f"paddle.optimizer.lr.{_name}", native_class(f"paddle.optimizer.lr.{_name}", bases=(PADDLE_BASE,)))
for _name in ("LinearDecayWithWarmup", "CosineDecayWithWarmup", "ConstScheduleWithWarmup", "PolyDecayWithWarmup"):
    register(f"paddlenlp.transformers.{_name}", native_class(f"paddlenlp.transformers.{_name}", bases=(PADDLE_BASE,)))


# --- regularisers and clipping (PaddlePaddle hands them to the optimiser as objects) --------------------------


def _keep(*places: str) -> object:
    def init(context: Context, self: Instance, *args: Value, **kwargs: Value) -> None:
        self.attrs.update(zip(places, args, strict=False))
        self.attrs.update(kwargs)

    return init


for _name in ("paddle.regularizer.L2Decay", "paddle.regularizer.L1Decay", "paddle.fluid.regularizer.L2Decay"):
    register(_name, native_class(_name, __init__=_keep("coeff")))
for _name in ("ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue"):
    _cls = native_class(f"paddle.nn.{_name}", __init__=_keep("clip_norm"))
    register(f"paddle.nn.{_name}", _cls)
    register(f"paddle.nn.clip.{_name}", _cls)
    register(f"paddle.fluid.clip.{_name}", _cls)
