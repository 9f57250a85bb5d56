import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.BatchNorm2d(c), nn.ReLU(inplace=True), nn.Conv2d(c, c, 3, padding=1))

    def forward(self, x):
        return x + self.body(x)


class Net(nn.Module):
    def __init__(self, c=96, n=8):
        super().__init__()
        self.stem = nn.Conv2d(3, c, 3, padding=1)
        self.blocks = nn.ModuleList([Residual(c) for _ in range(n)])
        self.tail = nn.Sequential(*[Residual(c) for _ in range(4)])
        self.fc = nn.Linear(c, 10)

    def forward(self, x):
        x = self.stem(x)
        for b in self.blocks:
            x = checkpoint(b, x, use_reentrant=False)
        x = checkpoint_sequential(self.tail, 2, x, use_reentrant=False)
        return self.fc(x.mean((2, 3)))


net = Net().cuda()
opt = torch.optim.NAdam(net.parameters(), lr=1e-3)
for _ in range(10):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(torch.randn(10, 3, 64, 64).cuda()), torch.randint(0, 10, (10,)).cuda())
    loss.backward()
    opt.step()
