"""Runs of published models: torchvision, timm and transformers, by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.prediction_error.cases import MIB, Case, rows
from benchmarks.prediction_error.gpumemnet import DEVICE

_IMAGES = """import torch
import torch.nn as nn
{imports}

device = torch.device("cuda")
model = {model}
model = model.to(device)
criterion = nn.CrossEntropyLoss()
optimizer = {optimizer}
images = torch.randn({samples}, 3, {size}, {size})
dataset = torch.utils.data.TensorDataset(images, torch.randint(0, 1000, ({samples},)))
loader = torch.utils.data.DataLoader(dataset, batch_size={batch}, shuffle=True, drop_last=True)

for epoch in range(5):
    model.train()
    for inputs, labels in loader:
        inputs, labels = inputs.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
"""

_LANGUAGE = """import torch
from transformers import {config}, {model}

device = torch.device("cuda")
model = {model}({config}({settings}))
model = model.to(device)
model.train()
optimizer = {optimizer}

for step in range(100):
    optimizer.zero_grad()
    ids = torch.randint(0, {vocabulary}, ({batch}, {length}), device=device)
    outputs = model({inputs})
    loss = outputs.loss
    loss.backward()
    optimizer.step()
"""

_OPTIMIZERS = {
    "Adam": "torch.optim.Adam(model.parameters(), lr=1e-3)",
    "Adam of old": "torch.optim.Adam(model.parameters(), lr=1e-3, foreach=False)",
    "AdamW": "torch.optim.AdamW(model.parameters(), lr=1e-3)",
    "SGD": "torch.optim.SGD(model.parameters(), lr=1e-3)",
    "momentum": "torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)",
    "Adafactor": "torch.optim.Adafactor(model.parameters(), lr=1e-3)",
    "RMSprop": "torch.optim.RMSprop(model.parameters(), lr=1e-3)",
    "Adagrad": "torch.optim.Adagrad(model.parameters(), lr=1e-3)",
}


def images(model: str, batch: int, size: int | str, optimizer: str, *, imports: str) -> str:
    """An image classification script."""
    return _IMAGES.format(
        imports=imports, model=model, optimizer=_OPTIMIZERS[optimizer], samples=8 * batch, size=size, batch=batch
    )


_CAUSAL = "input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids"

# Published configurations: the arguments that differ from the config class's defaults.
_LANGUAGE_MODELS: dict[str, tuple[str, str, str, int]] = {
    "Qwen/Qwen3-4B": (
        "Qwen3Config",
        "Qwen3ForCausalLM",
        "vocab_size=151936, hidden_size=2560, intermediate_size=9728, num_hidden_layers=36, num_attention_heads=32, "
        "num_key_value_heads=8, head_dim=128, tie_word_embeddings=True",
        151936,
    ),
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": (
        "Qwen2Config",
        "Qwen2ForCausalLM",
        "vocab_size=151936, hidden_size=1536, intermediate_size=8960, num_hidden_layers=28, num_attention_heads=12, "
        "num_key_value_heads=2, tie_word_embeddings=False",
        151936,
    ),
    "EleutherAI/gpt-neo-125M": (
        "GPTNeoConfig",
        "GPTNeoForCausalLM",
        "hidden_size=768, num_layers=12, num_heads=12, attention_types=[[['global', 'local'], 6]]",
        50257,
    ),
    "facebook/opt-125m": (
        "OPTConfig",
        "OPTForCausalLM",
        "vocab_size=50272, hidden_size=768, num_hidden_layers=12, ffn_dim=3072, num_attention_heads=12, "
        "word_embed_proj_dim=768",
        50272,
    ),
    "bert-base": ("BertConfig", "BertForMaskedLM", "", 30522),
    "gpt2-large": ("GPT2Config", "GPT2LMHeadModel", "n_embd=1280, n_layer=36, n_head=20", 50257),
}


def language(name: str, batch: int, length: int, optimizer: str) -> str:
    """A causal language-modelling script from a configuration."""
    config, model, settings, vocabulary = _LANGUAGE_MODELS[name]
    return _LANGUAGE.format(
        config=config,
        model=model,
        settings=settings,
        vocabulary=vocabulary,
        batch=batch,
        length=length,
        optimizer=_OPTIMIZERS[optimizer],
        inputs=_CAUSAL,
    )


def realworld(truth: Path) -> Iterator[Case]:
    """GPUMemNet's runs of real models. Precision, optimiser and checkpointing of the language models are unstated in
    their rows (Adam is taken, as for the others), so they are not scored."""
    for row in rows(truth / "gpumemnet_realworld.csv"):
        name, batch = row["model"], int(row["batch_size_per_gpu"])
        vision = name.startswith("torchvision ")
        if vision:
            script = images(f"models.{name.split()[1]}()", batch, 224, "Adam", imports="from torchvision import models")
        else:
            script = language(name, batch, 512, "Adam")
        # The same machine and stack as the CNN campaign, hence its context.
        yield _case(row, "cnn" if vision else "transformer", script, DEVICE, "gpumemnet-cnn", scored=vision)


def schedtune(truth: Path) -> Iterator[Case]:
    """SchedTune's torchvision CNNs on two GPUs; the optimiser is not stated. Adam is assumed for all, one tensor
    at a time as PyTorch 1.x did: the VGG rows at batch 8 hold four times the weights."""
    for row in rows(truth / "schedtune.csv"):
        name = row["model"].split()[1]
        device = "RTX 3070" if "3070" in row["gpu"] else "V100 PCIe 16GB"
        script = images(
            f"models.{name}()",
            int(row["batch_size_per_gpu"]),
            224,
            "Adam of old",
            imports="from torchvision import models",
        )
        yield _case(row, "cnn", script, device, f"schedtune-{device}", group=name)


_XMEM_IMAGES = {"ConvNeXtTiny": "models.convnext_tiny()", "MobileNetV3Large": "models.mobilenet_v3_large()"}
_XMEM_DEVICES = {
    "A100-SXM4-40GB": "A100 SXM4 40GB",
    "RTX 3060 12GB": "RTX 3060 12GB",
    "RTX 4060 8GB": "RTX 4060",
}


def xmem(truth: Path) -> Iterator[Case]:
    """xMem's sample: CNNs at 86 × 86 and language models on batches of at most 128 tokens (taken as 128)."""
    for row in rows(truth / "xmem_sample.csv"):
        name, batch = row["model"], int(row["batch_size_per_gpu"])
        image = _XMEM_IMAGES.get(name)
        if image is not None:
            script = images(image, batch, 86, row["optimizer"], imports="from torchvision import models")
        else:
            script = language(name, batch, 128, row["optimizer"])
        device = _XMEM_DEVICES[row["gpu"]]
        yield _case(row, "cnn" if image else "transformer", script, device, f"xmem-{device}", group=name)


def timm(truth: Path) -> Iterator[Case]:
    """The timm zoo with one assumed recipe: float32, SGD with momentum, the model's default input size."""
    for row in rows(truth / "gpumemnet_timm_faketensor.csv"):
        name, batch = row["model"], int(row["batch_size_per_gpu"])
        script = images(
            f"timm.create_model('{name}')",
            batch,
            "model.default_cfg['input_size'][-1]",
            "momentum",
            imports="import timm",
        )
        yield _case(row, "timm", script, DEVICE, "gpumemnet-timm", group=name)


def _case(
    row: dict[str, str],
    family: str,
    script: str,
    device: str,
    surroundings: str,
    *,
    group: str = "",
    scored: bool = True,
) -> Case:
    return Case(
        source=row["source"].split("(")[0],
        name=f"{row['model']} batch {row['batch_size_per_gpu']} {row['gpu']}",
        family=family,
        script=script,
        device=device,
        surroundings=surroundings,
        kind="device",
        measured_bytes=round(float(row["measured_peak_MiB"]) * MIB),
        out_of_memory=row["status"] == "OOM",
        scored=scored and row["status"] == "ok",
        group=group or row["model"],
        note=row["status"],
    )
