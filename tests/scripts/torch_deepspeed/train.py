import argparse

import deepspeed
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument('--local_rank', type=int, default=-1)
parser = deepspeed.add_config_arguments(parser)
args = parser.parse_args(['--deepspeed', '--deepspeed_config', 'ds_config.json'])


class Net(nn.Module):
    def __init__(self, width=2048, depth=6):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.out = nn.Linear(width, 100)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.out(x)


model = Net()
engine, optimizer, _, _ = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters())
for step in range(20):
    x = torch.randn(32, 2048, dtype=torch.half, device=engine.device)
    y = torch.randint(0, 100, (32,), device=engine.device)
    loss = nn.functional.cross_entropy(engine(x).float(), y)
    engine.backward(loss)
    engine.step()
