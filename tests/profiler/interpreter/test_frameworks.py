"""Whose rules hold: PaddlePaddle's weights are (in, out), PyTorch's (out, in), wherever the import is written."""

import time

import pytest

from oarlock_profiler.core import frameworks
from oarlock_profiler.core.reader import read
from oarlock_profiler.core.reading import Request

from .bench import Files

PADDLE_MODEL = """
{how}
class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 24)
    def forward(self, x):
        return self.fc(x)
def train(net):
    optimizer = paddle.optimizer.Adam(parameters=net.parameters())
    for _ in range(5):
        loss = net(paddle.randn([32, 64])).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
"""


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("import paddle", "paddlepaddle"),
        ("import numpy as np, paddle", "paddlepaddle"),
        ("import os; import torch.nn as nn", "pytorch"),
        ("    from paddle.io import DataLoader", "paddlepaddle"),
        ("import torch\nimport paddle", "paddlepaddle"),
        ("import paddle_tools", None),
        ("import torchvision", None),
        ("# import torch", None),
        ("from model import Net", None),
    ],
)
def test_a_line_of_the_entry_names_the_framework(text: str, named: str | None) -> None:
    assert frameworks.named(text.encode()) == named


@pytest.mark.parametrize(
    ("text", "guess"),
    [
        ("from paddlenlp.trainer import Trainer", "paddlepaddle"),
        ("from transformers import Trainer", "pytorch"),
        ("import torchvision", "pytorch"),
        ("from model import Net", None),
    ],
)
def test_libraries_that_rest_on_one_are_a_guess(text: str, guess: str | None) -> None:
    assert frameworks.guessed(text.encode(), {}) == guess
    assert frameworks.guessed(text.encode(), {"framework": "numpy"}) == (guess or "numpy")


@pytest.mark.parametrize("how", ["import paddle\nfrom paddle import nn", "import numpy as np, paddle\nnn = paddle.nn"])
@pytest.mark.parametrize(
    "entry", ["from model import Net, train\ntrain(Net())\n", "import model\nmodel.train(model.Net())\n"]
)
def test_an_import_in_a_helper_module_settles_it(how: str, entry: str) -> None:
    files = Files({"main.py": entry, "model.py": PADDLE_MODEL.format(how=how)})
    reading = read(Request("main.py", [], {}), files, time.monotonic)
    assert reading.framework == "paddlepaddle"
    assert reading.parameters_total == 64 * 24 + 24
    assert reading.trace.steps
    assert not reading.findings.gaps


def test_the_first_import_decides_where_both_are_found() -> None:
    files = Files(
        {"main.py": "from model import Net, train\ntrain(Net())\nimport extra\n", "extra.py": "import torch\n",
         "model.py": PADDLE_MODEL.format(how="import paddle\nfrom paddle import nn")}
    )  # fmt: skip
    assert read(Request("main.py", [], {}), files, time.monotonic).framework == "paddlepaddle"
