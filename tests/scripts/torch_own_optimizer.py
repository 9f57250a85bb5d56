import torch
from torch.optim import Optimizer


class Lion(Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state['exp_avg'] = torch.zeros_like(p)
                exp_avg = state['exp_avg']
                beta1, beta2 = group['betas']
                p.data.mul_(1 - group['lr'] * group['weight_decay'])
                update = exp_avg.clone().mul_(beta1).add(p.grad, alpha=1 - beta1).sign_()
                p.add_(update, alpha=-group['lr'])
                exp_avg.mul_(beta2).add_(p.grad, alpha=1 - beta2)


net = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.Softplus(), torch.nn.Linear(512, 256)).cuda()
opt = Lion(net.parameters(), lr=1e-4, weight_decay=1e-2)
for _ in range(20):
    x = torch.randn(80, 256).cuda()
    loss = (net(x) - x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
