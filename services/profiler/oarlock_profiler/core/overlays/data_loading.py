"""Data loaders and samplers: how many samples a batch holds, how many batches an epoch has, and the batches
themselves."""

from __future__ import annotations

import math
from collections.abc import Iterator

from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.engine.trace import Op
from oarlock_profiler.core.interpreter.values import (
    MISSING,
    Class,
    Context,
    HostObject,
    Instance,
    Iteration,
    Native,
    Unknown,
    Value,
)
from oarlock_profiler.core.overlays.datasets import first, item, length
from oarlock_profiler.core.overlays.registry import entry, native_class, register
from oarlock_profiler.core.overlays.samples import collate, materialise, specs, template
from oarlock_profiler.core.overlays.training_notes import Batch, notes

LIBRARIES = ("torch", "paddle", "torchdata")

MOST_BATCHES = 400
"""Batches one walk over a loader gives at most while the script accumulates towards a step."""
MOST_UNSTEPPED = 160
"""Backward passes of unknown losses, with no step among them, after which none is waited for any longer."""
WITHOUT_BACKWARD = 2
"""Batches of a walk in which nothing is learnt (evaluation)."""
READ_AHEAD_ON_CPU = 5
"""Batches that PaddlePaddle holds in main memory beside the one in use (see :func:`_read_ahead`)."""
LEFT_TO_COLLECTOR = 127
"""Batches of one bare tensor that pile up before Python's collector frees them (see :func:`_leaves_to_collector`)."""


class LoaderInstance(Instance):
    """A loader. ``batch`` is the template of its batches, made when it is first walked."""

    def __init__(self, cls: Class) -> None:
        super().__init__(cls)
        self.batch: Value = MISSING
        self.size: int | None = None
        self.count: int | None = None
        self.ready = False
        self.uncollected: list[Value] = []


class BatchStream(HostObject):
    """An iterator over a loader (``iter(loader)``)."""

    def __init__(self, loader: LoaderInstance) -> None:
        self.loader = loader

    def py_type(self) -> str:
        return "torch.utils.data.dataloader._BaseDataLoaderIter"

    def py_getattr(self, context: Context, name: str) -> Value:
        if name in ("__next__", "next"):
            return Native("next", lambda inner: give(inner, self.loader))
        if name == "__iter__":
            return Native("iter", lambda inner: self)
        return MISSING

    def py_iterate(self, context: Context) -> Iteration | None:
        prepare(context, self.loader)
        return Iteration(batches(context, self.loader), exact=False, count=self.loader.count)

    def py_len(self, context: Context) -> Value:
        return _loader_len(context, self.loader)


def batches(context: Context, loader: LoaderInstance) -> Iterator[Value]:
    """Batches until the loop has seen enough: a few where nothing is learnt, as many as a step needs where
    something is."""
    trace, asked = context.engine.trace, context.engine.backward_calls
    seen, learnt = len(trace.events), False
    ahead = _read_ahead(context, loader)
    for given in range(MOST_BATCHES):
        if loader.count is not None and given >= max(1, loader.count):
            return
        if given >= WITHOUT_BACKWARD and not learnt:
            return
        if loader.count is not None:
            del ahead[max(0, loader.count - given - 1) :]
        yield give(context, loader)
        learnt = learnt or (asked < context.engine.backward_calls and context.engine.unstepped <= MOST_UNSTEPPED)
        learnt = learnt or any(type(e) is Op and e.phase == "backward" for e in trace.events[seen:])
        seen = len(trace.events)


def _read_ahead(context: Context, loader: LoaderInstance) -> list[Value]:
    """The batches that PaddlePaddle's loader holds while one is in use, once reading keeps up with training.

    Its buffered reader copies one batch ahead to the device (``buffered_reader.cc``: two buffers, of which one is in
    use). On a CPU the queue before it counts too: five in all without workers (measured, PaddlePaddle 3.3.1: its
    allocator holds 5 batches of an MLP's triplets beside the one in use), none with workers (shared memory).
    """
    engine = context.engine
    if engine.framework != "paddle" or loader.attrs.get("use_buffer_reader") is False:
        return []
    prepare(context, loader)
    on_cpu = engine.default_device == "cpu"
    depth = 1 if not on_cpu else 0 if loader.attrs.get("num_workers") not in (None, 0) else READ_AHEAD_ON_CPU
    return [materialise(context, loader.batch, engine.default_device) for _ in range(depth)]


