"""A fixed small table of measured peaks, so that a change that worsens the estimates is seen at once.

Measured by others: GPUMemNet (github.com/itu-rad/GPUMemNet, A100-40GB, nvidia-smi, the whole device), SchedTune
(github.com/hadeelalbahar/SchedTune, V100 16 GB) and litgpt's table of fine-tuning configurations
(github.com/Lightning-AI/litgpt config_hub/finetune/README.md, A10G, ``max_memory_allocated``). The campaigns' contexts are not published; each is one constant here,
read off other rows of the same campaign.
"""

from __future__ import annotations

import time

import pytest
from benchmarks.prediction_error.gpumemnet import cnn_script, mlp_script, transformer_script
from benchmarks.prediction_error.language_tables import low_rank
from benchmarks.prediction_error.model_zoos import images

from oarlock_profiler.adapters.devices import spec_named
from oarlock_profiler.adapters.sources import text_sources
from oarlock_profiler.core.memory.peaks import Stack, peaks_of
from oarlock_profiler.core.reader import read
from oarlock_profiler.core.reading import Request

MIB = 1 << 20
MLP_CONTEXT_MIB, CNN_CONTEXT_MIB, NORM_MIB, TRANSFORMER_CONTEXT_MIB, V100_CONTEXT_MIB = 1429, 1681, 40, 1700, 1150

MLPS = [
    ("input:1798_output:155_depth:4_arch:uniform_batch:68_act:swish_dropout:0.5_dropout:True_batchnorm:True", 1739),
    ("input:3889_output:276_depth:8_arch:bottleneck_batch:25_act:gelu_dropout:0.26_dropout:True_batchnorm:False", 1673),
    (
        "input:4011_output:641_depth:5_arch:bottleneck_batch:756_act:swish_dropout:0.46_dropout:False_batchnorm:False",
        1753,
    ),
    (
        "input:3627_output:51_depth:9_arch:pyramid_batch:422_act:identity_dropout:0.28_dropout:False_batchnorm:False",
        1645,
    ),
    ("input:1435_output:56_depth:1_arch:bottleneck_batch:390_act:selu_dropout:0.37_dropout:False_batchnorm:True", 1477),
    ("input:1813_output:289_depth:10_arch:bottleneck_batch:1021", 1527),
    ("input:4036_output:227_depth:3_arch:gradual_batch:316", 1773),
    ("input:3046_output:385_depth:3_arch:uniform_batch:201", 2037),
    ("input:314_output:28_depth:2_arch:pyramid_batch:440", 1453),
    ("input:3840_output:725_depth:10_arch:uniform_batch:775", 4599),
    ("input:3423_output:501_depth:7_arch:uniform_batch:471", 3165),
]

CNNS = [
    (
        "input_channels:3_num_classes:929_depth:1_arch:bottleneck_base_filters:29_batch:54_input_size:106_act:gelu_"
        "dropout:0.19_dropout:True_batchnorm:True",
        [("conv2d", 651688, 1624), ("batchnorm2d", 651688, 116), ("GELU", 651688, 0), ("dropout", 651688, 0),
         ("linear", 929, 54811)],
        2341,
    ),
    (
        "input_channels:3_num_classes:774_depth:3_arch:uniform_base_filters:51_batch:36_input_size:196_act:gelu_"
        "dropout:0.38_dropout:True_batchnorm:False",
        [("conv2d", 1959216, 1428), ("GELU", 1959216, 0), ("dropout", 1959216, 0)]
        + 2 * [("conv2d", 1959216, 23460), ("GELU", 1959216, 0), ("dropout", 1959216, 0)]
        + [("linear", 774, 40248)],
        5167,
    ),
    (
        "input_channels:1_num_classes:288_depth:2_arch:gradual_base_filters:79_batch:60_input_size:36_act:gelu_"
        "dropout:0.27_dropout:False_batchnorm:True",
        [("conv2d", 102384, 790), ("batchnorm2d", 102384, 158), ("GELU", 102384, 0), ("conv2d", 230688, 126736),
         ("batchnorm2d", 230688, 356), ("GELU", 230688, 0), ("linear", 288, 51552)],
        2139,
    ),
    (
        "input_channels:3_num_classes:377_depth:2_arch:residual_base_filters:82_batch:60_input_size:164_act:gelu_"
        "dropout:0.22_dropout:True_batchnorm:False",
        [("conv2d", 2205472, 328), ("conv2d", 2205472, 2296), ("GELU", 2205472, 0), ("dropout", 2205472, 0),
         ("conv2d", 2205472, 60598), ("GELU", 2205472, 0), ("dropout", 2205472, 0), ("linear", 377, 31291)],
        7579,
    ),
    (
        "input_channels:3_num_classes:969_depth:2_arch:residual_base_filters:58_batch:26_input_size:104_act:softplus_"
        "dropout:0.36_dropout:True_batchnorm:True",
        [("conv2d", 627328, 232), ("batchnorm2d", 627328, 116), ("conv2d", 627328, 1624),
         ("batchnorm2d", 627328, 116), ("Softplus", 627328, 0), ("dropout", 627328, 0), ("conv2d", 627328, 30334),
         ("batchnorm2d", 627328, 116), ("Softplus", 627328, 0), ("dropout", 627328, 0), ("linear", 969, 57171)],
        2681,
    ),
]  # fmt: skip

