"""Gradients of gradients, and loops in which one optimiser steps more often than another."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oarlock_profiler.core.engine.trace import Op
from oarlock_profiler.core.reading import Reading

PENALTY = {
    "torch": """
import torch
net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.rand(128, 32, requires_grad=True)
g, = torch.autograd.grad(net(x).sum(), x, create_graph={create})
assert g.requires_grad is {create}
(g ** 2).sum().backward() if {create} else net(x).sum().backward()
opt.step()
""",
    "paddle": """
import paddle
net = paddle.nn.Sequential(paddle.nn.Linear(32, 64), paddle.nn.Tanh(), paddle.nn.Linear(64, 1))
opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())
x = paddle.rand([128, 32])
x.stop_gradient = False
g = paddle.grad(net(x).sum(), x, create_graph={create})[0]
assert g.stop_gradient is (not {create})
(g ** 2).sum().backward() if {create} else net(x).sum().backward()
opt.step()
""",
}


def backward_of(reading: Reading) -> list[str]:
    return [event.name for event in reading.trace.events if isinstance(event, Op) and event.phase == "backward"]


@pytest.mark.parametrize("framework", ["torch", "paddle"])
def test_a_differentiated_pass_is_run_backwards_itself(read_script: Callable[..., Reading], framework: str) -> None:
    reading = read_script(PENALTY[framework].format(create=True))
    names = backward_of(reading)
    assert "tanh_grad_backward" in names
    assert "linear_grad_backward" in names
    assert not any(gap.what == "gradients" for gap in reading.findings.gaps.values())
    assert not any("_grad_backward" in n for n in backward_of(read_script(PENALTY[framework].format(create=False))))


def test_the_generators_second_step_is_read_although_its_critic_is_ahead(read_script: Callable[..., Reading]) -> None:
    reading = read_script(
        """
import torch
critic, generator = torch.nn.Linear(8, 1), torch.nn.Linear(4, 8)
of_critic = torch.optim.Adam(critic.parameters())
of_generator = torch.optim.Adam(generator.parameters())
for round in range(1000):
    for _ in range(5):
        of_critic.zero_grad()
        critic(generator(torch.rand(2, 4)).detach()).mean().backward()
        of_critic.step()
    of_generator.zero_grad()
    critic(generator(torch.rand(2, 4))).mean().backward()
    of_generator.step()
"""
    )
    # two of the critic, which are enough for itself, then all five of the round that the generator's second step ends
    assert reading.trace.steps == 7
