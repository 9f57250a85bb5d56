import paddle
import paddle.distributed as dist
import paddle.nn as nn


class LinearNet(nn.Layer):
    def __init__(self):
        super().__init__()
        self._linear1 = nn.Linear(1024, 4096)
        self._linear2 = nn.Linear(4096, 10)

    def forward(self, x):
        return self._linear2(nn.functional.relu(self._linear1(x)))


def train():
    dist.init_parallel_env()
    layer = LinearNet()
    dp_layer = paddle.DataParallel(layer)
    loss_fn = nn.MSELoss()
    adam = paddle.optimizer.Adam(learning_rate=0.001, parameters=dp_layer.parameters())
    for i in range(20):
        inputs = paddle.randn([256, 1024], 'float32')
        outputs = dp_layer(inputs)
        labels = paddle.randn([256, 10], 'float32')
        loss = loss_fn(outputs, labels)
        loss.backward()
        adam.step()
        adam.clear_grad()


if __name__ == '__main__':
    dist.spawn(train, nprocs=2)
