"""Which family a model is of: what calibration learns by, and what flags and advice depend on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from oarlock_profiler.core.engine.trace import Op
from oarlock_profiler.core.reading import ModuleNode, Reading

_ATTENTION_OPS = ("attention", "flash_attn")
_ATTENTION_CLASSES = ("MultiheadAttention", "MultiHeadAttention", "TransformerEncoder", "TransformerDecoder")
_RECURRENT_OPS = ("lstm", "gru", "rnn")

HIGH_MEMORY_SEQUENCE = 512
"""A transformer whose sequence is longer than this is flagged ``high_memory``: attention grows with its square."""


def nodes(roots: Iterable[ModuleNode]) -> Iterator[ModuleNode]:
    """Every node of the model tree, parents first."""
    stack = list(roots)[::-1]
    while stack:
        node = stack.pop()
        yield node
        stack += node.children[::-1]


def family_of(reading: Reading, ops: Iterable[Op]) -> str | None:
    """``transformer``, ``cnn``, ``rnn``, ``mlp``, ``numpy``, or None when there is no model to tell by."""
    if reading.framework == "numpy":
        return "numpy"
    flops = {"conv": 0, "recurrent": 0, "matmul": 0}
    attention = any(_is_attention(node.cls) for node in nodes(reading.roots))
    for op in ops:
        name = op.name.lower()
        if any(part in name for part in _ATTENTION_OPS):
            attention = True
        if any(part in name for part in _RECURRENT_OPS):
            flops["recurrent"] += op.flops
        elif "conv" in name or "conv" in op.kernel:
            flops["conv"] += op.flops
        elif op.matmul:
            flops["matmul"] += op.flops
    total = sum(flops.values())
    if total == 0:
        return None
    if flops["recurrent"] > 0.2 * total:
        return "rnn"
    if attention and flops["conv"] < 0.5 * total:
        return "transformer"
    if flops["conv"] > 0.1 * total:
        return "cnn"
    return "mlp"


def _is_attention(cls: str) -> bool:
    return any(part in cls for part in _ATTENTION_CLASSES) or (cls.endswith("Attention") and "Channel" not in cls)


def sequence_length(reading: Reading) -> int | None:
    """The longest sequence the model works on, in tokens: from encoder outputs, else from the batch's shapes."""
    lengths = [
        shape[1]
        for node in nodes(reading.roots)
        if _is_attention(node.cls) or "Encoder" in node.cls
        for shape in node.output_shapes
        if len(shape) == 3
    ]
    if lengths:
        return max(lengths)
    tokens = [
        spec.shape[1]
        for spec in reading.inputs
        if (len(spec.shape) == 2 and spec.dtype.startswith("int")) or len(spec.shape) == 3
    ]
    return max(tokens) if tokens else None
