"""Reductions and scans: sum, mean, max, norms, cumulative operators."""

from __future__ import annotations

import itertools
from typing import Any

from oarlock_profiler.core.engine.dtypes import COMPLEX, FLOATING, size_of
from oarlock_profiler.core.engine.engine import Mode
from oarlock_profiler.core.engine.shapes import axes_of, axis_of, broadcast, numel, reduce
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import MISSING, Context, HostObject, Iteration, Native, Unknown, Value
from oarlock_profiler.core.overlays import routing
from oarlock_profiler.core.overlays.calling import axis_or_none, dtype_name, engine_of, names, operator, sizes, tensor
from oarlock_profiler.core.overlays.elementwise import binary
from oarlock_profiler.core.overlays.registry import register

LIBRARIES = ("torch", "paddle")


def _reduced(x: Tensor, axis: Value, keepdim: Value) -> tuple[int, ...]:
    shape = x.shape or ()
    return reduce(shape, axes_of(axis_or_none(axis), len(shape)), keepdim is True)


def _known(x: Tensor, compute: Any) -> Any:
    if isinstance(x.value, list) and x.value:
        try:
            return compute(x.value)
        except TypeError:
            return None
    return x.value if not isinstance(x.value, list) else None


TORCH_BACKWARD_TEMPORARIES = {
    "max": 2.25,
    "min": 2.25,
    "amax": 1.3,
    "amin": 1.3,
    "var": 1,
    "std": 1,
    "norm": 1,
    "logsumexp": 2,
    "cumsum": 2,
    "prod": 1.3,
}
"""Temporaries of PyTorch's backward formulas, in tensors of the input's size (read off its allocator)."""


def _temporaries(context: Context, name: str, x: Tensor) -> int:
    if context.engine.framework == "paddle":
        return x.nbytes if name in ("var", "std") else 0
    return int(x.nbytes * TORCH_BACKWARD_TEMPORARIES.get(name, 0))


def _sum_like(name: str, saves: Any, mode: Mode, compute: Any = None) -> None:
    def call(
        context: Context, input: Value, axis: Value = None, keepdim: Value = False, dtype: Value = None, **kwargs: Value
    ) -> Value:
        engine = engine_of(context)
        if isinstance(keepdim, bool) is False and dtype is None:  # PaddlePaddle's sum(x, axis, dtype, keepdim)
            dtype, keepdim = keepdim, kwargs.get("keepdim", False)
        x = tensor(context, input)
        wanted = dtype_name(dtype)
        if wanted is None and name in ("sum", "prod", "nansum") and x.dtype not in FLOATING and x.dtype not in COMPLEX:
            wanted = "int64"
        if wanted is None and name in ("mean", "nanmean", "logsumexp", "norm") and x.dtype not in FLOATING:
            wanted = engine.default_dtype
        shape = _reduced(x, axis, keepdim)
        value = _known(x, compute) if compute is not None and not shape else None
        return engine.apply(
            name,
            [x],
            shape,
            wanted or x.dtype,
            saved=saves(x) if saves else (),
            grad=mode,
            value=value,
            kernel="mean_all" if name == "mean" and axis is None else None,
            backward_workspace_bytes=_temporaries(context, name, x),
        )

    call.__name__ = name
    operator(names(name))(call)


_sum_like("sum", None, "expand", sum)
_sum_like("nansum", lambda x: [x], "fresh")
_sum_like("mean", None, "fresh", lambda v: sum(v) / len(v))
_sum_like("nanmean", lambda x: [x], "fresh")
_sum_like("prod", lambda x: [x, "output"], "fresh")
_sum_like("logsumexp", lambda x: [x, "output"], "fresh")
_sum_like("amax", lambda x: [x, "output"], "fresh", max)
_sum_like("amin", lambda x: [x, "output"], "fresh", min)
_sum_like("count_nonzero", None, "none")


@operator(["torch.Tensor.sum_to_size"])
def sum_to_size(context: Context, input: Value, *size: Value) -> Value:
    """Summed down to a broadcastable shape."""
    x = tensor(context, input)
    return engine_of(context).apply("sum", [x], sizes(size), grad="expand")


def _flags(name: str, compute: Any) -> None:
    def call(context: Context, input: Value, axis: Value = None, keepdim: Value = False) -> Value:
        x = tensor(context, input)
        shape = _reduced(x, axis, keepdim)
        made = engine_of(context).apply(
            name, [x], shape, "bool", grad="none", value=_known(x, compute) if not shape else None
        )
        return routing.any_of(context, x, made) if name == "any" else made

    call.__name__ = name
    operator(names(name))(call)


_flags("all", all)
_flags("any", any)


