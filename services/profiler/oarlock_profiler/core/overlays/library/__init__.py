"""Library modules of our own writing, as text that the reader interprets: what a framework does in Python above
its operators.

Models (vision, language), trainers and wrappers are a loop, a forward and some arithmetic; written as Python they need
no second explanation in host code. The text is read only where the library's own source is not on the library path.
Operators, tensors and layers do not belong here: they are host functions of the areas beside this package.
"""

from __future__ import annotations

import ast
import functools
import importlib.resources

from oarlock_profiler.core.overlays.registry import declare_package

_SUFFIX = ".py.txt"
SHOWN_FOLDER = "oarlock/library/"
"""Where the texts seem to lie, for people."""

HOMES: dict[str, str] = {}
"""Public names that live in a text module of another name: ``paddle.Model`` → ``oarlock_hapi``."""


LED_BY_OURS = frozenset(
    {"transformers", "datasets", "accelerate", "peft", "deepspeed", "lightning", "pytorch_lightning"}
)
"""Packages in which our names win even where the library's own source lies on the library path."""

ALIASES: dict[str, str] = {
    **{
        f"torchvision.models.{part}": "torchvision.models"
        for part in (
            "resnet", "vgg", "alexnet", "squeezenet", "densenet", "mobilenet", "mobilenetv2", "mobilenetv3",
            "efficientnet", "shufflenetv2", "googlenet", "inception", "mnasnet",
            "vision_transformer", "convnext", "swin_transformer",
        )
    },
    "torchvision.models.segmentation": "torchvision.models:_segmentation",
    **{
        f"paddle.vision.models.{part}": "paddle.vision.models"
        for part in (
            "resnet", "vgg", "alexnet", "squeezenet", "densenet", "mobilenetv1", "mobilenetv2", "mobilenetv3", "lenet",
            "shufflenetv2", "googlenet", "inceptionv3",
        )
    },
}  # fmt: skip
"""Submodules whose members are those of another text module, or of its member (after the colon)."""


@functools.cache
def modules() -> frozenset[str]:
    """Dotted names of the text modules."""
    files = importlib.resources.files(__name__).iterdir()
    return frozenset(file.name.removesuffix(_SUFFIX) for file in files if file.name.endswith(_SUFFIX)) | set(ALIASES)


@functools.cache
def source(module: str) -> tuple[str, bytes] | None:
    """The text of ``module``: (path to show, source), or None when we have none."""
    if module not in modules():
        return None
    if module in ALIASES:
        owner, _, member = ALIASES[module].partition(":")
        home = f"owner.{member}" if member else "owner"
        text = f"import {owner} as owner\n\n\ndef __getattr__(name):\n    return getattr({home}, name)\n"
        return f"{SHOWN_FOLDER}{module}.py", text.encode()
    file = importlib.resources.files(__name__).joinpath(f"{module}{_SUFFIX}")
    return f"{SHOWN_FOLDER}{module}.py", file.read_bytes()


