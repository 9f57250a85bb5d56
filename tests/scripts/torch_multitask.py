import torch
from torch import nn


class MultiTask(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(128, 512), nn.BatchNorm1d(512), nn.PReLU(), nn.Dropout(p=0.3), nn.Linear(512, 256), nn.PReLU(256))
        self.heads = nn.ModuleDict({name: nn.Linear(256, n) for name, n in tasks.items()})
        self.log_vars = nn.ParameterDict({name: nn.Parameter(torch.zeros(1)) for name in tasks})

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}


tasks = {'age': 1, 'kind': 12, 'mood': 5}
model = MultiTask(tasks).to(device='cuda')
opt = torch.optim.AdamW([{'params': model.trunk.parameters(), 'lr': 1e-4}, {'params': model.heads.parameters()}, {'params': model.log_vars.parameters(), 'weight_decay': 0.0}], lr=1e-3)
for step in range(100):
    x = torch.randn(300, 128).to('cuda')
    out = model(x)
    total = 0
    for name, n in tasks.items():
        y = torch.randn(300, 1, device='cuda') if n == 1 else torch.randint(n, (300,), device='cuda')
        loss = nn.functional.smooth_l1_loss(out[name], y) if n == 1 else nn.functional.cross_entropy(out[name], y)
        total = total + torch.exp(-model.log_vars[name]) * loss + model.log_vars[name]
    opt.zero_grad()
    total.backward()
    opt.step()
