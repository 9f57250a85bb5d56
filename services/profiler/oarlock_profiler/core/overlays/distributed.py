"""``torch.distributed`` and ``paddle.distributed``: who am I, how many are we, and collectives (which keep shapes).

The script is read as rank 0 of ``world_size`` processes. Wrappers of models are text in :mod:`library`; what they
need of the
host (buckets, shards, notes) is here under ``oarlock_host``.
"""

from __future__ import annotations

import math
from typing import Any

from oarlock_profiler.core.engine.dtypes import size_of
from oarlock_profiler.core.engine.engine import GRADIENT_SHARDS
from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.engine.trace import Storage
from oarlock_profiler.core.interpreter.values import MISSING, Context, HostObject, Instance, Native, Unknown, Value
from oarlock_profiler.core.overlays.optimizers import OptimizerInstance
from oarlock_profiler.core.overlays.registry import entry, native_class, register
from oarlock_profiler.core.overlays.training_notes import note_strategy, notes

LIBRARIES = ("torch", "paddle", "oarlock_host", "deepspeed", "accelerate", "transformers", "paddlenlp")

MIB = 1 << 20


def world(context: Context) -> int:
    """Processes of the job."""
    size = context.state.get("world_size", 1)
    return size if isinstance(size, int) and size > 0 else 1


def _constant(value: Value) -> Any:
    return lambda context, *args, **kwargs: value


def _names(owners: tuple[str, ...], names: str, function: Any) -> None:
    for owner in owners:
        for name in names.split():
            register(f"{owner}.{name}", Native(f"{owner}.{name}", function))


_TORCH = ("torch.distributed", "torch.distributed.distributed_c10d")
_PADDLE = ("paddle.distributed", "paddle.distributed.parallel", "paddle.distributed.communication")
_BOTH = (*_TORCH, *_PADDLE)

_names(_BOTH, "get_rank get_group_rank", _constant(0))
_names(_BOTH, "get_world_size get_group_size", lambda context, *args, **kwargs: world(context))
_names(_TORCH, "is_available is_nccl_available is_gloo_available is_torchelastic_launched", _constant(True))
_names(("paddle.distributed",), "is_available", _constant(True))
_names(_BOTH, "barrier destroy_process_group monitored_barrier wait set_device set_mesh", _constant(None))
_names(_TORCH, "get_backend", _constant("nccl"))
_names(("paddle.distributed",), "get_backend", _constant("NCCL"))
_names(_TORCH, "get_process_group_ranks", lambda context, *args: list(range(world(context))))


def _initialise(context: Context, *args: Value, **kwargs: Value) -> None:
    context.state["distributed_ready"] = True
    size = kwargs.get("world_size")
    if isinstance(size, int) and size > 1 and world(context) == 1:
        context.state["world_size"] = size


_names((*_TORCH, *_PADDLE), "init_process_group init_parallel_env", _initialise)
_names(_BOTH, "is_initialized", lambda context: bool(context.state.get("distributed_ready")))


def _collective(context: Context, tensor: Value = None, *args: Value, **kwargs: Value) -> Value:
    """In place: the tensor keeps its memory. Asynchronous forms give a handle whose ``wait`` does nothing."""
    return Work(tensor)


class Work(HostObject):
    """A collective's handle; also stands for its tensor where a functional form returns it."""

    def __init__(self, tensor: Value) -> None:
        self.tensor = tensor

    def py_type(self) -> str:
        return "torch.distributed.Work"

    def py_getattr(self, context: Context, name: str) -> Value:
        if name in ("wait", "is_completed"):
            return Native(name, lambda inner, *args: True)
        return MISSING


_names(
    (*_BOTH, "paddle.distributed.stream"),
    "all_reduce broadcast reduce scatter send recv isend irecv reduce_scatter all_to_all alltoall alltoall_single "
    "all_to_all_single gather reduce_scatter_tensor broadcast_object_list batch_isend_irecv",
    _collective,
)


def _all_gather(context: Context, tensors: Value, tensor: Value = None, *args: Value, **kwargs: Value) -> Value:
    """PaddlePaddle appends one tensor per process to an empty list; PyTorch fills the list given."""
    if isinstance(tensors, list) and not tensors and isinstance(tensor, Tensor) and tensor.shape is not None:
        for _ in range(world(context)):
            tensors.append(context.engine.tensor(tensor.shape, tensor.dtype, device=tensor.device, op="all_gather"))
    return Work(tensor)


