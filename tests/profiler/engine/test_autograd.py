"""Autograd on plain values: what is kept, when it goes, what backward allocates."""

from __future__ import annotations

import pytest

from oarlock_profiler.core.engine.autocast import paddle_autocast, torch_autocast
from oarlock_profiler.core.engine.engine import Engine
from oarlock_profiler.core.engine.tensor import Tensor
from oarlock_profiler.core.engine.trace import Alloc, Free, Mark, Op, Retag, Trace


def engine(framework: str = "torch") -> Engine:
    made = Engine(Trace(), framework)
    made.default_device = "gpu:0"
    return made


def live_bytes(made: Engine) -> int:
    sizes: dict[int, int] = {}
    for event in made.trace.events:
        if isinstance(event, Alloc):
            sizes[event.id] = event.nbytes
        elif isinstance(event, Free):
            del sizes[event.id]
    return sum(sizes.values())


def linear(made: Engine, x: Tensor, w: Tensor) -> Tensor:
    shape = (*(x.shape or ())[:-1], (w.shape or ())[0])
    return made.apply("linear", [x, w], shape, saved=[(x, w), (w, x)], flops=100, matmul=True)


def test_an_intermediate_that_nothing_keeps_is_freed_at_once() -> None:
    made = engine()
    w, x = made.parameter((8, 8)), made.tensor((4, 8), kind="input")
    before = live_bytes(made)
    y = linear(made, x, w)
    z = made.apply("relu", [y], y.shape or (), saved=["output"])
    del y
    assert live_bytes(made) - before == z.nbytes


def test_what_is_saved_outlives_its_variable_until_backward() -> None:
    made = engine()
    w, x = made.parameter((8, 8)), made.tensor((4, 8), kind="input")
    before = live_bytes(made)
    y = linear(made, x, w)
    z = made.apply("gelu", [y], y.shape or (), saved=[y])
    del y
    loss = made.apply("mean", [z], ())
    del z
    assert live_bytes(made) - before == 4 * 8 * 4 + 4
    made.backward(loss)
    del loss
    assert live_bytes(made) - before == w.nbytes
    assert w.grad is not None and w.grad.storage is not None
    assert w.grad.storage.kind == "gradient"


def test_without_gradients_nothing_is_saved() -> None:
    made = engine()
    w, x = made.parameter((8, 8)), made.tensor((4, 8), kind="input")
    with made.grad_mode(False):
        y = linear(made, x, w)
    assert y.node is None and not y.requires_grad
    assert not any(isinstance(e, Retag) for e in made.trace.events)


def test_a_frozen_weight_gets_no_gradient_and_its_input_is_not_kept() -> None:
    made = engine()
    frozen, head = made.parameter((8, 8), trainable=False), made.parameter((8, 8))
    x = made.tensor((4, 8), kind="input")
    before = live_bytes(made)
    y = linear(made, x, frozen)
    assert y.node is None
    z = linear(made, y, head)
    assert live_bytes(made) - before == y.nbytes + z.nbytes
    made.backward(made.apply("mean", [z], ()))
    assert frozen.grad is None and head.grad is not None


def test_a_weight_used_twice_is_accumulated_beside_its_first_gradient() -> None:
    made = engine()
    w, x = made.parameter((64, 64)), made.tensor((1, 64), kind="input")
    loss = made.apply("mean", [linear(made, linear(made, x, w), w)], ())
    start = len(made.trace.events)
    made.backward(loss)
    big = [e for e in made.trace.events[start:] if isinstance(e, Alloc) and e.nbytes == w.nbytes]
    assert len(big) == 3  # two gradients and, their memory being views, a sum of its own


def test_gradient_accumulation_adds_in_place_over_steps() -> None:
    made = engine()
    w, x = made.parameter((8, 8)), made.tensor((4, 8), kind="input")
    made.backward(made.apply("mean", [linear(made, x, w)], ()))
    assert w.grad is not None
    first = w.grad.storage
    made.backward(made.apply("mean", [linear(made, x, w)], ()))
    assert w.grad.storage is first


