"""One optimiser a parameter, which steps as soon as the backward pass has given the parameter its gradient."""

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.data import DataLoader, TensorDataset

model = nn.Sequential(nn.Linear(64, 256), nn.BatchNorm1d(256), nn.GELU(), nn.Linear(256, 8))
norms = [layer for layer in model if isinstance(layer, _BatchNorm)]
for norm in norms:
    nn.init.constant_(norm.weight, 0.5)

optimizers = {parameter: torch.optim.AdamW([parameter], lr=1e-3) for parameter in model.parameters()}


def step(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()


for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(step)

data = TensorDataset(torch.randn(3200, 64), torch.randint(0, 8, (3200,)))
loader = DataLoader(data, batch_size=32, shuffle=True)
for epoch in range(2):
    for x, y in loader:
        nn.functional.cross_entropy(model(x), y).backward()
