import numpy as np
import paddle
from paddle import nn


class DoubleConv(nn.Layer):
    def __init__(self, i, o):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2D(i, o, 3, padding=1), nn.BatchNorm2D(o), nn.ReLU(), nn.Conv2D(o, o, 3, padding=1), nn.BatchNorm2D(o), nn.ReLU())

    def forward(self, x):
        return self.net(x)


class UNet(nn.Layer):
    def __init__(self, classes, base=32):
        super().__init__()
        c = [base * 2 ** i for i in range(4)]
        self.inc = DoubleConv(3, c[0])
        self.downs = nn.LayerList([DoubleConv(a, b) for a, b in zip(c, c[1:])])
        self.ups = nn.LayerList([nn.Conv2DTranspose(b, a, 2, stride=2) for a, b in reversed(list(zip(c, c[1:])))])
        self.decs = nn.LayerList([DoubleConv(2 * a, a) for a in reversed(c[:-1])])
        self.pool = nn.MaxPool2D(2)
        self.out = nn.Conv2D(c[0], classes, 1)

    def forward(self, x):
        skips = [self.inc(x)]
        for d in self.downs:
            skips.append(d(self.pool(skips[-1])))
        x = skips.pop()
        for up, dec in zip(self.ups, self.decs):
            x = dec(paddle.concat([up(x), skips.pop()], axis=1))
        return self.out(x)


class Pets(paddle.io.Dataset):
    def __init__(self, n, size):
        self.n, self.size = n, size

    def __getitem__(self, i):
        return np.random.rand(3, *self.size).astype('float32'), np.random.randint(0, 4, self.size).astype('int64')

    def __len__(self):
        return self.n


net = UNet(4)
model = paddle.Model(net)
model.prepare(paddle.optimizer.RMSProp(0.001, momentum=0.9, parameters=net.parameters()), nn.CrossEntropyLoss(axis=1))
model.fit(Pets(500, (160, 160)), epochs=15, batch_size=8, verbose=1)
