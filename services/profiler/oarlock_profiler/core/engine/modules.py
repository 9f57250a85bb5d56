"""Layers as instances: parameters.

Buffers and children in order, their paths, and what a forward pass showed of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.findings import Where
from oarlock_profiler.core.interpreter.values import Class, Instance, Value
from oarlock_profiler.core.reading import ModuleNode


@dataclass(slots=True)
class LayerStats:
    """What forward passes of one layer showed (of its own operators; children keep their own)."""

    output_shapes: list[tuple[int, ...]] = field(default_factory=list)
    saved_bytes: int = 0
    flops: int = 0
    calls: int = 0


class LayerInstance(Instance):
    """An instance of ``torch.nn.Module`` / ``paddle.nn.Layer`` or a subclass.

    Everything lives in ``attrs`` in the order it was set: a :class:`Tensor` with ``is_parameter`` is a
    parameter, a tensor named in ``buffer_names`` is a buffer, a :class:`LayerInstance` is a child. ``config``
    holds what an overlay layer needs for its forward.
    """

    def __init__(self, cls: Class, attrs: dict[str, Value] | None = None) -> None:
        super().__init__(cls, attrs if attrs is not None else {"training": True})
        self.path: str | None = None
        self.buffer_names: dict[str, bool] = {}
        self.config: dict[str, Value] = {}
        self.stats = LayerStats()
        self.where: Where | None = None
        self.forward_hooks: list[Value] = []
        self.pre_hooks: list[Value] = []

    @property
    def training(self) -> bool:
        """Whether it behaves as in training."""
        return self.attrs.get("training") is not False

    def own_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Parameters of this layer alone, by name."""
        for name, value in self.attrs.items():
            if isinstance(value, Tensor) and value.is_parameter:
                yield name, value

    def own_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Buffers of this layer alone, by name."""
        for name, value in self.attrs.items():
            if isinstance(value, Tensor) and (name in self.buffer_names or value.is_buffer):
                yield name, value

    def children(self) -> Iterator[tuple[str, LayerInstance]]:
        """Direct children by name."""
        for name, value in self.attrs.items():
            if isinstance(value, LayerInstance):
                yield name, value

    def named_modules(
        self, prefix: str = "", seen: set[int] | None = None, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, LayerInstance]]:
        """This layer and all below, each once, depth first; ``prefix`` starts the path."""
        seen = set() if seen is None else seen
        if remove_duplicate:
            if id(self) in seen:
                return
            seen.add(id(self))
        yield prefix, self
        for name, child in self.children():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name, seen, remove_duplicate)

    def named_parameters(self, prefix: str = "", remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Parameters of this layer and all below; a shared one is named once."""
        seen: set[int] = set()
        for path, module in self.named_modules(prefix, None, remove_duplicate):
            for name, parameter in module.own_parameters():
                if remove_duplicate and id(parameter) in seen:
                    continue
                seen.add(id(parameter))
                yield (f"{path}.{name}" if path else name), parameter

    def named_buffers(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """Buffers of this layer and all below."""
        seen: set[int] = set()
        for path, module in self.named_modules(prefix):
            for name, buffer in module.own_buffers():
                if id(buffer) not in seen:
                    seen.add(id(buffer))
                    yield (f"{path}.{name}" if path else name), buffer

    def assign_paths(self) -> None:
        """Give every layer below its dotted path from here."""
        for path, module in self.named_modules():
            module.path = path


def module_tree(root: LayerInstance, name: str = "") -> ModuleNode:
    """The model as a tree of :class:`ModuleNode`; a shared parameter is counted where it is met first."""
    return _node(root, name, set(), set())


def _node(layer: LayerInstance, path: str, seen: set[int], modules: set[int]) -> ModuleNode:
    modules.add(id(layer))
    total = trainable = 0
    for _, parameter in layer.own_parameters():
        if id(parameter) in seen:
            continue
        seen.add(id(parameter))
        count = parameter_count(parameter)
        total += count
        trainable += count if parameter.requires_grad else 0
    children = [
        _node(child, f"{path}.{name}" if path else name, seen, modules)
        for name, child in layer.children()
        if id(child) not in modules
    ]
    return ModuleNode(
        path=path,
        cls=layer.cls.qualname,
        parameters=total + sum(child.parameters for child in children),
        trainable=trainable + sum(child.trainable for child in children),
        output_shapes=list(layer.stats.output_shapes),
        saved_bytes=layer.stats.saved_bytes + sum(child.saved_bytes for child in children),
        flops=layer.stats.flops + sum(child.flops for child in children),
        where=layer.where,
        children=children,
    )


def parameter_count(parameter: Tensor) -> int:
    """Elements of a parameter (0 while its shape is unknown)."""
    if parameter.shape is None:
        return 0
    count = 1
    for size in parameter.shape:
        count *= size
    return count
