"""Samples and batches: how one sample becomes a batch, and how a batch is made anew for each step.

A batch is kept as a template (shapes and types, no tensors), so that nothing here holds memory between steps.
"""

from __future__ import annotations

from dataclasses import dataclass

from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import (
    MISSING,
    BoundMethod,
    Context,
    HostObject,
    Iteration,
    Native,
    Unknown,
    Value,
)
from oarlock_profiler.core.overlays.images import Image
from oarlock_profiler.core.overlays.numpy_arrays import NdArray
from oarlock_profiler.core.reading import TensorSpec


@dataclass(frozen=True, slots=True)
class Spec:
    """A tensor to be made: ``shape`` None when it is not known."""

    shape: tuple[int, ...] | None
    dtype: str
    device: str | None = None
    why: str = ""


class TensorMapping(HostObject):
    """A mapping of named tensors with attribute access (a tokenizer's answer, a collator's batch)."""

    def __init__(self, data: dict[str, Value], name: str = "transformers.BatchEncoding") -> None:
        self.data = data
        self.name = name

    def py_type(self) -> str:
        return self.name

    def py_getattr(self, context: Context, name: str) -> Value:
        if name in self.data:
            return self.data[name]
        method = _METHODS.get(name)
        return MISSING if method is None else BoundMethod(method, self)

    def py_getitem(self, context: Context, key: Value) -> Value:
        if isinstance(key, int):
            key = list(self.data)[key] if key < len(self.data) else key
        if isinstance(key, str) and key in self.data:
            return self.data[key]
        return context.unknown(f"the batch has no entry {key!r}", hint="tensor")

    def py_setitem(self, context: Context, key: Value, value: Value) -> None:
        if isinstance(key, str):
            self.data[key] = value

    def py_binary(self, context: Context, op: str, other: Value, reflected: bool) -> Value:
        if op == "in":
            return other in self.data
        return super().py_binary(context, op, other, reflected)

    def py_len(self, context: Context) -> Value:
        return len(self.data)

    def py_iterate(self, context: Context) -> Iteration | None:
        return Iteration(list(self.data))


def _items(_context: Context, self: TensorMapping) -> Value:
    return list(self.data.items())


def _moved(context: Context, self: TensorMapping, *args: Value, **kwargs: Value) -> Value:
    for key, value in self.data.items():
        if isinstance(value, Tensor):
            self.data[key] = context.call(context.getattr(value, "to"), args, kwargs)
    return self


def _get(_context: Context, self: TensorMapping, key: Value, default: Value = None) -> Value:
    return self.data.get(key, default)


def _pop(_context: Context, self: TensorMapping, key: Value, default: Value = None) -> Value:
    return self.data.pop(key, default)


_METHODS = {
    "items": Native("BatchEncoding.items", _items),
    "keys": Native("BatchEncoding.keys", lambda _c, self: list(self.data)),
    "values": Native("BatchEncoding.values", lambda _c, self: list(self.data.values())),
    "to": Native("BatchEncoding.to", _moved),
    "get": Native("BatchEncoding.get", _get),
    "pop": Native("BatchEncoding.pop", _pop),
    "update": Native("BatchEncoding.update", lambda _c, self, other: self.data.update(other)),
}


def collate(context: Context, sample: Value, size: int) -> Value:
    """The template of ``size`` samples like ``sample``, by the rules of both frameworks' default collation."""
    paddle = context.engine.framework == "paddle"
    if isinstance(sample, Tensor):
        return (
            Spec(None, sample.dtype, None, sample.why or "")
            if sample.shape is None
            else Spec((size, *sample.shape), sample.dtype)
        )
    if isinstance(sample, NdArray):
        return Spec(
            None if sample.shape is None else (size, *sample.shape), sample.dtype, None, "an array of unknown shape"
        )
    if isinstance(sample, Image):
        shape = sample.assumed_shape(context)
        return Spec(None if shape is None else (size, *shape), "uint8", None, "an image of unknown size")
    if isinstance(sample, bool | int):
        return Spec((size,), "bool" if isinstance(sample, bool) and not paddle else "int64")
    if isinstance(sample, float):
        return Spec((size,), "float64" if not paddle else "float32")
    if isinstance(sample, str | bytes):
        return [sample] * min(size, 4096)
    if isinstance(sample, Unknown):
        if sample.hint in ("int", "bool"):
            return Spec((size,), "int64")
        if sample.hint == "float":
            return Spec((size,), "float32")
        if sample.hint == "str":
            return [sample] * min(size, 4096)
        return Spec(None, "float32", None, sample.why)
    if isinstance(sample, TensorMapping):
        return TensorMapping({k: collate(context, v, size) for k, v in sample.data.items()})
    if isinstance(sample, dict):
        return {k: collate(context, v, size) for k, v in sample.items()}
    if isinstance(sample, tuple | list):
        return [collate(context, item, size) for item in sample]
    return sample


def template(value: Value, *, arrays: bool = False) -> Value:
    """``value`` with its tensors replaced by what they are; ``arrays``: a loader that makes tensors of arrays too."""
    if isinstance(value, Tensor):
        return Spec(value.shape, value.dtype, value.device, value.why or "")
    if arrays and isinstance(value, NdArray):
        return Spec(value.shape, value.dtype, None, "an array of unknown shape")
    if isinstance(value, TensorMapping):
        return TensorMapping({k: template(v, arrays=arrays) for k, v in value.data.items()}, value.name)
    if isinstance(value, dict):
        return {k: template(v, arrays=arrays) for k, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)(template(item, arrays=arrays) for item in value)
    return value


def materialise(context: Context, value: Value, device: str) -> Value:
    """A fresh batch from its template; what the template did not place goes to ``device``."""
    if isinstance(value, Spec):
        engine = context.engine
        if value.shape is None:
            return engine.unknown_tensor(value.why or "the batch's shape is unknown", value.dtype)
        return engine.tensor(value.shape, value.dtype, kind="input", device=value.device or device, op="batch")
    if isinstance(value, TensorMapping):
        return TensorMapping({k: materialise(context, v, device) for k, v in value.data.items()}, value.name)
    if isinstance(value, dict):
        return {k: materialise(context, v, device) for k, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)(materialise(context, item, device) for item in value)
    return value


def specs(value: Value) -> list[TensorSpec]:
    """The known tensors of a template, in order."""
    if isinstance(value, Spec):
        return [] if value.shape is None else [TensorSpec(value.shape, value.dtype)]
    if isinstance(value, TensorMapping):
        value = value.data
    if isinstance(value, dict):
        # Labels last: what the model is fed comes first.
        ordered = sorted(value.items(), key=lambda pair: str(pair[0]).startswith("label"))
        return [s for _, item in ordered for s in specs(item)]
    if isinstance(value, list | tuple):
        return [s for item in value[:64] for s in specs(item)]
    return []
