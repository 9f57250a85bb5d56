import torch
from torch import nn

model = nn.Sequential(nn.Conv1d(2, 32, 7, padding=3), nn.ReLU(), nn.MaxPool1d(4), nn.Conv1d(32, 64, 7, padding=3), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(64, 6)).cuda()
data = torch.utils.data.TensorDataset(torch.randn(1600, 2, 1024), torch.randint(0, 6, (1600,)))
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
accum, epochs = 5, 3
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1, total_steps=epochs * len(loader) // accum)
for epoch in range(epochs):
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda()) / accum
        loss.backward()
        if (i + 1) % accum == 0:
            opt.step()
            sched.step()
            opt.zero_grad()
