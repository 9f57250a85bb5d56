"""Autograd as the frameworks do it, on abstract tensors: what is kept, when it is freed, what backward
allocates.

PyTorch runs nodes by descending sequence number, adds gradients in place where it holds the last reference,
and a leaf steals the gradient it is given (``torch/csrc/autograd/{engine,input_buffer,accumulate_grad}``).
PaddlePaddle runs nodes first-in first-out as their last gradient arrives, leaves first
(``paddle/fluid/eager/backward.cc``), and a leaf whose gradient was cleared takes the new one and only then
drops the old (``eager/accumulation``).
"""

from __future__ import annotations

import heapq
import sys
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oarlock_profiler.core.engine.dtypes import size_of
from oarlock_profiler.core.engine.shapes import Shape, numel
from oarlock_profiler.core.engine.trace import Filters, Storage
from oarlock_profiler.core.findings import Where

if TYPE_CHECKING:
    from oarlock_profiler.core.engine.double_backward import BackwardGraph
    from oarlock_profiler.core.engine.engine import Engine
    from oarlock_profiler.core.engine.tensor import Tensor

SAME_OBJECT = frozenset({"add", "subtract", "assign", "contiguous", "addmm"})
"""Operators whose gradient is the very tensor object that came in."""
POST_HOOKS = "_post_accumulate_hooks"
"""In a leaf's ``attrs``: what is called with the leaf as soon as a pass has given it its whole gradient."""
UNIQUE = 2
"""What ``sys.getrefcount`` says of a storage that one gradient alone holds (the attribute and the argument)."""


