import paddle
import paddle.nn as nn
import paddle.nn.functional as F
from paddle.vision.datasets import MNIST
from paddle.vision.transforms import ToTensor


class MyNet(nn.Layer):
    def __init__(self, num_classes=10):
        super(MyNet, self).__init__()
        self.conv1 = nn.Conv2D(1, 32, kernel_size=3, padding='same')
        self.pool1 = nn.MaxPool2D(2, 2)
        self.conv2 = nn.Conv2D(32, 64, 3)
        self.bn2 = nn.BatchNorm2D(64)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Linear(64 * 12 * 12, 128)
        self.fc2 = nn.Linear(128, num_classes)

    def forward(self, x):
        x = self.pool1(F.relu(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        x = self.flatten(x)
        x = F.relu(self.fc1(x))
        return self.fc2(x)


def train(model, epochs=2):
    loader = paddle.io.DataLoader(MNIST(mode='train', transform=ToTensor()), batch_size=128, shuffle=True)
    opt = paddle.optimizer.Adam(learning_rate=1e-3, parameters=model.parameters())
    model.train()
    for epoch in range(epochs):
        for batch_id, data in enumerate(loader()):
            x_data, y_data = data[0], data[1]
            predicts = model(x_data)
            loss = F.cross_entropy(predicts, y_data)
            acc = paddle.metric.accuracy(predicts, y_data)
            loss.backward()
            if batch_id % 100 == 0:
                print(epoch, batch_id, loss.numpy(), acc.numpy())
            opt.step()
            opt.clear_grad()


if __name__ == '__main__':
    train(MyNet())
