import numpy as np

rng = np.random.default_rng(0)
X, y = rng.normal(size=(4000, 30)), rng.integers(0, 2, size=4000)
w, b = np.zeros(30), np.zeros(1)
for epoch in range(200):
    z = X @ w + b
    p = 1 / (1 + np.exp(-z))
    g = p - y
    w -= 0.1 * (X.T @ g) / len(y)
    b -= 0.1 * g.mean()
print(w, b)
