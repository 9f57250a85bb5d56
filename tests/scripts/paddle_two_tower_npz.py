"""Two tower retrieval with in-batch negatives (paddle)."""
from dataclasses import dataclass, field
from typing import Dict, List

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional as F


@dataclass
class Config:
    user_fields: Dict[str, int] = field(default_factory=lambda: {"user_id": 200_000, "age": 10, "gender": 3, "city": 400})
    item_fields: Dict[str, int] = field(default_factory=lambda: {"item_id": 80_000, "brand": 5_000, "category": 300})
    emb_dim: int = 32
    hidden: List[int] = field(default_factory=lambda: [256, 128])
    out_dim: int = 64
    temperature: float = 0.07
    batch_size: int = 1024
    lr: float = 1e-3
    epochs: int = 3
    npz: str = "interactions.npz"


class Tower(nn.Layer):
    def __init__(self, fields, cfg):
        super().__init__()
        self.names = list(fields)
        self.emb = nn.LayerDict({name: nn.Embedding(n, cfg.emb_dim) for name, n in fields.items()})
        dims = [len(fields) * cfg.emb_dim, *cfg.hidden]
        blocks = []
        for a, b in zip(dims[:-1], dims[1:]):
            blocks.extend([nn.Linear(a, b), nn.LayerNorm(b), nn.GELU(), nn.Dropout(0.1)])
        self.mlp = nn.Sequential(*blocks, nn.Linear(dims[-1], cfg.out_dim))

    def forward(self, x):
        parts = [self.emb[name](x[:, i]) for i, name in enumerate(self.names)]
        return F.normalize(self.mlp(paddle.concat(parts, axis=-1)), axis=-1)


class TwoTower(nn.Layer):
    def __init__(self, cfg):
        super().__init__()
        self.user = Tower(cfg.user_fields, cfg)
        self.item = Tower(cfg.item_fields, cfg)
        self.t = cfg.temperature

    def forward(self, u, i):
        zu, zi = self.user(u), self.item(i)
        logits = zu @ zi.t() / self.t
        target = paddle.arange(logits.shape[0])
        return (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2


class Pairs(paddle.io.Dataset):
    def __init__(self, cfg):
        blob = np.load(cfg.npz)
        self.users = np.stack([blob[k] for k in cfg.user_fields], axis=1).astype(np.int64)
        self.items = np.stack([blob[k] for k in cfg.item_fields], axis=1).astype(np.int64)

    def __getitem__(self, i):
        return self.users[i], self.items[i]

    def __len__(self):
        return self.users.shape[0]


def main(cfg=Config()):
    device = "gpu" if paddle.is_compiled_with_cuda() else "cpu"
    paddle.set_device(device)
    loader = paddle.io.DataLoader(Pairs(cfg), batch_size=cfg.batch_size, shuffle=True, drop_last=True)
    net = TwoTower(cfg)
    steps = cfg.epochs * len(loader)
    lr = paddle.optimizer.lr.LinearWarmup(paddle.optimizer.lr.CosineAnnealingDecay(cfg.lr, steps), 100, 0.0, cfg.lr)
    opt = paddle.optimizer.AdamW(lr, parameters=net.parameters(), weight_decay=0.01,
                                 apply_decay_param_fun=lambda n: "norm" not in n)
    for ep in range(cfg.epochs):
        for it, (u, i) in enumerate(loader()):
            loss = net(u, i)
            loss.backward()
            opt.step()
            lr.step()
            opt.clear_gradients()
            if it % 50 == 0:
                print(ep, it, loss.item())
        paddle.save(net.state_dict(), f"twotower_{ep}.pdparams")


if __name__ == "__main__":
    main()
