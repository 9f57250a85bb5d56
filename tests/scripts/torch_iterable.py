import torch
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __init__(self, dim, limit):
        super().__init__()
        self.dim, self.limit = dim, limit

    def __iter__(self):
        for i in range(self.limit):
            x = torch.randn(self.dim)
            yield x, (x.sum() > 0).float()


model = torch.nn.Sequential(torch.nn.Linear(1000, 300), torch.nn.ELU(), torch.nn.Linear(300, 1)).to('cuda')
opt = torch.optim.RAdam(model.parameters())
loader = DataLoader(Stream(1000, 10 ** 6), batch_size=250)
for i, (x, y) in enumerate(loader):
    x, y = x.to('cuda'), y.to('cuda')
    loss = torch.nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(-1), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i > 1000:
        break
