"""Loss functions: what each keeps, and its reduction."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.engine.autograd import Grad, Node
from oarlock_profiler.core.engine.dtypes import is_floating, size_of
from oarlock_profiler.core.engine.engine import OUTPUT, Engine
from oarlock_profiler.core.engine.shapes import axis_of, broadcast, numel
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Context, Value
from oarlock_profiler.core.overlays.calling import Unknowable, engine_of, integer, operator, tensor
from oarlock_profiler.core.overlays.elementwise import binary, unary

LIBRARIES = ("torch", "paddle")


def _reduce(context: Context, loss: Tensor, reduction: Value) -> Tensor:
    """``mean`` (the default), ``sum`` or ``none``."""
    if reduction == "none":
        return loss
    name = "sum" if reduction == "sum" else "mean"
    return engine_of(context).apply(
        name,
        [loss],
        (),
        loss.dtype,
        grad="expand" if name == "sum" else "fresh",
        kernel="mean_all" if name == "mean" else None,
    )


def _fused(
    context: Context,
    name: str,
    inputs: list[Tensor],
    shape: tuple[int, ...],
    reduction: Value,
    saved: list[Any],
    kernel: str | None = None,
) -> Tensor:
    """An element-wise loss with its reduction in one operator (PyTorch): the element-wise result is scratch."""
    engine = engine_of(context)
    if reduction == "none":
        return engine.apply(name, inputs, shape, saved=saved, kernel=kernel)
    scratch = int(numel(shape) * size_of(inputs[0].dtype))
    return engine.apply(
        name, inputs, (), saved=saved, workspace_bytes=scratch, backward_workspace_bytes=scratch, kernel=kernel
    )


def _target(context: Context, value: Value, shape: tuple[int, ...], dtype: str, like: Tensor) -> Tensor:
    """The target as given; where it is not known, one of the shape that the loss needs (and that is said)."""
    try:
        return tensor(context, value, like)
    except Unknowable as reason:
        context.findings.gap("the target of a loss", context.where, str(reason), f"{dtype} of shape {list(shape)}")
        return engine_of(context).tensor(shape, dtype, kind="input", device=like.device, op="assumed")


def _classes(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """The shape of class indices for scores of ``shape``."""
    at = axis % len(shape) if shape else 0
    return (*shape[:at], *shape[at + 1 :])


def _pair(context: Context, input: Value, target: Value) -> tuple[Tensor, Tensor, tuple[int, ...]]:
    a = tensor(context, input)
    b = _target(context, target, a.shape or (), a.dtype, a)
    return a, b, broadcast(a.shape or (), b.shape or ())


def _reduction(kwargs: dict[str, Value]) -> Value:
    if kwargs.get("reduction") is not None:
        return kwargs["reduction"]
    if kwargs.get("reduce") is False:
        return "none"
    return "sum" if kwargs.get("size_average") is False else "mean"


F = ("torch.nn.functional", "paddle.nn.functional")
RENAME = {"x": "input", "label": "target", "labels": "target", "y": "target"}


@operator([f"{f}.mse_loss" for f in F], rename=RENAME)
def mse_loss(context: Context, input: Value, target: Value, *args: Value, **kwargs: Value) -> Value:
    """Mean squared error."""
    reduction = kwargs.get("reduction") or next((a for a in args if isinstance(a, str)), None) or _reduction(kwargs)
    a, b, shape = _pair(context, input, target)
    if context.engine.framework == "paddle":
        difference = binary(context, "subtract", a, b)
        return _reduce(context, unary(context, "square", difference), reduction)
    return _fused(context, "mse_loss", [a, b], shape, reduction, [a, b])


@operator(["paddle.nn.functional.square_error_cost"], rename=RENAME)
def square_error_cost(context: Context, input: Value, target: Value) -> Value:
    """Squared error, element by element."""
    return unary(context, "square", binary(context, "subtract", input, target))


@operator([f"{f}.l1_loss" for f in F], rename=RENAME)
def l1_loss(context: Context, input: Value, target: Value, *args: Value, **kwargs: Value) -> Value:
    """Mean absolute error."""
    reduction = kwargs.get("reduction") or next((a for a in args if isinstance(a, str)), None) or _reduction(kwargs)
    a, b, shape = _pair(context, input, target)
    del shape
    return _reduce(context, unary(context, "abs", binary(context, "subtract", a, b)), reduction)


@operator([f"{f}.{n}" for f in F for n in ("smooth_l1_loss", "huber_loss")], rename=RENAME)
def smooth_l1_loss(context: Context, input: Value, target: Value, *args: Value, **kwargs: Value) -> Value:
    """Huber loss."""
    reduction = kwargs.get("reduction") or next((a for a in args if isinstance(a, str)), None) or _reduction(kwargs)
    a, b, shape = _pair(context, input, target)
    if context.engine.framework == "paddle":
        loss = engine_of(context).apply("huber_loss", [a, b], shape, saved=[int(numel(shape) * size_of(a.dtype))])
        return _reduce(context, loss, reduction)
    return _fused(context, "smooth_l1_loss", [a, b], shape, reduction, [a, b])


@operator([f"{f}.binary_cross_entropy" for f in F], rename=RENAME)
def binary_cross_entropy(
    context: Context, input: Value, target: Value, weight: Value = None, *args: Value, **kwargs: Value
) -> Value:
    """Cross entropy of probabilities."""
    reduction = kwargs.get("reduction") or next((a for a in args if isinstance(a, str)), None) or _reduction(kwargs)
    a, b, shape = _pair(context, input, target)
    if context.engine.framework == "paddle":
        loss = engine_of(context).apply(
            "binary_cross_entropy", [a, b], shape, saved=[a, b], grad=("reuse", "none"), kernel="bce_loss"
        )
        if isinstance(weight, Tensor):
            loss = binary(context, "multiply", loss, weight)
        return _reduce(context, loss, reduction)
    return _fused(
        context,
        "binary_cross_entropy",
        [a, b],
        shape,
        reduction,
        [a, b, *([weight] if isinstance(weight, Tensor) else [])],
    )


@operator([f"{f}.binary_cross_entropy_with_logits" for f in F], rename={**RENAME, "logit": "input"})
def binary_cross_entropy_with_logits(
    context: Context,
    input: Value,
    target: Value,
    weight: Value = None,
    *args: Value,
    pos_weight: Value = None,
    **kwargs: Value,
) -> Value:
    """Cross entropy of logits."""
    reduction = kwargs.get("reduction") or next((a for a in args if isinstance(a, str)), None) or _reduction(kwargs)
    a, b, shape = _pair(context, input, target)
    extra = [t for t in (weight, pos_weight) if isinstance(t, Tensor)]
    engine = engine_of(context)
    name = "binary_cross_entropy_with_logits"
    if engine.framework == "paddle":
        loss = engine.apply(
            name,
            [a, b],
            shape,
            saved=[a, b, *extra],
            grad=("reuse", "none"),
            kernel="sigmoid_cross_entropy_with_logits",
        )
        if isinstance(weight, Tensor):
            loss = binary(context, "multiply", loss, weight)
        return _reduce(context, loss, reduction)
    loss = engine.apply(name, [a, b], shape, saved=[a, b, *extra], workspace_bytes=a.nbytes)
    return _reduce(context, loss, reduction)


@operator([f"{f}.kl_div" for f in F] + ["torch.kl_div"], rename=RENAME)
def kl_div(context: Context, input: Value, target: Value, *args: Value, **kwargs: Value) -> Value:
    """Kullback-Leibler divergence."""
    reduction = kwargs.get("reduction") or next((a for a in args if isinstance(a, str)), None) or "mean"
    a, b, shape = _pair(context, input, target)
    engine = engine_of(context)
    if engine.framework == "paddle":
        loss = engine.apply("kl_div", [a, b], shape, saved=[a, b], grad=("fresh", "none"), kernel="kldiv_loss")
        return _reduce(context, loss, "sum" if reduction == "batchmean" else reduction)
    # written out: the target times its logarithm, less the target times the input
    first = engine.apply("xlogy", [b], shape, saved=[(b, b)])
    second = engine.apply("multiply", [b, a], shape, saved=[(b, a), (a, b)])
    loss = engine.apply("subtract", [first, second], shape)
    reduced = _reduce(context, loss, "sum" if reduction == "batchmean" else reduction)
    return binary(context, "divide", reduced, (a.shape or (1,))[0]) if reduction == "batchmean" else reduced


def _log_softmax(context: Context, x: Tensor) -> Tensor:
    return engine_of(context).apply(
        "log_softmax", [x], x.shape or (), None, saved=["output"], flops=5 * numel(x.shape or ())
    )


def _torch_cross_entropy(
    context: Context, x: Tensor, target: Tensor, weight: Value, reduction: Value, smoothing: float
) -> Tensor:
    engine = engine_of(context)
    logs = _log_softmax(context, x)
    if is_floating(target.dtype):
        product = engine.apply("multiply", [logs, target], logs.shape or (), saved=[(logs, target), (target, logs)])
        summed = engine.apply(
            "sum", [product], () if reduction != "none" else target.shape[:1] if target.shape else (), grad="expand"
        )
        return engine.apply("divide", [engine.apply("neg", [summed], summed.shape or ())], summed.shape or ())
    extra = [weight] if isinstance(weight, Tensor) else []
    shape = target.shape or ()
    reduced = shape if reduction == "none" else ()
    loss = engine.apply(
        "nll_loss", [logs, target], reduced, logs.dtype, saved=[logs, target, *extra, 4], grad=("fresh", "none")
    )
    if not smoothing:
        return loss
    total = engine.apply("sum", [logs], shape, grad="expand")
    smooth = engine.apply("neg", [total], shape)
    smooth = _reduce(context, smooth, reduction)
    first = binary(context, "multiply", loss, 0.9)
    second = binary(context, "multiply", smooth, 0.1)
    return binary(context, "add", first, second)  # type: ignore[no-any-return]


def _softmax_rule(engine: Engine, node: Node, grads: list[Grad | None]) -> list[Grad | None]:
    """PaddlePaddle writes the logits' gradient over the kept softmax."""
    incoming = next(g for g in grads if g is not None)
    edge = node.edges[0]
    if edge is None or not node.saved:
        return [None] * len(node.edges)
    softmax = node.saved[0]
    node.saved = node.saved[1:]
    engine.record(
        "cross_entropy_backward",
        "cross_entropy_with_softmax_grad",
        edge.dtype,
        edge.shape,
        bytes_moved=2 * softmax.nbytes + incoming.nbytes,
    )
    return [Grad(softmax, edge.shape, edge.dtype), *([None] * (len(node.edges) - 1))]


