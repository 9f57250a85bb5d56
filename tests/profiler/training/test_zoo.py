"""Built-in models: parameter counts are those of the libraries (torchvision 0.28, paddle.vision 3.3.1, transformers 5.24)."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from oarlock_profiler.adapters.portray import Job, portray
from oarlock_profiler.core.overlays import library
from oarlock_profiler.core.overlays.declared import declared_source
from oarlock_profiler.core.reading import Reading

VISION = {
    "resnet18": 11689512, "resnet50": 25557032, "resnext50_32x4d": 25028904, "wide_resnet50_2": 68883240,
    "vgg11": 132863336, "vgg16_bn": 138365992, "alexnet": 61100840, "squeezenet1_0": 1248424, "densenet121": 7978856,
    "mobilenet_v2": 3504872, "mobilenet_v3_large": 5483032, "mobilenet_v3_small": 2542856, "shufflenet_v2_x1_0": 2278604,
    "efficientnet_b0": 5288548, "efficientnet_v2_s": 21458488, "googlenet": 13004888, "inception_v3": 27161264,
    "mnasnet1_0": 4383312, "vit_b_16": 86567656, "convnext_tiny": 28589128, "swin_t": 28288354,
}  # fmt: skip
SIZES = {"inception_v3": 299}


@pytest.mark.parametrize("name", sorted(VISION))
def test_torchvision(read_script: Callable[..., Reading], name: str) -> None:
    size = SIZES.get(name, 224)
    reading = read_script(
        f"""
        import torch, torchvision
        model = torchvision.models.{name}(weights=None)
        model.eval()
        print(model(torch.zeros(2, 3, {size}, {size})).shape)
        """
    )
    assert reading.parameters_total == VISION[name]
    assert reading.roots[0].output_shapes == [(2, 1000)]
    assert not reading.findings.gaps


LANGUAGE = {
    "BertForSequenceClassification.from_pretrained('bert-base-uncased')": 109483778,
    "AutoModelForMaskedLM.from_pretrained('roberta-base')": 124697433,
    "AutoModelForTokenClassification.from_pretrained('distilbert-base-uncased')": 66364418,
    "AutoModel.from_pretrained('google/electra-small-discriminator')": 13483008,
    "AutoModelForCausalLM.from_pretrained('gpt2')": 124439808,
    "AutoModelForCausalLM.from_pretrained('facebook/opt-125m')": 125239296,
    "AutoModelForCausalLM.from_pretrained('TinyLlama/TinyLlama-1.1B-Chat-v1.0')": 1100048384,
    "AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-0.5B')": 494032768,
    "T5ForConditionalGeneration.from_pretrained('t5-small')": 60506624,
    "BartForConditionalGeneration.from_pretrained('facebook/bart-base')": 139420416,
}


@pytest.mark.parametrize("expression", sorted(LANGUAGE))
def test_transformers(read_script: Callable[..., Reading], expression: str) -> None:
    reading = read_script(
        f"""
        import torch
        import transformers
        model = transformers.{expression}
        model(input_ids=torch.zeros(2, 16, dtype=torch.long))
        """
    )
    assert reading.parameters_total == LANGUAGE[expression]


ONCE = """
import torch
from transformers import {auto}
model = {auto}.from_pretrained("{name}")
model(input_ids=torch.zeros(1, 8, dtype=torch.long))
"""
BILLIONS = {  # as the models' own cards say
    "Qwen/Qwen2.5-14B": 14.77, "Qwen/Qwen2.5-72B-Instruct": 72.71, "Qwen/Qwen3-32B": 32.76, "Qwen/Qwen1.5-1.8B": 1.84,
    "meta-llama/Llama-3.1-70B": 70.55, "huggyllama/llama-30b": 32.53, "codellama/CodeLlama-34b-hf": 33.74,
    "01-ai/Yi-34B": 34.39, "deepseek-ai/deepseek-llm-7b-base": 6.91, "mistralai/Mistral-Nemo-Base-2407": 12.25,
    "mistralai/Mixtral-8x22B-v0.1": 140.62, "HuggingFaceTB/SmolLM-135M": 0.1345, "google/gemma-7b": 8.54,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BILLIONS))
def test_the_sizes_of_a_family(read_script: Callable[..., Reading], name: str) -> None:
    reading = read_script(ONCE.format(auto="AutoModelForCausalLM", name=name))
    assert (reading.parameters_total or 0) / 1e9 == pytest.approx(BILLIONS[name], rel=0.002)
    assert not reading.findings.gaps


@pytest.mark.parametrize(
    ("name", "billions"),
    [("lab/oarsman-2.8b", 2.8), ("facebook/opt-30b", 30), ("google/gemma-3-27b-it", 27), ("x-410M", 0.41)],
)
def test_a_name_that_tells_only_a_size(read_script: Callable[..., Reading], name: str, billions: float) -> None:
    reading = read_script(ONCE.format(auto="AutoModelForCausalLM", name=name))
    assert (reading.parameters_total or 0) / 1e9 == pytest.approx(billions, rel=0.06)
    assert [what for what, _, _ in reading.findings.gaps] == [f"model {name}"]


@pytest.mark.parametrize("name", ["lab/q4bit-decoder", "lab/model-3-base", "user/fp16b"])
def test_a_number_that_is_no_size(read_script: Callable[..., Reading], name: str) -> None:
    reading = read_script(ONCE.format(auto="AutoModel", name=name))
    assert [gap.assumed for gap in reading.findings.gaps.values()] == ["bert-base-uncased"]


def encoder_parameters(  # the published sizes: words, width, layers, inner width, positions, segments, tasks
    words: int, width: int, layers: int, inner: int, positions: int, segments: int, tasks: int = 0
) -> int:
    tables = (words + positions + segments + tasks) * width + 2 * width
    layer = 4 * (width * width + width) + 2 * width * inner + inner + width + 4 * width
    return tables + layers * layer + width * width + width


ERNIE = {
    "ernie-1.0": (18000, 768, 12, 3072, 513, 2),
    "ernie-gram-zh": (18018, 768, 12, 3072, 512, 2),
    "ernie-2.0-base-en": (30522, 768, 12, 3072, 512, 4),
    "ernie-3.0-base-zh": (40000, 768, 12, 3072, 2048, 4, 3),
    "ernie-3.0-medium-zh": (40000, 768, 6, 3072, 2048, 4, 16),
    "ernie-3.0-nano-zh": (40000, 312, 4, 1248, 2048, 4, 16),
    "ernie-3.0-tiny-mini-v2-zh": (40000, 384, 6, 1536, 2048, 4),
    "ernie-tiny": (50006, 1024, 3, 4096, 600, 2),
}


@pytest.mark.parametrize("name", sorted(ERNIE))
def test_ernie_sizes(read_script: Callable[..., Reading], name: str) -> None:
    reading = read_script(
        f"""
        import paddle
        from paddlenlp.transformers import AutoModel
        model = AutoModel.from_pretrained({name!r})
        model(paddle.zeros([2, 8], dtype='int64'))
        """
    )
    assert reading.parameters_total == encoder_parameters(*ERNIE[name])


PADDLE_VISION = {
    "resnet50": 25610152, "mobilenet_v1": 4253864, "mobilenet_v3_small": 2554968, "vgg16": 138357544, "densenet121": 8062504,
    "shufflenet_v2_x2_0": 7399952, "googlenet": 11535736, "inception_v3": 23869000, "squeezenet1_1": 1235496,
    "alexnet": 61100840,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(PADDLE_VISION))
def test_paddle_vision(read_script: Callable[..., Reading], name: str) -> None:
    reading = read_script(
        f"""
        import paddle
        model = paddle.vision.models.{name}()
        model.eval()
        model(paddle.zeros([1, 3, 299, 299]) if {name!r} == 'inception_v3' else paddle.zeros([1, 3, 224, 224]))
        """
    )
    assert reading.parameters_total == PADDLE_VISION[name]
    assert not reading.findings.gaps


def test_a_large_language_model_is_read_in_time(read_script: Callable[..., Reading]) -> None:
    start = time.perf_counter()
    reading = read_script(
        """
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM
        model = LlamaForCausalLM(LlamaConfig(hidden_size=2048, num_hidden_layers=16, intermediate_size=8192)).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(4):
            ids = torch.zeros(1, 512, dtype=torch.long).cuda()
            model(input_ids=ids, labels=ids).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        """
    )
    assert reading.parameters_total is not None
    assert reading.parameters_total > 1_000_000_000
    assert time.perf_counter() - start < 15


def test_the_declared_ernie_gets_a_portrait_without_a_script() -> None:
    declared = {
        "type": "training", "framework": "paddlepaddle", "model_name": "ernie-gram", "sequence_length": 512,
        "batch_size_per_gpu": 16,
    }  # fmt: skip
    portrait, reading = portray(Job(declared=declared))
    assert portrait.method == "zoo"
    assert portrait.batch.size_per_device == 16
    assert portrait.batch.inputs[0].shape == [16, 512]
    assert portrait.parameters.total is not None
    assert 95_000_000 < portrait.parameters.total < 105_000_000
    assert reading.trace.steps == 2


@pytest.mark.parametrize(
    ("name", "framework", "words"),
    [
        ("ernie-3.0-base-zh", "paddlepaddle", "AutoModelForSequenceClassification"),
        ("gpt2", "pytorch", "AutoModelForCausalLM"),
        ("t5-small", "pytorch", "AutoModelForSeq2SeqLM"),
        ("ResNet50", "paddlepaddle", "'resnet50'"),
    ],
)
def test_declared_names_choose_the_task(name: str, framework: str, words: str) -> None:
    source = declared_source({"model_name": name, "framework": framework})
    assert source is not None
    assert words in source


def test_without_a_name_nothing_is_declared() -> None:
    assert declared_source({"framework": "paddlepaddle"}) is None


@pytest.mark.parametrize("module", sorted(library.modules()))
def test_text_modules_are_python(module: str) -> None:
    found = library.source(module)
    assert found is not None
    compile(found[1], found[0], "exec")


def test_a_model_that_is_built_and_never_called(read_script: Callable[..., Reading]) -> None:
    reading = read_script(
        "from torch import nn\nnet = nn.Sequential(nn.Linear(10, 20), nn.Linear(20, 5))\nhead = net[1]\n"
    )
    assert reading.parameters_total == 10 * 20 + 20 + 20 * 5 + 5
    assert [root.cls for root in reading.roots] == ["torch.nn.Sequential"]
