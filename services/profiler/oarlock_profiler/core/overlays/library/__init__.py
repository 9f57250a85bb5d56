"""Library modules of our own writing, as text that the reader interprets: what a framework does in Python above
its operators.

Models (vision, language), trainers and wrappers are a loop, a forward and some arithmetic; written as Python they need
no second explanation in host code. The text is read only where the library's own source is not on the library path.
Operators, tensors and layers do not belong here: they are host functions of the areas beside this package.
"""

from __future__ import annotations

import functools
import importlib.resources

from oarlock_profiler.core.overlays.registry import declare_package

_SUFFIX = ".py.txt"

HOMES: dict[str, str] = {}
"""Public names that live in a text module of another name: ``paddle.Model`` → ``oarlock_hapi``."""


@functools.cache
def modules() -> frozenset[str]:
    """Dotted names of the text modules."""
    files = importlib.resources.files(__name__).iterdir()
    return frozenset(file.name.removesuffix(_SUFFIX) for file in files if file.name.endswith(_SUFFIX))


@functools.cache
def source(module: str) -> tuple[str, bytes] | None:
    """The text of ``module``: (path to show, source), or None when we have none."""
    if module not in modules():
        return None
    file = importlib.resources.files(__name__).joinpath(f"{module}{_SUFFIX}")
    return f"oarlock/library/{module}.py", file.read_bytes()


def homes(owner: str, names: str, *publics: str) -> None:
    """Say that each of ``names`` (space-separated) is found in text module ``owner``, under every prefix of
    ``publics``."""
    for name in names.split():
        for public in publics:
            HOMES[f"{public}.{name}"] = owner
    for public in publics:
        declare_package(public)


homes("oarlock_hapi", "Model", "paddle", "paddle.hapi", "paddle.hapi.model")
homes(
    "oarlock_hapi",
    "Callback ProgBarLogger ModelCheckpoint VisualDL LRScheduler EarlyStopping ReduceLROnPlateau WandbCallback",
    "paddle.callbacks", "paddle.hapi.callbacks",
)  # fmt: skip
homes("oarlock_hapi", "Metric Accuracy Precision Recall Auc accuracy", "paddle.metric")
homes("oarlock_hapi", "summary flops", "paddle", "paddle.hapi")
homes(
    "oarlock_parallel", "DistributedDataParallel DataParallel",
    "torch.nn.parallel", "torch.nn.parallel.distributed", "torch.nn.parallel.data_parallel", "torch.nn",
    "apex.parallel",
)  # fmt: skip
homes(
    "oarlock_parallel",
    "FullyShardedDataParallel FSDP MixedPrecision MixedPrecisionPolicy CPUOffload CPUOffloadPolicy FullStateDictConfig "
    "ShardingStrategy "
    "BackwardPrefetch StateDictType fully_shard",
    "torch.distributed.fsdp", "torch.distributed.fsdp.fully_sharded_data_parallel",
    "torch.distributed._composable.fsdp",
)  # fmt: skip
homes("oarlock_parallel", "size_based_auto_wrap_policy transformer_auto_wrap_policy", "torch.distributed.fsdp.wrap")
homes("oarlock_fleet", "DataParallel", "paddle", "paddle.distributed", "paddle.distributed.parallel")
homes("oarlock_fleet", "distributed_model", "paddle.distributed.fleet", "paddle.distributed.fleet.fleet")
homes(
    "oarlock_fleet",
    "ColumnParallelLinear RowParallelLinear VocabParallelEmbedding ParallelCrossEntropy LayerDesc SharedLayerDesc "
    "PipelineLayer "
    "PipelineParallel TensorParallel",
    "paddle.distributed.fleet.meta_parallel", "paddle.distributed.fleet.layers.mpu",
    "paddle.distributed.fleet.layers.mpu.mp_layers",
    "paddle.distributed.fleet",
)  # fmt: skip
homes(
    "oarlock_fleet",
    "group_sharded_parallel save_group_sharded_model",
    "paddle.distributed.sharding",
    "paddle.distributed",
)
homes(
    "oarlock_fleet",
    "MixPrecisionLayer MixPrecisionOptimizer MixPrecisionScaler",
    "paddle.distributed.fleet.utils.mix_precision_utils",
)
homes("oarlock_fleet", "GroupShardedScaler", "paddle.distributed.fleet.meta_parallel.sharding.group_sharded_utils")
homes(
    "oarlock_fleet",
    "Replicate Shard Partial ProcessMesh shard_tensor reshard shard_layer shard_optimizer shard_scaler "
    "shard_dataloader",
    "paddle.distributed",
)  # fmt: skip
homes(
    "accelerate",
    "set_seed DistributedDataParallelKwargs InitProcessGroupKwargs ProjectConfiguration DistributedType",
    "accelerate.utils",
)
homes("accelerate", "get_logger", "accelerate.logging")
homes(
    "lightning",
    "LightningModule LightningDataModule Trainer Callback seed_everything Fabric",
    "pytorch_lightning",
    "lightning.pytorch",
)
homes("lightning", "Fabric", "lightning.fabric")
homes(
    "lightning", "ModelCheckpoint EarlyStopping LearningRateMonitor RichProgressBar TQDMProgressBar Callback "
    "ModelSummary",
    "pytorch_lightning.callbacks", "lightning.pytorch.callbacks",
)  # fmt: skip
homes("lightning", "TensorBoardLogger WandbLogger CSVLogger", "pytorch_lightning.loggers", "lightning.pytorch.loggers")
homes(
    "lightning",
    "DDPStrategy DeepSpeedStrategy FSDPStrategy",
    "pytorch_lightning.strategies",
    "lightning.pytorch.strategies",
)
homes("timm", "create_model list_models", "timm.models")
homes("transformers", "Trainer TrainerCallback Seq2SeqTrainer", "transformers.trainer", "transformers.trainer_callback")
homes("oarlock_paddlenlp", "set_seed", "paddlenlp.utils")