def _paddle_cross_entropy(
    context: Context,
    x: Tensor,
    label: Tensor,
    weight: Value,
    ignore_index: Value,
    reduction: Value,
    soft: bool,
    axis: int,
    use_softmax: bool,
) -> Tensor:
    engine = engine_of(context)
    shape = x.shape or ()
    at = axis_of(axis, len(shape))
    out = (*shape[:at], 1, *shape[at + 1 :])
    if len(label.shape or ()) == len(shape) - 1 and not soft:
        label = engine.apply(
            "unsqueeze", [label], (*(label.shape or ())[:at], 1, *(label.shape or ())[at:]), label.dtype, view=label
        )
    if not use_softmax:
        loss = engine.apply(
            "cross_entropy",
            [x, label],
            out,
            x.dtype,
            saved=[x, label],
            grad=("fresh", "none"),
            kernel="cross_entropy_with_softmax",
        )
    else:
        softmax, loss = engine.apply_multi(
            "cross_entropy",
            [x, label],
            [(shape, None), (out, None if engine.autocast else x.dtype)],
            saved=[("output", 0), label],
            grad=("fresh", "none"),
            kernel="cross_entropy_with_softmax",
            rule=_softmax_rule,
            flops=5 * numel(shape),
        )
        del softmax
    if isinstance(weight, Tensor):
        gathered = engine.apply("gather_nd", [weight], out, weight.dtype, grad="none")
        loss = binary(context, "multiply", loss, gathered)
    if reduction == "none":
        return (
            loss
            if soft or len(label.shape or ()) == len(shape)
            else engine.apply("squeeze", [loss], out, loss.dtype, view=loss, grad="alias")
        )
    return _reduce(context, loss, reduction)