class Grad:
    """A gradient on its way.

    ``dense`` is False for an expanded (zero-stride) one; ``shared`` when another gradient is the same tensor
    object. ``source`` is the node that made it and which output it is, where gradients are themselves
    differentiated.
    """

    __slots__ = ("borrowed", "dense", "dtype", "shape", "shared", "source", "storage")

    def __init__(
        self,
        storage: Storage,
        shape: Shape,
        dtype: str,
        *,
        dense: bool = True,
        shared: bool = False,
        borrowed: bool = False,
    ) -> None:
        self.storage = storage
        self.shape = shape
        self.dtype = dtype
        self.dense = dense
        self.shared = shared
        self.borrowed = borrowed
        self.source: tuple[Node, int] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of a dense gradient of this shape."""
        return int(numel(self.shape) * size_of(self.dtype))


class Edge:
    """Where the gradient of one input goes: output ``index`` of a node, or a leaf tensor."""

    __slots__ = ("device", "dtype", "index", "mode", "shape", "target")

    def __init__(self, target: Node | Tensor, index: int, shape: Shape, dtype: str, device: str, mode: str) -> None:
        self.target = target
        self.index = index
        self.shape = shape
        self.dtype = dtype
        self.device = device
        self.mode = mode


Rule = Callable[["Engine", "Node", list[Grad | None]], list[Grad | None]]


class Node:
    """One differentiable operator of the graph. It holds what it saved, never its own output tensors (no
    cycles).

    ``modes``, per edge: ``fresh`` allocates the input's gradient; ``alias`` hands the incoming buffer on;
    ``reuse`` writes over the incoming buffer when nobody else holds it (PaddlePaddle's in-place gradients),
    else allocates; ``expand`` hands on a zero-stride view; ``none`` gives no gradient.
    """

    __slots__ = (
        "edges", "filters", "flops", "kernel", "matmul", "module", "name", "outputs", "rule", "saved", "seq", "where",
        "workspace_bytes",
    )  # fmt: skip

    def __init__(self, seq: int, name: str, kernel: str, edges: list[Edge | None], outputs: int) -> None:
        self.seq = seq
        self.name = name
        self.kernel = kernel
        self.edges = edges
        self.outputs = outputs
        self.saved: list[Storage] | None = []
        self.flops = 0
        self.workspace_bytes = 0
        self.matmul = False
        self.filters: Filters | None = None
        self.module = ""
        self.where: Where | None = None
        self.rule: Rule | None = None


class BackwardPass:
    """One run over the graph.

    ``capture`` (``autograd.grad``) receives the gradients that arrive at ``(id(leaf or node), output
    index)``; then no leaf's ``grad`` is touched, and only what leads there is run. ``graph`` hears what was done
    where the pass is itself differentiated.
    """

    def __init__(
        self,
        engine: Engine,
        retain_graph: bool,
        capture: dict[tuple[int, int], Grad | None] | None = None,
        graph: BackwardGraph | None = None,
    ) -> None:
        self.engine = engine
        self.retain_graph = retain_graph
        self.capture = capture
        self.graph = graph
        self.needed: set[int] | None = None
        self.pending: dict[int, int] = {}
        self.buffers: dict[int, list[Grad | None]] = {}
        self.fifo: deque[Node] = deque()
        self.heap: list[tuple[int, int, Node]] = []
        self.leaves: deque[Tensor] = deque()

    def run(self, roots: list[tuple[Tensor, Grad]]) -> None:
        """Send each root's gradient down the graph. ``roots`` is emptied: the pass alone holds the gradients."""
        held = [root[0] for root in roots]
        starts = [tensor.node for tensor in held if tensor.node is not None]
        if self.capture is not None:
            self.needed = leading_to({key for key, _ in self.capture}, starts)
        self._count(starts)
        while roots:
            tensor, grad = roots.pop(0)
            if tensor.node is None:
                self._accumulate_leaf(tensor, grad)
            else:
                self._receive(tensor.node, tensor.output_index, grad)
            del grad
        for node in {id(n): n for n in starts}.values():
            if not self.pending.get(id(node)):
                self._ready(node)
        del starts, held
        while True:
            if self.leaves:
                leaf = self.leaves.popleft()
                self._accumulate_leaf(leaf, self.buffers.pop(id(leaf))[0])
                continue
            current = self._next()
            if current is None:
                return
            self._run_node(current)

    def _count(self, starts: list[Node]) -> None:
        seen = {id(n) for n in starts}
        stack = list({id(n): n for n in starts}.values())
        pending = self.pending
        while stack:
            node = stack.pop()
            for edge in node.edges:
                if edge is None or (self.needed is not None and id(edge.target) not in self.needed):
                    continue
                target = edge.target
                key = id(target)
                pending[key] = pending.get(key, 0) + 1
                if key not in seen:
                    seen.add(key)
                    if isinstance(target, Node):
                        stack.append(target)

    def _ready(self, target: Node | Tensor) -> None:
        if not isinstance(target, Node):
            self.leaves.append(target)
        elif self.engine.framework == "paddle":
            self.fifo.append(target)
        else:
            heapq.heappush(self.heap, (-target.seq, id(target), target))

    def _next(self) -> Node | None:
        if self.engine.framework == "paddle":
            return self.fifo.popleft() if self.fifo else None
        return heapq.heappop(self.heap)[2] if self.heap else None

    def _receive(self, target: Node | Tensor, index: int, grad: Grad) -> None:
        key = id(target)
        slots = self.buffers.get(key)
        if slots is None:
            slots = self.buffers[key] = [None] * (target.outputs if isinstance(target, Node) else 1)
        held = slots[index]
        if held is None:
            slots[index] = grad
            return
        if self.graph is None and _owned(held):
            self.engine.record("add_", "add", grad.dtype, grad.shape, bytes_moved=3 * grad.nbytes)
        else:
            total = slots[index] = self.engine.fresh_grad(grad.shape, grad.dtype, held.storage.device, "add")
            self.engine.record("add", "add", grad.dtype, grad.shape, bytes_moved=3 * grad.nbytes)
            if self.graph is not None:
                self.graph.added(held, grad, total)

    def _run_node(self, node: Node) -> None:
        grads = self.buffers.pop(id(node), [None] * node.outputs)
        engine = self.engine
        if node.saved is None:
            engine.findings_gap(node.where, "backward ran twice over a graph whose saved tensors were freed")
        if self.capture is not None:
            for index, grad in enumerate(grads):
                if (id(node), index) in self.capture:
                    self.capture[id(node), index] = grad
        if any(grad is not None for grad in grads):
            saved_stack = engine.enter_node(node)
            produced = self._gradients(node, grads)
            engine.leave_node(saved_stack)
        else:
            produced = [None] * len(node.edges)
        del grads
        if not self.retain_graph:
            node.saved = None
            node.rule = None
        produced.reverse()
        for edge in node.edges:
            grad = produced.pop()
            if edge is None or (self.needed is not None and id(edge.target) not in self.needed):
                continue
            if grad is not None:
                self._receive(edge.target, edge.index, grad)
            grad = None
            key = id(edge.target)
            left = self.pending[key] - 1
            self.pending[key] = left
            if left == 0 and (isinstance(edge.target, Node) or key in self.buffers):
                self._ready(edge.target)

    def _gradients(self, node: Node, grads: list[Grad | None]) -> list[Grad | None]:
        """What ``node`` gives for ``grads``. PyTorch asks it only for what is needed, PaddlePaddle for everything."""
        rule, edges = node.rule or default_rule, node.edges
        if self.graph is None and self.needed is None:
            return rule(self.engine, node, grads)
        incoming = list(grads) if self.graph is not None else []
        if self.needed is not None and self.engine.framework != "paddle":
            node.edges = [e if e is not None and id(e.target) in self.needed else None for e in edges]
        try:
            produced = rule(self.engine, node, grads)
        finally:
            node.edges = edges
        if self.graph is not None:
            self.graph.ran(node, incoming, produced)
        return produced

    def _accumulate_leaf(self, leaf: Tensor, grad: Grad | None) -> None:
        if grad is None:
            return
        if self.capture is not None:
            if (id(leaf), 0) in self.capture:
                self.capture[id(leaf), 0] = grad
        elif leaf.requires_grad:
            self.engine.accumulate(leaf, grad)
            del grad
            hooks = leaf.attrs.get(POST_HOOKS) if leaf.attrs is not None else None
            for hook in list(hooks) if isinstance(hooks, list) else ():
                hook(leaf)


def leading_to(targets: set[int], starts: list[Node]) -> set[int]:
    """The ids of the nodes below ``starts`` from which one of ``targets`` (ids of nodes or leaves) can be reached."""
    order: list[Node] = []
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(node, False) for node in starts]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack += [(e.target, False) for e in node.edges if e is not None and isinstance(e.target, Node)]
    needed = set(targets)
    for node in order:
        if any(e is not None and id(e.target) in needed for e in node.edges):
            needed.add(id(node))
    return needed


