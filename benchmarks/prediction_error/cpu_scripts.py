"""Small training scripts for both frameworks, run for real on the CPU wheels to read their allocators' peaks."""

from __future__ import annotations

from collections.abc import Iterator

PADDLE = """import paddle
import paddle.nn as nn
import paddle.nn.functional as F

paddle.set_device("cpu")
{body}

for step in range({steps}):
    {batch}
    loss = {loss}
    loss.backward()
    opt.step()
    opt.clear_grad()
"""

TORCH = """import torch
import torch.nn as nn
import torch.nn.functional as F

{body}

for step in range({steps}):
    {batch}
    opt.zero_grad()
    loss = {loss}
    loss.backward()
    opt.step()
"""

STEPS = 4

_PADDLE_OPTIMIZERS = {
    "sgd": "paddle.optimizer.SGD(learning_rate=0.01, parameters=model.parameters())",
    "momentum": "paddle.optimizer.Momentum(learning_rate=0.01, momentum=0.9, parameters=model.parameters())",
    "adam": "paddle.optimizer.Adam(learning_rate=0.001, parameters=model.parameters())",
    "adamw": "paddle.optimizer.AdamW(learning_rate=0.001, parameters=model.parameters(), weight_decay=0.01)",
    "adagrad": "paddle.optimizer.Adagrad(learning_rate=0.01, parameters=model.parameters())",
    "rmsprop": "paddle.optimizer.RMSProp(learning_rate=0.01, parameters=model.parameters())",
    "adamax": "paddle.optimizer.Adamax(learning_rate=0.001, parameters=model.parameters())",
    "lamb": "paddle.optimizer.Lamb(learning_rate=0.001, parameters=model.parameters())",
}
_TORCH_OPTIMIZERS = {
    "sgd": "torch.optim.SGD(model.parameters(), lr=0.01)",
    "momentum": "torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)",
    "adam": "torch.optim.Adam(model.parameters(), lr=0.001)",
    "adamw": "torch.optim.AdamW(model.parameters(), lr=0.001)",
    "adagrad": "torch.optim.Adagrad(model.parameters(), lr=0.01)",
    "rmsprop": "torch.optim.RMSprop(model.parameters(), lr=0.01)",
    "adamax": "torch.optim.Adamax(model.parameters(), lr=0.001)",
    "lamb": "torch.optim.NAdam(model.parameters(), lr=0.001)",
}

_ACTIVATIONS = {
    "relu": ("nn.ReLU()", "nn.ReLU()"),
    "gelu": ("nn.GELU()", "nn.GELU()"),
    "silu": ("nn.Silu()", "nn.SiLU()"),
    "tanh": ("nn.Tanh()", "nn.Tanh()"),
    "sigmoid": ("nn.Sigmoid()", "nn.Sigmoid()"),
    "leaky": ("nn.LeakyReLU()", "nn.LeakyReLU()"),
    "hardswish": ("nn.Hardswish()", "nn.Hardswish()"),
    "elu": ("nn.ELU()", "nn.ELU()"),
}


def scripts(framework: str) -> Iterator[tuple[str, str]]:
    """Name and text of each script of ``paddle`` or ``torch``."""
    yield from _mlps(framework)
    yield from _cnns(framework)
    yield from _transformers(framework)
    yield from _recurrent(framework)
    yield from _paddle_zoo() if framework == "paddle" else _torch_zoo()


def _script(framework: str, body: str, batch: str, loss: str, optimizer: str) -> str:
    template = PADDLE if framework == "paddle" else TORCH
    table = _PADDLE_OPTIMIZERS if framework == "paddle" else _TORCH_OPTIMIZERS
    return template.format(body=f"{body}\nopt = {table[optimizer]}", batch=batch, loss=loss, steps=STEPS)


def _names(framework: str) -> dict[str, str]:
    paddle = framework == "paddle"
    return {
        "conv": "nn.Conv2D" if paddle else "nn.Conv2d",
        "norm": "nn.BatchNorm2D" if paddle else "nn.BatchNorm2d",
        "norm1": "nn.BatchNorm1D" if paddle else "nn.BatchNorm1d",
        "pool": "nn.MaxPool2D" if paddle else "nn.MaxPool2d",
        "average": "nn.AdaptiveAvgPool2D(1)" if paddle else "nn.AdaptiveAvgPool2d(1)",
    }


def _draw(framework: str, shape: str) -> str:
    return f"paddle.randn([{shape}])" if framework == "paddle" else f"torch.randn({shape})"


def _labels(framework: str, classes: int, shape: str) -> str:
    if framework == "paddle":
        return f"paddle.randint(0, {classes}, [{shape}])"
    return f"torch.randint(0, {classes}, ({shape},))"


