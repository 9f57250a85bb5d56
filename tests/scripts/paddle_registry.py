from dataclasses import dataclass

import paddle
from paddle import nn

REGISTRY = {}


def register(name):
    def wrap(cls):
        REGISTRY[name] = cls
        return cls
    return wrap


@dataclass
class Config:
    model: str = 'res'
    width: int = 64
    depth: int = 3
    batch: int = 40


class Base(nn.Layer):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.build()

    def build(self):
        raise NotImplementedError


@register('res')
class Res(Base):
    def build(self):
        w = self.cfg.width
        self.stem = nn.Conv2D(3, w, 7, 2, 3)
        self.body = nn.LayerList()
        for i in range(self.cfg.depth):
            self.body.append(nn.Sequential(nn.GroupNorm(8, w), nn.Silu(), nn.Conv2D(w, w, 3, padding=1)))
        self.head = nn.Linear(w, 10)

    def forward(self, x):
        x = self.stem(x)
        for m in self.body:
            x = x + m(x)
        return self.head(paddle.mean(x, axis=[2, 3]))


cfg = Config()
net = REGISTRY[cfg.model](cfg)
opt = paddle.optimizer.NAdam(learning_rate=2e-3, parameters=net.parameters())
ce = nn.CrossEntropyLoss(label_smoothing=0.1)
for _ in range(8):
    loss = ce(net(paddle.rand([cfg.batch, 3, 96, 96])), paddle.randint(0, 10, [cfg.batch]))
    loss.backward()
    opt.step()
    opt.clear_grad()
