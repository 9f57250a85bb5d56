"""Which of a script's operators a kind of device has no kernel for, by the dated tables of its PaddlePaddle back end.

Portraits name operators as `paddle/phi/ops/yaml` does; back ends register some under the names of older releases, as
`op_compat.yaml` there pairs them. An operator without a kernel runs on the CPU where Paddle has one for it, with a copy
each way: it is no reason to refuse a device, but people should know.
"""

from __future__ import annotations

from collections.abc import Iterable

from oarlock_accelerators import find_kind, supported_ops

OLDER_NAMES = {
    "add": "elementwise_add",
    "subtract": "elementwise_sub",
    "multiply": "elementwise_mul",
    "divide": "elementwise_div",
    "maximum": "elementwise_max",
    "minimum": "elementwise_min",
    "matmul": "matmul_v2",
    "mean": "reduce_mean",
    "mean_all": "mean",
    "sum": "reduce_sum",
    "max": "reduce_max",
    "min": "reduce_min",
    "prod": "reduce_prod",
    "cross_entropy_with_softmax": "softmax_with_cross_entropy",
    "embedding": "lookup_table_v2",
    "transpose": "transpose2",
    "expand": "expand_v2",
    "full": "fill_constant",
    "arange": "range",
    "topk": "top_k_v2",
    "hardswish": "hard_swish",
    "hardsigmoid": "hard_sigmoid",
    "bilinear_interp": "bilinear_interp_v2",
    "nearest_interp": "nearest_interp_v2",
    "one_hot": "one_hot_v2",
}
"""From `op_compat.yaml` (PaddlePaddle 3.3); a gradient has the same pair of names with `_grad`."""

VIEWS = frozenset({"reshape", "flatten", "squeeze", "unsqueeze"})
"""Change no data; registered for all back ends at once (`PD_REGISTER_KERNEL_FOR_ALL_BACKEND_DTYPE`)."""

FORWARD_AGAIN = frozenset({"cast", "scale", "assign"})
"""Their gradient is the operator itself (`invoke` in `backward.yaml`)."""

PADDLE = "paddlepaddle"


def without_kernel(kind_name: str, vendor: str, framework: str | None, operators: Iterable[str]) -> tuple[str, ...]:
    """Those of `operators` that devices of this kind have no kernel for; none where nothing is known of the kind, or
    the framework is not the tables'."""
    kind = find_kind(kind_name, vendor=vendor) if framework == PADDLE else None
    table = None if kind is None else supported_ops(kind)
    if table is None:
        return ()
    return tuple(
        name
        for name in sorted(set(operators))
        if name.removesuffix("_grad") not in VIEWS and not any(table.supports(each) for each in _names(name))
    )


def remark(kind_name: str, vendor: str, framework: str | None, operators: Iterable[str]) -> str | None:
    """That in a sentence; None where there is nothing to say."""
    known = set(operators)
    missing = without_kernel(kind_name, vendor, framework, known)
    if not missing:
        return None
    named = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
    return f"{len(missing)} of {len(known)} operators have no kernel on {kind_name} and run on the CPU: {named}"


def _names(operator: str) -> tuple[str, ...]:
    """All names under which a table may list what serves the operator."""
    base, grad = (operator.removesuffix("_grad"), "_grad") if operator.endswith("_grad") else (operator, "")
    names = [operator]
    if base in OLDER_NAMES:
        names.append(OLDER_NAMES[base] + grad)
    if grad and base in FORWARD_AGAIN:
        names.append(base)
    return tuple(names)