def give(context: Context, loader: LoaderInstance) -> Value:
    """One fresh batch."""
    prepare(context, loader)
    engine = context.engine
    found = notes(context)
    found.batch = Batch(loader.size, specs(loader.batch), loader.count, context.where)
    found.batches += 1
    engine.assumed_batch = loader.size
    device = engine.default_device if engine.framework == "paddle" else "cpu"
    batch = materialise(context, loader.batch, device)
    if _leaves_to_collector(context, loader, batch):
        if len(loader.uncollected) >= LEFT_TO_COLLECTOR:
            loader.uncollected.clear()
        loader.uncollected.append(batch)
    return batch


def _leaves_to_collector(context: Context, loader: LoaderInstance, batch: Value) -> bool:
    """Whether a batch outlives its use: PaddlePaddle's loader gives one bare tensor, no list or dictionary of them.

    ``_restore_batch`` in ``paddle/io/dataloader/flat.py`` closes over the list of a batch's tensors in a function that
    refers to itself. It takes the tensors of lists and dictionaries out of that list, a bare one it leaves, so this one
    waits for Python's collector of cycles (measured, PaddlePaddle 3.3.1: one batch more with each iteration, over the
    ends of epochs, until some 127 lie there). Batches that workers made lie in shared memory on a CPU.
    """
    engine = context.engine
    if engine.framework != "paddle" or not isinstance(batch, Tensor):
        return False
    if engine.default_device == "cpu" and loader.attrs.get("num_workers") not in (None, 0):
        return False
    context.findings.gap(
        "batches that are not freed", context.where,
        "PaddlePaddle's loader leaves batches of one bare tensor to Python's collector of cycles: memory grows by one "
        f"batch with each iteration, up to {LEFT_TO_COLLECTOR}; only the iterations that were read are counted. "
        "A data set whose items are tuples does not do this",
    )  # fmt: skip
    return True


def prepare(context: Context, loader: LoaderInstance) -> None:
    """Find batch size, number of batches and template once; the data pipeline's own operators count as set-up."""
    if loader.ready:
        return
    loader.ready = True
    trace = context.engine.trace
    before, trace.phase = trace.phase, "setup"
    enabled, context.engine.grad_enabled = context.engine.grad_enabled, False
    try:
        _prepare(context, loader)
    finally:
        trace.phase = before
        context.engine.grad_enabled = enabled


def _prepare(context: Context, loader: LoaderInstance) -> None:
    attrs = loader.attrs
    dataset, sampler = attrs.get("dataset"), attrs.get("sampler")
    groups = attrs.get("batch_sampler")
    if groups is not None and attrs.get("batch_size") in (None, 1):
        size = _sampler_batch_size(context, groups)
        count = length(context, groups)
        if count is None and size is not None:
            count = _count(length(context, dataset), size, False)
    else:
        size = attrs.get("batch_size", 1)
        samples = length(context, sampler) if sampler is not None else None
        if samples is None:
            samples = length(context, dataset)
        if size is None:
            count = samples
        else:
            size = _known_size(context, size)
            count = _count(samples, size, attrs.get("drop_last") is True)
    loader.size = size
    loader.count = count
    if size is not None:
        context.findings.fact("batch.size_per_device", size, context.where)
    sample = item(context, dataset)
    function = attrs.get("collate_fn")
    paddle = context.engine.framework == "paddle"
    if size is None:
        # Batching is off: the dataset gives whole batches.
        made = context.call(function, (sample,)) if function is not None else sample
        loader.batch = template(made, arrays=paddle)
        first_shape = next((s.shape for s in specs(loader.batch) if s.shape), None)
        loader.size = first_shape[0] if first_shape else None
    elif function is not None:
        loader.batch = template(context.call(function, ([sample] * size,)), arrays=paddle)
    else:
        loader.batch = collate(context, sample, size)


def _known_size(context: Context, size: Value) -> int:
    if isinstance(size, int):
        return max(1, size)
    declared = context.state.get("declared", {}).get("batch_size_per_gpu")
    assumed = declared if isinstance(declared, int) else 32
    context.findings.gap("batch size", context.where, getattr(size, "why", "not a number"), assumed)
    return assumed


