"""A small convolutional network on CIFAR-10 in PaddlePaddle, mixed precision, Momentum."""

import argparse

import paddle
import paddle.nn.functional as F
from paddle import nn
from paddle.io import DataLoader
from paddle.vision import transforms
from paddle.vision.datasets import Cifar10


class ConvBlock(nn.Layer):
    def __init__(self, in_channels, out_channels, pool=False):
        super().__init__()
        self.conv = nn.Conv2D(in_channels, out_channels, 3, padding=1, bias_attr=False)
        self.norm = nn.BatchNorm2D(out_channels)
        self.pool = nn.MaxPool2D(2) if pool else None

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x)))
        return x if self.pool is None else self.pool(x)


class Net(nn.Layer):
    def __init__(self, width, num_classes=10):
        super().__init__()
        blocks = []
        channels = 3
        for stage in range(4):
            out = width * 2**stage
            blocks += [ConvBlock(channels, out), ConvBlock(out, out, pool=True)]
            channels = out
        self.features = nn.Sequential(*blocks)
        self.classifier = nn.Linear(channels * 2 * 2, num_classes)

    def forward(self, x):
        x = self.features(x)
        return self.classifier(paddle.flatten(x, 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--lr", type=float, default=0.1)
    args = parser.parse_args()

    transform = transforms.Compose(
        [
            transforms.RandomCrop(32, padding=4),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize([0.491, 0.482, 0.447], [0.247, 0.243, 0.262]),
        ]
    )
    train = DataLoader(
        Cifar10(mode="train", transform=transform), batch_size=args.batch_size, shuffle=True, drop_last=True
    )
    model = Net(args.width)
    schedule = paddle.optimizer.lr.CosineAnnealingDecay(args.lr, T_max=args.epochs * len(train))
    optimizer = paddle.optimizer.Momentum(
        learning_rate=schedule, momentum=0.9, parameters=model.parameters(), weight_decay=5e-4
    )
    scaler = paddle.amp.GradScaler(init_loss_scaling=1024)

    for epoch in range(args.epochs):
        model.train()
        for step, (images, labels) in enumerate(train):
            with paddle.amp.auto_cast(level="O1"):
                loss = F.cross_entropy(model(images), labels.flatten())
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.clear_grad()
            schedule.step()
            if step % 50 == 0:
                print(f"epoch {epoch} step {step} loss {float(loss):.4f}")


if __name__ == "__main__":
    main()
