import paddle
from paddle.text import UCIHousing

train = UCIHousing(mode='train')


class Regressor(paddle.nn.Layer):
    def __init__(self):
        super(Regressor, self).__init__()
        self.fc = paddle.nn.Linear(13, 1)

    def forward(self, inputs):
        return self.fc(inputs)


model = Regressor()
opt = paddle.optimizer.SGD(0.01, model.parameters())
for epoch in range(10):
    for x, y in paddle.io.DataLoader(train, batch_size=10, shuffle=True):
        cost = paddle.nn.functional.square_error_cost(model(x), label=y)
        avg = paddle.mean(cost)
        avg.backward()
        opt.step()
        opt.clear_grad()
