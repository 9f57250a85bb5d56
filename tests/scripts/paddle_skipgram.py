import paddle
import paddle.nn.functional as F


class SkipGram(paddle.nn.Layer):
    def __init__(self, vocab_size, embedding_size, init_scale=0.1):
        super().__init__()
        attr = lambda n: paddle.ParamAttr(name=n, initializer=paddle.nn.initializer.Uniform(-init_scale, init_scale))
        self.embedding = paddle.nn.Embedding(vocab_size, embedding_size, weight_attr=attr('in'))
        self.embedding_out = paddle.nn.Embedding(vocab_size, embedding_size, weight_attr=attr('out'))

    def forward(self, center, target, label):
        a, b = self.embedding(center), self.embedding_out(target)
        word_sim = paddle.sum(paddle.multiply(a, b), axis=-1)
        word_sim = paddle.reshape(word_sim, shape=[-1])
        pred = F.sigmoid(word_sim)
        loss = F.binary_cross_entropy(F.sigmoid(word_sim), label)
        return pred, paddle.mean(loss)


model = SkipGram(20000, 200)
adam = paddle.optimizer.Adam(learning_rate=0.001, parameters=model.parameters())
for step in range(200):
    center, target = paddle.randint(0, 20000, [512]), paddle.randint(0, 20000, [512])
    label = paddle.cast(paddle.randint(0, 2, [512]), 'float32')
    pred, loss = model(center, target, label)
    loss.backward()
    adam.step()
    adam.clear_grad()
