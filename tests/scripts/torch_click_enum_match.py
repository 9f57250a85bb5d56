import torch, numpy as np
from torch import nn
import torch.nn.functional as F

import enum, click
from functools import cached_property, singledispatchmethod
class Kind(enum.Enum): MLP = 'mlp'; CNN = 'cnn'
def build(kind, width):
    match kind:
        case Kind.MLP: return nn.Sequential(nn.Flatten(), nn.Linear(768, width), nn.ReLU(), nn.Linear(width, 10))
        case Kind.CNN: return nn.Sequential(nn.Conv2d(3, width, 3), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(width, 10))
class Experiment:
    def __init__(self, **kw): self.__dict__ |= kw
    @cached_property
    def model(self): return build(Kind(self.kind), self.width)
    @property
    def loader(self): return [(torch.randn(self.bs, 3, 16, 16), torch.randint(10, (self.bs,))) for _ in range(self.n)]
    def run(self):
        opt = {'adamw': torch.optim.AdamW, 'rms': torch.optim.RMSprop}[self.opt](self.model.parameters(), lr=self.lr)
        for _, (x, y) in zip(range(self.steps), ((x, y) for _ in iter(int, 1) for x, y in self.loader)):
            opt.zero_grad(); (l := nn.functional.cross_entropy(self.model(x), y)).backward(); opt.step()
@click.command()
@click.option('--kind', type=click.Choice([k.value for k in Kind]), default='cnn')
@click.option('--width', default=48)
@click.option('--bs', default=20, show_default=True)
@click.option('--opt', default='rms')
def main(**kw): Experiment(lr=1e-3, steps=50, n=4, **kw).run()
if __name__ == '__main__': main()
