"""Batches: datasets, transforms, samplers and collation give shapes, types and counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oarlock_profiler.core.reading import Reading

TRAIN = """
weight = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([weight], 0.1)
for batch in loader:
    x = batch[0]
    loss = (x.float().mean() * weight).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def torch_batch(read_script: Callable[..., Reading], loader: str, *, world_size: int = 1) -> Reading:
    text = (
        "import torch, numpy as np\nfrom torch.utils.data import *\nfrom torchvision import datasets, transforms as T\n"
    )
    return read_script(text + loader + TRAIN, world_size=world_size)


@pytest.mark.parametrize(
    ("transform", "shape"),
    [
        ("T.ToTensor()", (3, 32, 32)),
        ("T.Compose([T.Resize(64), T.ToTensor()])", (3, 64, 64)),
        ("T.Compose([T.Pad(4), T.RandomCrop(32), T.ToTensor()])", (3, 32, 32)),
        ("T.Compose([T.Pad(2), T.ToTensor()])", (3, 36, 36)),
        ("T.Compose([T.RandomResizedCrop((96, 80)), T.ToTensor()])", (3, 96, 80)),
        ("T.Compose([T.Grayscale(), T.ToTensor()])", (1, 32, 32)),
        ("T.Compose([T.ToTensor(), T.Lambda(lambda x: x.view(-1))])", (3072,)),
        ("T.Compose([lambda im: np.array(im), T.ToTensor()])", (3, 32, 32)),
    ],
)
def test_transforms_compose(read_script: Callable[..., Reading], transform: str, shape: tuple[int, ...]) -> None:
    reading = torch_batch(
        read_script, f"loader = DataLoader(datasets.CIFAR10('.', transform={transform}), batch_size=10)\n"
    )
    assert reading.inputs[0].shape == (10, *shape)
    assert reading.inputs[0].dtype == "float32"
    assert reading.steps_per_epoch == 5000


@pytest.mark.parametrize(
    ("expression", "size", "count"),
    [
        ("DataLoader(data, batch_size=32)", 32, 32),
        ("DataLoader(data, 32, drop_last=True)", 32, 31),
        ("DataLoader(Subset(data, range(100)), batch_size=32)", 32, 4),
        ("DataLoader(ConcatDataset([data, data]), batch_size=50)", 50, 40),
        ("DataLoader(random_split(data, [0.8, 0.2])[1], batch_size=10)", 10, 20),
        ("DataLoader(data, batch_sampler=BatchSampler(SequentialSampler(data), 25, False))", 25, 40),
        ("DataLoader(data, batch_size=8, sampler=WeightedRandomSampler([1.0] * 1000, 80))", 8, 10),
    ],
)
def test_sizes_and_counts(read_script: Callable[..., Reading], expression: str, size: int, count: int) -> None:
    made = f"data = TensorDataset(torch.randn(1000, 7), torch.zeros(1000))\nloader = {expression}\n"
    reading = torch_batch(read_script, made)
    assert reading.batch_size == size
    assert reading.inputs[0].shape == (size, 7)
    assert reading.steps_per_epoch == count


def test_a_distributed_sampler_shares_the_data(read_script: Callable[..., Reading]) -> None:
    loader = """
data = TensorDataset(torch.randn(1000, 7))
loader = DataLoader(data, batch_size=25, sampler=distributed.DistributedSampler(data))
"""
    reading = torch_batch(read_script, "from torch.utils.data import distributed\n" + loader, world_size=4)
    assert reading.steps_per_epoch == 10


def test_collate_functions_are_interpreted(read_script: Callable[..., Reading]) -> None:
    loader = """
class Words(Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, i):
        return torch.zeros(11, dtype=torch.long), i % 3

def collate(rows):
    words = torch.nn.utils.rnn.pad_sequence([r[0] for r in rows], batch_first=True)
    return words, torch.tensor([r[1] for r in rows])

loader = DataLoader(Words(), batch_size=6, collate_fn=collate)
"""
    reading = torch_batch(read_script, loader)
    assert [(s.shape, s.dtype) for s in reading.inputs] == [((6, 11), "int64"), ((6,), "int64")]


def test_numbers_arrays_and_mappings_are_collated(read_script: Callable[..., Reading]) -> None:
    reading = read_script(
        """
        import numpy as np, paddle

        class Rows(paddle.io.Dataset):
            def __len__(self):
                return 90
            def __getitem__(self, i):
                return {'x': np.zeros((3, 5), dtype='float32'), 'n': 3, 'label': np.array([1], dtype='int64')}

        layer = paddle.nn.Linear(5, 2)
        optimizer = paddle.optimizer.SGD(parameters=layer.parameters())
        for batch in paddle.io.DataLoader(Rows(), batch_size=9):
            loss = layer(batch['x']).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
        """
    )
    assert [(s.shape, s.dtype) for s in reading.inputs] == [
        ((9, 3, 5), "float32"),
        ((9,), "int64"),
        ((9, 1), "int64"),
    ]
    assert reading.steps_per_epoch == 10


def test_an_unknown_batch_size_is_declared_or_assumed(read_script: Callable[..., Reading]) -> None:
    text = """
    import os, torch
    from torch.utils.data import DataLoader, TensorDataset
    layer = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    size = int(open('size.txt').read())
    for (x,) in DataLoader(TensorDataset(torch.randn(100, 4)), batch_size=size):
        layer(x).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    """
    reading = read_script(text, batch_size_per_gpu=20)
    assert reading.batch_size == 20
    assert any(gap.what == "batch size" and gap.assumed == 20 for gap in reading.findings.gaps.values())
