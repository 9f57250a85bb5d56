import paddle
from paddle.vision.models import resnet50

paddle.set_device('gpu')
model = resnet50(pretrained=False, num_classes=100)
optimizer = paddle.optimizer.Momentum(0.1, 0.9, parameters=model.parameters(), weight_decay=5e-4, use_nesterov=True)
scaler = paddle.amp.GradScaler(init_loss_scaling=1024)
loss_fn = paddle.nn.CrossEntropyLoss()


def run(iters):
    for it in range(iters):
        data = paddle.rand([64, 3, 224, 224])
        label = paddle.randint(0, 100, [64, 1])
        with paddle.amp.auto_cast(custom_white_list={'elementwise_add'}, level='O1'):
            out = model(data)
            loss = loss_fn(out, label)
        scaled = scaler.scale(loss)
        scaled.backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.clear_grad(set_to_zero=False)


run(100)