def _mlps(framework: str) -> Iterator[tuple[str, str]]:
    grid = [
        (width, depth, batch, act, optimizer)
        for (width, depth, batch), act, optimizer in zip(
            [(512, 3, 512), (1024, 2, 256), (2048, 2, 64), (256, 6, 2048), (768, 4, 512), (1536, 2, 128),
             (640, 5, 1024), (900, 3, 333)] * 2,
            list(_ACTIVATIONS) * 2,
            ["sgd", "adam", "adamw", "momentum", "adam", "rmsprop", "adagrad", "adamw",
             "adam", "lamb", "adamax", "sgd", "momentum", "adam", "adamw", "adam"],
            strict=True,
        )
    ]  # fmt: skip
    for number, (width, depth, batch, act, optimizer) in enumerate(grid):
        names = _names(framework)
        layers = []
        for _ in range(depth):
            layers.append(f"nn.Linear({width}, {width})")
            if number % 3 == 1:
                layers.append(f"{names['norm1']}({width})")
            layers.append(_ACTIVATIONS[act][framework == "torch"])
            if number % 4 == 2:
                layers.append("nn.Dropout(0.2)")
        layers.append(f"nn.Linear({width}, 10)")
        body = f"model = nn.Sequential({', '.join(layers)})"
        yield (
            f"mlp-{number}-{width}x{depth}-{act}-{optimizer}",
            _script(
                framework,
                body,
                f"x, y = {_draw(framework, f'{batch}, {width}')}, {_labels(framework, 10, str(batch))}",
                "F.cross_entropy(model(x), y)",
                optimizer,
            ),
        )


def _cnns(framework: str) -> Iterator[tuple[str, str]]:
    names = _names(framework)
    grid = [
        (16, 3, 32, 32, "relu", "adam"), (32, 2, 16, 48, "gelu", "sgd"), (24, 4, 8, 64, "leaky", "momentum"),
        (48, 3, 16, 32, "silu", "adamw"), (64, 2, 8, 56, "relu", "adam"), (20, 5, 16, 40, "tanh", "rmsprop"),
        (40, 3, 12, 44, "hardswish", "adam"), (32, 3, 24, 28, "elu", "adagrad"), (16, 2, 64, 32, "relu", "sgd"),
        (96, 2, 4, 48, "relu", "momentum"), (12, 6, 16, 64, "relu", "adam"), (56, 2, 10, 36, "sigmoid", "adamw"),
    ]  # fmt: skip
    for number, (width, depth, batch, size, act, optimizer) in enumerate(grid):
        layers, channels = [], 3
        for index in range(depth):
            layers.append(f"{names['conv']}({channels}, {width}, 3, padding=1)")
            if number % 2 == 0:
                layers.append(f"{names['norm']}({width})")
            layers.append(_ACTIVATIONS[act][framework == "torch"])
            if number % 3 == 0 and index == 0:
                layers.append(f"{names['pool']}(2)")
            channels = width
        layers += [names["average"], "nn.Flatten()", f"nn.Linear({width}, 10)"]
        yield (
            f"cnn-{number}-{width}x{depth}-{size}px-{act}-{optimizer}",
            _script(
                framework,
                f"model = nn.Sequential({', '.join(layers)})",
                f"x, y = {_draw(framework, f'{batch}, 3, {size}, {size}')}, {_labels(framework, 10, str(batch))}",
                "F.cross_entropy(model(x), y)",
                optimizer,
            ),
        )


_ENCODER = """class Net(nn.{base}):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding({words}, {width})
        layer = nn.TransformerEncoderLayer({width}, {heads}, {hidden}, dropout={dropout}{extra})
        self.encoder = nn.TransformerEncoder(layer, {depth})
        self.head = nn.Linear({width}, 20)

    def forward(self, ids):
        return self.head(self.encoder(self.words(ids)).mean({axis}=1))


model = Net()"""

_ATTENTION = """class Block(nn.{base}):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, n, c = x.shape
        qkv = self.qkv(self.norm1(x)).reshape([b, n, 3, self.heads, c // self.heads]){permute}
        q, k, v = qkv[0], qkv[1], qkv[2]
        scores = {product} / (c // self.heads) ** 0.5
        mixed = {softmax} @ v
        x = x + self.out(mixed{back}.reshape([b, n, c]))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Net(nn.{base}):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding({words}, {width})
        self.blocks = nn.{container}([Block({width}, {heads}) for _ in range({depth})])
        self.head = nn.Linear({width}, 20)

    def forward(self, ids):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean({axis}=1))


model = Net()"""


