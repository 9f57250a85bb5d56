import paddle
from paddle.static import InputSpec


class MLP(paddle.nn.Layer):
    def __init__(self, sizes):
        super().__init__()
        self.layers = paddle.nn.LayerList([paddle.nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])])

    @paddle.jit.to_static
    def forward(self, x):
        for i, l in enumerate(self.layers):
            x = l(x)
            if i + 1 < len(self.layers):
                x = paddle.nn.functional.swish(x)
        return x


net = MLP([256, 1024, 1024, 64])
opt = paddle.optimizer.Adamax(learning_rate=1e-3, parameters=net.parameters())
for i in range(30):
    x = paddle.randn((100, 256))
    loss = paddle.nn.functional.mse_loss(net(x), paddle.randn((100, 64)))
    loss.backward()
    opt.step()
    opt.clear_grad()
paddle.jit.save(net, 'mlp', input_spec=[InputSpec([None, 256], 'float32')])
