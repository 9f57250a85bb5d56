"""Data whose file is not there: what the script itself says of its shape, and what has to be assumed and is said."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oarlock_profiler.core.reading import Reading

STEP = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(x).float().mean()
loss.backward()
optimizer.step()
"""


@pytest.mark.parametrize(
    ("data", "shape"),
    [
        ("data = np.memmap('t.bin', dtype=np.uint16, mode='r')\nx = data[i:i + 64]", (64,)),
        ("data = np.fromfile('t.bin', np.int64)\nx = np.stack([data[j:j + 64] for j in (i, i + 1, i + 2)])", (3, 64)),
        ("z = np.load('t.npz')\nx = np.stack([z['a'], z['b']], axis=1)[np.arange(8)]", (8, 2)),
        ("x = np.load('t.npy')[:16, :9]", (16, 9)),
        ("ids = json.load(open('t.json'))['ids'][:32]\nx = ids + [0] * (48 - len(ids))", (48,)),
    ],
)
def test_lengths_that_the_script_names(read_script: Callable[..., Reading], data: str, shape: tuple[int, ...]) -> None:
    reading = read_script(
        "import json, random\nimport numpy as np\nimport torch\ni = random.randint(0, 1000)\n"
        f"model = torch.nn.Embedding(100, 4)\n{data}\nx = torch.from_numpy(np.array(x, dtype='int64'))\n{STEP}"
    )
    assert [spec.shape for spec in reading.inputs] == [shape]


def test_a_vocabulary_of_an_absent_file_is_assumed_once(read_script: Callable[..., Reading]) -> None:
    """The table and the layer over its words have the same number of rows, and one gap tells it."""
    reading = read_script(
        """
import torch
vocab = {"<pad>": 0}
for line in open("absent.txt"):
    for word in line.split():
        if word not in vocab:
            vocab[word] = len(vocab)
model = torch.nn.Sequential(torch.nn.Embedding(len(vocab), 8), torch.nn.Linear(8, len(vocab), bias=False))
x = torch.zeros(2, 5, dtype=torch.long)
"""
        + STEP
    )
    assert reading.parameters_total == 2 * 8 * 30_000
    assert [gap.assumed for gap in reading.findings.gaps.values() if gap.what == "rows of an Embedding"] == [30_000]


@pytest.mark.parametrize(
    ("what", "shape"),
    [
        ("values.mean(0)", (3,)),
        ("values.mean(0, keepdims=True)", (1, 3)),
        ("((values - values.mean(0)) / values[:10].std(axis=0))[5:12]", (7, 3)),
        ("(values - np.zeros([1, 3]))[5:12]", (7, 3)),
        ("(values - values.mean(-1, keepdims=True))[5:12]", (7, 3)),
    ],
)
def test_tables_of_unknown_length_are_scaled_by_their_columns(
    read_script: Callable[..., Reading], what: str, shape: tuple[int, ...]
) -> None:
    reading = read_script(
        f"""
        import numpy as np
        import pandas as pd
        import torch
        values = pd.read_csv("absent.csv")[["a", "b", "c"]].values
        found = torch.tensor({what})
        layer = torch.nn.Linear(found.shape[0], 10 * found.shape[-1], bias=False)
        """
    )
    assert reading.parameters_total == shape[0] * 10 * shape[-1]