TRANSFORMERS = [
    (
        "num_classes:503_embedding_size:768_num_layers:3_num_heads:8_ff_hidden_size:2575_dropout_rate:0.15_"
        "seq_length:256_input_size:608949_num_samples:4080_batch_size:64",
        13299,
    ),
    (
        "num_classes:406_embedding_size:512_num_layers:7_num_heads:16_ff_hidden_size:1837_dropout_rate:0.25_"
        "seq_length:256_input_size:888077_num_samples:4857_batch_size:16",
        11405,
    ),
    (
        "num_classes:468_embedding_size:128_num_layers:21_num_heads:16_ff_hidden_size:438_dropout_rate:0.15_"
        "seq_length:256_input_size:827553_num_samples:3839_batch_size:64",
        6707,
    ),
]

PUBLISHED = [("resnet50", 64, 7675), ("resnet101", 32, 6153), ("densenet121", 64, 10571), ("resnet152", 64, 13821)]


LOW_RANK = [("meta-llama/Meta-Llama-3-8B", 32, 1, 18816), ("mistralai/Mistral-7B-v0.2", 32, 2, 19703)]


def reserved_mib(script: str, device: str, stack: Stack | None = None) -> float:
    reading = read(Request(entry="main.py"), text_sources({"main.py": script}), time.monotonic)
    peaks = peaks_of(reading.trace, reading.framework, spec_named(device), stack=stack or Stack())
    assert peaks is not None
    return peaks.usage.reserved_bytes / MIB


@pytest.mark.parametrize(("model", "measured_mib"), MLPS)
def test_mlps_within_3_percent(model: str, measured_mib: int) -> None:
    found = reserved_mib(mlp_script(f"mlp:{model}"), "A100 PCIe 40GB") + MLP_CONTEXT_MIB
    assert found == pytest.approx(measured_mib, rel=0.03)


@pytest.mark.parametrize(("model", "layers", "measured_mib"), CNNS)
def test_cnns_within_8_percent(model: str, layers: list[tuple[str, int, int]], measured_mib: int) -> None:
    context = CNN_CONTEXT_MIB + (NORM_MIB if model.endswith("batchnorm:True") else 0)
    found = reserved_mib(cnn_script(f"cnn:{model}", layers), "A100 PCIe 40GB") + context
    assert found == pytest.approx(measured_mib, rel=0.08)


@pytest.mark.parametrize(("model", "measured_mib"), TRANSFORMERS)
def test_transformers_within_8_percent(model: str, measured_mib: int) -> None:
    found = reserved_mib(transformer_script(f"transformer_encoder:{model}"), "A100 PCIe 40GB") + TRANSFORMER_CONTEXT_MIB
    assert found == pytest.approx(measured_mib, rel=0.08)


@pytest.mark.parametrize(("name", "batch", "measured_mib"), PUBLISHED)
def test_published_models_within_8_percent(name: str, batch: int, measured_mib: int) -> None:
    script = images(f"models.{name}()", batch, 224, "Adam of old", imports="from torchvision import models")
    found = reserved_mib(script, "V100 PCIe 16GB", Stack(loading="eager")) + V100_CONTEXT_MIB
    assert found == pytest.approx(measured_mib, rel=0.08)


@pytest.mark.parametrize(("model", "rank", "batch", "measured_mib"), LOW_RANK)
def test_low_rank_fine_tuning_within_3_percent(model: str, rank: int, batch: int, measured_mib: int) -> None:
    script = low_rank(
        model,
        rank=rank,
        targets="['q_proj', 'v_proj']",
        dropout=0.05,
        batch=batch,
        length=512,
        dtype="model.to(torch.bfloat16)",
    )
    reading = read(Request(entry="main.py"), text_sources({"main.py": script}), time.monotonic)
    peaks = peaks_of(reading.trace, reading.framework, spec_named("A10G"))
    assert peaks is not None
    assert peaks.usage.allocated_bytes / MIB == pytest.approx(measured_mib, rel=0.03)
