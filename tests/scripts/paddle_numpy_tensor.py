import numpy as np
import paddle

x = np.random.rand(1000, 784).astype('float32')
y = np.random.randint(0, 10, (1000,)).astype('int64')
net = paddle.nn.Sequential(paddle.nn.Linear(784, 256), paddle.nn.Sigmoid(), paddle.nn.Linear(256, 10))
opt = paddle.optimizer.Adagrad(0.01, parameters=net.parameters())
bs = 50
for epoch in range(5):
    idx = np.random.permutation(len(x))
    for start in range(0, len(x), bs):
        sel = idx[start:start + bs]
        xb, yb = paddle.to_tensor(x[sel]), paddle.to_tensor(y[sel])
        loss = paddle.nn.functional.cross_entropy(net(xb), yb)
        loss.backward()
        opt.step()
        opt.clear_grad()