@functools.cache
def _members(module: str) -> frozenset[str]:
    """Names that a text module defines at its top, ``*`` when it finds others on demand."""
    found = source(module)
    names: set[str] = set()
    for node in ast.parse(found[1]).body if found is not None else ():
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add("*" if node.name == "__getattr__" else node.name)
        elif isinstance(node, ast.Assign):
            names |= {n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    return frozenset(names)


def provides(name: str) -> bool:
    """Whether a public dotted name is found in the text modules (a member of it counts as found with it)."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        prefix = ".".join(parts[:end])
        if prefix in HOMES:
            return True
        if prefix in modules():
            return end == len(parts) or bool(_members(prefix) & {parts[end], "*"})
    return False


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
homes("oarlock_threads", "Thread Timer Event local", "threading")
homes("oarlock_threads", "Process Event Pipe", "multiprocessing", "multiprocessing.context")
homes("oarlock_threads", "Queue LifoQueue PriorityQueue SimpleQueue Empty Full", "queue")
homes("oarlock_threads", "Queue SimpleQueue JoinableQueue", "multiprocessing", "torch.multiprocessing")
homes("oarlock_threads", "Queue SimpleQueue", "multiprocessing.queues")
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
homes("accelerate", "PartialState AcceleratorState GradientState", "accelerate.state")
homes("accelerate", "Accelerator", "accelerate.accelerator")
homes(
    "lightning_utilities",
    "RequirementCache ModuleAvailableCache module_available package_available compare_version",
    "lightning_utilities.core.imports",
)
homes("lightning_utilities", "rank_zero_only rank_zero_warn rank_zero_info", "lightning_utilities.core.rank_zero")
homes("lightning_utilities", "apply_to_collection", "lightning_utilities.core.apply_func")
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
homes("transformers", "ModelOutput", "transformers.utils", "transformers.file_utils")
homes(
    "transformers",
    "BaseModelOutput BaseModelOutputWithPooling BaseModelOutputWithPast CausalLMOutput CausalLMOutputWithPast "
    "MaskedLMOutput SequenceClassifierOutput TokenClassifierOutput QuestionAnsweringModelOutput Seq2SeqLMOutput "
    "MultipleChoiceModelOutput BaseModelOutputWithPastAndCrossAttentions SequenceClassifierOutputWithPast "
    "BaseModelOutputWithPoolingAndCrossAttentions",
    "transformers.modeling_outputs",
)
homes(
    "transformers",
    "set_verbosity_error set_verbosity_info set_verbosity_warning set_verbosity get_logger enable_default_handler "
    "enable_explicit_format disable_progress_bar",
    "transformers.utils.logging", "transformers.logging",
)  # fmt: skip
homes("transformers", "send_example_telemetry check_min_version", "transformers.utils")
homes("transformers", "require_version", "transformers.utils.versions")
homes("transformers", "get_last_checkpoint EvalPrediction IntervalStrategy", "transformers.trainer_utils")
homes("transformers", "PreTrainedModel Conv1D", "transformers.modeling_utils", "transformers.pytorch_utils")
homes("transformers", "PretrainedConfig", "transformers.configuration_utils")
homes(
    "transformers",
    "is_deepspeed_zero3_enabled HfDeepSpeedConfig",
    "transformers.deepspeed",
    "transformers.integrations",
)
homes("timm", "DropPath to_2tuple to_ntuple trunc_normal_ Mlp PatchEmbed", "timm.layers", "timm.models.layers")
homes("timm", "AverageMeter accuracy ModelEma ModelEmaV2 NativeScaler get_state_dict", "timm.utils")
homes("timm", "LabelSmoothingCrossEntropy SoftTargetCrossEntropy", "timm.loss")
homes("timm", "create_transform Mixup resolve_data_config create_dataset", "timm.data")
homes("timm", "create_optimizer create_optimizer_v2", "timm.optim")
homes("timm", "create_scheduler", "timm.scheduler")
homes("timm", "register_model", "timm.models.registry", "timm.models")
homes("peft", "get_peft_model_state_dict set_peft_model_state_dict", "peft.utils")
homes("accelerate", "remove_hook_from_module add_hook_to_module", "accelerate.hooks")
homes("oarlock_vision_ops", "DeformConv2D", "paddle.vision.ops")
# What would read files or the network is ours even beside the library's own source; its models and
# configurations are not.
homes(
    "transformers",
    "Trainer TrainingArguments Seq2SeqTrainer Seq2SeqTrainingArguments TrainerCallback "
    "EarlyStoppingCallback HfArgumentParser "
    "AutoTokenizer AutoConfig AutoModel AutoModelForSequenceClassification AutoModelForTokenClassification "
    "AutoModelForQuestionAnswering AutoModelForMaskedLM AutoModelForMultipleChoice AutoModelForCausalLM "
    "AutoModelForSeq2SeqLM AutoModelForImageClassification AutoModelForPreTraining AutoImageProcessor "
    "AutoFeatureExtractor "
    "AutoProcessor default_data_collator DataCollatorWithPadding DefaultDataCollator "
    "DataCollatorForTokenClassification "
    "DataCollatorForSeq2Seq DataCollatorForLanguageModeling DataCollatorForWholeWordMask set_seed BertTokenizer "
    "BertTokenizerFast RobertaTokenizer RobertaTokenizerFast GPT2Tokenizer GPT2TokenizerFast T5Tokenizer "
    "T5TokenizerFast "
    "DistilBertTokenizer DistilBertTokenizerFast LlamaTokenizer LlamaTokenizerFast CLIPTokenizer ViTImageProcessor",
    "transformers",
)
homes(
    "accelerate",
    "Accelerator PartialState notebook_launcher init_empty_weights load_checkpoint_and_dispatch dispatch_model "
    "DistributedDataParallelKwargs InitProcessGroupKwargs DeepSpeedPlugin FullyShardedDataParallelPlugin",
    "accelerate",
)
homes(
    "datasets",
    "load_dataset load_from_disk Dataset DatasetDict concatenate_datasets ClassLabel Features Value",
    "datasets",
)
homes("peft", "get_peft_model LoraConfig PeftModel TaskType prepare_model_for_kbit_training PeftConfig", "peft")
homes("deepspeed", "initialize init_distributed add_config_arguments zero DeepSpeedEngine", "deepspeed")
homes(
    "lightning",
    "LightningModule LightningDataModule Trainer Callback seed_everything Fabric",
    "lightning",
)
