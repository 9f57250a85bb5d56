import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision import datasets, models, transforms


class ContrastiveViews:
    def __init__(self, base, n_views=2):
        self.base, self.n_views = base, n_views

    def __call__(self, x):
        return [self.base(x) for _ in range(self.n_views)]


def augment(size, s=1):
    jitter = transforms.ColorJitter(0.8 * s, 0.8 * s, 0.8 * s, 0.2 * s)
    return transforms.Compose([transforms.RandomResizedCrop(size=size), transforms.RandomHorizontalFlip(), transforms.RandomApply([jitter], p=0.8),
                               transforms.RandomGrayscale(p=0.2), transforms.GaussianBlur(kernel_size=int(0.1 * size)), transforms.ToTensor()])


class SimCLR(nn.Module):
    def __init__(self, out_dim=128):
        super().__init__()
        self.backbone = models.resnet18(weights=None, num_classes=out_dim)
        dim = self.backbone.fc.in_features
        self.backbone.fc = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), self.backbone.fc)

    def forward(self, x):
        return self.backbone(x)


def info_nce(features, n_views=2, temperature=0.07):
    b = features.shape[0] // n_views
    labels = torch.cat([torch.arange(b) for _ in range(n_views)], dim=0).to(features.device)
    labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
    features = F.normalize(features, dim=1)
    sim = torch.matmul(features, features.T) / temperature
    return -(labels * F.log_softmax(sim, dim=1)).sum(1).mean()


ds = datasets.STL10('data', split='unlabeled', transform=ContrastiveViews(augment(96)), download=True)
loader = torch.utils.data.DataLoader(ds, batch_size=60, shuffle=True, drop_last=True)
model = SimCLR().cuda()
opt = torch.optim.Adam(model.parameters(), 3e-4, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=len(loader), eta_min=0, last_epoch=-1)
for epoch in range(100):
    for images, _ in loader:
        images = torch.cat(images, dim=0).cuda()
        loss = info_nce(model(images))
        opt.zero_grad()
        loss.backward()
        opt.step()
    sched.step()
