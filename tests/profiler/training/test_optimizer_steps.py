"""What a step allocates at its peak and keeps, as multiples of the parameters' bytes.

Measured on PaddlePaddle 3.3.1 (its allocator's counters) and PyTorch 2.13 (the profiler's allocation events), CPU builds, a
512-1024-512 perceptron: (peak of the first step, kept after it, peak of a later step).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oarlock_profiler.core.engine.trace import Alloc, Free, Mark
from oarlock_profiler.core.reading import Reading

PARAMETER_BYTES = 4 * (2 * 512 * 1024 + 1024 + 512)
NOISE = 0.01

PADDLE = {
    "SGD(0.1, parameters=p)": (0, 0, 0),
    "SGD(0.1, parameters=p, weight_decay=1e-4)": (1.5, 0, 1.5),
    "Momentum(0.1, 0.9, parameters=p)": (1, 1, 0),
    "Momentum(0.1, 0.9, parameters=p, weight_decay=1e-4)": (1, 1, 0),
    "Adam(parameters=p)": (2, 2, 0),
    "Adam(parameters=p, weight_decay=1e-4)": (3, 2, 1.5),
    "Adam(parameters=p, amsgrad=True)": (3, 3, 0),
    "Adam(parameters=p, grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0))": (2, 2, 0),
    "AdamW(parameters=p)": (2, 2, 0),
    "AdamW(parameters=p, grad_clip=paddle.nn.ClipGradByNorm(1.0))": (3, 2, 1),
    "RMSProp(1e-3, parameters=p)": (3, 3, 0),
    "Adagrad(1e-3, parameters=p)": (1, 1, 0),
    "Adamax(1e-3, parameters=p)": (2, 2, 0),
    "Adadelta(1e-3, parameters=p)": (2, 2, 0),
    "Lamb(1e-3, parameters=p)": (2.5, 2, 0.5),
    "NAdam(1e-3, parameters=p)": (5, 5, 0),
    "RAdam(1e-3, parameters=p)": (5, 5, 0),
}
TORCH = {
    "SGD(p, 0.1, momentum=0.9, weight_decay=1e-4, foreach=False)": (1.5, 1, 0.5),
    "SGD(p, 0.1, momentum=0.9, weight_decay=1e-4, foreach=True)": (2, 1, 1),
    "SGD(p, 0.1, momentum=0.9, nesterov=True, foreach=False)": (1.5, 1, 0.5),
    "SGD(p, 0.1, momentum=0.9, nesterov=True, foreach=True)": (1, 1, 0),
    "Adam(p, foreach=False)": (3, 2, 1),
    "Adam(p, foreach=True)": (3, 2, 1),
    "Adam(p, weight_decay=0.01, foreach=False)": (3.5, 2, 1.5),
    "Adam(p, weight_decay=0.01, foreach=True)": (3, 2, 1),
    "AdamW(p, foreach=True)": (3, 2, 1),
    "RMSprop(p, foreach=False)": (1.5, 1, 0.5),
    "RMSprop(p, centered=True, momentum=0.9, foreach=True)": (4, 3, 1),
    "Adagrad(p, foreach=True)": (2, 0, 2),
    "Adadelta(p, weight_decay=0.01, foreach=True)": (5, 2, 3),
    "Adamax(p, foreach=False)": (2.5, 2, 0.5),
    "NAdam(p, weight_decay=0.01, foreach=True)": (4, 2, 2),
    "ASGD(p, foreach=False)": (1, 1, 0),
    "ASGD(p, weight_decay=0.01, foreach=True)": (2, 1, 1),
}


def steps(reading: Reading) -> list[tuple[float, float]]:
    """Per step: (peak above, bytes kept above) where the optimiser began, in multiples of the parameters."""
    live: dict[int, int] = {}
    now = 0
    base: int | None = None
    peak = 0
    found = []
    for event in reading.trace.events:
        if isinstance(event, Alloc):
            if event.phase == "optimizer" and base is None:
                base = peak = now
            live[event.id] = event.nbytes
            now += event.nbytes
            peak = max(peak, now)
        elif isinstance(event, Free):
            now -= live.pop(event.id, 0)
        elif isinstance(event, Mark) and event.name == "step_end":
            start = now if base is None else base
            found.append(
                ((peak - start) / PARAMETER_BYTES if base is not None else 0.0, (now - start) / PARAMETER_BYTES)
            )
            base = None
    return found


def check(reading: Reading, expected: tuple[float, float, float]) -> None:
    first, later = steps(reading)
    assert first == pytest.approx(expected[:2], abs=NOISE)
    assert later[0] == pytest.approx(expected[2], abs=NOISE)


@pytest.mark.parametrize("call", sorted(PADDLE))
def test_paddle(read_script: Callable[..., Reading], call: str) -> None:
    reading = read_script(
        f"""
        import paddle
        net = paddle.nn.Sequential(paddle.nn.Linear(512, 1024), paddle.nn.ReLU(), paddle.nn.Linear(1024, 512))
        p = net.parameters()
        optimizer = paddle.optimizer.{call}
        for step in range(3):
            loss = net(paddle.ones([16, 512])).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
        """
    )
    check(reading, PADDLE[call])


@pytest.mark.parametrize("call", sorted(TORCH))
def test_torch(read_script: Callable[..., Reading], call: str) -> None:
    reading = read_script(
        f"""
        import torch
        net = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 512))
        p = list(net.parameters())
        optimizer = torch.optim.{call}
        for step in range(3):
            loss = net(torch.ones(16, 512)).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        """
    )
    check(reading, TORCH[call])