def _all_gather_object(context: Context, objects: Value, obj: Value = None, *args: Value, **kwargs: Value) -> None:
    if isinstance(objects, list):
        if objects:
            objects[:] = [obj] * len(objects)
        else:
            objects.extend([obj] * world(context))


_names((*_BOTH, "paddle.distributed.stream"), "all_gather all_gather_into_tensor", _all_gather)
_names(_BOTH, "all_gather_object gather_object", _all_gather_object)
for _owner in ("torch.distributed.ReduceOp", "paddle.distributed.ReduceOp"):
    for _op in ("SUM", "AVG", "MAX", "MIN", "PRODUCT", "PROD"):
        register(f"{_owner}.{_op}", _op)


class Group(HostObject):
    """A process group: all processes unless ``ranks`` says which."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks

    def py_type(self) -> str:
        return "torch.distributed.ProcessGroup"

    def py_getattr(self, context: Context, name: str) -> Value:
        if name in ("nranks", "world_size"):
            return self.ranks
        if name in ("rank", "id"):
            return 0
        if name == "size":
            return Native("size", lambda inner: self.ranks)
        if name in ("get_group_rank", "get_global_rank"):
            return Native(name, lambda inner, *args: 0)
        return MISSING


def _new_group(context: Context, ranks: Value = None, *args: Value, **kwargs: Value) -> Value:
    return Group(len(ranks) if isinstance(ranks, list | tuple | range) else world(context))


_names(_BOTH, "new_group get_group", _new_group)
register("torch.distributed.group.WORLD", None)


# --- launching -------------------------------------------------------------------------------------------------


def _processes(context: Context, count: Value) -> None:
    if isinstance(count, int) and count > 1 and world(context) == 1:
        context.state["world_size"] = count


@entry("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes")
def torch_spawn(
    context: Context, fn: Value, args: Value = (), nprocs: Value = 1, *more: Value, **options: Value
) -> Value:
    """Run the worker as process 0."""
    _processes(context, nprocs)
    return context.call(fn, (0, *(args if isinstance(args, tuple | list) else ())))


@entry("paddle.distributed.spawn")
def paddle_spawn(
    context: Context, func: Value, args: Value = (), nprocs: Value = -1, *more: Value, **options: Value
) -> Value:
    """Run the worker as process 0."""
    _processes(context, nprocs)
    return context.call(func, tuple(args) if isinstance(args, tuple | list) else ())


def _process_init(
    context: Context,
    self: Instance,
    group: Value = None,
    target: Value = None,
    name: Value = None,
    args: Value = (),
    kwargs: Value = None,
    **more: Value,
) -> None:
    self.attrs.update(
        {"_target": target, "_args": args, "_kwargs": kwargs or {}, "_count": context.state.get("_started", 0)}
    )


def _process_start(context: Context, self: Instance) -> None:
    """The first process of a target is read; the others do the same."""
    started = context.state.setdefault("_started_targets", set())
    target = self.attrs["_target"]
    if target is not None and id(target) not in started:
        started.add(id(target))
        context.call(target, self.attrs["_args"], self.attrs["_kwargs"])


_PROCESS = native_class(
    "torch.multiprocessing.Process",
    __init__=_process_init,
    start=_process_start,
    join=_constant(None),
    terminate=_constant(None),
    is_alive=_constant(False),
)
register("torch.multiprocessing.Process", _PROCESS)
_names(("torch.multiprocessing",), "set_start_method set_sharing_strategy freeze_support", _constant(None))
_names(
    ("torch.multiprocessing",),
    "get_context",
    lambda context, *args: context.importer.load("torch.multiprocessing") if hasattr(context, "importer") else None,
)
_names(("torch.multiprocessing",), "cpu_count", _constant(16))


# --- PaddlePaddle's environment and fleet ----------------------------------------------------------------------


class ParallelEnv(HostObject):
    """``paddle.distributed.ParallelEnv()``."""

    def py_type(self) -> str:
        return "paddle.distributed.ParallelEnv"

    def py_getattr(self, context: Context, name: str) -> Value:
        if name in ("nranks", "world_size"):
            return world(context)
        if name in ("rank", "local_rank", "dev_id", "device_id"):
            return 0
        if name in ("current_endpoint", "trainer_endpoints"):
            return "127.0.0.1:6170" if name == "current_endpoint" else ["127.0.0.1:6170"]
        return MISSING


for _name in (
    "paddle.distributed.ParallelEnv",
    "paddle.distributed.parallel.ParallelEnv",
    "paddle.fluid.dygraph.ParallelEnv",
):
    register(_name, Native(_name, lambda context: ParallelEnv()))
register(
    "paddle.distributed.parallel.parallel_helper._is_parallel_ctx_initialized",
    Native("_is_parallel_ctx_initialized", lambda context: bool(context.state.get("distributed_ready"))),
)


class Strategy(Instance):
    """``DistributedStrategy``: any attribute may be set; unset ones are off, nested configurations are dicts."""


def _strategy_init(context: Context, self: Instance, *args: Value, **kwargs: Value) -> None:
    self.attrs.update({"hybrid_configs": {}, "amp": False, "recompute": False, "sharding": False, "pipeline": False,
                       "gradient_merge": False, "lamb": False, "lars": False, "dgc": False, "tensor_parallel": False,
                       "amp_configs": {}, "recompute_configs": {}, "sharding_configs": {}, "pipeline_configs": {},
                       "gradient_merge_configs": {}, "tensor_parallel_configs": {}, "find_unused_parameters": False,
                       "fuse_grad_size_in_MB": 32, "build_strategy": None, "execution_strategy": None})  # fmt: skip


STRATEGY = native_class(
    "paddle.distributed.fleet.DistributedStrategy",
    __init__=_strategy_init,
    __getattr__=lambda context, self, name: False,
)
_FLEET = ("paddle.distributed.fleet", "paddle.distributed.fleet.fleet")
for _owner in _FLEET:
    register(f"{_owner}.DistributedStrategy", STRATEGY)
register("paddle.distributed.fleet.base.distributed_strategy.DistributedStrategy", STRATEGY)


def _fleet_init(
    context: Context,
    role_maker: Value = None,
    is_collective: Value = False,
    strategy: Value = None,
    *args: Value,
    **kwargs: Value,
) -> Value:
    context.state["distributed_ready"] = True
    if isinstance(strategy, Instance):
        context.state["fleet"] = strategy
        degrees = _degrees(context)
        known = {k: v for k, v in degrees.items() if isinstance(v, int) and v > 1}
        product = math.prod(known.values())
        if product > world(context):
            context.state["world_size"] = product
        if len(known) > 1:
            note_strategy(context, "hybrid", **known)
        for name, ways in known.items() if len(known) == 1 else ():
            note_strategy(context, _STRATEGY_NAMES.get(name, name), **{name: ways})
    context.findings.fact("distributed", "fleet", context.where)
    return None


_STRATEGY_NAMES = {"dp": "ddp", "mp": "tensor", "pp": "pipeline", "sharding": "zero1", "sep": "sequence"}


def _degrees(context: Context) -> dict[str, Value]:
    strategy = context.state.get("fleet")
    configs = strategy.attrs.get("hybrid_configs", {}) if isinstance(strategy, Instance) else {}
    if not isinstance(configs, dict):
        return {}
    return {name: configs.get(f"{name}_degree", 1) for name in ("dp", "mp", "pp", "sharding", "sep")}


def degree(context: Context, name: str) -> int:
    """One degree of fleet's hybrid parallelism (1 when it is not used)."""
    value = _degrees(context).get(name, 1)
    return value if isinstance(value, int) and value > 0 else 1


