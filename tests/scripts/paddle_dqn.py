import random
from collections import deque

import numpy as np
import paddle
import paddle.nn as nn


class QNet(nn.Layer):
    def __init__(self, obs, act):
        super().__init__()
        self.fc1, self.fc2, self.out = nn.Linear(obs, 128), nn.Linear(128, 128), nn.Linear(128, act)

    def forward(self, s):
        return self.out(nn.functional.relu(self.fc2(nn.functional.relu(self.fc1(s)))))


class Agent:
    def __init__(self, obs=4, act=2, batch=64):
        self.q, self.target, self.batch = QNet(obs, act), QNet(obs, act), batch
        self.target.set_state_dict(self.q.state_dict())
        self.opt = paddle.optimizer.Adam(1e-3, parameters=self.q.parameters())
        self.memory = deque(maxlen=10000)

    def learn(self):
        s = paddle.to_tensor(np.random.rand(self.batch, 4).astype('float32'))
        a = paddle.to_tensor(np.random.randint(0, 2, (self.batch, 1)))
        r = paddle.to_tensor(np.random.rand(self.batch).astype('float32'))
        with paddle.no_grad():
            best = self.target(s).max(axis=1)
            goal = r + 0.99 * best
        value = paddle.take_along_axis(self.q(s), a, axis=1).squeeze(1)
        loss = nn.functional.mse_loss(value, goal)
        self.opt.clear_grad()
        loss.backward()
        self.opt.step()


agent = Agent()
for episode in range(100):
    for t in range(200):
        action = random.randrange(2)
        agent.memory.append(action)
        agent.learn()