def _count(samples: int | None, size: int | None, drop_last: bool) -> int | None:
    if samples is None or not size:
        return None
    # A data set that looks too small for one batch is one whose files are not in the bundle.
    return (samples // size if drop_last else math.ceil(samples / size)) or None


def _sampler_batch_size(context: Context, sampler: Value) -> int | None:
    size = context.getattr(sampler, "batch_size", None)
    if isinstance(size, int):
        return size
    batch = first(context, sampler) if isinstance(sampler, Instance | list | tuple) else None
    if isinstance(batch, list | tuple):
        return len(batch)
    return _known_size(context, size)


# --- the loader ------------------------------------------------------------------------------------------------

_TORCH_PLACES = (
    "dataset",
    "batch_size",
    "shuffle",
    "sampler",
    "batch_sampler",
    "num_workers",
    "collate_fn",
    "pin_memory",
    "drop_last",
)
_PADDLE_PLACES = (
    "dataset",
    "feed_list",
    "places",
    "return_list",
    "batch_sampler",
    "batch_size",
    "shuffle",
    "drop_last",
    "collate_fn",
    "num_workers",
)


def _loader_init(context: Context, self: LoaderInstance, *args: Value, **kwargs: Value) -> None:
    places = _PADDLE_PLACES if context.engine.framework == "paddle" else _TORCH_PLACES
    self.attrs.update({"batch_size": 1, "drop_last": False, "sampler": None, "batch_sampler": None, "collate_fn": None})
    self.attrs.update(zip(places, args, strict=False))
    self.attrs.update(kwargs)
    groups = self.attrs.get("batch_sampler")
    if groups is not None:
        size = context.getattr(groups, "batch_size", None) if isinstance(groups, Instance) else None
        self.attrs["batch_size"] = None if size is None else self.attrs["batch_size"]


def _loader_iter(context: Context, self: LoaderInstance) -> Value:
    return BatchStream(self)


def _loader_len(context: Context, self: LoaderInstance) -> Value:
    prepare(context, self)
    if self.count is None:
        return Unknown("the number of batches depends on the data", context.where, hint="int", low=1)
    return self.count


def _nothing(context: Context, *args: Value, **kwargs: Value) -> None:
    return None


def _loader_call(context: Context, self: LoaderInstance) -> Value:
    return BatchStream(self)


LOADER = native_class(
    "torch.utils.data.DataLoader", make=LoaderInstance, __init__=_loader_init, __iter__=_loader_iter,
    __len__=_loader_len,
    __call__=_loader_call, set_sample_generator=_nothing, set_batch_generator=_nothing,
)  # fmt: skip
for _name in ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader", "paddle.io.DataLoader",
              "paddle.io.data.DataLoader", "torchdata.stateful_dataloader.StatefulDataLoader"):  # fmt: skip
    register(_name, LOADER)

# --- samplers --------------------------------------------------------------------------------------------------


def _sampler_init(places: tuple[str, ...], **defaults: Value) -> object:
    def init(context: Context, self: Instance, *args: Value, **kwargs: Value) -> None:
        self.attrs.update(defaults)
        self.attrs.update(zip(places, args, strict=False))
        self.attrs.update(kwargs)

    return init


def _world(context: Context, self: Instance) -> int:
    replicas = self.attrs.get("num_replicas")
    if isinstance(replicas, int):
        return replicas
    world = context.state.get("world_size", 1)
    return world if isinstance(world, int) else 1


def _own_samples(context: Context, self: Instance) -> int | None:
    given = self.attrs.get("num_samples")
    if isinstance(given, int):
        return given
    for key in ("data_source", "dataset", "indices", "weights", "sampler"):
        if self.attrs.get(key) is not None:
            return length(context, self.attrs[key])
    return None


def _share(context: Context, self: Instance) -> int | None:
    total = _own_samples(context, self)
    if total is None:
        return None
    world = _world(context, self)
    return total // world if self.attrs.get("drop_last") is True else math.ceil(total / world)


def _or_unknown(context: Context, value: int | None) -> Value:
    return Unknown("the number of samples depends on the data", context.where, hint="int") if value is None else value