class Topology(HostObject):
    """``fleet.get_hybrid_communicate_group()``: sizes by degree, every rank 0."""

    def py_type(self) -> str:
        return "paddle.distributed.fleet.HybridCommunicateGroup"

    def py_getattr(self, context: Context, name: str) -> Value:
        for word, short in (
            ("model_parallel", "mp"),
            ("pipe_parallel", "pp"),
            ("stage", "pp"),
            ("sharding_parallel", "sharding"),
            ("data_parallel", "dp"),
            ("sep_parallel", "sep"),
        ):
            if word in name:
                if name.endswith("world_size"):
                    size = degree(context, short)
                    if short == "dp":
                        others = math.prod(degree(context, n) for n in ("mp", "pp", "sharding", "sep"))
                        size = max(size, world(context) // max(1, others))
                    return Native(name, lambda inner, _size=size: _size)
                if name.endswith(("rank", "id")):
                    return Native(name, _constant(0))
                if name.endswith("group"):
                    return Native(name, lambda inner, _short=short: Group(degree(inner, _short)))
        if name == "get_parallel_mode":
            return Native(name, _constant(0))
        if name.startswith(("is_first", "is_last", "get_", "topology")):
            return Native(name, _constant(name.startswith("is_")))
        return MISSING


_names(_FLEET, "init", _fleet_init)
_names(_FLEET, "get_hybrid_communicate_group", lambda context: Topology())
_names(_FLEET, "worker_index local_rank server_index", _constant(0))
_names(_FLEET, "worker_num", world)
_names(_FLEET, "is_first_worker is_worker", _constant(True))
_names(_FLEET, "is_server", _constant(False))
_names(_FLEET, "worker_endpoints", _constant(["127.0.0.1:6170"]))
_names(_FLEET, "barrier_worker init_worker stop_worker run_server init_server save_persistables", _constant(None))
for _name in ("PaddleCloudRoleMaker", "UserDefinedRoleMaker"):
    for _owner in (*_FLEET, "paddle.distributed.fleet.base.role_maker"):
        register(f"{_owner}.{_name}", Native(_name, _constant(None)))


class Tracker(HostObject):
    """Random-state trackers of model parallelism: contexts that change nothing."""

    def py_type(self) -> str:
        return "paddle.distributed.fleet.meta_parallel.RNGStatesTracker"

    def py_getattr(self, context: Context, name: str) -> Value:
        if name in ("rng_state", "add", "reset", "__enter__", "__exit__"):
            return Native(name, lambda inner, *args, **kwargs: self if name in ("rng_state", "__enter__") else None)
        return MISSING


for _name in (
    "paddle.distributed.fleet.meta_parallel.get_rng_state_tracker",
    "paddle.distributed.fleet.layers.mpu.random.get_rng_state_tracker",
    "paddle.distributed.fleet.meta_parallel.parallel_layers.random.get_rng_state_tracker",
):
    register(_name, Native(_name, lambda context: Tracker()))
register(
    "paddle.distributed.fleet.meta_parallel.model_parallel_random_seed",
    Native("model_parallel_random_seed", _constant(None)),
)
_names(
    ("paddle.distributed.fleet.utils.hybrid_parallel_util",),
    "fused_allreduce_gradients broadcast_mp_parameters broadcast_dp_parameters",
    _constant(None),
)
_names(("paddle.distributed.parallel",), "sync_params_buffers", _constant(None))


def _distributed_optimizer(
    context: Context, optimizer: Value, strategy: Value = None, *args: Value, **kwargs: Value
) -> Value:
    """The optimiser itself; sharding spreads its states."""
    if isinstance(strategy, Instance):
        context.state.setdefault("fleet", strategy)
    if isinstance(optimizer, OptimizerInstance):
        optimizer.shards = max(optimizer.shards, degree(context, "sharding"))
    return optimizer


_names(_FLEET, "distributed_optimizer", _distributed_optimizer)
_names(_FLEET, "distributed_scaler", lambda context, scaler, *args: scaler)


# --- what the text modules ask of the host ---------------------------------------------------------------------


class Held(HostObject):
    """Device memory that a wrapper keeps."""

    def __init__(self, storages: list[Storage]) -> None:
        self.storages = storages

    def py_type(self) -> str:
        return "oarlock_host.Held"


@entry("oarlock_host.strategy")
def strategy_noted(context: Context, name: Value, **details: Value) -> None:
    """Note how work is spread."""
    note_strategy(context, str(name), **details)


@entry("oarlock_host.flag")
def flag(context: Context, name: Value, value: Value = True) -> None:
    """Note something for the reading (``recompute``, ``accumulation_steps``, ``batch_size``, ``amp``)."""
    found = notes(context)
    if name == "recompute":
        found.recompute = True
    elif name == "accumulation_steps" and isinstance(value, int):
        found.accumulation_steps = value
    elif name == "epochs" and isinstance(value, int):
        found.epochs = value
    elif name == "amp" and isinstance(value, str):
        found.amp_dtype = value
    else:
        found.flags.add(str(name))


@entry("oarlock_host.world_size")
def world_size(context: Context) -> Value:
    """Processes of the job."""
    return world(context)


@entry("oarlock_host.degree")
def degree_of(context: Context, name: Value) -> Value:
    """A degree of fleet's hybrid parallelism."""
    return degree(context, str(name))


@entry("oarlock_host.gap")
def gap(context: Context, what: Value, why: Value, assumed: Value = None) -> None:
    """Say what is not known."""
    context.findings.gap(
        str(what), context.where, str(why), assumed if isinstance(assumed, str | int | float) else None
    )


@entry("oarlock_host.fact")
def fact(context: Context, name: Value, value: Value) -> None:
    """Say what was found."""
    context.findings.fact(
        str(name), value if isinstance(value, str | int | float) else str(value), context.where, "config"
    )


@entry("oarlock_host.unknown")
def unknown(context: Context, why: Value, hint: Value = None) -> Value:
    """A value that cannot be known."""
    return Unknown(str(why), context.where, hint=hint if isinstance(hint, str) else None)


@entry("oarlock_host.buckets")
def buckets(context: Context, module: Value, cap_mb: Value = 25, as_view: Value = False) -> Value:
    """Gradient buckets of data parallelism: the first of 1 MiB, then ``cap_mb`` each, in reverse order of the
    parameters.

    Source: ``torch/csrc/distributed/c10d/reducer.cpp`` (compute_bucket_assignment_by_size).
    """
    if not isinstance(module, LayerInstance) or as_view is True:
        return None
    cap = int(cap_mb * MIB) if isinstance(cap_mb, int | float) else 25 * MIB
    limit, filled, sizes = MIB, 0, []
    device = "cpu"
    for _, parameter in reversed(list(module.named_parameters())):
        if not parameter.requires_grad or parameter.shape is None:
            continue
        device = parameter.device
        filled += parameter.nbytes
        if filled >= limit:
            sizes.append(filled)
            filled, limit = 0, cap
    if filled:
        sizes.append(filled)
    return Held([context.engine.allocate(size, "other", device, "ddp_bucket") for size in sizes])


@entry("oarlock_host.shard")
def shard(context: Context, module: Value, stage: Value = 3, ways: Value = None) -> Value:
    """Keep one process's share of gradients (stages 2, 3) and of parameters (stage 3), with room to gather a layer."""
    ways = ways if isinstance(ways, int) else world(context)
    if not isinstance(module, LayerInstance) or ways <= 1 or stage not in (2, 3):
        return None
    engine = context.engine
    for _, parameter in module.named_parameters():
        parameter.attrs = {**(parameter.attrs or {}), GRADIENT_SHARDS: ways}
    if stage == 2:
        return None
    largest: dict[str, int] = {}
    for path, parameter in module.named_parameters():
        if parameter.shape is None or parameter.storage is None:
            continue
        share = -(-math.prod(parameter.shape) // ways)
        parameter.storage = engine.allocate(
            int(share * size_of(parameter.dtype)), "parameter", parameter.device, "shard"
        )
        unit = path.rpartition(".")[0]
        largest[unit] = largest.get(unit, 0) + parameter.nbytes
    device = next((p.device for _, p in module.named_parameters()), "cpu")
    # One unit in use and the next one on its way.
    return Held([engine.allocate(max(largest.values(), default=0), "other", device, "all_gather") for _ in range(2)])


@entry("oarlock_host.shard_optimizer")
def shard_optimizer(context: Context, optimizer: Value, ways: Value = None, offload: Value = False) -> Value:
    """Keep one process's share of the optimiser's states, on the host when they are offloaded."""
    if isinstance(optimizer, OptimizerInstance):
        optimizer.shards = ways if isinstance(ways, int) else world(context)
        optimizer.offload = offload is True
    return optimizer


@entry("oarlock_host.master_weights")
def master_weights(context: Context, optimizer: Value) -> Value:
    """The optimiser keeps float32 copies of half-precision parameters."""
    if isinstance(optimizer, OptimizerInstance):
        optimizer.attrs["_multi_precision"] = True
        found = notes(context).optimizer
        if found is not None:
            found.master_weights = True
    return optimizer


@entry("oarlock_host.arity")
def arity(context: Context, function: Value, default: Value = 1) -> Value:
    """How many positional arguments a method takes besides ``self`` (``default`` when it takes any number or is
    not known)."""
    node = getattr(getattr(function, "function", function), "node", None)
    if node is None or node.args.vararg is not None:
        return default
    return max(1, len(node.args.posonlyargs) + len(node.args.args) - 1)
