"""Sharded tensors, meshes and the collectives inside parallel layers: one device is read, shapes stay whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.interpreter.values import MISSING, Context, HostObject, Native, Value
from oarlock_profiler.core.overlays.distributed import degree, world
from oarlock_profiler.core.overlays.registry import get, register
from oarlock_profiler.core.overlays.training_notes import note_strategy

LIBRARIES = ("torch", "paddle")


class Setting(HostObject):
    """A placement, a plan or a mesh: it is asked for sizes and ranks at most."""

    def __init__(self, name: str, sizes: Sequence[int] = ()) -> None:
        self.name = name
        self.sizes = tuple(sizes)

    def py_type(self) -> str:
        return self.name

    def py_getattr(self, context: Context, name: str) -> Value:
        if name in ("size", "get_group", "get_rank", "get_local_rank", "get_mesh_with_dim", "get_dim_size", "flatten"):
            whole = {"size": world(context), "get_dim_size": 1}.get(name, 0)
            keeps = name in ("get_group", "get_mesh_with_dim", "flatten")
            return Native(name, lambda inner, *args: self if keeps else whole)
        if name in ("shape", "mesh_dim_names", "dim_names"):
            return self.sizes
        if name in ("ndim", "dim", "rank"):
            return len(self.sizes)
        return MISSING

    def py_getitem(self, context: Context, key: Value) -> Value:
        return self


def _setting(name: str) -> Any:
    def make(context: Context, *args: Value, **kwargs: Value) -> Value:
        shapes = (a for a in args if isinstance(a, tuple | list) and all(isinstance(n, int) for n in a))
        return Setting(name, next(shapes, ()))

    return make


_SETTINGS = """
torch.distributed.device_mesh.init_device_mesh torch.distributed.init_device_mesh
torch.distributed.device_mesh.DeviceMesh
torch.distributed.DeviceMesh torch.distributed.tensor.DeviceMesh torch.distributed._tensor.DeviceMesh
torch.distributed.tensor.Shard torch.distributed.tensor.Replicate torch.distributed.tensor.Partial
torch.distributed._tensor.Shard torch.distributed._tensor.Replicate torch.distributed._tensor.Partial
torch.distributed.tensor.parallel.ColwiseParallel torch.distributed.tensor.parallel.RowwiseParallel
torch.distributed.tensor.parallel.SequenceParallel torch.distributed.tensor.parallel.PrepareModuleInput
torch.distributed.tensor.parallel.PrepareModuleOutput torch.distributed.checkpoint.state_dict.StateDictOptions
torch.distributed.checkpoint.FileSystemReader torch.distributed.checkpoint.FileSystemWriter
torch.distributed.checkpoint.HuggingFaceStorageReader torch.distributed.checkpoint.HuggingFaceStorageWriter
paddle.distributed.fleet.auto.get_mesh paddle.distributed.fleet.auto.create_mesh paddle.distributed.fleet.auto.Strategy
paddle.distributed.auto_parallel.ProcessMesh paddle.distributed.auto_parallel.Strategy paddle.distributed.Strategy
paddle.distributed.ColWiseParallel paddle.distributed.RowWiseParallel paddle.distributed.SequenceParallelBegin
paddle.distributed.SequenceParallelEnd paddle.distributed.SequenceParallelDisable paddle.distributed.ShardingStage1
paddle.distributed.ShardingStage2 paddle.distributed.ShardingStage3 paddle.distributed.P2POp torch.distributed.P2POp
paddle.distributed.get_mesh
"""
for _name in _SETTINGS.split():
    register(_name, Native(_name, _setting(_name)))


def _first(context: Context, value: Value = None, *args: Value, **kwargs: Value) -> Value:
    """The tensor, layer or optimiser itself."""
    return value


_UNCHANGED = """
torch.distributed.tensor.distribute_tensor torch.distributed._tensor.distribute_tensor
torch.distributed.tensor.distribute_module torch.distributed.tensor.DTensor.from_local
torch.distributed._tensor.DTensor.from_local torch.distributed._functional_collectives.all_reduce
torch.distributed._functional_collectives.wait_tensor torch.distributed.nn.all_reduce
paddle.distributed.collective._c_identity paddle.distributed.collective._mp_allreduce
paddle.distributed.fleet.layers.mpu.mp_ops._c_identity paddle.distributed.fleet.layers.mpu.mp_ops._mp_allreduce
paddle.distributed.fleet.utils.sequence_parallel_utils.GatherOp.apply
paddle.distributed.fleet.utils.sequence_parallel_utils.ScatterOp.apply
paddle.distributed.fleet.utils.sequence_parallel_utils.AllGatherOp.apply
paddle.distributed.fleet.utils.sequence_parallel_utils.ReduceScatterOp.apply
paddle.distributed.fleet.utils.sequence_parallel_utils.scatter
paddle.distributed.fleet.utils.sequence_parallel_utils.all_gather paddle.distributed.to_static
paddle.distributed.auto_parallel.shard_tensor paddle.distributed.fleet.auto.shard_tensor
paddle.distributed.auto_parallel.shard_op paddle.distributed.fleet.auto.shard_op
paddle.distributed.auto_parallel.api.dtensor_from_local paddle.distributed.dtensor_from_fn
"""
for _name in _UNCHANGED.split():
    register(_name, Native(_name, _first))

_NOTHING = """
paddle.distributed.fleet.utils.sequence_parallel_utils.mark_as_sequence_parallel_parameter
paddle.distributed.fleet.utils.sequence_parallel_utils.register_sequence_parallel_allreduce_hooks
torch.distributed.checkpoint.save torch.distributed.checkpoint.load torch.distributed.checkpoint.async_save
torch.distributed.checkpoint.state_dict.set_model_state_dict
torch.distributed.checkpoint.state_dict.set_optimizer_state_dict
paddle.distributed.save_state_dict paddle.distributed.load_state_dict
paddle.distributed.fleet.utils.log_util.logger.info paddle.distributed.fleet.utils.log_util.logger.debug
paddle.distributed.fleet.utils.log_util.logger.warning paddle.distributed.auto_parallel.parallel_manual_seed
"""
for _name in _NOTHING.split():
    register(_name, Native(_name, lambda context, *args, **kwargs: None))
for _name in (
    "torch.distributed.checkpoint.state_dict.get_model_state_dict",
    "torch.distributed.checkpoint.state_dict.get_optimizer_state_dict",
    "torch.distributed.checkpoint.state_dict.get_state_dict",
):
    register(_name, Native(_name, lambda context, *args, **kwargs: {}))
register("paddle.distributed.in_auto_parallel_align_mode", Native("in_auto_parallel_align_mode", lambda context: False))


def _parallelize(context: Context, module: Value, *args: Value, **kwargs: Value) -> Value:
    """Tensor parallelism by a plan: parameters keep their whole size in the reading, and that is said."""
    if isinstance(module, LayerInstance) and world(context) > 1:
        note_strategy(context, "tensor")
        context.findings.gap("tensor parallelism by a plan", context.where, "which layers are split is not followed")
    return module


register("torch.distributed.tensor.parallel.parallelize_module", Native("parallelize_module", _parallelize))


def _c_concat(context: Context, tensor: Value, *args: Value, **kwargs: Value) -> Value:
    """All parts of the last dimension, side by side."""
    ways = degree(context, "mp")
    if ways == 1 or not isinstance(tensor, Tensor):
        return tensor
    return context.call(get("paddle.concat"), ([tensor] * ways,), {"axis": -1})


def _c_split(context: Context, tensor: Value, *args: Value, **kwargs: Value) -> Value:
    """This process's part of the last dimension."""
    ways = degree(context, "mp")
    if ways == 1 or not isinstance(tensor, Tensor) or not tensor.shape:
        return tensor
    return tensor.py_getitem(context, (Ellipsis, slice(None, tensor.shape[-1] // ways)))


for _owner in ("paddle.distributed.collective", "paddle.distributed.fleet.layers.mpu.mp_ops"):
    register(f"{_owner}._c_concat", Native("_c_concat", _c_concat))
    register(f"{_owner}._c_split", Native("_c_split", _c_split))