def _plain_len(context: Context, self: Instance) -> Value:
    return _or_unknown(context, _own_samples(context, self))


def _distributed_len(context: Context, self: Instance) -> Value:
    return _or_unknown(context, _share(context, self))


def _batch_len(context: Context, self: Instance) -> Value:
    size = self.attrs.get("batch_size")
    samples = _share(context, self) if self.attrs.get("_shared") else _own_samples(context, self)
    return _or_unknown(
        context, _count(samples, size if isinstance(size, int) else None, self.attrs.get("drop_last") is True)
    )


def _sampler_iter(context: Context, self: Instance) -> Value:
    return Unknown("indices of samples", context.where, hint="list", item=0)


def _batch_iter(context: Context, self: Instance) -> Value:
    size = self.attrs.get("batch_size")
    return Unknown("batches of indices", context.where, hint="list", item=[0] * (size if isinstance(size, int) else 1))


_SAMPLER = native_class("torch.utils.data.Sampler", __init__=_sampler_init(("data_source",)), __iter__=_sampler_iter)


def _sampler(
    name: str, places: tuple[str, ...], len_: object = _plain_len, iter_: object = _sampler_iter, **defaults: Value
) -> Class:
    return native_class(
        f"torch.utils.data.{name}",
        bases=(_SAMPLER,),
        __init__=_sampler_init(places, **defaults),
        __len__=len_,
        __iter__=iter_,
        set_epoch=_nothing,
        set_start_sample=_nothing,
    )


_SAMPLERS = {
    "Sampler": _SAMPLER,
    "RandomSampler": _sampler("RandomSampler", ("data_source", "replacement", "num_samples")),
    "SequentialSampler": _sampler("SequentialSampler", ("data_source",)),
    "SequenceSampler": _sampler("SequenceSampler", ("data_source",)),
    "SubsetRandomSampler": _sampler("SubsetRandomSampler", ("indices",)),
    "WeightedRandomSampler": _sampler("WeightedRandomSampler", ("weights", "num_samples", "replacement")),
    "DistributedSampler": _sampler(
        "DistributedSampler", ("dataset", "num_replicas", "rank", "shuffle", "seed", "drop_last"), _distributed_len
    ),
}
_TORCH_BATCH = _sampler("BatchSampler", ("sampler", "batch_size", "drop_last"), _batch_len, _batch_iter)
_PADDLE_BATCH = _sampler(
    "BatchSampler", ("dataset", "sampler", "shuffle", "batch_size", "drop_last"), _batch_len, _batch_iter, batch_size=1
)
_PADDLE_DISTRIBUTED = _sampler(
    "DistributedBatchSampler",
    ("dataset", "batch_size", "num_replicas", "rank", "shuffle", "drop_last"),
    _batch_len,
    _batch_iter,
    _shared=True,
)

for _name, _cls in _SAMPLERS.items():
    for _owner in ("torch.utils.data", "torch.utils.data.sampler", "torch.utils.data.distributed", "paddle.io"):
        register(f"{_owner}.{_name}", _cls)
for _owner in ("torch.utils.data", "torch.utils.data.sampler"):
    register(f"{_owner}.BatchSampler", _TORCH_BATCH)
register("paddle.io.BatchSampler", _PADDLE_BATCH)
register("paddle.io.DistributedBatchSampler", _PADDLE_DISTRIBUTED)

# --- collation -------------------------------------------------------------------------------------------------


@entry(
    "torch.utils.data.default_collate",
    "torch.utils.data.dataloader.default_collate",
    "torch.utils.data._utils.collate.default_collate",
    "paddle.io.dataloader.collate.default_collate_fn",
)
def default_collate(context: Context, batch: Value) -> Value:
    """A batch out of a list of samples."""
    samples = batch if isinstance(batch, list | tuple) else list(context.iterate(batch).items)
    if not samples:
        return context.unknown("an empty batch", hint="tensor")
    device = context.engine.default_device if context.engine.framework == "paddle" else "cpu"
    return materialise(context, collate(context, samples[0], len(samples)), device)


@entry("torch.utils.data.get_worker_info", "paddle.io.get_worker_info")
def get_worker_info(context: Context) -> Value:
    """None: the main process reads."""
    return None
