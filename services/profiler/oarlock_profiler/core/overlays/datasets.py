"""Datasets: the base classes that scripts derive from, containers of them, and how one sample is taken."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from oarlock_profiler.core.engine.tensor import STAND_INS, Tensor
from oarlock_profiler.core.interpreter.values import Context, HostObject, Instance, Unknown, Value
from oarlock_profiler.core.overlays.numpy_arrays import NdArray
from oarlock_profiler.core.overlays.registry import entry, native_class, register

LIBRARIES = ("torch", "paddle")

EMPTY_INDEX = 0


def length(context: Context, dataset: Value) -> int | None:
    """Number of samples, None when it cannot be known."""
    if isinstance(dataset, list | tuple | range | dict):
        return None if context.is_open(dataset) else len(dataset)
    if isinstance(dataset, Tensor | NdArray):
        return dataset.shape[0] if dataset.shape and dataset.shape[0] not in STAND_INS else None
    if isinstance(dataset, Instance):
        method = context.getattr(dataset, "__len__", None)
        found = context.call(method) if method is not None else None
    elif isinstance(dataset, HostObject):
        found = dataset.py_len(context)
    else:
        return None
    return found if isinstance(found, int) and not isinstance(found, bool) and found not in STAND_INS else None


def row(tensor: Tensor) -> Tensor:
    """``tensor[0]`` as a view, without an operator of its own."""
    if not tensor.shape:
        return tensor
    return Tensor(tensor.engine, tensor.shape[1:], tensor.dtype, tensor.storage, tensor.device)


def item(context: Context, dataset: Value, index: Value = EMPTY_INDEX) -> Value:
    """One sample. Reading it is preparation: its operators are not those of a training step."""
    if isinstance(dataset, list | tuple):
        return dataset[0] if dataset else Unknown("the dataset is empty as far as it can be read", context.where)
    if isinstance(dataset, Tensor):
        return row(dataset)
    if isinstance(dataset, Instance):
        method = context.getattr(dataset, "__getitem__", None)
        if method is not None:
            return context.call(method, (index,))
        method = context.getattr(dataset, "__iter__", None)
        if method is not None:
            return first(context, context.call(method))
    if isinstance(dataset, HostObject):
        return dataset.py_getitem(context, index)
    if isinstance(dataset, Unknown):
        return dataset.item if dataset.item is not None else Unknown(f"a sample of it: {dataset.why}", context.where)
    return context.unknown("the dataset cannot be indexed", hint="tensor")


def first(context: Context, iterable: Value) -> Value:
    """The first item of an iterable."""
    for found in context.iterate(iterable).items:
        return found
    return Unknown("nothing is iterated as far as it can be read", context.where)


def _nothing(context: Context, *args: Value, **kwargs: Value) -> None:
    return None


def _add(context: Context, self: Instance, other: Value) -> Value:
    made = Instance(CONCAT)
    made.attrs["datasets"] = [self, other]
    return made


DATASET = native_class("torch.utils.data.Dataset", __init__=_nothing, __add__=_add)
ITERABLE = native_class("torch.utils.data.IterableDataset", bases=(DATASET,))

# --- tensors ---------------------------------------------------------------------------------------------------


def _tensor_init(context: Context, self: Instance, *tensors: Value) -> None:
    # PaddlePaddle takes one list, PyTorch takes the tensors themselves.
    if len(tensors) == 1 and isinstance(tensors[0], list | tuple):
        tensors = tuple(tensors[0])
    self.attrs["tensors"] = tuple(tensors)


def _tensor_len(context: Context, self: Instance) -> Value:
    for tensor in self.attrs["tensors"]:
        known = length(context, tensor)
        if known is not None:
            return known
    return Unknown("the tensors' length is unknown", context.where, hint="int")


def _tensor_item(context: Context, self: Instance, index: Value) -> Value:
    return tuple(item(context, tensor) for tensor in self.attrs["tensors"])


# --- parts and sums of datasets --------------------------------------------------------------------------------


def _subset_init(context: Context, self: Instance, dataset: Value, indices: Value) -> None:
    self.attrs["dataset"] = dataset
    self.attrs["indices"] = indices


def _subset_len(context: Context, self: Instance) -> Value:
    known = length(context, self.attrs["indices"])
    return Unknown("the subset's length is unknown", context.where, hint="int") if known is None else known


def _subset_item(context: Context, self: Instance, index: Value) -> Value:
    return item(context, self.attrs["dataset"])


def _concat_init(context: Context, self: Instance, datasets: Value) -> None:
    self.attrs["datasets"] = (
        list(datasets) if isinstance(datasets, list | tuple) else list(context.iterate(datasets).items)
    )


def _concat_len(context: Context, self: Instance) -> Value:
    sizes = [length(context, dataset) for dataset in self.attrs["datasets"]]
    known = [n for n in sizes if n is not None]
    return (
        sum(known) if len(known) == len(sizes) else Unknown("a dataset's length is unknown", context.where, hint="int")
    )


def _concat_item(context: Context, self: Instance, index: Value) -> Value:
    return item(context, self.attrs["datasets"][0]) if self.attrs["datasets"] else Unknown("no datasets", context.where)


def _stack_init(context: Context, self: Instance, *datasets: Value, **named: Value) -> None:
    if len(datasets) == 1 and isinstance(datasets[0], list | tuple):
        datasets = tuple(datasets[0])
    self.attrs["datasets"] = list(datasets or named.values())
    self.attrs["_names"] = list(named)


def _stack_len(context: Context, self: Instance) -> Value:
    known = [n for d in self.attrs["datasets"] if (n := length(context, d)) is not None]
    return min(known) if known else Unknown("the datasets' lengths are unknown", context.where, hint="int")


def _stack_item(context: Context, self: Instance, index: Value) -> Value:
    parts = [item(context, dataset) for dataset in self.attrs["datasets"]]
    if self.attrs["_names"]:
        return dict(zip(self.attrs["_names"], parts, strict=False))
    flat: list[Value] = []
    for part in parts:
        flat.extend(part if isinstance(part, tuple) and context.engine.framework == "paddle" else [part])
    return tuple(flat)


SUBSET = native_class(
    "torch.utils.data.Subset", bases=(DATASET,), __init__=_subset_init, __len__=_subset_len, __getitem__=_subset_item
)
CONCAT = native_class(
    "torch.utils.data.ConcatDataset",
    bases=(DATASET,),
    __init__=_concat_init,
    __len__=_concat_len,
    __getitem__=_concat_item,
)
STACK = native_class(
    "torch.utils.data.StackDataset", bases=(DATASET,), __init__=_stack_init, __len__=_stack_len, __getitem__=_stack_item
)
TENSORS = native_class(
    "torch.utils.data.TensorDataset",
    bases=(DATASET,),
    __init__=_tensor_init,
    __len__=_tensor_len,
    __getitem__=_tensor_item,
)
CHAIN = native_class(
    "torch.utils.data.ChainDataset", bases=(ITERABLE,), __init__=_concat_init, __getitem__=_concat_item
)

for _owner in ("torch.utils.data", "torch.utils.data.dataset", "paddle.io"):
    register(f"{_owner}.Dataset", DATASET)
    register(f"{_owner}.IterableDataset", ITERABLE)
    register(f"{_owner}.TensorDataset", TENSORS)
    register(f"{_owner}.Subset", SUBSET)
    register(f"{_owner}.ConcatDataset", CONCAT)
    register(f"{_owner}.ChainDataset", CHAIN)
    register(f"{_owner}.StackDataset", STACK)
register("paddle.io.ComposeDataset", STACK)


@entry("torch.utils.data.random_split", "torch.utils.data.dataset.random_split", "paddle.io.random_split")
def random_split(context: Context, dataset: Value, lengths: Value, generator: Value = None) -> Value:
    """Subsets of given lengths, or of given fractions."""
    parts: Iterable[Value] = lengths if isinstance(lengths, list | tuple) else context.iterate(lengths).items
    sizes = list(parts)
    total = length(context, dataset)
    if sizes and all(isinstance(n, int | float) for n in sizes) and sum(sizes) <= 1 and total is not None:
        whole = [int(total * n) for n in sizes]
        for index in range(total - sum(whole)):
            whole[index % len(whole)] += 1
        sizes = whole
    ends = list(accumulate(n if isinstance(n, int) else 0 for n in sizes))
    made = []
    for size, end in zip(sizes, ends, strict=True):
        part = Instance(SUBSET)
        part.attrs["dataset"] = dataset
        known = isinstance(size, int)
        part.attrs["indices"] = (
            range(end - size, end) if known else Unknown("part of a dataset", context.where, hint="list")
        )
        made.append(part)
    return made
