import paddle
from paddle import nn

ACC = 4
model = nn.Sequential(nn.Linear(512, 1024), nn.LayerNorm(1024), nn.GELU(), nn.Linear(1024, 512), nn.Tanh(), nn.Linear(512, 10))
sgd = paddle.optimizer.SGD(learning_rate=0.05, parameters=model.parameters())
dataset = paddle.io.TensorDataset([paddle.randn([4096, 512]), paddle.randint(0, 10, [4096])])
loader = paddle.io.DataLoader(dataset, batch_size=32, shuffle=True)
for epoch in range(2):
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y) / ACC
        loss.backward()
        if (i + 1) % ACC == 0:
            sgd.step()
            sgd.clear_grad()
