"""GPUMemNet's campaigns (github.com/itu-rad/GPUMemNet): MLPs, CNNs, transformer encoders and real models on an A100.

A synthetic data set of 4,096 samples, Adam, cross-entropy; a model summary runs before training.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from benchmarks.prediction_error.cases import MIB, Case, rows, settings

DEVICE = "A100 PCIe 40GB"
SAMPLES = 4096

_ACTIVATIONS = {
    "relu": "nn.ReLU()", "elu": "nn.ELU()", "selu": "nn.SELU()", "gelu": "nn.GELU()", "mish": "nn.Mish()",
    "swish": "nn.SiLU()", "tanh": "nn.Tanh()", "leaky_relu": "nn.LeakyReLU()", "prelu": "nn.PReLU()",
    "softplus": "nn.Softplus()", "identity": "nn.Identity()",
}  # fmt: skip

_TRAIN = """

model = {model}.to(device)
model({summary})  # the pass of a model summary
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=1e-3)
dataset = TensorDataset({inputs}, torch.randint(0, {classes}, ({samples},)))
loader = DataLoader(dataset, batch_size={batch}, shuffle=True)

for epoch in range(10):
    model.train()
    for inputs, labels in loader:
        inputs, labels = inputs.to(device), labels.to(device)
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
"""

_HEAD = """import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

