import paddle
from paddle import nn
from paddle.vision.datasets import FashionMNIST
from paddle.vision.transforms import Compose, Normalize, Resize, Transpose

Z = 100


class Generator(nn.Layer):
    def __init__(self):
        super().__init__()
        self.gen = nn.Sequential(
            nn.Conv2DTranspose(Z, 256, 4, 1, 0, bias_attr=False), nn.BatchNorm2D(256), nn.ReLU(),
            nn.Conv2DTranspose(256, 128, 4, 2, 1, bias_attr=False), nn.BatchNorm2D(128), nn.ReLU(),
            nn.Conv2DTranspose(128, 64, 4, 2, 1, bias_attr=False), nn.BatchNorm2D(64), nn.ReLU(),
            nn.Conv2DTranspose(64, 1, 4, 2, 1, bias_attr=False), nn.Tanh())

    def forward(self, z):
        return self.gen(z)


class Discriminator(nn.Layer):
    def __init__(self):
        super().__init__()
        self.dis = nn.Sequential(
            nn.Conv2D(1, 64, 4, 2, 1), nn.LeakyReLU(0.2),
            nn.Conv2D(64, 128, 4, 2, 1), nn.BatchNorm2D(128), nn.LeakyReLU(0.2),
            nn.Conv2D(128, 256, 4, 2, 1), nn.BatchNorm2D(256), nn.LeakyReLU(0.2),
            nn.Conv2D(256, 1, 4, 1, 0), nn.Sigmoid())

    def forward(self, x):
        return self.dis(x).reshape([-1])


netG, netD = Generator(), Discriminator()
optD = paddle.optimizer.Adam(2e-4, beta1=0.5, parameters=netD.parameters())
optG = paddle.optimizer.Adam(2e-4, beta1=0.5, parameters=netG.parameters())
bce = nn.BCELoss()
data = FashionMNIST(mode='train', transform=Compose([Resize((32, 32)), Transpose(), Normalize([127.5], [127.5])]))
for epoch in range(5):
    for real, _ in paddle.io.DataLoader(data, batch_size=64, shuffle=True, drop_last=True):
        optD.clear_grad()
        noise = paddle.randn([real.shape[0], Z, 1, 1])
        fake = netG(noise)
        loss_d = bce(netD(real), paddle.ones([real.shape[0]])) + bce(netD(fake.detach()), paddle.zeros([real.shape[0]]))
        loss_d.backward()
        optD.step()
        optG.clear_grad()
        loss_g = bce(netD(fake), paddle.ones([real.shape[0]]))
        loss_g.backward()
        optG.step()
