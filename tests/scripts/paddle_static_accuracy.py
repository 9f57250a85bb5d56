import numpy as np
import paddle
import paddle.static as static
import paddle.nn.functional as F

paddle.enable_static()
BATCH = 128


def convnet(img):
    x = F.relu(paddle.nn.Conv2D(1, 32, 5)(img))
    x = F.max_pool2d(x, 2, 2)
    x = paddle.nn.BatchNorm2D(32)(x)
    x = F.relu(paddle.nn.Conv2D(32, 64, 5)(x))
    x = F.max_pool2d(x, 2, 2)
    x = paddle.flatten(x, start_axis=1)
    x = static.nn.fc(x, size=512, activation="relu")
    x = F.dropout(x, 0.3)
    return static.nn.fc(x, size=10)


main_prog, startup = static.Program(), static.Program()
with static.program_guard(main_prog, startup):
    img = static.data("img", [None, 1, 28, 28], "float32")
    label = static.data("label", [None, 1], "int64")
    logits = convnet(img)
    loss = paddle.mean(F.cross_entropy(logits, label))
    acc = static.accuracy(input=F.softmax(logits), label=label, k=1)
    opt = paddle.optimizer.Adam(learning_rate=1e-3)
    opt.minimize(loss)

place = paddle.CUDAPlace(0) if paddle.is_compiled_with_cuda() else paddle.CPUPlace()
exe = static.Executor(place)
exe.run(startup)


def reader(n):
    rng = np.random.RandomState(0)
    for _ in range(n):
        yield rng.rand(BATCH, 1, 28, 28).astype("float32"), rng.randint(0, 10, (BATCH, 1)).astype("int64")


for epoch in range(5):
    for i, (x, y) in enumerate(reader(100)):
        l, a = exe.run(main_prog, feed={"img": x, "label": y}, fetch_list=[loss, acc])
        if i % 20 == 0:
            print(epoch, i, float(l), float(a))
