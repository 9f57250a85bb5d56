import numpy as np
import paddle

paddle.enable_static()
main, startup = paddle.static.Program(), paddle.static.Program()
with paddle.static.program_guard(main, startup):
    image = paddle.static.data(name='image', shape=[None, 784], dtype='float32')
    label = paddle.static.data(name='label', shape=[None, 1], dtype='int64')
    hidden = paddle.static.nn.fc(image, 200, activation='relu')
    pred = paddle.static.nn.fc(hidden, 10)
    loss = paddle.mean(paddle.nn.functional.cross_entropy(pred, label))
    paddle.optimizer.Adam(learning_rate=1e-3).minimize(loss)
exe = paddle.static.Executor(paddle.CPUPlace())
exe.run(startup)
for i in range(10):
    feed = {'image': np.random.rand(64, 784).astype('float32'), 'label': np.random.randint(0, 10, (64, 1)).astype('int64')}
    out, = exe.run(main, feed=feed, fetch_list=[loss])
