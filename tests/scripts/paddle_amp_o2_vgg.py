import paddle
import paddle.nn as nn

model = paddle.vision.models.vgg16(num_classes=10)
opt = paddle.optimizer.AdamW(learning_rate=1e-4, parameters=model.parameters(), multi_precision=True)
model, opt = paddle.amp.decorate(models=model, optimizers=opt, level='O2', dtype='float16')
scaler = paddle.amp.GradScaler(init_loss_scaling=2.**16)
criterion = nn.CrossEntropyLoss()
for step in range(50):
    x = paddle.randn([16, 3, 224, 224])
    y = paddle.randint(0, 10, [16])
    with paddle.amp.auto_cast(level='O2'):
        loss = criterion(model(x), y)
    scaler.scale(loss).backward()
    scaler.minimize(opt, loss)
    opt.clear_grad()
