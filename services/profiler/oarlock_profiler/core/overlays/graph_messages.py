"""Messages along the edges of a graph: ``paddle.geometric``.

What is kept for backward follows ``paddle/phi/ops/yaml/backward.yaml`` (``send_u_recv_grad``, ``send_ue_recv_grad``,
``send_uv_grad``, ``segment_pool_grad``); indices are kept as they are.
"""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.engine.shapes import broadcast
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Context, Value
from oarlock_profiler.core.overlays.calling import engine_of, operator, tensor

LIBRARIES = ("paddle",)


def _rows(size: Value, default: int) -> int:
    known = getattr(size, "value", size)
    return known if isinstance(known, int) and not isinstance(known, bool) and known > 0 else default


def _reduced(
    context: Context,
    name: str,
    given: list[Tensor],
    indices: list[Tensor],
    rest: tuple[int, ...],
    reduce_op: Value,
    out_size: Value,
) -> Value:
    """Messages of shape ``rest`` along ``indices``, reduced to a row for each row of the first of ``given``."""
    rows = _rows(out_size, (given[0].shape or (1,))[0])
    saved: list[Any] = [*indices, *given, "output"]
    if reduce_op == "mean":
        saved.append(4 * rows)  # how many messages each row got
    return engine_of(context).apply(name, given, (rows, *rest), given[0].dtype, saved=saved)


@operator(
    ["paddle.geometric.send_u_recv", "paddle.incubate.graph_send_recv", "paddle.incubate.operators.graph_send_recv"]
)
def send_u_recv(
    context: Context,
    x: Value,
    src_index: Value,
    dst_index: Value,
    reduce_op: Value = "sum",
    out_size: Value = None,
    **kwargs: Value,
) -> Value:
    """Rows of ``x`` sent along edges and reduced where they arrive."""
    reduce_op = kwargs.get("pool_type", reduce_op)
    nodes = tensor(context, x)
    edges = [tensor(context, src_index), tensor(context, dst_index)]
    return _reduced(context, "send_u_recv", [nodes], edges, (nodes.shape or (1,))[1:], reduce_op, out_size)


@operator(["paddle.geometric.send_ue_recv"])
def send_ue_recv(
    context: Context,
    x: Value,
    y: Value,
    src_index: Value,
    dst_index: Value,
    message_op: Value = "add",
    reduce_op: Value = "sum",
    out_size: Value = None,
    name: Value = None,
) -> Value:
    """Rows of ``x`` combined with values of the edges, sent and reduced."""
    del message_op, name
    nodes, edges = tensor(context, x), tensor(context, y)
    ends = [tensor(context, src_index), tensor(context, dst_index)]
    rest = broadcast((nodes.shape or (1,))[1:], (edges.shape or (1,))[1:])
    return _reduced(context, "send_ue_recv", [nodes, edges], ends, rest, reduce_op, out_size)


@operator(["paddle.geometric.send_uv"])
def send_uv(
    context: Context,
    x: Value,
    y: Value,
    src_index: Value,
    dst_index: Value,
    message_op: Value = "add",
    name: Value = None,
) -> Value:
    """A value per edge from the rows at both its ends."""
    del message_op, name
    left, right = tensor(context, x), tensor(context, y)
    src, dst = tensor(context, src_index), tensor(context, dst_index)
    rest = broadcast((left.shape or (1,))[1:], (right.shape or (1,))[1:])
    return engine_of(context).apply(
        "send_uv", [left, right], ((src.shape or (1,))[0], *rest), left.dtype, saved=[left, right, src, dst]
    )


def _segments(name: str) -> None:
    def call(context: Context, data: Value, segment_ids: Value, name: Value = None) -> Value:
        del name
        x, ids = tensor(context, data), tensor(context, segment_ids)
        shape = x.shape or (1,)
        count = max(ids.value) + 1 if isinstance(ids.value, list) and ids.value else shape[0]
        if not isinstance(ids.value, list):
            context.findings.gap(
                "segments", context.where, "how many segments there are depends on values", assumed=count
            )
        return engine_of(context).apply("segment_pool", [x], (count, *shape[1:]), x.dtype, saved=[x, ids, "output"])

    call.__name__ = name
    operator([f"paddle.geometric.{name}", f"paddle.incubate.{name}"])(call)


for _name in ("segment_sum", "segment_mean", "segment_max", "segment_min"):
    _segments(_name)
