import numpy as np


class TwoLayerNet:
    def __init__(self, input_size, hidden_size, output_size, std=0.01):
        self.params = {}
        self.params['W1'] = std * np.random.randn(input_size, hidden_size)
        self.params['b1'] = np.zeros(hidden_size)
        self.params['W2'] = std * np.random.randn(hidden_size, output_size)
        self.params['b2'] = np.zeros(output_size)

    def loss_and_grads(self, x, t):
        p = self.params
        h = np.maximum(0, np.dot(x, p['W1']) + p['b1'])
        s = np.dot(h, p['W2']) + p['b2']
        s = s - np.max(s, axis=1, keepdims=True)
        prob = np.exp(s) / np.sum(np.exp(s), axis=1, keepdims=True)
        n = x.shape[0]
        loss = -np.sum(np.log(prob[np.arange(n), t] + 1e-7)) / n
        d = prob.copy()
        d[np.arange(n), t] -= 1
        d /= n
        grads = {'W2': np.dot(h.T, d), 'b2': np.sum(d, axis=0)}
        dh = np.dot(d, p['W2'].T) * (h > 0)
        grads['W1'] = np.dot(x.T, dh)
        grads['b1'] = np.sum(dh, axis=0)
        return loss, grads


x_train = np.random.rand(10000, 784).astype(np.float32)
t_train = np.random.randint(0, 10, 10000)
network = TwoLayerNet(784, 100, 10)
batch_size, learning_rate = 100, 0.1
for i in range(1000):
    mask = np.random.choice(x_train.shape[0], batch_size)
    loss, grad = network.loss_and_grads(x_train[mask], t_train[mask])
    for key in ('W1', 'b1', 'W2', 'b2'):
        network.params[key] -= learning_rate * grad[key]
