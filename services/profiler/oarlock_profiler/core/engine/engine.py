"""The engine: makes tensors.

Applies operators, runs backward, and writes every allocation and launch into the trace.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from oarlock_profiler.core.engine.autocast import Autocast
from oarlock_profiler.core.engine.autograd import BackwardPass, Edge, Grad, Node, Rule
from oarlock_profiler.core.engine.double_backward import BackwardGraph
from oarlock_profiler.core.engine.dtypes import is_differentiable, is_floating, promote, promote_operands, size_of
from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.engine.shapes import Shape, numel
from oarlock_profiler.core.engine.strides import is_contiguous
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.engine.trace import Filters, Op, Storage, StorageKind, Trace
from oarlock_profiler.core.findings import Findings, Where
from oarlock_profiler.core.reading import TensorSpec

_NOTED_INPUTS = 16
"""Tensors of one model call that are remembered."""

Mode = Literal["fresh", "alias", "reuse", "expand", "none"]
Saved = "Tensor | str | int | None"
ONLY_LISTED = 2
"""What ``sys.getrefcount`` says of an object that one list alone holds (the list and the argument)."""
GRADIENT_SHARDS = "_gradient_shards"
"""In a parameter's ``attrs``: over how many processes its gradient is spread (ZeRO 2 and 3, FSDP)."""
MOST_STEPS = 12
"""Steps that are read at most where one optimiser has stepped but once: a generator's, beside its critic's five."""
OUTPUT = "output"
"""In ``saved``: the operator's own (first) output."""


