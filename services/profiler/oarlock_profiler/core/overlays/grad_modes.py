"""Turning gradients on and off, gradients on request, and functions with a backward of their own."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.engine.autograd import Grad, Node
from oarlock_profiler.core.engine.engine import Engine, flatten_tensors
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.descriptors import ClassMethod
from oarlock_profiler.core.interpreter.values import (
    MISSING,
    Class,
    Context,
    Instance,
    Method,
    Native,
    Unknown,
    Value,
)
from oarlock_profiler.core.overlays.calling import engine_of
from oarlock_profiler.core.overlays.registry import native_class, register

LIBRARIES = ("torch", "paddle")


class GradMode(Instance):
    """A ``with`` context, also a decorator, that sets whether gradients are wanted."""

    def __init__(self, cls: Class) -> None:
        super().__init__(cls)
        self.wanted: bool | None = None
        self.before: list[bool] = []


def _enter(context: Context, self: GradMode) -> Value:
    engine = engine_of(context)
    self.before.append(engine.grad_enabled)
    if self.wanted is not None:
        engine.grad_enabled = self.wanted
    return self


def _exit(context: Context, self: GradMode, *args: Value) -> Value:
    if self.before:
        engine_of(context).grad_enabled = self.before.pop()
    return False


def _decorated(context: Context, self: GradMode, function: Value = None, *args: Value, **kwargs: Value) -> Value:
    """The function, run in this mode."""

    def inside(inner: Context, *given: Value, **named: Value) -> Value:
        _enter(inner, self)
        try:
            return inner.call(function, given, named)
        finally:
            _exit(inner, self)

    if isinstance(function, Class):
        return function
    return Method(getattr(function, "name", "decorated"), inside)


def _mode(name: str, wanted: bool, *aliases: str) -> None:
    def init(context: Context, self: GradMode, *args: Value) -> None:
        self.wanted = wanted
        if name.endswith("inference_mode") and args and args[0] is False:
            self.wanted = True

    def new(context: Context, cls: Class, *args: Value, **kwargs: Value) -> Value:
        made = GradMode(cls)
        made.wanted = wanted
        if args and not isinstance(args[0], bool):  # used as a decorator without parentheses
            return _decorated(context, made, args[0])
        return made

    cls = native_class(name, __new__=new, __init__=init, __enter__=_enter, __exit__=_exit, __call__=_decorated)
    for public in (name, *aliases):
        register(public, cls)


_mode("torch.no_grad", False, "torch.autograd.no_grad", "torch.autograd.grad_mode.no_grad")
_mode("torch.enable_grad", True, "torch.autograd.enable_grad")
_mode("torch.inference_mode", False, "torch.autograd.inference_mode")
_mode(
    "paddle.no_grad",
    False,
    "paddle.autograd.no_grad",
    "paddle.framework.no_grad",
    "paddle.fluid.dygraph.no_grad",
    "paddle.base.dygraph.no_grad",
    "paddle.no_grad_",
)
_mode("paddle.enable_grad", True, "paddle.autograd.enable_grad")
_mode("paddle.inference_mode", False)


def _set_init(context: Context, self: GradMode, mode: Value = True) -> None:
    engine = engine_of(context)
    self.before.append(engine.grad_enabled)
    engine.grad_enabled = mode is not False
    self.wanted = None


def _set_enter(context: Context, self: GradMode) -> Value:
    return self


_SETTER = native_class(
    "torch.set_grad_enabled",
    make=GradMode,
    __init__=_set_init,
    __enter__=_set_enter,
    __exit__=_exit,
    __call__=_decorated,
)
for _name in (
    "torch.set_grad_enabled",
    "torch.autograd.set_grad_enabled",
    "paddle.set_grad_enabled",
    "paddle.autograd.set_grad_enabled",
):
    register(_name, _SETTER)
for _name in ("torch.is_grad_enabled", "paddle.is_grad_enabled"):
    register(_name, Native(_name, lambda context: engine_of(context).grad_enabled))
register("torch.is_inference_mode_enabled", Native("is_inference_mode_enabled", lambda context: False))


# --- gradients on request
# ----------------------------------------------------------------------------------------------
def _listed(value: Value) -> list[Tensor]:
    return [t for t in flatten_tensors(value) if t.shape is not None]


def grad(
    context: Context,
    outputs: Value,
    inputs: Value,
    grad_outputs: Value = None,
    retain_graph: Value = None,
    create_graph: Value = False,
    *args: Value,
    **kwargs: Value,
) -> Value:
    """``autograd.grad``: new tensors, no leaf is touched."""
    outs, ins = _listed(outputs), _listed(inputs)
    found = engine_of(context).grad(outs, ins, retain_graph=retain_graph is True, create_graph=create_graph is True)
    result = [g if g is not None else engine_of(context).unknown_tensor("no path to this input") for g in found]
    if context.engine.framework == "paddle":
        return result
    return tuple(result)


def backward(
    context: Context,
    tensors: Value,
    grad_tensors: Value = None,
    retain_graph: Value = None,
    *args: Value,
    **kwargs: Value,
) -> None:
    """``autograd.backward``."""
    roots = _listed(tensors)
    given = grad_tensors if isinstance(grad_tensors, (list, tuple)) else [grad_tensors] * len(roots)
    engine_of(context).backward_many(
        roots, [g if isinstance(g, Tensor) else None for g in given], retain_graph=retain_graph is True
    )


for _name in ("torch.autograd.grad", "paddle.grad", "paddle.autograd.grad"):
    register(_name, Native(_name, grad))
for _name in ("torch.autograd.backward", "paddle.autograd.backward"):
    register(_name, Native(_name, backward))
for _name in ("torch.autograd.gradcheck", "torch.autograd.gradgradcheck"):
    register(_name, Native(_name, lambda context, *args, **kwargs: True))


# --- functions with a backward of their own
# ----------------------------------------------------------------------------
class FunctionContext(Instance):
    """``ctx`` of a custom function."""

    def __init__(self) -> None:
        super().__init__(_CTX)
        self.saved: list[Tensor] = []
        self.needs: tuple[bool, ...] = ()


def _save(context: Context, self: FunctionContext, *tensors: Value) -> None:
    self.saved = [t for t in tensors if isinstance(t, Tensor)]
    self.attrs["saved_tensors"] = tuple(tensors)


_CTX = native_class(
    "torch.autograd.function.FunctionCtx",
    save_for_backward=_save,
    mark_dirty=lambda context, self, *args: None,
    mark_non_differentiable=lambda context, self, *args: None,
    mark_not_inplace=lambda context, self, *args: None,
    set_materialize_grads=lambda context, self, value=True: None,
    saved_tensor=lambda context, self: self.attrs.get("saved_tensors", ()),
)


def _method(cls: Class, name: str) -> Value:
    found = cls.lookup(name)
    return getattr(found, "function", found)


def _apply(context: Context, cls: Class, *args: Value, **kwargs: Value) -> Value:
    """``Function.apply``: forward without a graph, backward by the script's own method."""
    engine = engine_of(context)
    ctx = FunctionContext()
    inputs = [a for a in args if isinstance(a, Tensor)]
    ctx.attrs["needs_input_grad"] = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
    with engine.grad_mode(False):
        result = context.call(_method(cls, "forward"), [ctx, *args], kwargs)
        setup = cls.lookup("setup_context")
        if setup is not MISSING:
            context.call(_method(cls, "setup_context"), [ctx, args, result])
    outs = [t for t in flatten_tensors(result) if t.shape is not None]
    known = [t for t in inputs if t.shape is not None]
    if not (engine.grad_enabled and any(t.requires_grad for t in known) and outs):
        return result
    positions = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.shape is not None]
    given = [out if any(out is t for t in known) else None for out in outs]
    views = [out if kept is None else kept for out, kept in zip(outs, given, strict=True)]

    def rule(inner: Engine, node: Node, grads: list[Grad | None]) -> list[Grad | None]:
        handed = [
            Tensor(inner, g.shape, g.dtype, g.storage, g.storage.device) if g is not None else None for g in grads
        ]
        grads.clear()
        with inner.grad_mode(False):
            answer = context.call(_method(cls, "backward"), [ctx, *handed])
        handed.clear()
        ctx.saved.clear()
        ctx.attrs.pop("saved_tensors", None)
        answers = list(answer) if isinstance(answer, (tuple, list)) else [answer]
        if inner.framework == "paddle":
            answers = _spread(answers, positions, len(args))
        produced: list[Grad | None] = []
        for at, tensor in zip(positions, known, strict=True):
            got = answers[at] if at < len(answers) else None
            if isinstance(got, Tensor) and got.shape == tensor.shape and got.storage is not None:
                produced.append(Grad(got.storage, tensor.shape or (), got.dtype))
            elif tensor.requires_grad and (got is not None or isinstance(answer, Unknown)):
                produced.append(inner.fresh_grad(tensor.shape or (), tensor.dtype, tensor.device, "custom"))
            else:
                produced.append(None)
        return produced

    made = engine.apply_multi(
        "custom_function",
        known,
        [(t.shape or (), t.dtype) for t in outs],
        saved=list(ctx.saved),
        views=views,
        rule=rule,
    )
    if isinstance(result, Tensor):
        return made[0]
    if isinstance(result, (tuple, list)):
        replaced = iter(made)
        return tuple(next(replaced) if isinstance(r, Tensor) and r.shape is not None else r for r in result)
    return result


