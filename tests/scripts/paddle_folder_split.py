"""Pictures in folders, one folder a class: listed, shuffled, split by hand; the collate function gives NumPy arrays."""

import os
import random

import numpy as np
import paddle
import paddle.nn as nn
from paddle.io import DataLoader, Dataset

ROOT = "data/flowers"


def list_samples():
    samples = []
    for label, name in enumerate(sorted(os.listdir(ROOT))):
        for file in os.listdir(os.path.join(ROOT, name)):
            samples.append((os.path.join(ROOT, name, file), label))
    random.shuffle(samples)
    return samples


class Flowers(Dataset):
    def __init__(self, samples):
        super().__init__()
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        picture = np.zeros((3, 96, 96), dtype="float32")
        return picture, np.array([label], dtype="int64")


def collate(batch):
    return np.stack([picture for picture, _ in batch]), np.stack([label for _, label in batch])


samples = list_samples()
cut = int(0.8 * len(samples))
train, held = samples[:cut], samples[cut:]
loader = DataLoader(Flowers(train), batch_size=48, shuffle=True, collate_fn=collate)
print(len(train), len(held), len(loader))

model = nn.Sequential(
    nn.Conv2D(3, 24, 3, padding=1), nn.BatchNorm2D(24), nn.ReLU(), nn.MaxPool2D(4), nn.Flatten(), nn.Linear(24 * 24 * 24, 5)
)
optimizer = paddle.optimizer.Momentum(0.01, parameters=model.parameters())
for epoch in range(4):
    for picture, label in loader:
        loss = nn.functional.cross_entropy(model(picture), label)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