class Engine:
    """Abstract tensors and autograd of one framework (``torch`` or ``paddle``).

    ``kernels`` says whose kernels are mirrored: ``gpu`` (the default; dropout masks of one byte, fused
    attention) or ``cpu`` (what the CPU builds do; used against the CPU oracles). ``steps_to_walk`` training
    steps are read before ``steady`` turns true. ``assumed_batch`` stands where a script's batch cannot be
    known.
    """

    def __init__(self, trace: Trace, framework: str, *, findings: Findings | None = None, kernels: str = "gpu") -> None:
        self.trace = trace
        self.findings = findings
        self.kernels = kernels
        self.steps_to_walk = 2
        self.steps_of: dict[int, int] = {}
        """How often each optimiser has stepped, by its ``id``."""
        self.assumed_batch: int | None = None
        self.default_dtype = "float32"
        self.adopt(framework)
        self.grad_enabled = True
        self.autocast_stack: list[Autocast] = []
        self.module_stack: list[LayerInstance] = []
        self.where: Where | None = None
        self.locate: Callable[[], Where | None] | None = None
        self.roots: list[LayerInstance] = []
        self.owners: list[LayerInstance] = []
        """Layers whose parameters were asked for as a whole: what an optimiser is given, called by itself or not."""
        self.backward_where: Where | None = None
        """The line that last started a backward pass."""
        self.step_inputs: list[TensorSpec] = []
        """What the first call of a model in this training step was given."""
        self.backward_calls = 0
        """How often the script asked for a backward pass, of unknown losses too."""
        self.unstepped = 0
        """How many of those since the optimiser last stepped."""
        self.micro_batches = 0
        """The most backward passes that one step took so far."""
        self.backward_places: set[Where | None] = set()
        """Where the passes since the optimiser last stepped were asked for."""
        self.accumulated = 1
        """How many passes the last step took that were all asked for in one place."""
        self.learning: set[int] = set()
        """``id`` of every leaf that a backward pass gave a gradient (the leaves of models live as long as we do)."""
        self.root_inputs: dict[int, list[TensorSpec]] = {}
        """What the first call of each root was given, by the root's ``id``."""
        self._released: set[int] = set()
        self._passes = 0
        self._step_owed = False
        self._sequence = 0
        self._node_module: str | None = None
        self._node_where: Where | None = None

    # --- state
    # -----------------------------------------------------------------------------------------------------
    @property
    def steady(self) -> bool:
        """Whether enough training steps were walked to know the steady state, by every optimiser that steps."""
        steps = self.trace.steps
        if steps < self.steps_to_walk or steps >= MOST_STEPS:
            return steps >= MOST_STEPS
        return all(own >= self.steps_to_walk for own in self.steps_of.values())

    @property
    def autocast(self) -> Autocast | None:
        """The innermost autocast that is in force, or None."""
        return self.autocast_stack[-1] if self.autocast_stack else None

    def adopt(self, framework: str) -> None:
        """Go on by another framework's rules; nothing has been allocated by the first one's yet."""
        self.framework = framework
        self.default_device = "gpu:0" if framework == "paddle" else "cpu"

    @property
    def module_path(self) -> str:
        """Dotted path of the layer whose forward runs."""
        if self._node_module is not None:
            return self._node_module
        return self.module_stack[-1].path or "" if self.module_stack else ""

    def backward_asked(self) -> None:
        """The script asks for a backward pass, known or not."""
        self.backward_calls += 1
        self.unstepped += 1
        self.micro_batches = max(self.micro_batches, self.unstepped)
        self.backward_places.add(self.place())

    def training_step_done(self) -> None:
        """The optimiser has stepped (a new step begins). Inside a backward pass the step ends with the pass."""
        if self._passes:
            self._step_owed = True
            return
        if len(self.backward_places) == 1:
            self.accumulated = max(1, self.unstepped)
        self.unstepped = 0
        self.backward_places.clear()
        self.step_inputs = []
        self.trace.step_end()

    def note_inputs(self, root: LayerInstance, values: Sequence[Any]) -> None:
        """A model is called by itself: remember what it was first given, and what the first call of a step was."""
        known = id(root) in self.root_inputs
        if known and (self.step_inputs or not self.grad_enabled):
            return
        given = [TensorSpec(t.shape, t.dtype) for t in flatten_tensors(values)[:_NOTED_INPUTS] if t.shape is not None]
        if not known:
            self.root_inputs[id(root)] = given
        if self.grad_enabled and not self.step_inputs:
            self.step_inputs = [spec for spec in given if spec.shape]

    def release_dropped_models(self) -> None:
        """Free what only ``roots`` still holds: models that the script has dropped (one fold of several, an ablation).

        Their shapes stay for the model tree. A parameter that anything else holds (an optimiser) keeps its memory.
        """
        # the list, the variable of the comprehension and the question itself
        self.owners = [owner for owner in self.owners if sys.getrefcount(owner) > ONLY_LISTED + 1]
        for index in range(len(self.roots)):
            if index in self._released or sys.getrefcount(self.roots[index]) > ONLY_LISTED:
                continue
            held = False
            for _, module in self.roots[index].named_modules():
                for name in list(module.attrs):
                    value = module.attrs[name]
                    if not isinstance(value, Tensor):
                        continue
                    if sys.getrefcount(value) <= ONLY_LISTED + 1:
                        value.storage = value.grad = value.node = None
                    else:
                        held = True
            if not held:
                self._released.add(index)

    def device_of(self, tensor: Tensor) -> str:
        """``cpu``, ``meta`` or ``gpu:N``."""
        return tensor.device

    def place(self) -> Where | None:
        """The script's line being executed."""
        if self._node_module is not None:
            return self._node_where
        return self.locate() if self.locate is not None else self.where

    @contextmanager
    def grad_mode(self, enabled: bool) -> Iterator[None]:
        """``no_grad`` / ``enable_grad`` for the length of a ``with``."""
        before, self.grad_enabled = self.grad_enabled, enabled
        try:
            yield
        finally:
            self.grad_enabled = before

    def push_autocast(self, autocast: Autocast) -> None:
        """Enter an autocast context; nested ones share the outermost one's cache of cast weights."""
        if self.autocast_stack:
            autocast.cache = self.autocast_stack[-1].cache
        self.autocast_stack.append(autocast)

    def pop_autocast(self) -> None:
        """Leave it; the outermost one drops the cached casts."""
        if self.autocast_stack:
            left = self.autocast_stack.pop()
            if not self.autocast_stack:
                left.cache.clear()

    # --- making tensors
    # --------------------------------------------------------------------------------------------
    def allocate(self, nbytes: int, kind: StorageKind, device: str, op: str) -> Storage:
        """Device memory, written into the trace."""
        return self.trace.allocate(nbytes, kind, device=device, op=op, where=self.place())

    def tensor(
        self,
        shape: Sequence[int],
        dtype: str | None = None,
        *,
        kind: StorageKind = "activation",
        device: str | None = None,
        requires_grad: bool = False,
        where: Where | None = None,
        op: str = "",
        value: Any = None,
    ) -> Tensor:
        """A new leaf tensor with memory of its own."""
        dims = tuple(int(s) for s in shape)
        dtype = dtype or self.default_dtype
        place = device or self.default_device
        nbytes = 0 if place == "meta" else int(numel(dims) * size_of(dtype))
        storage = self.trace.allocate(nbytes, kind, device=place, op=op, where=where or self.place())
        return Tensor(self, dims, dtype, storage, place, requires_grad=requires_grad, value=value)

    def parameter(
        self,
        shape: Sequence[int],
        dtype: str | None = None,
        trainable: bool = True,
        name: str | None = None,
        device: str | None = None,
    ) -> Tensor:
        """A new parameter of a layer."""
        made = self.tensor(shape, dtype, kind="parameter", device=device, requires_grad=trainable, op="parameter")
        made.is_parameter = True
        made.name = name
        return made

    def constant(self, value: Any, dtype: str, device: str | None = None) -> Tensor:
        """A zero-dimensional tensor whose value is known."""
        return self.tensor((), dtype, kind="temporary", device=device, value=value, op="constant")

    def unknown_tensor(self, why: str, dtype: str | None = None) -> Tensor:
        """A tensor of which not even the shape is known."""
        return Tensor(self, None, dtype or self.default_dtype, None, self.default_device, why=why)

    def findings_gap(
        self, where: Where | None, why: str, what: str = "autograd", assumed: object | None = None
    ) -> None:
        """Note what could not be known."""
        if self.findings is not None:
            self.findings.gap(what, where, why, assumed)

    # --- operators
    # -------------------------------------------------------------------------------------------------
    def record(
        self,
        name: str,
        kernel: str,
        dtype: str,
        shape: Shape,
        *,
        flops: int = 0,
        bytes_moved: int = 0,
        workspace_bytes: int = 0,
        matmul: bool = False,
        filters: Filters | None = None,
    ) -> None:
        """Write one kernel launch; element-wise kernels count one operation an element."""
        if not matmul and not flops:
            flops = numel(shape)
        self.trace.add(
            Op(
                name,
                kernel,
                dtype,
                self.trace.phase,
                flops,
                bytes_moved,
                workspace_bytes,
                self.module_path,
                self.place(),
                matmul,
                filters,
            )
        )

    def apply(
        self,
        name: str,
        inputs: Sequence[Tensor],
        shape: Sequence[int],
        dtype: str | None = None,
        *,
        saved: Sequence[Any] = (),
        view: Tensor | None = None,
        inplace: Tensor | None = None,
        grad: Mode | Sequence[Mode] = "fresh",
        flops: int = 0,
        backward_flops: int | None = None,
        workspace_bytes: int = 0,
        backward_workspace_bytes: int = 0,
        kernel: str | None = None,
        matmul: bool = False,
        filters: Filters | None = None,
        rule: Rule | None = None,
        value: Any = None,
    ) -> Tensor:
        """Apply an operator with one output of ``shape`` (``dtype`` None: the inputs' promoted type).

        ``saved`` lists what autograd keeps when it keeps anything: input tensors, ``"output"``, a number of
        bytes (a mask, allocated by the operator), or a pair ``(item, tensor)``: ``item`` is kept only when
        ``tensor`` needs a gradient. ``view``: the output shares this tensor's memory; ``inplace``: it is this
        tensor, overwritten. ``grad`` is the mode of each input's gradient (see :class:`Node`). ``flops``
        counts the forward pass; backward costs the same once per matrix input that needs a gradient unless
        ``backward_flops`` says otherwise. ``workspace_bytes`` is held while the kernel runs. ``filters``: see
        :class:`Op`.
        """
        return self.apply_multi(
            name, inputs, ((tuple(shape), dtype),), saved=saved, views=(view,), inplace=inplace, grad=grad, flops=flops,
            backward_flops=backward_flops, workspace_bytes=workspace_bytes,
            backward_workspace_bytes=backward_workspace_bytes, kernel=kernel, matmul=matmul, filters=filters, rule=rule,
            values=(value,),
        )[0]  # fmt: skip

    def apply_multi(
        self,
        name: str,
        inputs: Sequence[Tensor],
        outputs: Sequence[tuple[Shape, str | None]],
        *,
        saved: Sequence[Any] = (),
        views: Sequence[Tensor | None] = (),
        inplace: Tensor | None = None,
        grad: Mode | Sequence[Mode] = "fresh",
        flops: int = 0,
        backward_flops: int | None = None,
        workspace_bytes: int = 0,
        backward_workspace_bytes: int = 0,
        kernel: str | None = None,
        matmul: bool = False,
        filters: Filters | None = None,
        rule: Rule | None = None,
        values: Sequence[Any] = (),
        node_name: str | None = None,
    ) -> list[Tensor]:
        """Apply an operator with several outputs.

        See :meth:`apply`. In ``saved``, ``("output", i)`` is output ``i``.
        """
        for tensor in inputs:
            if tensor.shape is None:
                why = tensor.why or f"{name} of an unknown tensor"
                return [self.unknown_tensor(why, tensor.dtype) for _ in outputs]
        policy = self.autocast
        if policy is not None:
            inputs, saved = self._cast_inputs(policy, name, inputs, saved)
        kernel = kernel or name
        differentiable = self.grad_enabled and any(t.requires_grad for t in inputs)
        promoted: str | None = None
        made: list[Tensor] = []
        device = self._device(inputs)
        workspace = None
        strided = 0
        if self.framework == "paddle" and inplace is None and not any(v is not None for v in views):
            # PaddlePaddle's kernels take no strides: such an input is copied for as long as the kernel runs.
            strided = sum(
                t.nbytes for t in inputs if t.strides is not None and not is_contiguous(t.shape or (), t.strides)
            )
            workspace_bytes += strided
        if workspace_bytes:
            workspace = self.allocate(workspace_bytes, "workspace", device, name)
        moved = 0
        is_view = True
        for index, (shape, dtype) in enumerate(outputs):
            if dtype is None:
                if promoted is None:
                    promoted = inputs[0].dtype if len(inputs) == 1 else promoted_dtype(inputs)
                dtype = promoted
            base = views[index] if index < len(views) else None
            if inplace is not None:
                storage = inplace.storage
                is_view = False
            elif base is not None:
                storage = base.storage
            else:
                is_view = False
                nbytes = 0 if device == "meta" else int(numel(shape) * size_of(dtype))
                storage = self.trace.allocate(nbytes, "activation", device=device, op=name, where=self.place())
                moved += nbytes
            out = Tensor(self, shape, dtype, storage, device, value=values[index] if index < len(values) else None)
            out.is_view = base is not None
            made.append(out)
        del workspace
        if differentiable:
            differentiable = any(is_differentiable(out.dtype) for out in made)
        if differentiable:
            node = self._node(node_name or name, kernel, inputs, made, saved, grad, rule)
            node.flops, node.matmul = backward_flops if backward_flops is not None else flops, matmul
            node.filters = filters
            if backward_flops is None and matmul:
                node.flops = flops * sum(1 for t in inputs[:2] if t.requires_grad)
            node.workspace_bytes = backward_workspace_bytes + (strided if saved else 0)
            for index, out in enumerate(made):
                if is_differentiable(out.dtype):
                    out.node, out.output_index, out.requires_grad = node, index, True
        else:
            self._allocate_unsaved(saved, device, name)
        if not is_view:
            for tensor in inputs:
                moved += tensor.nbytes
            self.record(
                name, kernel, made[0].dtype if made else "float32", made[0].shape or (), flops=flops, bytes_moved=moved,
                workspace_bytes=workspace_bytes, matmul=matmul, filters=filters,
            )  # fmt: skip
            if matmul and self.module_stack and self._node_module is None:
                self.module_stack[-1].stats.flops += flops
        if inplace is not None:
            return [self._overwrite(inplace, made[0])]
        return made

    def _overwrite(self, target: Tensor, result: Tensor) -> Tensor:
        if result.node is not None and not (target.requires_grad and target.node is None):
            target.node, target.output_index, target.requires_grad = result.node, result.output_index, True
        target.value = result.value
        if result.shape is not None and not target.is_parameter:
            target.shape = result.shape
        return target

    def _device(self, inputs: Sequence[Tensor]) -> str:
        device = None
        for tensor in inputs:
            if tensor.device != "cpu" or device is None:
                device = tensor.device
                if device != "cpu":
                    break
        return device or self.default_device

    def _node(
        self,
        name: str,
        kernel: str,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        saved: Sequence[Any],
        grad: Mode | Sequence[Mode],
        rule: Rule | None,
    ) -> Node:
        edges: list[Edge | None] = []
        for index, tensor in enumerate(inputs):
            mode = grad if isinstance(grad, str) else grad[index] if index < len(grad) else "fresh"
            if not tensor.requires_grad or mode == "none":
                edges.append(None)
            else:
                target: Node | Tensor = tensor.node if tensor.node is not None else tensor
                edges.append(
                    Edge(target, tensor.output_index, tensor.shape or (), tensor.dtype, tensor.device, mode)
                )  # fmt: skip
        node = self.node(name, kernel, edges, len(outputs))
        node.module, node.where, node.rule = self.module_path, self.place(), rule
        kept: list[Storage] = []
        device = outputs[0].device if outputs else self.default_device
        for item in saved:
            storage = self._resolve_saved(item, outputs, device, name)
            if storage is not None:
                kept.append(storage)
                self._note_saved(storage)
        node.saved = kept
        return node

    def node(self, name: str, kernel: str, edges: list[Edge | None], outputs: int) -> Node:
        """The graph's next node; it has saved nothing yet."""
        self._sequence += 1
        return Node(self._sequence, name, kernel, edges, outputs)

    def _resolve_saved(self, item: Any, outputs: Sequence[Tensor], device: str, name: str) -> Storage | None:
        if isinstance(item, tuple):
            if item[0] == OUTPUT and isinstance(item[1], int):
                return outputs[item[1]].storage
            if not item[1].requires_grad:
                return None
            item = item[0]
        if item is None:
            return None
        if isinstance(item, Tensor):
            return item.storage
        if isinstance(item, Storage):
            return item
        if isinstance(item, str):
            return outputs[0].storage
        return self.allocate(item, "saved", device, name)

    def _allocate_unsaved(self, saved: Sequence[Any], device: str, name: str) -> None:
        for item in saved:
            if isinstance(item, int) and item:
                self.allocate(item, "temporary", device, name)

    def _note_saved(self, storage: Storage) -> None:
        if storage.kind == "activation":
            storage.retag("saved")
        elif storage.kind not in ("saved", "input"):
            return
        if self.module_stack:
            stats = self.module_stack[-1].stats
            if stats.calls <= 1:
                stats.saved_bytes += storage.nbytes

    # --- autocast
    # --------------------------------------------------------------------------------------------------
    def _cast_inputs(
        self, policy: Autocast, name: str, inputs: Sequence[Tensor], saved: Sequence[Any]
    ) -> tuple[list[Tensor], list[Any]]:
        wanted = policy.wanted(name)
        if wanted is None:
            return list(inputs), list(saved)
        if wanted == "promote":
            floats = [t.dtype for t in inputs if is_floating(t.dtype)]
            wanted = floats[0] if floats else "float32"
            for dtype in floats[1:]:
                wanted = promote(wanted, dtype)
        replaced: dict[int, Tensor] = {}
        result: list[Tensor] = []
        for tensor in inputs:
            if is_floating(tensor.dtype) and tensor.dtype not in (wanted, "float64") and tensor.device != "cpu":
                if id(tensor) not in replaced:
                    replaced[id(tensor)] = self._cast(policy, tensor, wanted)
                tensor = replaced[id(tensor)]
            result.append(tensor)
        if not replaced:
            return result, list(saved)
        mapped: list[Any] = []
        for item in saved:
            if isinstance(item, tuple):
                mapped.append(tuple(replaced.get(id(part), part) for part in item))
            else:
                mapped.append(replaced.get(id(item), item))
        return result, mapped

    def _cast(self, policy: Autocast, tensor: Tensor, dtype: str) -> Tensor:
        cacheable = policy.use_cache and tensor.requires_grad and tensor.node is None and dtype != "float32"
        if cacheable:
            held = policy.cache.get(id(tensor))
            if held is not None and held[1].dtype == dtype:
                return held[1]
        cast = self.cast(tensor, dtype)
        if cacheable:
            policy.cache[id(tensor)] = (tensor, cast)
        return cast

    def cast(self, tensor: Tensor, dtype: str) -> Tensor:
        """``tensor`` in another type (a copy, differentiable)."""
        if tensor.shape is None or tensor.dtype == dtype:
            return tensor
        stack, self.autocast_stack = self.autocast_stack, []
        made = self.apply("cast", [tensor], tensor.shape, dtype, value=tensor.value)
        self.autocast_stack = stack
        return made

    # --- backward
    # --------------------------------------------------------------------------------------------------
    def fresh_grad(self, shape: Shape, dtype: str, device: str, op: str) -> Grad:
        """A newly allocated gradient."""
        return Grad(self.allocate(int(numel(shape) * size_of(dtype)), "temporary", device, op), shape, dtype)

    def enter_node(self, node: Node) -> tuple[str | None, Where | None]:
        """Attribute what is written now to ``node``'s layer and line.

        Returns what to give :meth:`leave_node`.
        """
        before = (self._node_module, self._node_where)
        self._node_module, self._node_where = node.module, node.where
        return before

    def leave_node(self, before: tuple[str | None, Where | None]) -> None:
        """Undo :meth:`enter_node`."""
        self._node_module, self._node_where = before

    def accumulate(self, leaf: Tensor, grad: Grad) -> None:
        """Give ``leaf`` its gradient as the framework does."""
        if leaf.is_parameter:
            self.learning.add(id(leaf))
        held = leaf.grad
        if held is None or leaf.cleared or held.storage is None:
            if grad.shared or not grad.dense or grad.dtype != leaf.dtype:
                grad = self.fresh_grad(leaf.shape or (), leaf.dtype, leaf.device, "accumulate_grad")
            ways = leaf.attrs.get(GRADIENT_SHARDS) if leaf.attrs is not None else None
            if isinstance(ways, int) and ways > 1:
                # The whole gradient is reduced over the processes; each keeps its share.
                share = -(-grad.nbytes // ways)
                kept = self.allocate(share, "gradient", leaf.device, "reduce_scatter")
                leaf.grad = Tensor(self, leaf.shape, leaf.dtype, kept, leaf.device)
            else:
                grad.storage.retag("gradient")
                leaf.grad = Tensor(self, leaf.shape, leaf.dtype, grad.storage, leaf.device)
            leaf.cleared = False
            return
        self.record("add_", "add", grad.dtype, grad.shape, bytes_moved=3 * grad.nbytes)

    def backward(self, tensor: Tensor, gradient: Tensor | None = None, *, retain_graph: bool = False) -> None:
        """Run the graph below ``tensor`` and give every leaf its gradient.

        An unknown tensor has nothing to run.
        """
        self.backward_many([tensor], [gradient], retain_graph=retain_graph)

    def backward_many(
        self, tensors: Sequence[Tensor], gradients: Sequence[Tensor | None], *, retain_graph: bool = False
    ) -> None:
        """``torch.autograd.backward`` over several roots."""
        if len(self.roots) > 1:
            self.release_dropped_models()
        self.backward_where = self.place()
        before, self.trace.phase = self.trace.phase, "backward"
        enabled, self.grad_enabled = self.grad_enabled, False
        self._passes += 1
        try:
            self._run(BackwardPass(self, retain_graph), tensors, gradients)
        finally:
            self._passes -= 1
            self.grad_enabled = enabled
            self.trace.phase = before
        if self._step_owed and not self._passes:
            self._step_owed = False
            self.training_step_done()

    def _run(self, walk: BackwardPass, tensors: Sequence[Tensor], gradients: Sequence[Tensor | None]) -> None:
        roots: list[tuple[Tensor, Grad]] = []
        for tensor, given in zip(tensors, gradients, strict=True):
            if tensor.shape is None or not tensor.requires_grad:
                self.findings_gap(self.place(), "backward of a tensor that needs no gradient or is unknown")
                continue
            if given is not None and given.storage is not None and self.framework == "paddle":
                roots.append((tensor, self.fresh_grad(tensor.shape, given.dtype, tensor.device, "assign")))
            elif given is not None and given.storage is not None:
                roots.append((tensor, Grad(given.storage, tensor.shape, given.dtype, shared=True)))
            else:
                roots.append((tensor, self.fresh_grad(tensor.shape, tensor.dtype, tensor.device, "ones_like")))
        walk.run(roots)

    def grad(
        self,
        outputs: Sequence[Tensor],
        inputs: Sequence[Tensor],
        *,
        retain_graph: bool = False,
        create_graph: bool = False,
    ) -> list[Tensor | None]:
        """``autograd.grad``: gradients of ``inputs`` as new tensors.

        With ``create_graph`` the graph is kept and the gradients can be differentiated again
        (:mod:`~oarlock_profiler.core.engine.double_backward`).
        """
        keys = [(id(t.node) if t.node is not None else id(t), t.output_index) for t in inputs]
        capture: dict[tuple[int, int], Grad | None] = dict.fromkeys(keys)
        before, self.trace.phase = self.trace.phase, "backward"
        try:
            graph = BackwardGraph(self) if create_graph else None
            self._run(BackwardPass(self, retain_graph or create_graph, capture, graph), outputs, [None] * len(outputs))
        finally:
            self.trace.phase = before
        result: list[Tensor | None] = []
        for tensor, key in zip(inputs, keys, strict=True):
            found = capture[key]
            if found is None:
                result.append(None)
                continue
            made = Tensor(self, tensor.shape, tensor.dtype, found.storage, tensor.device)
            if found.source is not None:
                made.node, made.output_index = found.source
                made.requires_grad = True
            result.append(made)
        return result

    # --- recomputation
    # ---------------------------------------------------------------------------------------------
    def checkpoint(self, context: Any, function: Any, args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> Any:
        """``torch.utils.checkpoint`` / ``recompute``: run forward without saving, run it again in backward.

        Keeps the tensors among ``args`` alive until then; what the function closes over (parameters) gets its
        gradients from the second run.
        """
        kwargs = dict(kwargs or {})
        if not self.grad_enabled:
            return context.call(function, list(args), kwargs)
        with self.grad_mode(False):
            result = context.call(function, list(args), kwargs)
        outputs = [t for t in flatten_tensors(result) if t.shape is not None and is_differentiable(t.dtype)]
        inputs = [t for t in flatten_tensors([args, kwargs]) if t.shape is not None]
        if not outputs:
            return result
        modules = list(self.module_stack)
        autocasts = list(self.autocast_stack)

        def rerun(engine: Engine, node: Node, grads: list[Grad | None]) -> list[Grad | None]:
            del node
            stand_ins: dict[int, Tensor] = {}
            for tensor in inputs:
                copy = Tensor(engine, tensor.shape, tensor.dtype, tensor.storage, tensor.device)
                copy.requires_grad = tensor.requires_grad
                stand_ins[id(tensor)] = copy
            again_args = _replace(list(args), stand_ins)
            again_kwargs = _replace(kwargs, stand_ins)
            hold = (engine.module_stack, engine.autocast_stack, engine.trace.phase)
            engine.module_stack, engine.autocast_stack = list(modules), list(autocasts)
            with engine.grad_mode(True):
                again = context.call(function, again_args, again_kwargs)
            made = [t for t in flatten_tensors(again) if t.shape is not None and is_differentiable(t.dtype)]
            del again
            pairs = [
                (t, Grad(g.storage, g.shape, g.dtype, dense=g.dense, shared=True))
                for t, g in zip(made, grads, strict=False)
                if g is not None and t.requires_grad
            ]
            del made
            with engine.grad_mode(False):
                BackwardPass(engine, False).run(pairs)
            del pairs
            engine.module_stack, engine.autocast_stack, engine.trace.phase = hold
            produced: list[Grad | None] = []
            for tensor in inputs:
                grad = stand_ins[id(tensor)].grad
                if grad is None or grad.storage is None:
                    produced.append(None)
                    continue
                grad.storage.retag("temporary")
                produced.append(Grad(grad.storage, tensor.shape or (), tensor.dtype))
                stand_ins[id(tensor)].grad = None
            return produced

        edges: list[Edge | None] = [
            Edge(t.node if t.node is not None else t, t.output_index, t.shape or (), t.dtype, t.device, "fresh")
            if t.requires_grad
            else None
            for t in inputs
        ]
        node = self.node("checkpoint", "recompute", edges, len(outputs))
        node.module, node.where, node.rule = self.module_path, self.place(), rerun
        node.saved = [t.storage for t in inputs if t.storage is not None]
        for storage in node.saved:
            self._note_saved(storage)
        for index, out in enumerate(outputs):
            out.node, out.output_index, out.requires_grad = node, index, True
        return result


def promoted_dtype(tensors: Sequence[Tensor]) -> str:
    """The type element-wise operators bring ``tensors`` to."""
    first = tensors[0].dtype
    if all(t.dtype == first for t in tensors):
        return first
    real = [(t.dtype, not t.shape) for t in tensors if t.storage is not None]
    numbers = [(t.dtype, True) for t in tensors if t.storage is None]
    # a Python number gives way to a tensor without dimensions, as that does to one with dimensions
    return promote_operands([(promote_operands(real), False), *numbers] if real else numbers)


def flatten_tensors(value: Any) -> list[Tensor]:
    """The tensors in a nest of lists, tuples and dicts, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in flatten_tensors(item)]
    if isinstance(value, dict):
        return [t for item in value.values() for t in flatten_tensors(item)]
    return []


def _replace(value: Any, stand_ins: dict[int, Tensor]) -> Any:
    if isinstance(value, Tensor):
        return stand_ins.get(id(value), value)
    if type(value) in (list, tuple):
        return type(value)(_replace(item, stand_ins) for item in value)
    if isinstance(value, dict):
        return {key: _replace(item, stand_ins) for key, item in value.items()}
    return value
