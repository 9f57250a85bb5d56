"""What the text modules for language models and trainers ask of the host: encodings, quantised weights, options."""

# ruff: noqa: ARG001 - called from interpreted text

from __future__ import annotations

import math
from typing import Any

from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import Class, Context, Unknown, Value
from oarlock_profiler.core.overlays.registry import entry
from oarlock_profiler.core.overlays.samples import TensorMapping

LIBRARIES = ("oarlock_host",)

_BLOCK = 64
"""Elements that share one scale in a 4-bit weight (bitsandbytes NF4)."""


@entry("oarlock_host.encoding")
def encoding(context: Context, data: Value) -> Value:
    """A tokenizer's answer."""
    return TensorMapping(dict(data) if isinstance(data, dict) else {})


@entry("oarlock_host.is_list")
def is_list(context: Context, value: Value) -> Value:
    """Whether an unknown stands for several things."""
    return isinstance(value, Unknown) and value.hint == "list"


@entry("oarlock_host.is_text")
def is_text(context: Context, value: Value) -> Value:
    """Whether a value is text (known or not), which no tensor is made of."""
    return isinstance(value, str) or (isinstance(value, Unknown) and value.hint not in ("int", "float", "bool", "number"))


@entry("oarlock_host.sequence_length")
def sequence_length(context: Context, default: Value) -> Value:
    """The declared sequence length where there is one."""
    declared = context.state.get("declared", {}).get("sequence_length")
    return declared if isinstance(declared, int) else default


@entry("oarlock_host.quantise")
def quantise(context: Context, model: Value, bits: Value) -> None:
    """Linear weights (but for the head) take ``bits`` per element and a float32 scale per block, and are frozen.

    Source: bitsandbytes ``nn/modules.py`` (Params4bit, Int8Params); transformers keeps ``lm_head`` as it is.
    """
    if not isinstance(model, LayerInstance) or not isinstance(bits, int):
        return
    engine = context.engine
    for path, module in model.named_modules():
        if not any(cls.qualname.endswith(("nn.Linear", "Linear")) for cls in module.cls.mro) or path.endswith("lm_head"):
            continue
        weight = module.attrs.get("weight")
        if not isinstance(weight, Tensor) or weight.shape is None:
            continue
        elements = math.prod(weight.shape)
        scales = 4 * (elements // _BLOCK if bits == 4 else weight.shape[0])
        weight.storage = engine.allocate(elements * bits // 8 + scales, "parameter", weight.device, "quantised")
    for _, parameter in model.named_parameters():
        parameter.requires_grad = False
    context.findings.fact("quantised weights", f"{bits} bits", context.where)


@entry("oarlock_host.options")
def options(context: Context, args: Value = None) -> Value:
    """``--name value`` pairs of the command line, as text (``True`` for a bare flag)."""
    given = args if isinstance(args, list | tuple) else getattr(getattr(context, "request", None), "arguments", ())
    found: dict[str, Value] = {}
    words = [w for w in given if isinstance(w, str)]
    for index, word in enumerate(words):
        if not word.startswith("--"):
            continue
        name, equals, value = word[2:].partition("=")
        follows = words[index + 1] if index + 1 < len(words) and not words[index + 1].startswith("--") else None
        found[name.replace("-", "_")] = value if equals else (True if follows is None else follows)
    return found


def _typed(text: Value) -> Value:
    if not isinstance(text, str):
        return text
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


@entry("oarlock_host.from_options")
def from_options(context: Context, cls: Value, values: Value) -> Value:
    """An instance of ``cls`` from the options that its constructor or its fields name."""
    given = {str(k): _typed(v) for k, v in values.items()} if isinstance(values, dict) else {}
    names = _fields(cls)
    chosen: dict[str, Any] = {k: v for k, v in given.items() if names is None or k in names}
    return context.call(cls, (), chosen)


def _fields(cls: Value) -> set[str] | None:
    """Field names of a dataclass along its bases; None when the constructor takes anything."""
    if not isinstance(cls, Class):
        return None
    found: set[str] = set()
    for base in cls.mro or (cls,):
        annotations = base.namespace.get("__annotations__")
        if isinstance(annotations, dict):
            found |= {str(k) for k in annotations}
        init = base.namespace.get("__init__")
        node = getattr(init, "node", None)
        if node is not None:
            found |= {a.arg for a in (*node.args.args, *node.args.kwonlyargs)}
    return found or None
