import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F
from paddle.distribution import Normal


class PointEnv:
    """a vectorised continuous control toy"""

    def __init__(self, n, obs_dim=24, act_dim=6):
        self.n, self.obs_dim, self.act_dim = n, obs_dim, act_dim

    def reset(self):
        self.s = np.random.randn(self.n, self.obs_dim).astype("float32")
        return self.s

    def step(self, a):
        self.s = self.s + 0.1 * np.pad(a, [(0, 0), (0, self.obs_dim - self.act_dim)]).astype("float32")
        return self.s, -np.abs(self.s).mean(1).astype("float32"), (np.random.rand(self.n) < 0.01).astype("float32"), {}


def layer_init(layer, std=np.sqrt(2)):
    nn.initializer.Orthogonal(gain=float(std))(layer.weight)
    return layer


class Agent(nn.Layer):
    def __init__(self, o, a, h=256):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(o, h)), nn.Tanh(), layer_init(nn.Linear(h, h)), nn.Tanh(), layer_init(nn.Linear(h, 1), 1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(o, h)), nn.Tanh(), layer_init(nn.Linear(h, h)), nn.Tanh(), layer_init(nn.Linear(h, a), 0.01))
        self.logstd = self.create_parameter([1, a], default_initializer=nn.initializer.Constant(0.0))

    def get_value(self, x):
        return self.critic(x)

    def act(self, x, action=None):
        mu = self.actor(x)
        dist = Normal(mu, paddle.exp(self.logstd.expand_as(mu)))
        if action is None:
            action = dist.sample()
        return action, dist.log_prob(action).sum(1), dist.entropy().sum(1), self.critic(x).squeeze(-1)


N_ENVS, N_STEPS, EPOCHS, MB = 16, 256, 10, 32
GAMMA, LAM, CLIP, VF, ENT = 0.99, 0.95, 0.2, 0.5, 0.0
env = PointEnv(N_ENVS)
agent = Agent(env.obs_dim, env.act_dim)
opt = paddle.optimizer.Adam(3e-4, epsilon=1e-5, parameters=agent.parameters(), grad_clip=nn.ClipGradByGlobalNorm(0.5))
obs = np.zeros((N_STEPS, N_ENVS, env.obs_dim), "float32")
actions = np.zeros((N_STEPS, N_ENVS, env.act_dim), "float32")
logps, rewards, dones, values = (np.zeros((N_STEPS, N_ENVS), "float32") for _ in range(4))
next_obs, next_done = env.reset(), np.zeros(N_ENVS, "float32")
for update in range(1, 489):
    for t in range(N_STEPS):
        obs[t], dones[t] = next_obs, next_done
        with paddle.no_grad():
            a, lp, _, v = agent.act(paddle.to_tensor(next_obs))
        actions[t], logps[t], values[t] = a.numpy(), lp.numpy(), v.numpy()
        next_obs, rewards[t], next_done, _ = env.step(a.numpy())
    with paddle.no_grad():
        nv = agent.get_value(paddle.to_tensor(next_obs)).numpy().reshape(-1)
    adv = np.zeros_like(rewards)
    last = 0
    for t in reversed(range(N_STEPS)):
        nonterm = 1.0 - (next_done if t == N_STEPS - 1 else dones[t + 1])
        nval = nv if t == N_STEPS - 1 else values[t + 1]
        delta = rewards[t] + GAMMA * nval * nonterm - values[t]
        adv[t] = last = delta + GAMMA * LAM * nonterm * last
    ret = adv + values
    b_obs, b_act = obs.reshape(-1, env.obs_dim), actions.reshape(-1, env.act_dim)
    b_lp, b_adv, b_ret, b_val = logps.reshape(-1), adv.reshape(-1), ret.reshape(-1), values.reshape(-1)
    inds = np.arange(N_ENVS * N_STEPS)
    size = len(inds) // MB
    for epoch in range(EPOCHS):
        np.random.shuffle(inds)
        for start in range(0, len(inds), size):
            mb = inds[start:start + size]
            _, nlp, ent, val = agent.act(paddle.to_tensor(b_obs[mb]), paddle.to_tensor(b_act[mb]))
            ratio = paddle.exp(nlp - paddle.to_tensor(b_lp[mb]))
            ad = paddle.to_tensor(b_adv[mb])
            ad = (ad - ad.mean()) / (ad.std() + 1e-8)
            pg = paddle.maximum(-ad * ratio, -ad * paddle.clip(ratio, 1 - CLIP, 1 + CLIP)).mean()
            vl = 0.5 * F.mse_loss(val, paddle.to_tensor(b_ret[mb]))
            loss = pg - ENT * ent.mean() + VF * vl
            opt.clear_grad()
            loss.backward()
            opt.step()
