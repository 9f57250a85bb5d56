"""Derivatives of derivatives: the graph of a backward pass (``create_graph=True``).

Each node that such a pass runs leaves a node of its own, whose inputs are the gradient that came in and what the
operator had saved, and whose outputs are the gradients that it gave. It keeps both alive, as the frameworks' do
(PyTorch records the backward formulas as operators, PaddlePaddle makes ``*_double_grad`` nodes), and it is a node like
any other: a third derivative is the same again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from oarlock_profiler.core.engine.autograd import Edge, Grad, Node

if TYPE_CHECKING:
    from oarlock_profiler.core.engine.engine import Engine

PIECEWISE_LINEAR = frozenset({
    "relu", "relu6", "leaky_relu", "hardtanh", "hardsigmoid", "threshold", "dropout", "abs", "clip", "clamp",
    "max_pool1d", "max_pool2d", "max_pool3d", "maximum", "minimum", "max", "min", "amax", "amin", "topk", "sort",
    "embedding", "gather", "index_select", "index", "getitem", "where", "masked_fill", "take_along_axis", "scatter",
})  # fmt: skip
"""Operators whose derivative does not depend on their input (almost everywhere): what they saved is a mask, a place."""
BILINEAR = frozenset({
    "multiply", "matmul", "linear", "mm", "bmm", "addmm", "baddbmm", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "einsum", "outer", "dot", "mv",
})  # fmt: skip
"""Operators whose derivative by one of their first two inputs depends on the other; a bias counts for nothing."""


class BackwardGraph:
    """What a backward pass tells of itself so that it can be differentiated."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def ran(self, node: Node, incoming: Sequence[Grad | None], given: Sequence[Grad | None]) -> None:
        """``node`` made ``given`` of ``incoming``."""
        linear = not node.saved or node.name in PIECEWISE_LINEAR
        aliases = linear and all(e is None or e.mode in ("alias", "expand") for e in node.edges)
        edges: list[Edge | None] = [
            edge
            for grad in incoming
            if grad is not None and (edge := _towards(grad, "alias" if aliases else "fresh")) is not None
        ]
        if not linear:
            edges += [e and Edge(e.target, e.index, e.shape, e.dtype, e.device, "fresh") for e in _inputs(node)]
        if not any(edges):
            return
        made = self.engine.node(f"{node.name}_grad", f"{node.kernel}_grad", edges, len(given))
        made.saved = list(node.saved or ())
        if not linear:
            made.saved += [grad.storage for grad in incoming if grad is not None]
        made.flops, made.matmul = node.flops, node.matmul
        made.module, made.where = node.module, node.where
        for index, grad in enumerate(given):
            if grad is not None:
                grad.source = (made, index)

    def added(self, left: Grad, right: Grad, total: Grad) -> None:
        """Two gradients of one tensor were added."""
        edges = [_towards(grad, "alias") for grad in (left, right)]
        if any(edges):
            total.source = (self.engine.node("add", "add", edges, 1), 0)


def _towards(grad: Grad, mode: str) -> Edge | None:
    if grad.source is None:
        return None
    target, index = grad.source
    return Edge(target, index, grad.shape, grad.dtype, grad.storage.device, mode)


def _inputs(node: Node) -> list[Edge | None]:
    """The inputs that the gradients of ``node`` depend on."""
    if node.name not in BILINEAR:
        return node.edges
    factors = node.edges[:2]
    # With one factor constant, the derivative by the other is constant too.
    return factors if all(factors) else []
