"""What optimisers keep: state bytes per parameter byte, measured on the trace."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oarlock_profiler.core.engine.trace import Trace
from oarlock_profiler.core.overlays.optimizer_rules import PADDLE, TORCH, adjusted, state_tensors
from oarlock_profiler.core.reading import Reading

PARAMETERS = 256 * 256 + 256

TORCH_SCRIPT = """
import torch
model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.{call}
for _ in range(4):
    loss = model(torch.randn(8, 256).cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
PADDLE_SCRIPT = """
import paddle
model = paddle.nn.Linear(256, 256)
optimizer = paddle.optimizer.{call}
for _ in range(4):
    loss = model(paddle.randn([8, 256])).mean()
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
"""


@pytest.mark.parametrize(
    ("call", "sets"),
    [
        ("SGD(model.parameters(), 0.1)", 0),
        ("SGD(model.parameters(), lr=0.1, momentum=0.9)", 1),
        ("Adam(model.parameters())", 2),
        ("Adam(model.parameters(), amsgrad=True)", 3),
        ("AdamW(model.parameters(), 1e-3, (0.9, 0.95), 1e-8, 0.1)", 2),
        ("RMSprop(model.parameters(), momentum=0.9, centered=True)", 3),
        ("Adagrad(model.parameters())", 1),
        ("Adadelta(model.parameters())", 2),
        ("Rprop(model.parameters())", 2),
    ],
)
def test_torch_states(
    read_script: Callable[..., Reading], live_bytes: Callable[[Trace, str], int], call: str, sets: int
) -> None:
    reading = read_script(TORCH_SCRIPT.format(call=call))
    assert reading.trace.steps == 2
    assert live_bytes(reading.trace, "optimizer") == sets * PARAMETERS * 4


@pytest.mark.parametrize(
    ("call", "sets"),
    [
        ("SGD(0.1, model.parameters())", 0),
        ("Momentum(0.1, 0.9, model.parameters())", 1),
        ("Adam(parameters=model.parameters())", 2),
        ("AdamW(1e-3, parameters=model.parameters())", 2),
        ("RMSProp(1e-3, parameters=model.parameters())", 3),
        ("Adagrad(1e-3, parameters=model.parameters())", 1),
    ],
)
def test_paddle_states(
    read_script: Callable[..., Reading], live_bytes: Callable[[Trace, str], int], call: str, sets: int
) -> None:
    reading = read_script(PADDLE_SCRIPT.format(call=call))
    assert live_bytes(reading.trace, "optimizer") == sets * PARAMETERS * 4


def test_paddle_keeps_cleared_gradients_and_torch_does_not(
    read_script: Callable[..., Reading], live_bytes: Callable[[Trace, str], int]
) -> None:
    paddle = read_script(PADDLE_SCRIPT.format(call="SGD(0.1, model.parameters())"))
    assert live_bytes(paddle.trace, "gradient") == PARAMETERS * 4
    torch = read_script(TORCH_SCRIPT.format(call="SGD(model.parameters(), 0.1)") + "\noptimizer.zero_grad()\n")
    assert live_bytes(torch.trace, "gradient") == 0


def test_half_precision_parameters_have_float32_masters(
    read_script: Callable[..., Reading], live_bytes: Callable[[Trace, str], int]
) -> None:
    reading = read_script(
        """
        import paddle
        model = paddle.nn.Linear(256, 256)
        optimizer = paddle.optimizer.AdamW(parameters=model.parameters(), multi_precision=True)
        model, optimizer = paddle.amp.decorate(models=model, optimizers=optimizer, level='O2')
        for _ in range(4):
            with paddle.amp.auto_cast(level='O2'):
                loss = model(paddle.randn([8, 256])).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
        """
    )
    assert reading.precision == "amp_float16"
    assert reading.optimizer is not None
    assert reading.optimizer.master_weights
    assert live_bytes(reading.trace, "optimizer") == 3 * PARAMETERS * 4
    assert live_bytes(reading.trace, "parameter") == PARAMETERS * 2


def test_an_own_optimizer_ends_steps_and_keeps_its_states(
    read_script: Callable[..., Reading], live_bytes: Callable[[Trace, str], int]
) -> None:
    reading = read_script(
        """
        import torch

        class Heavy(torch.optim.Optimizer):
            def __init__(self, params, lr):
                super().__init__(params, {'lr': lr})

            def step(self, closure=None):
                for group in self.param_groups:
                    for p in group['params']:
                        state = self.state[p]
                        if not state:
                            state['buf'] = torch.zeros_like(p)
                        state['buf'].mul_(0.9).add_(p.grad)
                        p.data.add_(state['buf'], alpha=-group['lr'])

        model = torch.nn.Linear(64, 64).cuda()
        optimizer = Heavy(model.parameters(), 0.1)
        for _ in range(50):
            optimizer.zero_grad()
            model(torch.randn(4, 64).cuda()).sum().backward()
            optimizer.step()
        """
    )
    assert reading.kind == "training"
    assert reading.trace.steps == 2
    assert reading.steps_per_epoch == 50


def test_factored_and_eight_bit_states() -> None:
    assert state_tensors(TORCH["Adafactor"], (100, 30), "float32") == [
        ("row", (100, 1), "float32"),
        ("column", (1, 30), "float32"),
    ]
    momentum = adjusted(TORCH["SGD"], {"momentum": 0.9})
    assert momentum.states == ("momentum_buffer",)
    assert state_tensors(PADDLE["AdamW"], (4,), "float16")[0][2] == "float32"


def test_two_optimizers_in_one_loop_count_one_step_a_round(read_script: Callable[..., Reading]) -> None:
    reading = read_script(
        """
        import torch
        a, b = torch.nn.Linear(8, 8).cuda(), torch.nn.Linear(8, 8).cuda()
        first, second = torch.optim.SGD(a.parameters(), 0.1), torch.optim.Adam(b.parameters())
        for _ in range(30):
            x = torch.randn(4, 8).cuda()
            first.zero_grad(); a(x).sum().backward(); first.step()
            second.zero_grad(); b(x).sum().backward(); second.step()
        """
    )
    assert reading.trace.steps == 2
    assert reading.parameters_total == 2 * 72