@operator(["torch.nn.functional.cross_entropy", "torch.nn.functional.cross_entropy_loss"], rename={})
def torch_cross_entropy(
    context: Context,
    input: Value,
    target: Value,
    weight: Value = None,
    size_average: Value = None,
    ignore_index: Value = -100,
    reduce: Value = None,
    reduction: Value = "mean",
    label_smoothing: Value = 0.0,
) -> Value:
    """Log-softmax and negative log-likelihood."""
    del size_average, reduce, ignore_index
    x = tensor(context, input)
    t = _target(context, target, _classes(x.shape or (), 1 if len(x.shape or ()) > 1 else 0), "int64", x)
    smoothing = label_smoothing if isinstance(label_smoothing, (int, float)) else 0.1
    return _torch_cross_entropy(context, x, t, weight, reduction, smoothing)


@operator(
    [
        "paddle.nn.functional.cross_entropy",
        "paddle.nn.functional.softmax_with_cross_entropy",
        "paddle.fluid.layers.cross_entropy",
    ],
    rename={"logits": "input", "x": "input", "labels": "label"},
)
def paddle_cross_entropy(
    context: Context,
    input: Value,
    label: Value,
    weight: Value = None,
    ignore_index: Value = -100,
    reduction: Value = "mean",
    soft_label: Value = False,
    axis: Value = -1,
    use_softmax: Value = True,
    label_smoothing: Value = 0.0,
    **kwargs: Value,
) -> Value:
    """Softmax with cross entropy in one operator."""
    if kwargs.get("return_softmax") is not None or "numeric_stable_mode" in kwargs:
        reduction = "none"
    x = tensor(context, input)
    t = _target(context, label, _classes(x.shape or (), integer(axis)), "int64", x)
    if isinstance(label_smoothing, (int, float)) and label_smoothing > 0:
        count = (x.shape or (1,))[integer(axis)]
        engine = engine_of(context)
        if soft_label is not True:
            flat = (t.shape or ())[:-1] if len(t.shape or ()) == len(x.shape or ()) else t.shape or ()
            t = engine.apply("one_hot", [t], (*flat, count), "float32", grad="none")
            soft_label = True
        t = engine.apply("label_smooth", [t], t.shape or (), t.dtype, grad="none")
    return _paddle_cross_entropy(
        context, x, t, weight, ignore_index, reduction, soft_label is True, integer(axis), use_softmax is not False
    )


