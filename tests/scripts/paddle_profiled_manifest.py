"""A manifest of JSON lines is cut into minibatches; gradients of four of them make a step; all of it under cProfile."""

import cProfile

import jsonlines
import numpy as np
import paddle
import paddle.nn as nn
from paddle.io import DataLoader, Dataset
from paddle.nn.layer.conv import _ConvNd


class ValidConv(_ConvNd):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__(in_channels, out_channels, kernel_size, False, 1)

    def forward(self, x):
        return nn.functional.conv1d(x, self.weight, self.bias)


class Recogniser(nn.Layer):
    def __init__(self, words):
        super().__init__()
        self.conv = ValidConv(40, 64, 3)
        self.out = nn.Linear(64, words, None, None, None)

    def forward(self, x):
        return self.out(paddle.nn.functional.relu(self.conv(x)).mean(axis=-1))


class Minibatches(Dataset):
    def __init__(self, path, size):
        with jsonlines.open(path, "r") as reader:
            utterances = list(reader)
        self.batches, start = [], 0
        while True:
            self.batches.append(utterances[start : start + size])
            start += size
            if start >= len(utterances):
                break

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, index):
        return np.zeros((16, 40, 200), dtype="float32"), np.zeros((16,), dtype="int64")


def main():
    loader = DataLoader(Minibatches("data/manifest.train", 16), batch_size=None)
    model = Recogniser(12)
    optimizer = paddle.optimizer.Adam(1e-3, parameters=model.parameters())
    for epoch in range(3):
        for index, (sound, word) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(sound), word)
            loss.backward()
            if (index + 1) % 4 == 0:
                optimizer.step()
                optimizer.clear_grad()


if __name__ == "__main__":
    profile = cProfile.Profile()
    profile.runcall(main)
    profile.dump_stats("train.profile")
