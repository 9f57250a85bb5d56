"""About a hundred small training configurations as scripts; the same texts are run on the device and read by us.

Standalone: only the standard library, so that the measuring machine needs nothing of ours installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

STEPS = 6


class Configuration(NamedTuple):
    """One run: its name, the model family, the number format and the script."""

    name: str
    family: str
    precision: str
    script: str


_HEAD = """import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
"""

_LOOP = {
    "float32": """
for step in range({steps}):
    {batch}
    optimizer.zero_grad()
    loss = {loss}
    loss.backward()
    optimizer.step()
""",
    "amp_float16": """
scaler = torch.amp.GradScaler(device.type)
for step in range({steps}):
    {batch}
    optimizer.zero_grad()
    with torch.autocast(device.type, dtype=torch.float16):
        loss = {loss}
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
""",
    "amp_bfloat16": """
for step in range({steps}):
    {batch}
    optimizer.zero_grad()
    with torch.autocast(device.type, dtype=torch.bfloat16):
        loss = {loss}
    loss.backward()
    optimizer.step()
""",
}

_OPTIMIZERS = {
    "sgd": "torch.optim.SGD(model.parameters(), lr=0.01)",
    "momentum": "torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)",
    "adam": "torch.optim.Adam(model.parameters(), lr=1e-3)",
    "adamw": "torch.optim.AdamW(model.parameters(), lr=1e-3)",
    "fused adamw": "torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)",
}


def configurations(*, tiny: bool = False) -> Iterator[Configuration]:
    """All of them; ``tiny`` shrinks every size so that a CPU gets through in seconds."""
    yield from _mlps(tiny)
    yield from _cnns(tiny)
    yield from _transformers(tiny)
    yield from _torchvision(tiny)
    yield from _language(tiny)


def _make(
    name: str, family: str, precision: str, body: str, batch: str, loss: str, optimizer: str, imports: str = ""
) -> Configuration:
    loop = _LOOP[precision].format(steps=STEPS, batch=batch, loss=loss)
    script = f"{_HEAD}{imports}\n{body}\nmodel = model.to(device)\noptimizer = {_OPTIMIZERS[optimizer]}\n{loop}"
    return Configuration(f"{name} {precision} {optimizer}", family, precision, script)


def _pairs(count: int) -> Iterator[tuple[str, str]]:
    """``count`` pairs of number format and optimiser, every one often enough."""
    formats, optimizers = list(_LOOP), list(_OPTIMIZERS)
    for index in range(count):
        yield formats[index % 3], optimizers[(index // 3 + index) % 5]


def _images(batch: int, size: int, classes: int = 10) -> str:
    return (
        f"x, y = torch.randn({batch}, 3, {size}, {size}, device=device), "
        f"torch.randint(0, {classes}, ({batch},), device=device)"
    )


def _mlps(tiny: bool) -> Iterator[Configuration]:
    sizes = [(1024, 4, 256), (4096, 3, 1024), (2048, 8, 4096), (512, 16, 8192), (8192, 2, 64), (3000, 5, 777)]
    for (width, depth, batch), chosen in zip(sizes * 3, _pairs(18), strict=True):
        if tiny:
            width, batch = width // 64, batch // 64 + 1
        layers = ", ".join(f"nn.Linear({width}, {width}), nn.ReLU()" for _ in range(depth))
        yield _make(
            f"mlp {width}x{depth} batch {batch}",
            "mlp",
            chosen[0],
            f"model = nn.Sequential({layers}, nn.Linear({width}, 10))",
            f"x, y = torch.randn({batch}, {width}, device=device), torch.randint(0, 10, ({batch},), device=device)",
            "F.cross_entropy(model(x), y)",
            chosen[1],
        )


def _cnns(tiny: bool) -> Iterator[Configuration]:
    sizes = [
        (32, 4, 64, 64), (40, 4, 64, 64), (44, 4, 64, 64), (64, 6, 32, 112), (89, 5, 32, 88), (128, 6, 32, 64),
        (160, 4, 32, 96), (256, 5, 16, 64), (384, 4, 16, 48), (512, 4, 16, 32), (1024, 3, 16, 28), (96, 8, 8, 160),
    ]  # fmt: skip
    for index, ((width, depth, batch, size), chosen) in enumerate(zip(sizes * 2, _pairs(24), strict=True)):
        if tiny:
            width, batch, size = width // 16 + 1, 2, 16
        layers, channels = [], 3
        for _ in range(depth):
            norm = f"nn.BatchNorm2d({width}), " if index % 2 else ""
            layers.append(f"nn.Conv2d({channels}, {width}, 3, padding=1), {norm}nn.ReLU()")
            channels = width
        body = (
            f"model = nn.Sequential({', '.join(layers)}, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear({width}, 10))"
        )
        yield _make(
            f"cnn {width}x{depth} batch {batch} {size}px",
            "cnn",
            chosen[0],
            body,
            _images(batch, size),
            "F.cross_entropy(model(x), y)",
            chosen[1],
        )


def _transformers(tiny: bool) -> Iterator[Configuration]:
    sizes = [
        (512, 8, 2048, 6, 256, 32), (768, 12, 3072, 12, 512, 8), (1024, 16, 4096, 8, 128, 16),
        (256, 4, 1024, 4, 1024, 16), (384, 6, 1536, 12, 384, 24), (640, 10, 1280, 3, 64, 128),
    ]  # fmt: skip
    for (width, heads, hidden, depth, length, batch), chosen in zip(sizes * 3, _pairs(18), strict=True):
        if tiny:
            width, heads, hidden, depth, length, batch = 32, 2, 64, 2, 16, 2
        body = f"""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(32000, {width})
        layer = nn.TransformerEncoderLayer({width}, {heads}, {hidden}, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, {depth})
        self.head = nn.Linear({width}, 100)

    def forward(self, ids):
        return self.head(self.encoder(self.words(ids)).mean(1))