@operator(
    ["torch.nn.functional.nll_loss", "torch.nn.functional.nll_loss2d", "paddle.nn.functional.nll_loss"], rename=RENAME
)
def nll_loss(
    context: Context, input: Value, target: Value, weight: Value = None, *args: Value, **kwargs: Value
) -> Value:
    """Negative log-likelihood."""
    reduction = kwargs.get("reduction") or next((a for a in args if isinstance(a, str)), None) or _reduction(kwargs)
    x = tensor(context, input)
    t = _target(context, target, _classes(x.shape or (), 1 if len(x.shape or ()) > 1 else 0), "int64", x)
    extra = [weight] if isinstance(weight, Tensor) else []
    shape = t.shape or ()
    return engine_of(context).apply(
        "nll_loss",
        [x, t],
        shape if reduction == "none" else (),
        x.dtype,
        saved=[x, t, *extra, 4],
        grad=("fresh", "none"),
    )


def _generic(name: str, tensors: int, *, targets: int = 0) -> None:
    def call(context: Context, *args: Value, **kwargs: Value) -> Value:
        given = [a for a in args if isinstance(a, (Tensor, list))] + [
            v for v in kwargs.values() if isinstance(v, Tensor)
        ]
        parts = [tensor(context, a) for a in given[:tensors]]
        reduction = kwargs.get("reduction") or next((a for a in args if isinstance(a, str)), None) or "mean"
        shape = (
            broadcast(*(p.shape or () for p in parts))
            if name
            not in (
                "cosine_embedding_loss",
                "triplet_margin_loss",
                "triplet_margin_with_distance_loss",
                "multi_margin_loss",
            )
            else (parts[0].shape or (1,))[:1]
        )
        modes: list[Any] = ["fresh"] * (len(parts) - targets) + ["none"] * targets
        scratch = parts[0].nbytes
        loss = engine_of(context).apply(name, parts, shape, parts[0].dtype, saved=[*parts, scratch], grad=modes)
        return _reduce(context, loss, reduction)

    call.__name__ = name
    operator([f"{f}.{name}" for f in F], rename={})(call)