def _extreme(name: str, compute: Any) -> None:
    def call(context: Context, input: Value, axis: Value = None, keepdim: Value = False, other: Value = None) -> Value:
        engine = engine_of(context)
        if isinstance(axis, Tensor) and not isinstance(axis.value, int):
            other, axis = axis, None
        if other is not None:
            return binary(context, "maximum" if name == "max" else "minimum", input, other)
        x = tensor(context, input)
        shape = _reduced(x, axis, keepdim)
        if axis is None:
            return engine.apply(
                name, [x], shape, x.dtype, saved=[x, "output"], value=_known(x, compute) if not shape else None,
                backward_workspace_bytes=_temporaries(context, name, x),
            )  # fmt: skip
        if engine.framework == "paddle":
            return engine.apply(name, [x], shape, x.dtype, saved=[x, "output"])
        values, indices = engine.apply_multi(name, [x], [(shape, x.dtype), (shape, "int64")], saved=[("output", 1)])
        return named_pair(context, values, indices)

    call.__name__ = name
    operator(names(name))(call)


def named_pair(context: Context, values: Value, indices: Value) -> Value:
    """``(values, indices)`` as PyTorch's named tuples give them; PaddlePaddle's are plain tuples."""
    return (values, indices) if context.engine.framework == "paddle" else ValuesIndices((values, indices))


class ValuesIndices(HostObject, tuple[Any, ...]):
    """``torch.return_types``: a pair with names."""

    def py_type(self) -> str:
        return "builtins.tuple"

    def py_getattr(self, context: Context, name: str) -> Value:
        return {"values": self[0], "indices": self[1]}.get(name, MISSING)

    def py_getitem(self, context: Context, key: Value) -> Value:
        return self[key] if isinstance(key, (int, slice)) else context.unknown("an item of a pair")

    def py_iterate(self, context: Context) -> Iteration:
        return Iteration(iter(tuple(self)))

    def py_len(self, context: Context) -> Value:
        return 2


_extreme("max", max)
_extreme("min", min)


