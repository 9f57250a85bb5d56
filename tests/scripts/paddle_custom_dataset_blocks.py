import numpy as np
import paddle
from paddle import nn
from paddle.io import DataLoader, Dataset


class RandomDataset(Dataset):
    def __init__(self, num_samples):
        super().__init__()
        self.num_samples = num_samples

    def __getitem__(self, idx):
        image = np.random.random([3, 64, 64]).astype('float32')
        label = np.random.randint(0, 19, (1, )).astype('int64')
        return image, label

    def __len__(self):
        return self.num_samples


class ConvBNLayer(nn.Layer):
    def __init__(self, cin, cout, stride=1, act='relu'):
        super().__init__()
        self.conv = nn.Conv2D(cin, cout, 3, stride=stride, padding=1, bias_attr=False)
        self.bn = nn.BatchNorm2D(cout)
        self.act = getattr(nn.functional, act) if act else None

    def forward(self, x):
        x = self.bn(self.conv(x))
        return self.act(x) if self.act is not None else x


class Net(nn.Layer):
    def __init__(self, widths=(32, 64, 128), depth=2, classes=20):
        super().__init__()
        blocks, cin = [], 3
        for i, w in enumerate(widths):
            for j in range(depth):
                blocks.append(ConvBNLayer(cin, w, stride=2 if j == 0 else 1))
                cin = w
        self.blocks = nn.LayerList(blocks)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(cin, classes))

    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return self.head(x)


paddle.seed(2021)
net = Net()
loader = DataLoader(RandomDataset(2000), batch_size=32, shuffle=True, num_workers=2)
opt = paddle.optimizer.RMSProp(1e-3, parameters=net.parameters())
for e in range(3):
    for i, (image, label) in enumerate(loader()):
        loss = nn.functional.cross_entropy(net(image), label)
        avg_loss = paddle.mean(loss)
        avg_loss.backward()
        opt.minimize(avg_loss)
        net.clear_gradients()