"""


def hidden_sizes(arch: str, inputs: int, outputs: int, depth: int) -> list[int]:
    """Widths of the hidden layers; they reproduce the table's parameter counts exactly."""
    if arch == "uniform":
        return [inputs] * depth
    if arch in {"pyramid", "bottleneck"}:
        sizes, width = [], inputs
        for _ in range(depth + (arch == "bottleneck")):
            width = max(width // 2, outputs)
            sizes.append(width)
        return sizes
    step = (inputs - outputs) // depth
    return [max(inputs - step * (i + 1), outputs) for i in range(depth)]


def mlps(truth: Path) -> Iterator[Case]:
    """The MLP campaign."""
    for row in rows(truth / "gpumemnet_mlp.csv"):
        given = settings(row["model"])
        group = f"{given['arch']}-{given.get('act', 'relu')}-{given['depth']}"
        yield _case(row, "mlp", mlp_script(row["model"]), group, "gpumemnet-mlp")


def mlp_script(model: str) -> str:
    """The script behind a row's name. The second campaign varies activation, dropout and normalisation."""
    given = settings(model)
    inputs, outputs = int(given["input"]), int(given["output"])
    layers, width = [], inputs
    for size in hidden_sizes(given["arch"], inputs, outputs, int(given["depth"])):
        layers.append(f"nn.Linear({width}, {size})")
        if given.get("batchnorm") == "True":
            layers.append(f"nn.BatchNorm1d({size})")
        layers.append(_ACTIVATIONS[given.get("act", "relu")])
        if given.get("dropout_used") == "True":
            layers.append(f"nn.Dropout({given['dropout']})")
        width = size
    layers.append(f"nn.Linear({width}, {outputs})")
    if "act" in given:
        layers.append("nn.Softmax(dim=1)")
    net = "nn.Sequential(\n    " + ",\n    ".join(layers) + ",\n)"
    return _HEAD + _TRAIN.format(
        model=net,
        classes=outputs,
        samples=SAMPLES,
        batch=given["batch"],
        inputs=f"torch.randn({SAMPLES}, {inputs})",
        summary=f"torch.rand(2, {inputs}).to(device)",
    )


def cnns(truth: Path) -> Iterator[Case]:
    """The CNN campaign, from the list of layers that was recorded with each row."""
    layers = {row["model"]: ast.literal_eval(row["layers"]) for row in rows(truth / "gpumemnet_cnn_layers.csv")}
    for row in rows(truth / "gpumemnet_cnn.csv"):
        listed = layers.get(row["model"]) or []
        if not listed or row["status"] == "invalid":
            continue
        given = settings(row["model"])
        group = f"{given['arch']}-{given['act']}-{given['depth']}"
        yield _case(row, "cnn", cnn_script(row["model"], listed), group, "gpumemnet-cnn")


def cnn_script(model: str, listed: list[tuple[str, int, int]]) -> str:
    """The script behind a row's name and its layers: (layer, activations of one sample, parameters)."""
    return _HEAD + _cnn(settings(model), listed)


def _cnn(given: dict[str, str], listed: list[tuple[str, int, int]]) -> str:
    channels, size, arch = int(given["input_channels"]), int(given["input_size"]), given["arch"]
    body = _residual if arch == "residual" else _dense if arch == "dense" else _plain
    head = next(parameters for name, _, parameters in listed if name == "linear")
    classes = int(given["num_classes"])
    width = head // classes - 1
    text = body(given, listed, channels, size)
    text += f"        self.head = nn.Linear({width}, {classes})\n        self.softmax = nn.Softmax(dim=1)\n\n"
    text += _FORWARD[body is _residual]
    return text + _TRAIN.format(
        model="Net()",
        classes=classes,
        samples=SAMPLES,
        batch=given["batch"],
        inputs=f"torch.randn({SAMPLES}, {channels}, {size}, {size})",
        summary=f"torch.rand(2, {channels}, {size}, {size}).to(device)",
    )


_TAIL = """        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.softmax(self.head(x))
"""
_FORWARD = {
    False: "    def forward(self, x):\n        x = self.layers(x)\n" + _TAIL,
    True: "    def forward(self, x):\n        for block in self.blocks:\n            x = block(x)\n" + _TAIL,
}


def _units(listed: list[tuple[str, int, int]]) -> list[list[tuple[str, int, int]]]:
    """The list cut before each convolution; what follows the last unit's layers is left out."""
    units: list[list[tuple[str, int, int]]] = []
    for layer in listed:
        if layer[0] == "conv2d":
            units.append([layer])
        elif layer[0] in {"adaptive_avg_pool2d", "linear", "softmax"}:
            break
        else:
            units[-1].append(layer)
    return units


def _channels(conv: tuple[str, int, int], inputs: int) -> tuple[int, int]:
    """Output channels and kernel size of a convolution with bias, from its parameters and input channels."""
    for kernel in (3, 1):
        outputs, left = divmod(conv[2], inputs * kernel * kernel + 1)
        if left == 0 and outputs and conv[1] % outputs == 0 and _square(conv[1] // outputs) is not None:
            return outputs, kernel
    raise ValueError(f"no convolution of {inputs} input channels has {conv[2]} parameters")


def _square(number: int) -> int | None:
    root = round(number**0.5)
    return root if root * root == number else None


def _unit(unit: list[tuple[str, int, int]], given: dict[str, str], inputs: int, size: int) -> tuple[str, int, int]:
    outputs, kernel = _channels(unit[0], inputs)
    after = _square(unit[0][1] // outputs) or 1
    stride = -(-size // after)
    parts = [f"nn.Conv2d({inputs}, {outputs}, {kernel}, stride={stride}, padding={kernel // 2})"]
    for name, _, _ in unit[1:]:
        if name == "batchnorm2d":
            parts.append(f"nn.BatchNorm2d({outputs})")
        elif name == "dropout":
            parts.append(f"nn.Dropout({given['dropout']})")
        else:
            parts.append(_ACTIVATIONS[given["act"]])
    return ", ".join(parts), outputs, after


def _class(attribute: str) -> str:
    return f"class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.{attribute} = "


def _plain(given: dict[str, str], listed: list[tuple[str, int, int]], channels: int, size: int) -> str:
    lines = []
    for unit in _units(listed):
        text, channels, size = _unit(unit, given, channels, size)
        lines.append(f"            {text},\n")
    return _class("layers") + "nn.Sequential(\n" + "".join(lines) + "        )\n"


def _dense(given: dict[str, str], listed: list[tuple[str, int, int]], channels: int, size: int) -> str:
    """Layers whose output joins their input; a 1×1 convolution that halves the channels, with a pooling, between."""
    lines = []
    units = _units(listed)
    for index, unit in enumerate(units):
        text, outputs, size = _unit(unit, given, channels, size)
        if _channels(unit[0], channels)[1] == 1:
            after = units[index + 1][0][1] // 32 if index + 1 < len(units) else size * size
            if after < size * size:
                text += ", nn.AvgPool2d(2)"
                size //= 2
            lines.append(f"            nn.Sequential({text}),\n")
            channels = outputs
        else:
            lines.append(f"            Joined({text}),\n")
            channels += outputs
    return _JOINED + _class("layers") + "nn.Sequential(\n" + "".join(lines) + "        )\n"


_JOINED = """class Joined(nn.Sequential):
    def forward(self, x):
        return torch.cat([x, super().forward(x)], 1)


"""

_BLOCK = """class Block(nn.Module):
    def __init__(self, shortcut, body):
        super().__init__()
        self.shortcut = shortcut
        self.body = body

    def forward(self, x):
        kept = self.shortcut(x)
        return self.body(x) + kept


"""


def _residual(given: dict[str, str], listed: list[tuple[str, int, int]], channels: int, size: int) -> str:
    """Blocks of a projection (a 1×1 convolution) and two 3×3 convolutions; without a projection, identity.

    The projection is listed first, and a model summary lists layers as they run.
    """
    lines: list[str] = []
    units = _units(listed)
    index = 0
    while index < len(units):
        _, kernel = _channels(units[index][0], channels)
        shortcut = "nn.Identity()"
        inputs, before = channels, size
        if kernel == 1:
            text, _, _ = _unit(units[index], given, channels, size)
            shortcut = f"nn.Sequential({text})"
            index += 1
        body = []
        for unit in units[index : index + 2]:
            text, channels, size = _unit(unit, given, inputs, before)
            inputs, before = channels, size
            body.append(text)
        index += 2
        lines.append(f"            Block({shortcut}, nn.Sequential({', '.join(body)})),\n")
    return _BLOCK + _class("blocks") + "nn.ModuleList([\n" + "".join(lines) + "        ])\n"


def transformers(truth: Path) -> Iterator[Case]:
    """The transformer campaign: an encoder classifier with learned positions."""
    for row in rows(truth / "gpumemnet_transformer_sample.csv"):
        script = transformer_script(row["model"])
        yield _case(row, "transformer", script, row["model"], "gpumemnet-transformer")


def transformer_script(model: str) -> str:
    """The script behind a row's name; its ``input_size`` is the vocabulary."""
    given = settings(model)
    width, length, samples = given["embedding_size"], given["seq_length"], int(given["num_samples"])
    net = f"""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding({given["input_size"]}, {width})
        self.positions = nn.Parameter(torch.zeros(1, {length}, {width}))
        layer = nn.TransformerEncoderLayer(
            d_model={width}, nhead={given["num_heads"]}, dim_feedforward={given["ff_hidden_size"]},
            dropout={given["dropout_rate"]}, batch_first=True,
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers={given["num_layers"]})
        self.head = nn.Linear({width}, {given["num_classes"]})

    def forward(self, x):
        x = self.embedding(x) + self.positions
        x = self.encoder(x)
        return self.head(x.mean(dim=1))
"""
    train = _TRAIN.format(
        model="Net()",
        classes=given["num_classes"],
        samples=samples,
        batch=given["batch_size"],
        inputs=f"torch.randint(0, {given['input_size']}, ({samples}, {length}))",
        summary=f"torch.randint(0, {given['input_size']}, (2, {length})).to(device)",
    )
    return _HEAD + net + train


def horus(truth: Path) -> Iterator[Case]:
    """Fully connected nets on MNIST; the batch is not stated (32 or 64), so that they are not scored."""
    for row in rows(truth / "gpumemnet_horus_fc.csv"):
        words = dict(part.split("=") for part in row["model"].split() if "=" in part)
        depth, width = int(words["layers"]), int(words["neurons"])
        layers, inputs = [], 784
        for _ in range(depth):
            layers += [f"nn.Linear({inputs}, {width})", "nn.ReLU()"]
            inputs = width
        layers.append(f"nn.Linear({inputs}, 10)")
        model = "nn.Sequential(\n    nn.Flatten(),\n    " + ",\n    ".join(layers) + ",\n)"
        script = _HEAD + _TRAIN.format(
            model=model,
            classes=10,
            samples=60000,
            batch=64,
            inputs="torch.randn(60000, 1, 28, 28)",
            summary="torch.rand(2, 1, 28, 28).to(device)",
        )
        yield _case(row, "mlp", script, row["model"], "gpumemnet-horus", scored=False)


def _case(row: dict[str, str], family: str, script: str, group: str, surroundings: str, *, scored: bool = True) -> Case:
    return Case(
        source=row["source"].split("(")[0],
        name=f"{row['model']} batch {row['batch_size_per_gpu']}",
        family=family,
        script=script,
        device=DEVICE,
        surroundings=surroundings,
        kind="device",
        measured_bytes=round(float(row["measured_peak_MiB"]) * MIB),
        out_of_memory=row["status"] == "OOM",
        scored=scored and row["status"] == "ok",
        group=group,
        note=row["status"],
    )
