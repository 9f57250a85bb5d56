"""Probability distributions: samples and log-probabilities as tensors of the parameters' shape."""

from __future__ import annotations

from oarlock_profiler.core.engine.shapes import Shape, broadcast, numel
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Class, Context, Instance, Native, Value
from oarlock_profiler.core.overlays.calling import engine_of, guarded, integers, tensor
from oarlock_profiler.core.overlays.registry import native_class, register

LIBRARIES = ("torch", "paddle")

CONTINUOUS = (
    "Normal", "Uniform", "Beta", "Gamma", "Exponential", "Laplace", "LogNormal", "Cauchy", "StudentT", "Gumbel", "Chi2",
    "HalfNormal", "VonMises",
)  # fmt: skip
DISCRETE = ("Bernoulli", "Poisson", "Geometric", "Binomial")


class Distribution(Instance):
    """``parameters`` are tensors; ``batch`` is their common shape (a categorical's last axis is its classes)."""

    def __init__(self, cls: Class) -> None:
        super().__init__(cls)
        self.parameters: list[Tensor] = []
        self.batch: Shape = ()


def _init(context: Context, self: Distribution, *args: Value, **kwargs: Value) -> None:
    given = [a for a in (*args, *kwargs.values()) if isinstance(a, (Tensor, int, float)) and not isinstance(a, bool)]
    self.parameters = [tensor(context, g) for g in given if not isinstance(g, Tensor) or g.shape is not None]
    shape = broadcast(*(p.shape or () for p in self.parameters))
    self.batch = shape[:-1] if self.cls.name in ("Categorical", "OneHotCategorical") else shape
    for name, value in zip(("loc", "scale"), self.parameters, strict=False):
        self.attrs[name] = value
    self.attrs.update({k: v for k, v in kwargs.items() if isinstance(v, Tensor)})
    if self.parameters:
        self.attrs["mean"] = self.parameters[0]
        self.attrs.setdefault("probs", self.parameters[0])
        self.attrs.setdefault("logits", self.parameters[0])


def _drawn(context: Context, self: Distribution, shape: Value, differentiable: bool) -> Value:
    def run(inner: Context) -> Value:
        lead = integers(shape) if shape not in (None, [], ()) else ()
        discrete = self.cls.name in ("Categorical",)
        live = [p for p in self.parameters if p.storage is not None]
        out = (*lead, *self.batch)
        dtype = "int64" if discrete else live[0].dtype if live else inner.engine.default_dtype
        if not live:
            return engine_of(inner).tensor(out, dtype, op="sample")
        noise = [4 * numel(out)] if differentiable else []
        return engine_of(inner).apply(
            "sample", live, out, dtype, saved=noise, grad="fresh" if differentiable else "none"
        )

    return guarded(context, run, (), {})


def _sample(context: Context, self: Distribution, shape: Value = (), *args: Value, **kwargs: Value) -> Value:
    return _drawn(context, self, kwargs.get("sample_shape", shape), False)


def _rsample(context: Context, self: Distribution, shape: Value = (), *args: Value, **kwargs: Value) -> Value:
    return _drawn(context, self, kwargs.get("sample_shape", shape), True)


def _log_prob(context: Context, self: Distribution, value: Value) -> Value:
    def run(inner: Context) -> Value:
        x = tensor(inner, value)
        live = [p for p in self.parameters if p.storage is not None]
        shape = broadcast(x.shape or (), self.batch)
        kept = [x, *live, 4 * numel(shape)]
        return engine_of(inner).apply("log_prob", [*live, x], shape, live[0].dtype if live else x.dtype, saved=kept)

    return guarded(context, run, (), {})


def _summary(context: Context, self: Distribution, *args: Value) -> Value:
    live = [p for p in self.parameters if p.storage is not None]
    if not live:
        return engine_of(context).tensor(self.batch, op="entropy")
    return engine_of(context).apply("entropy", live, self.batch, live[0].dtype, saved=live)


METHODS = {
    "__init__": _init,
    "sample": _sample,
    "rsample": _rsample,
    "log_prob": _log_prob,
    "prob": _log_prob,
    "entropy": _summary,
    "probs": _log_prob,
    "cdf": _log_prob,
    "icdf": _log_prob,
    "kl_divergence": _summary,
    "expand": lambda context, self, *args: self,
}


def _class(name: str) -> Class:
    cls = native_class(name, make=Distribution)
    for method, function in METHODS.items():
        cls.namespace[method] = Native(f"{name}.{method}", function)
    return cls


OWNERS = {
    "torch": ("torch.distributions", "torch.distributions.normal", "torch.distributions.categorical"),
    "paddle": ("paddle.distribution",),
}
for _owners in OWNERS.values():
    for _name in (
        *CONTINUOUS,
        *DISCRETE,
        "Categorical",
        "OneHotCategorical",
        "Multinomial",
        "Dirichlet",
        "MultivariateNormal",
    ):
        _cls = _class(f"{_owners[0]}.{_name}")
        for _owner in _owners:
            register(f"{_owner}.{_name}", _cls)
for _owner in ("torch.distributions", "torch.distributions.kl", "paddle.distribution"):
    register(f"{_owner}.kl_divergence", Native("kl_divergence", lambda context, p, q: _summary(context, p)))
