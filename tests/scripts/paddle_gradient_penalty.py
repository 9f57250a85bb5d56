import argparse
import numpy as np
import paddle
from paddle import nn, autograd

parser = argparse.ArgumentParser()
parser.add_argument("--z", type=int, default=128)
parser.add_argument("--critic-iters", type=int, default=2)
parser.add_argument("--lam", type=float, default=10.)
parser.add_argument("--bs", type=int, default=64)
cfg = parser.parse_args()


class G(nn.Layer):
    def __init__(self, z, f=64):
        super().__init__()
        self.fc = nn.Linear(z, 4 * f * 16)
        self.f = f
        self.net = nn.Sequential(
            nn.BatchNorm2D(4 * f), nn.ReLU(),
            nn.Conv2DTranspose(4 * f, 2 * f, 5, 2, 2, output_padding=1), nn.BatchNorm2D(2 * f), nn.ReLU(),
            nn.Conv2DTranspose(2 * f, f, 5, 2, 2, output_padding=1), nn.BatchNorm2D(f), nn.ReLU(),
            nn.Conv2DTranspose(f, 1, 5, 2, 2, output_padding=1), nn.Tanh())

    def forward(self, z):
        return self.net(self.fc(z).reshape([-1, 4 * self.f, 4, 4]))


class D(nn.Layer):
    def __init__(self, f=64):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2D(1, f, 5, 2, 2), nn.LeakyReLU(0.2), nn.Conv2D(f, 2 * f, 5, 2, 2), nn.LeakyReLU(0.2), nn.Conv2D(2 * f, 4 * f, 5, 2, 2), nn.LeakyReLU(0.2))
        self.fc = nn.Linear(4 * f * 16, 1)

    def forward(self, x):
        return self.fc(self.net(x).reshape([x.shape[0], -1]))


def penalty(d, real, fake):
    a = paddle.rand([real.shape[0], 1, 1, 1])
    inter = a * real + (1 - a) * fake
    inter.stop_gradient = False
    out = d(inter)
    g = paddle.grad(outputs=out, inputs=inter, grad_outputs=paddle.ones_like(out), create_graph=True, retain_graph=True)[0]
    g = g.reshape([g.shape[0], -1])
    return ((g.norm(2, axis=1) - 1) ** 2).mean()


gen, critic = G(cfg.z), D()
og = paddle.optimizer.Adam(1e-4, beta1=0.5, beta2=0.9, parameters=gen.parameters())
od = paddle.optimizer.Adam(1e-4, beta1=0.5, beta2=0.9, parameters=critic.parameters())


def data():
    while True:
        yield paddle.to_tensor(np.random.rand(cfg.bs, 1, 32, 32).astype("float32") * 2 - 1)


it = data()
for step in range(20000):
    for _ in range(cfg.critic_iters):
        real = next(it)
        with paddle.no_grad():
            fake = gen(paddle.randn([cfg.bs, cfg.z]))
        loss_d = critic(fake).mean() - critic(real).mean() + cfg.lam * penalty(critic, real, fake)
        od.clear_grad()
        loss_d.backward()
        od.step()
    loss_g = -critic(gen(paddle.randn([cfg.bs, cfg.z]))).mean()
    og.clear_grad()
    loss_g.backward()
    og.step()
