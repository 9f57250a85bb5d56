"""What the text modules for language models and trainers ask of the host: encodings, quantised weights, options."""

from __future__ import annotations

import math
from typing import Any

from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import MISSING, Class, Context, Iteration, Native, Unknown, Value
from oarlock_profiler.core.overlays.data_loading import BatchStream, LoaderInstance, give
from oarlock_profiler.core.overlays.images import Image
from oarlock_profiler.core.overlays.numpy_arrays import NdArray
from oarlock_profiler.core.overlays.registry import entry
from oarlock_profiler.core.overlays.samples import TensorMapping

LIBRARIES = ("oarlock_host",)

_BLOCK = 64
"""Elements that share one scale in a 4-bit weight (bitsandbytes NF4)."""


@entry("oarlock_host.encoding")
def encoding(context: Context, data: Value) -> Value:
    """A tokenizer's answer."""
    return TensorMapping(dict(data) if isinstance(data, dict) else {})


@entry("oarlock_host.is_many")
def is_many(context: Context, value: Value, known: Value = False) -> Value:
    """Whether a value is several things: a sequence, or (unless ``known``) an unknown that stands for one."""
    return isinstance(value, list | tuple) or (
        known is not True and isinstance(value, Unknown) and value.hint == "list"
    )


@entry("oarlock_host.is_text")
def is_text(context: Context, value: Value) -> Value:
    """Whether a value is text (known or not), which no tensor is made of."""
    return isinstance(value, str) or (
        isinstance(value, Unknown) and value.hint not in ("int", "float", "bool", "number")
    )


@entry("oarlock_host.stands_for_many")
def stands_for_many(context: Context, value: Value) -> Value:
    """Whether a value is one of many batches: a tensor, an array, something unknown, or what holds such a thing."""
    if isinstance(value, list | tuple):
        return any(stands_for_many(context, one) for one in value)
    if isinstance(value, dict):
        return any(stands_for_many(context, one) for one in value.values())
    return isinstance(value, Tensor | NdArray | TensorMapping | Unknown)


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
        if not any(cls.qualname.endswith(("nn.Linear", "Linear")) for cls in module.cls.mro) or path.endswith(
            "lm_head"
        ):
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


@entry("oarlock_host.picture")
def picture(context: Context) -> Value:
    """A picture of unknown size."""
    return Image(None, None)


@entry("oarlock_host.to_torch")
def to_torch(context: Context, value: Value) -> Value:
    """A row's value as a tensor where it is numbers."""
    shape: list[int] = []
    inner = value
    while isinstance(inner, list | tuple):
        shape.append(len(inner))
        inner = inner[0] if inner else 0
    if isinstance(inner, int | float) or (isinstance(inner, Unknown) and inner.hint in ("int", "float", "bool")):
        real = isinstance(inner, float) or (isinstance(inner, Unknown) and inner.hint == "float")
        return context.engine.tensor(shape, "float32" if real else "int64", kind="other", device="cpu", op="row")
    return value


class MovedStream(BatchStream):
    """A loader's batches, each moved to a device as it comes."""

    def __init__(self, loader: LoaderInstance, device: Value) -> None:
        super().__init__(loader)
        self.device = device

    def py_getattr(self, context: Context, name: str) -> Value:
        if name == "__next__":
            return Native("next", lambda inner: self._moved(inner, give(inner, self.loader)))
        found = super().py_getattr(context, name)
        # what is asked of a prepared loader, its data set say, the loader itself answers
        return context.getattr(self.loader, name, MISSING) if found is MISSING else found

    def py_iterate(self, context: Context) -> Iteration | None:
        plain = super().py_iterate(context)
        if plain is None:
            return None
        return Iteration((self._moved(context, batch) for batch in plain.items), exact=False, count=plain.count)

    def _moved(self, context: Context, value: Value) -> Value:
        if isinstance(value, Tensor):
            return context.call(context.getattr(value, "to"), (self.device,))
        if isinstance(value, TensorMapping):
            return TensorMapping({k: self._moved(context, v) for k, v in value.data.items()}, value.name)
        if isinstance(value, dict):
            return {k: self._moved(context, v) for k, v in value.items()}
        if type(value) in (list, tuple):
            return type(value)(self._moved(context, v) for v in value)
        return value


@entry("oarlock_host.moved")
def moved(context: Context, loader: Value, device: Value) -> Value:
    """An iterator whose batches are on ``device``."""
    return MovedStream(loader, device) if isinstance(loader, LoaderInstance) else loader


@entry("oarlock_host.caller_arguments")
def caller_arguments(context: Context) -> Value:
    """The arguments of the constructor that called ``save_hyperparameters``."""
    frames = getattr(context, "frames", [])
    for frame in reversed(frames):
        values = getattr(frame, "vars", None)
        if isinstance(values, dict) and "self" in values and not frame.module.library:
            return {k: v for k, v in values.items() if k not in ("self", "__class__")}
    return {}


@entry("oarlock_host.moved_loader")
def moved_loader(context: Context, loader: Value, device: Value) -> Value:
    """A loader whose batches come on ``device``."""
    return MovedStream(loader, device) if isinstance(loader, LoaderInstance) else loader


@entry("oarlock_host.is_unknown")
def is_unknown(context: Context, value: Value) -> Value:
    """Whether a value is not known."""
    return isinstance(value, Unknown)


@entry("oarlock_host.many")
def many(context: Context, items: Value) -> Value:
    """A list whose items stand for a number of them that is not known."""
    return Unknown("rows of a table", context.where, "list", item=items[0]) if isinstance(items, list) else items