def _transformers(framework: str) -> Iterator[tuple[str, str]]:
    paddle = framework == "paddle"
    common = {
        "base": "Layer" if paddle else "Module",
        "axis": "axis" if paddle else "dim",
        "extra": "" if paddle else ", batch_first=True",
        "container": "LayerList" if paddle else "ModuleList",
        "permute": ".transpose([2, 0, 3, 1, 4])" if paddle else ".permute(2, 0, 3, 1, 4)",
        "product": "q @ k.transpose([0, 1, 3, 2])" if paddle else "q @ k.transpose(-2, -1)",
        "softmax": "F.softmax(scores, axis=-1)" if paddle else "F.softmax(scores, dim=-1)",
        "back": ".transpose([0, 2, 1, 3])" if paddle else ".transpose(1, 2)",
    }
    grid = [
        (128, 4, 256, 2, 64, 16, "adam"), (256, 8, 512, 2, 48, 8, "adamw"), (192, 6, 768, 3, 32, 16, "sgd"),
        (64, 4, 256, 4, 128, 8, "adam"), (320, 8, 640, 1, 64, 12, "momentum"), (96, 2, 384, 3, 80, 10, "adamw"),
    ]  # fmt: skip
    for number, (width, heads, hidden, depth, length, batch, optimizer) in enumerate(grid):
        for kind, body in (("encoder", _ENCODER), ("attention", _ATTENTION)):
            text = body.format(
                width=width, heads=heads, hidden=hidden, depth=depth, words=2000, dropout=0.1 * (number % 2), **common
            )
            yield (
                f"{kind}-{number}-{width}x{depth}-{length}-{optimizer}",
                _script(
                    framework,
                    text,
                    f"x, y = {_tokens(framework, batch, length)}, {_labels(framework, 20, str(batch))}",
                    "F.cross_entropy(model(x), y)",
                    optimizer,
                ),
            )


def _tokens(framework: str, batch: int, length: int) -> str:
    if framework == "paddle":
        return f"paddle.randint(0, 2000, [{batch}, {length}])"
    return f"torch.randint(0, 2000, ({batch}, {length}))"


_LSTM = """class Net(nn.{base}):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(2000, {width})
        self.rnn = nn.{cell}({width}, {width}, {layers})
        self.head = nn.Linear({width}, 20)

    def forward(self, ids):
        out, _ = self.rnn(self.words(ids))
        return self.head(out.mean({axis}=1))


model = Net()"""


def _recurrent(framework: str) -> Iterator[tuple[str, str]]:
    paddle = framework == "paddle"
    for number, (cell, width, depth, length, batch, optimizer) in enumerate(
        [("LSTM", 128, 1, 32, 32, "adam"), ("GRU", 128, 1, 48, 24, "adam"), ("LSTM", 256, 2, 16, 16, "sgd")]
    ):
        layers = f"num_layers={depth}" + ("" if paddle else ", batch_first=True")
        body = _LSTM.format(
            base="Layer" if paddle else "Module",
            axis="axis" if paddle else "dim",
            cell=cell,
            width=width,
            layers=layers,
        )
        yield (
            f"{cell.lower()}-{number}-{width}-{optimizer}",
            _script(
                framework,
                body,
                f"x, y = {_tokens(framework, batch, length)}, {_labels(framework, 20, str(batch))}",
                "F.cross_entropy(model(x), y)",
                optimizer,
            ),
        )


def _paddle_zoo() -> Iterator[tuple[str, str]]:
    """Models of ``paddle.vision`` at a small input."""
    grid = [
        ("resnet18", 8, 64, "momentum"), ("resnet18", 16, 48, "adam"), ("resnet34", 4, 64, "adamw"),
        ("resnet50", 4, 64, "sgd"),
        ("vgg11", 2, 64, "momentum"), ("mobilenet_v1", 8, 64, "adam"), ("mobilenet_v2", 8, 64, "adam"),
        ("mobilenet_v3_small", 8, 64, "adamw"), ("mobilenet_v3_large", 4, 64, "sgd"), ("densenet121", 2, 64, "adam"),
        ("squeezenet1_1", 8, 64, "adam"), ("shufflenet_v2_x1_0", 8, 64, "momentum"), ("alexnet", 4, 224, "sgd"),
        ("googlenet", 2, 224, "adam"), ("resnext50_32x4d", 2, 64, "sgd"), ("wide_resnet50_2", 2, 64, "momentum"),
        ("inception_v3", 2, 128, "adam"),
    ]  # fmt: skip
    for name, batch, size, optimizer in grid:
        output = "model(x)[0]" if name == "googlenet" else "model(x)"
        yield (
            f"{name}-{batch}-{size}px-{optimizer}",
            _script(
                "paddle",
                f"model = paddle.vision.models.{name}(num_classes=10)",
                f"x, y = {_draw('paddle', f'{batch}, 3, {size}, {size}')}, {_labels('paddle', 10, str(batch))}",
                f"F.cross_entropy({output}, y)",
                optimizer,
            ),
        )