for _name, _count, _targets in (
    ("margin_ranking_loss", 3, 1),
    ("cosine_embedding_loss", 3, 1),
    ("triplet_margin_loss", 3, 0),
    ("hinge_embedding_loss", 2, 1),
    ("triplet_margin_with_distance_loss", 3, 0),
    ("soft_margin_loss", 2, 1),
    ("multi_label_soft_margin_loss", 2, 1),
    ("multilabel_soft_margin_loss", 2, 1),
    ("multi_margin_loss", 2, 1),
    ("multilabel_margin_loss", 2, 1),
    ("poisson_nll_loss", 2, 1),
    ("gaussian_nll_loss", 3, 0),
    ("log_loss", 2, 1),
    ("npair_loss", 3, 1),
    ("dice_loss", 2, 1),
    ("sigmoid_focal_loss", 2, 1),
):
    _generic(_name, _count, targets=_targets)


@operator(["torch.nn.functional.ctc_loss", "torch.ctc_loss"], rename={})
def torch_ctc_loss(
    context: Context,
    log_probs: Value,
    targets: Value,
    input_lengths: Value = None,
    target_lengths: Value = None,
    blank: Value = 0,
    reduction: Value = "mean",
    zero_infinity: Value = False,
) -> Value:
    """Connectionist temporal classification; keeps the forward table (batch × time × 2·target+1)."""
    del input_lengths, target_lengths, blank, zero_infinity
    x, t = tensor(context, log_probs), tensor(context, targets)
    shape = x.shape or ()
    longest = (t.shape or (1,))[-1]
    table = 4 * numel(shape[:2]) * (2 * longest + 1)
    loss = engine_of(context).apply(
        "ctc_loss", [x], shape[1:2], x.dtype, saved=[x, table, 4 * (shape[1] if len(shape) > 1 else 1), t]
    )
    return _reduce(context, loss, reduction)


@operator(["paddle.nn.functional.ctc_loss"], rename={})
def paddle_ctc_loss(
    context: Context,
    log_probs: Value,
    labels: Value,
    input_lengths: Value = None,
    label_lengths: Value = None,
    blank: Value = 0,
    reduction: Value = "mean",
    norm_by_times: Value = False,
) -> Value:
    """Warp-CTC; computes the logits' gradient at once and keeps it, not the logits (``backward.yaml``: no need).

    The padded copy of the logits and warp-ctc's workspace lie beside that gradient while the kernel runs.
    """
    del input_lengths, label_lengths, blank, norm_by_times
    x = tensor(context, log_probs)
    engine = engine_of(context)
    times, samples, classes = (*(x.shape or ()), 1, 1, 1)[:3]
    # Labels of unknown length only make the tables smaller than they are; the logits are most of what is taken.
    letters = ((labels.shape if isinstance(labels, Tensor) else None) or (0,))[-1]
    scratch = x.nbytes + _warp_ctc_bytes(times, samples, classes, letters, x.device)
    loss = engine.apply_multi(
        "ctc_loss", [x], (((samples, 1), x.dtype), (x.shape or (), x.dtype)), saved=[(OUTPUT, 1)], kernel="warpctc",
        workspace_bytes=scratch,
    )[0]  # fmt: skip
    return _reduce(context, loss, reduction)


def _warp_ctc_bytes(times: int, samples: int, classes: int, labels: int, device: str) -> int:
    """Bytes of warp-ctc's workspace (its ``get_workspace_size``), for labels of ``labels`` letters.

    Measured on a CPU with PaddlePaddle 3.3.1: this, a padded copy of the logits and the labels, to 4 bytes. The GPU's
    is by its source, not measured.
    """
    blanks_between = 2 * labels + 1
    shared = 4 * (times * classes + times * blanks_between)  # probabilities, and alphas
    if device == "cpu":
        return samples * (shared + 4 * (classes + 4 * blanks_between))  # one frame, betas, labels and two steps
    return samples * (shared + 4 * (6 + labels + blanks_between + times))  # likelihoods, lengths, labels, denominators


@operator(["paddle.nn.functional.label_smooth"], rename={"x": "label"})
def label_smooth(context: Context, label: Value, *args: Value, **kwargs: Value) -> Value:
    """Labels pulled towards the mean."""
    del args, kwargs
    x = tensor(context, label)
    return engine_of(context).apply("label_smooth", [x], x.shape or (), x.dtype)