def test_paddle_keeps_cleared_gradients_and_new_ones_appear_beside_them() -> None:
    made = engine("paddle")
    w, x = made.parameter((8, 8)), made.tensor((4, 8), kind="input")
    made.backward(made.apply("mean", [linear(made, x, w)], ()))
    assert w.grad is not None
    first = w.grad.storage
    w.cleared = True
    kept = live_bytes(made)
    made.backward(made.apply("mean", [linear(made, x, w)], ()))
    assert w.grad is not None and w.grad.storage is not first
    del first
    assert live_bytes(made) == kept


def test_paddle_writes_a_gradient_over_the_incoming_one() -> None:
    made = engine("paddle")
    w, x = made.parameter((8, 8)), made.tensor((4, 8), kind="input")
    y = linear(made, x, w)
    loss = made.apply("mean", [made.apply("relu", [y], y.shape or (), saved=["output"], grad="reuse")], ())
    del y
    start = len(made.trace.events)
    made.backward(loss)
    sizes = [e.nbytes for e in made.trace.events[start:] if isinstance(e, Alloc)]
    assert sizes == [4, 128, 256]  # the loss's, the mean's (relu writes over it), the weight's


def test_retain_graph_keeps_what_was_saved() -> None:
    made = engine()
    w, x = made.parameter((8, 8)), made.tensor((4, 8), kind="input")
    y = linear(made, x, w)
    z = made.apply("gelu", [y], y.shape or (), saved=[y])
    del y
    loss = made.apply("mean", [z], ())
    del z
    held = live_bytes(made)
    made.backward(loss, retain_graph=True)
    assert live_bytes(made) == held + w.nbytes
    made.backward(loss)
    assert live_bytes(made) == held + w.nbytes - 128


def test_autograd_grad_touches_no_leaf() -> None:
    made = engine()
    w, x = made.parameter((8, 8)), made.tensor((4, 8), kind="input", requires_grad=True)
    loss = made.apply("mean", [linear(made, x, w)], ())
    [found] = made.grad([loss], [x])
    assert found is not None and found.shape == (4, 8)
    assert w.grad is None and x.grad is None


def test_torch_casts_a_weight_once_for_the_whole_autocast() -> None:
    made = engine()
    w, x = made.parameter((8, 8)), made.tensor((4, 8), kind="input")
    made.push_autocast(torch_autocast("float16"))
    first, second = linear(made, x, w), linear(made, x, w)
    casts = [e for e in made.trace.events if isinstance(e, Op) and e.name == "cast"]
    assert (first.dtype, second.dtype) == ("float16", "float16")
    assert len(casts) == 3  # the weight once, the input twice
    before = live_bytes(made)
    del first, second
    made.pop_autocast()
    assert live_bytes(made) == before - 2 * 64 - 2 * 64 - 128


def test_paddle_casts_a_weight_each_time_and_keeps_losses_in_float32() -> None:
    made = engine("paddle")
    w, x = made.parameter((8, 8)), made.tensor((4, 8), kind="input")
    made.push_autocast(paddle_autocast("bfloat16"))
    outs = [linear(made, x, w) for _ in range(2)]
    casts = [e for e in made.trace.events if isinstance(e, Op) and e.name == "cast"]
    assert len(casts) == 4
    assert made.apply("softmax", [outs[0]], outs[0].shape or ()).dtype == "float32"


def test_an_operator_on_an_unknown_tensor_gives_an_unknown_tensor_with_the_reason() -> None:
    made = engine()
    out = made.apply("relu", [made.unknown_tensor("a file that is not in the bundle")], (1,))
    assert out.shape is None and out.why == "a file that is not in the bundle"


def test_steps_are_marked_and_two_of_them_are_enough() -> None:
    made = engine()
    for expected in (False, True):
        made.training_step_done()
        assert made.steady is expected
    assert [e.index for e in made.trace.events if isinstance(e, Mark)] == [1, 2]


@pytest.mark.parametrize("framework", ["torch", "paddle"])
def test_backward_frees_everything_but_gradients(framework: str) -> None:
    made = engine(framework)
    weights = [made.parameter((16, 16)) for _ in range(6)]
    x = made.tensor((4, 16), kind="input")
    before = live_bytes(made)
    h = x
    for w in weights:
        h = made.apply("relu", [linear(made, h, w)], (4, 16), saved=["output"], grad="reuse")
        h = made.apply("add", [h, h], (4, 16), grad="alias")
    loss = made.apply("mean", [h], ())
    del h, w
    made.backward(loss)
    del loss
    assert live_bytes(made) - before == sum(w.nbytes for w in weights)