def _owned(grad: Grad) -> bool:
    """Whether nothing else holds the gradient's buffer, so that it may be written over."""
    return grad.dense and not grad.borrowed and sys.getrefcount(grad.storage) <= UNIQUE


def default_rule(engine: Engine, node: Node, grads: list[Grad | None]) -> list[Grad | None]:
    """Gradients of all inputs, by each edge's mode."""
    incoming = next(grad for grad in grads if grad is not None)
    scratch: list[Any] = []
    if node.matmul and not incoming.dense:
        scratch.append(engine.allocate(incoming.nbytes, "temporary", incoming.storage.device, node.name))
    if node.workspace_bytes:
        scratch.append(engine.allocate(node.workspace_bytes, "workspace", incoming.storage.device, node.name))
    result: list[Grad | None] = []
    moved = incoming.nbytes
    torch = engine.framework != "paddle"
    aliased = sum(1 for e in node.edges if e is not None and e.mode in ("alias", "expand"))
    for edge in node.edges:
        if edge is None or edge.mode == "none":
            result.append(None)
            continue
        mode = edge.mode
        if mode == "alias" and numel(edge.shape) == numel(incoming.shape):
            # One tensor object handed to several inputs cannot be stolen by a leaf; a view can, but keeps its base.
            same = edge.shape == incoming.shape and node.name in SAME_OBJECT
            result.append(
                Grad(
                    incoming.storage,
                    edge.shape,
                    incoming.dtype,
                    dense=incoming.dense,
                    shared=aliased > 1 or (same and incoming.shared),
                    borrowed=incoming.borrowed or not same,
                )
            )
        elif mode == "expand" and torch:
            result.append(Grad(incoming.storage, edge.shape, edge.dtype, dense=False))
        elif (
            mode == "reuse"
            and edge.dtype == incoming.dtype
            and edge.shape == incoming.shape
            and (sum(grad is not None for grad in grads) == 1 and incoming.dense and _sole(grads, incoming))
        ):
            result.append(Grad(incoming.storage, edge.shape, edge.dtype))
        else:
            fresh = engine.fresh_grad(edge.shape, edge.dtype, edge.device, node.name)
            # PyTorch's linear hands out transposed or folded views of the products.
            fresh.borrowed = node.name == "linear" and torch and (len(result) == 1 or len(edge.shape) != 2)
            moved += fresh.nbytes
            result.append(fresh)
    for storage in node.saved or ():
        moved += storage.nbytes
    engine.record(
        f"{node.name}_backward", f"{node.kernel}_grad", incoming.dtype, incoming.shape, flops=node.flops,
        bytes_moved=moved, workspace_bytes=node.workspace_bytes, matmul=node.matmul, filters=node.filters,
    )  # fmt: skip
    return result


def _sole(grads: list[Grad | None], incoming: Grad) -> bool:
    return sys.getrefcount(incoming.storage) <= UNIQUE and any(grad is incoming for grad in grads)
