"""A two-layer network trained in NumPy on points of two spirals: small, and it really runs on this machine's CPU."""

import argparse
import time

import numpy as np


def spirals(count, rng):
    """Points on two interleaved spirals, lifted to 64 random features, and their class."""
    angle = np.sqrt(rng.random(count)) * 3 * np.pi
    label = rng.integers(0, 2, count)
    sign = np.where(label == 0, 1.0, -1.0)
    points = np.stack([sign * angle * np.cos(angle), sign * angle * np.sin(angle)], axis=1) / 10
    features = np.cos(points @ rng.normal(0, 2, (2, 64)) + rng.uniform(0, 2 * np.pi, 64))
    return features.astype(np.float32), label


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=200_000)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=4096)
    parser.add_argument("--seconds", type=float, default=8.0, help="train for about this long")
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    x, y = spirals(args.samples, rng)
    w1 = rng.normal(0, 0.1, (64, args.hidden)).astype(np.float32)
    b1 = np.zeros(args.hidden, np.float32)
    w2 = rng.normal(0, 0.1, (args.hidden, 2)).astype(np.float32)
    b2 = np.zeros(2, np.float32)

    start, step, loss = time.time(), 0, float("nan")
    while time.time() - start < args.seconds:
        rows = rng.integers(0, args.samples, args.batch_size)
        inputs, labels = x[rows], y[rows]
        hidden = np.maximum(inputs @ w1 + b1, 0)
        logits = hidden @ w2 + b2
        exponent = np.exp(logits - logits.max(axis=1, keepdims=True))
        probability = exponent / exponent.sum(axis=1, keepdims=True)
        loss = -np.log(probability[np.arange(args.batch_size), labels] + 1e-9).mean()
        gradient = probability
        gradient[np.arange(args.batch_size), labels] -= 1
        gradient /= args.batch_size
        back = (gradient @ w2.T) * (hidden > 0)
        w2 -= hidden.T @ gradient
        b2 -= gradient.sum(axis=0)
        w1 -= inputs.T @ back
        b1 -= back.sum(axis=0)
        if step % 200 == 0:
            print(f"step {step} loss {loss:.4f}", flush=True)
        step += 1
    print(f"done after {step} steps, loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
