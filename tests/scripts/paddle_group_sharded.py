import paddle
from paddle.distributed import fleet
from paddle.distributed.sharding import group_sharded_parallel

fleet.init(is_collective=True)
model = paddle.nn.Sequential(*[layer for _ in range(4) for layer in (paddle.nn.Linear(2048, 2048), paddle.nn.ReLU())])
optimizer = paddle.optimizer.AdamW(learning_rate=0.001, parameters=model.parameters(), weight_decay=1e-5)
model, optimizer, scaler = group_sharded_parallel(model, optimizer, 'os_g')
for i in range(10):
    img = paddle.randn([64, 2048])
    loss = paddle.mean(model(img) ** 2)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