def _torch_zoo() -> Iterator[tuple[str, str]]:
    """Models of transformers from small configurations (read from their sources)."""
    images = [
        ("ResNetConfig", "ResNetForImageClassification", "depths=[2, 2, 2, 2], hidden_sizes=[32, 64, 128, 256], "
         "embedding_size=32, layer_type='basic'", "momentum"),
        ("ResNetConfig", "ResNetForImageClassification", "depths=[2, 2], hidden_sizes=[64, 128], embedding_size=32",
         "adam"),
        ("RegNetConfig", "RegNetForImageClassification", "depths=[1, 2, 2, 1], hidden_sizes=[32, 64, 96, 128], "
         "groups_width=16, layer_type='y'", "adam"),
        ("MobileNetV2Config", "MobileNetV2ForImageClassification", "image_size=64", "sgd"),
        ("ConvNextConfig", "ConvNextForImageClassification", "depths=[1, 1, 2, 1], hidden_sizes=[32, 64, 96, 128], "
         "image_size=64", "adamw"),
        ("ViTConfig", "ViTForImageClassification", "hidden_size=128, num_hidden_layers=3, num_attention_heads=4, "
         "intermediate_size=512, image_size=64, patch_size=8", "adamw"),
        ("DeiTConfig", "DeiTForImageClassification", "hidden_size=96, num_hidden_layers=3, num_attention_heads=4, "
         "intermediate_size=384, image_size=64, patch_size=8", "sgd"),
        ("SwinConfig", "SwinForImageClassification", "embed_dim=48, depths=[2, 2], num_heads=[2, 4], image_size=64, "
         "window_size=4", "adam"),
    ]  # fmt: skip
    for number, (config, model, settings, optimizer) in enumerate(images):
        yield (
            f"{model}-{number}-{optimizer}",
            _script(
                "torch",
                f"from transformers import {config}, {model}\nmodel = {model}({config}({settings}, num_labels=10))\n"
                "model.train()",
                f"x, y = {_draw('torch', '8, 3, 64, 64')}, {_labels('torch', 10, '8')}",
                "F.cross_entropy(model(pixel_values=x).logits, y)",
                optimizer,
            ),
        )
    languages = [
        ("BertConfig", "BertForMaskedLM", "hidden_size=128, num_hidden_layers=3, num_attention_heads=4, "
         "intermediate_size=512, vocab_size=2000", "adamw"),
        ("GPT2Config", "GPT2LMHeadModel", "n_embd=128, n_layer=3, n_head=4, vocab_size=2000", "adam"),
        ("LlamaConfig", "LlamaForCausalLM", "hidden_size=128, intermediate_size=344, num_hidden_layers=3, "
         "num_attention_heads=4, num_key_value_heads=2, vocab_size=2000", "adamw"),
        ("T5Config", "T5ForConditionalGeneration", "d_model=128, d_kv=32, d_ff=512, num_layers=2, num_heads=4, "
         "vocab_size=2000, decoder_start_token_id=0", "sgd"),
        ("OPTConfig", "OPTForCausalLM", "hidden_size=128, num_hidden_layers=3, ffn_dim=512, num_attention_heads=4, "
         "word_embed_proj_dim=128, vocab_size=2000", "adam"),
        ("Qwen2Config", "Qwen2ForCausalLM", "hidden_size=128, intermediate_size=344, num_hidden_layers=3, "
         "num_attention_heads=4, num_key_value_heads=2, vocab_size=2000", "momentum"),
        ("RobertaConfig", "RobertaForMaskedLM", "hidden_size=128, num_hidden_layers=3, num_attention_heads=4, "
         "intermediate_size=512, vocab_size=2000", "adagrad"),
        ("GPTNeoXConfig", "GPTNeoXForCausalLM", "hidden_size=128, num_hidden_layers=3, num_attention_heads=4, "
         "intermediate_size=512, vocab_size=2000", "adamw"),
        ("MistralConfig", "MistralForCausalLM", "hidden_size=128, intermediate_size=344, num_hidden_layers=2, "
         "num_attention_heads=4, num_key_value_heads=2, vocab_size=2000", "sgd"),
        ("DistilBertConfig", "DistilBertForMaskedLM", "dim=128, n_layers=3, n_heads=4, hidden_dim=512, "
         "vocab_size=2000", "adam"),
    ]  # fmt: skip
    for config, model, settings, optimizer in languages:
        yield (
            f"{model}-{optimizer}",
            _script(
                "torch",
                f"from transformers import {config}, {model}\nmodel = {model}({config}({settings}))\nmodel.train()",
                _tokens_only(8, 64),
                "model(input_ids=x, labels=x).loss",
                optimizer,
            ),
        )


def _tokens_only(batch: int, length: int) -> str:
    return f"x = torch.randint(0, 2000, ({batch}, {length}))"