model = Net()"""
        yield _make(
            f"encoder {width}x{depth} length {length} batch {batch}",
            "transformer",
            chosen[0],
            body,
            f"x, y = torch.randint(0, 32000, ({batch}, {length}), device=device), "
            f"torch.randint(0, 100, ({batch},), device=device)",
            "F.cross_entropy(model(x), y)",
            chosen[1],
        )


def _torchvision(tiny: bool) -> Iterator[Configuration]:
    names = [
        "resnet18", "resnet50", "resnet101", "vgg11", "vgg16_bn", "densenet121", "mobilenet_v2", "mobilenet_v3_large",
        "efficientnet_b0", "shufflenet_v2_x1_0", "regnet_y_1_6gf", "convnext_tiny", "swin_t", "vit_b_16",
        "squeezenet1_1", "mnasnet1_0", "resnext50_32x4d", "wide_resnet50_2", "inception_v3", "googlenet",
        "alexnet", "maxvit_t",
    ]  # fmt: skip
    for name, chosen in zip(names, _pairs(len(names)), strict=True):
        size = 299 if name == "inception_v3" else 224
        batch = 1 if tiny else 32
        extra = "init_weights=False, aux_logits=False" if name in {"inception_v3", "googlenet"} else ""
        if tiny and name not in {"resnet18", "squeezenet1_1", "shufflenet_v2_x1_0"}:
            continue
        yield _make(
            f"{name} batch {batch}",
            "cnn" if name not in {"swin_t", "vit_b_16", "maxvit_t"} else "transformer",
            chosen[0],
            f"model = models.{name}({extra})",
            _images(batch + tiny, size, 1000),
            "F.cross_entropy(model(x), y)",
            chosen[1],
            imports="from torchvision import models",
        )


def _language(tiny: bool) -> Iterator[Configuration]:
    models = [
        ("BertConfig", "BertForMaskedLM", "", 16, 256),
        ("GPT2Config", "GPT2LMHeadModel", "", 8, 512),
        ("LlamaConfig", "LlamaForCausalLM", "hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, "
         "num_attention_heads=16, num_key_value_heads=4", 4, 512),
        ("T5Config", "T5ForConditionalGeneration", "", 16, 128),
        ("OPTConfig", "OPTForCausalLM", "", 8, 256),
        ("Qwen2Config", "Qwen2ForCausalLM", "hidden_size=896, intermediate_size=4864, num_hidden_layers=24, "
         "num_attention_heads=14, num_key_value_heads=2", 4, 256),
    ]  # fmt: skip
    for (config, model, settings, batch, length), chosen in zip(models * 3, _pairs(18), strict=True):
        if tiny:
            return
        yield _make(
            f"{model} batch {batch} length {length}",
            "transformer",
            chosen[0],
            f"model = {model}({config}({settings}))",
            f"x = torch.randint(0, 20000, ({batch}, {length}), device=device)",
            "model(input_ids=x, labels=x).loss",
            chosen[1],
            imports=f"from transformers import {config}, {model}",
        )