def _spread(answers: list[Value], positions: list[int], count: int) -> list[Value]:
    """PaddlePaddle's ``PyLayer.backward`` answers for tensor inputs only."""
    spread: list[Value] = [None] * count
    for at, answer in zip(positions, answers, strict=False):
        spread[at] = answer
    return spread


def _function_class(name: str) -> Class:
    cls = native_class(name, **_CTX_METHODS)
    cls.namespace["apply"] = ClassMethod(Native(f"{name}.apply", _apply))
    return cls


_CTX_METHODS: dict[str, Any] = {"save_for_backward": _save}
for _name in ("torch.autograd.Function", "torch.autograd.function.Function"):
    register(_name, _function_class("torch.autograd.Function"))
for _name in ("paddle.autograd.PyLayer", "paddle.autograd.py_layer.PyLayer"):
    register(_name, _function_class("paddle.autograd.PyLayer"))
for _name in (
    "torch.autograd.function.once_differentiable",
    "torch.cuda.amp.custom_fwd",
    "torch.cuda.amp.custom_bwd",
    "torch.amp.custom_fwd",
    "torch.amp.custom_bwd",
    "paddle.autograd.once_differentiable",
):
    register(
        _name,
        Native(
            _name,
            lambda context, function=None, **kwargs: (
                function if function is not None else Native("decorator", lambda c, fn: fn)
            ),
        ),
    )