def _arg(name: str) -> None:
    def call(context: Context, input: Value, axis: Value = None, keepdim: Value = False, dtype: Value = None) -> Value:
        x = tensor(context, input)
        made = engine_of(context).apply(
            name, [x], _reduced(x, axis, keepdim), dtype_name(dtype) or "int64", grad="none"
        )
        return routing.picked(context, made, numel(x.shape or ()) // max(1, numel(made.shape or ())))

    call.__name__ = name
    operator(names(name))(call)


_arg("argmax")
_arg("argmin")


def _moments(name: str) -> None:
    def call(
        context: Context,
        input: Value,
        axis: Value = None,
        unbiased: Value = True,
        keepdim: Value = False,
        **kwargs: Value,
    ) -> Value:
        del kwargs
        x = tensor(context, input)
        if isinstance(axis, bool):
            axis = None
        del unbiased
        # written out in PaddlePaddle: what is kept is the difference from the mean
        saved: list[Any] = [x.nbytes if context.engine.framework == "paddle" else x]
        if name == "std":
            saved.append("output")
        return engine_of(context).apply(
            name,
            [x],
            _reduced(x, axis, keepdim),
            x.dtype,
            saved=saved,
            backward_workspace_bytes=_temporaries(context, name, x),
        )

    call.__name__ = name
    operator(names(name))(call)


_moments("var")
_moments("std")


@operator(["torch.var_mean", "torch.std_mean"])
def var_mean(
    context: Context, input: Value, axis: Value = None, unbiased: Value = True, keepdim: Value = False, **kwargs: Value
) -> Value:
    """Variance and mean at once."""
    del unbiased, kwargs
    x = tensor(context, input)
    shape = _reduced(x, axis, keepdim)
    return tuple(
        engine_of(context).apply_multi("var_mean", [x], [(shape, x.dtype), (shape, x.dtype)], saved=[x, ("output", 1)])
    )


@operator(
    [
        *names("norm"),
        "torch.linalg.norm",
        "paddle.linalg.norm",
        "torch.linalg.vector_norm",
        "paddle.linalg.vector_norm",
        "torch.linalg.matrix_norm",
        "paddle.linalg.matrix_norm",
        "torch.functional.norm",
    ],
    rename={"dim": "axis", "keepdims": "keepdim", "x": "input", "ord": "p", "A": "input"},
)
def norm(
    context: Context, input: Value, p: Value = 2, axis: Value = None, keepdim: Value = False, dtype: Value = None
) -> Value:
    """Vector or matrix norm."""
    x = tensor(context, input)
    del p
    return engine_of(context).apply(
        "norm",
        [x],
        _reduced(x, axis, keepdim),
        dtype_name(dtype) or x.dtype,
        saved=[x, "output"],
        kernel="p_norm",
        backward_workspace_bytes=_temporaries(context, "norm", x),
    )


@operator(names("dist"), rename={"x": "input", "y": "other"})
def dist(context: Context, input: Value, other: Value, p: Value = 2) -> Value:
    """Norm of the difference."""
    del p
    difference = binary(context, "subtract", input, other)
    return norm(context, difference)


def _scan(name: str, saves: Any) -> None:
    def call(context: Context, input: Value, axis: Value = None, dtype: Value = None, **kwargs: Value) -> Value:
        del kwargs
        x = tensor(context, input)
        shape = x.shape or ()
        if axis is None and context.engine.framework == "paddle":
            shape = (numel(shape),)
        kind = dtype_name(dtype) or ("int64" if x.dtype not in FLOATING and x.dtype not in COMPLEX else x.dtype)
        value = list(itertools.accumulate(x.value)) if name == "cumsum" and isinstance(x.value, list) else None
        return engine_of(context).apply(
            name,
            [x],
            shape,
            kind,
            saved=saves(context, x),
            backward_workspace_bytes=_temporaries(context, name, x),
            value=value,
        )

    call.__name__ = name
    operator([*names(name), *names(name + "_")])(call)


_scan("cumsum", lambda context, x: [x] if context.engine.framework == "paddle" else [])
_scan("cumprod", lambda _context, x: [x, "output"])
_scan("logcumsumexp", lambda _context, x: [x, "output"])


def _indexed_scan(name: str) -> None:
    def call(context: Context, input: Value, axis: Value = None, **kwargs: Value) -> Value:
        del axis, kwargs
        x = tensor(context, input)
        return tuple(
            engine_of(context).apply_multi(
                name, [x], [(x.shape or (), x.dtype), (x.shape or (), "int64")], saved=[("output", 1)]
            )
        )

    call.__name__ = name
    operator(names(name))(call)


_indexed_scan("cummax")
_indexed_scan("cummin")


def _quantile(name: str) -> None:
    def call(
        context: Context, input: Value, q: Value = 0.5, axis: Value = None, keepdim: Value = False, **kwargs: Value
    ) -> Value:
        del kwargs
        x = tensor(context, input)
        if name in ("median", "nanmedian"):
            axis = q if isinstance(q, int) and not isinstance(q, bool) else axis
            q = 0.5
        shape = _reduced(x, axis, keepdim)
        if isinstance(q, (list, tuple)):
            shape = (len(q), *shape)
        elif isinstance(q, Tensor) and q.shape:
            shape = (*q.shape, *shape)
        out = engine_of(context).apply(
            name, [x], shape, x.dtype if x.dtype in FLOATING else context.engine.default_dtype, saved=[x]
        )
        if name in ("median", "nanmedian") and axis is not None and context.engine.framework == "torch":
            return named_pair(context, out, engine_of(context).apply("argmedian", [x], shape, "int64", grad="none"))
        return out

    call.__name__ = name
    operator(names(name))(call)


for _name in ("quantile", "nanquantile", "median", "nanmedian"):
    _quantile(_name)


@operator([*names("diff")], rename={"x": "input", "dim": "axis"})
def diff(
    context: Context, input: Value, n: Value = 1, axis: Value = -1, prepend: Value = None, append: Value = None
) -> Value:
    """Differences of neighbours along an axis."""
    x = tensor(context, input)
    shape = list(x.shape or ())
    at = axis_of(int(axis), len(shape))
    shape[at] = max(
        0, shape[at] - int(n) + sum((tensor(context, t).shape or ())[at] for t in (prepend, append) if t is not None)
    )
    known = x.value if isinstance(x.value, list) and n == 1 and prepend is append is None else None
    value = [b - a for a, b in itertools.pairwise(known)] if known is not None else None
    return engine_of(context).apply("diff", [x], shape, value=value)


@operator(["paddle.numel", "paddle.tensor.numel"])
def paddle_numel(context: Context, input: Value, **kwargs: Value) -> Value:
    """Number of elements, as a tensor."""
    del kwargs
    x = tensor(context, input)
    return engine_of(context).tensor((), "int64", kind="temporary", value=numel(x.shape or ()), op="numel")


@operator(["torch.numel"])
def torch_numel(context: Context, input: Value) -> Value:
    """Number of elements."""
    return numel(tensor(context, input).shape or ())


@operator(
    ["torch.nn.functional.normalize", "paddle.nn.functional.normalize"],
    rename={"x": "input", "dim": "axis", "epsilon": "eps"},
)
def normalize(
    context: Context, input: Value, p: Value = 2, axis: Value = 1, eps: Value = 1e-12, **kwargs: Value
) -> Value:
    """Divide by the norm along an axis."""
    del eps, kwargs
    x = tensor(context, input)
    length = norm(context, x, p, axis, True)
    length = (
        binary(context, "maximum", length, 1e-12)
        if context.engine.framework == "paddle"
        else engine_of(context).apply("clip", [length], length.shape, saved=[length])
    )
    if context.engine.framework == "torch":
        length = engine_of(context).apply("expand", [length], x.shape or (), view=length, grad="fresh")
    return binary(context, "divide", x, length)


@operator(
    [*(f"{f}.nn.functional.cosine_similarity" for f in ("torch", "paddle")), "torch.cosine_similarity"],
    rename={"dim": "axis"},
)
def cosine_similarity(context: Context, x1: Value, x2: Value, axis: Value = 1, eps: Value = 1e-8) -> Value:
    """Cosine of the angle along an axis."""
    del eps
    a, b = tensor(context, x1), tensor(context, x2)
    shape = broadcast(a.shape or (), b.shape or ())
    at = axis_of(int(axis), len(shape))
    out = tuple(s for i, s in enumerate(shape) if i != at)
    extra = int(numel(shape) * size_of(a.dtype))
    return engine_of(context).apply("cosine_similarity", [a, b], out, saved=[a, b, extra, extra])


@operator([*names("histc", "bincount", "histogram")])
def histogram(
    context: Context, input: Value, bins: Value = 100, *args: Value, minlength: Value = None, **kwargs: Value
) -> Value:
    """Counts per bin (``bincount`` of unknown values: the length asked for)."""
    del args, kwargs
    x = tensor(context, input)
    count = bins if isinstance(bins, int) and not isinstance(bins, bool) else 100
    if isinstance(minlength, int) and minlength > 0:
        count = minlength
    return engine_of(context).apply(
        "histogram", [x], (count,), "int64" if x.dtype not in FLOATING else x.dtype, grad="none"
    )


def _unknown_extent(context: Context, what: str, count: int) -> None:
    context.findings.gap(what, context.where, "how many there are depends on values", assumed=count)


@operator(names("unique", "unique_consecutive"))
def unique(
    context: Context,
    input: Value,
    *args: Value,
    return_index: Value = False,
    return_inverse: Value = False,
    return_counts: Value = False,
    axis: Value = None,
    **kwargs: Value,
) -> Value:
    """Distinct values; taken as all distinct, which is the largest need."""
    del args, kwargs
    x = tensor(context, input)
    engine = engine_of(context)
    count = numel(x.shape or ()) if axis is None else (x.shape or (1,))[int(axis)]
    known = sorted(set(x.value)) if isinstance(x.value, list) else None
    if known is not None:
        count = len(known)
    else:
        _unknown_extent(context, "unique", count)
    found: list[Tensor] = [
        engine.apply("unique", [x], (count,) if axis is None else x.shape or (), x.dtype, grad="none", value=known)
    ]
    if return_index is True:
        found.append(engine.apply("unique", [x], (count,), "int64", grad="none"))
    if return_inverse is True:
        found.append(engine.apply("unique", [x], x.shape or () if axis is None else (count,), "int64", grad="none"))
    if return_counts is True:
        times = [x.value.count(v) for v in known] if known is not None else None
        found.append(engine.apply("unique", [x], (count,), "int64", grad="none", value=times))
    return found[0] if len(found) == 1 else tuple(found)


@operator([*names("nonzero"), "torch.argwhere"])
def nonzero(context: Context, input: Value, as_tuple: Value = False, **kwargs: Value) -> Value:
    """Positions of what is not zero; taken as all, which is the largest need."""
    del kwargs
    x = tensor(context, input)
    shape = x.shape or ()
    chosen = routing.selected(context, x)
    count = numel(shape) if chosen is None else chosen
    _unknown_extent(context, "nonzero", count)
    if as_tuple is True:
        wide = (count,) if context.engine.framework == "torch" else (count, 1)
        return tuple(engine_of(context).apply("nonzero", [x], wide, "int64", grad="none") for _ in shape)
    return engine_of(context).apply("nonzero", [x], (count, len(shape)), "int64", grad="none")


def _method_numel(context: Context, input: Value) -> Value:
    if isinstance(input, Tensor) and input.shape is not None:
        return numel(input.shape)
    return Unknown("elements of an unknown tensor", context.where, hint="int")


register("torch.Tensor.numel", Native("torch.Tensor.numel", _method_numel))
register("torch.Tensor.nelement", Native("torch.Tensor.nelement", _method_numel))
register("paddle.Tensor.numel", Native("paddle.Tensor.numel", paddle_numel))
