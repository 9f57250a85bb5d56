"""A branch on an unknown keeps the larger need, whichever side it is on, and says so at its line."""

from __future__ import annotations

import time

import pytest

from oarlock_profiler.adapters.sources import text_sources
from oarlock_profiler.core.findings import Gap
from oarlock_profiler.core.interpreter.budget import Limits
from oarlock_profiler.core.larger_need import largest_bytes
from oarlock_profiler.core.reader import read
from oarlock_profiler.core.reading import Reading, Request

HEAD = """import torch, os, pickle
from torch import nn
u = pickle.load(open("u.pkl", "rb"))
def small():
    return nn.Linear(10, 10)
def big():
    return nn.Linear(1000, 1000)
def long_but_small():
    return nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 10))
def train(net, width):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        net(torch.zeros(4, width)).sum().backward()
        opt.step()
        opt.zero_grad()
"""
BIG, SMALL, LONG = 1_001_000, 110, 330


def reading_of(source: str, limits: Limits | None = None) -> Reading:
    return read(Request("main.py"), text_sources({"main.py": HEAD + source}), time.monotonic, limits)


def branches(reading: Reading) -> list[Gap]:
    return [gap for gap in reading.findings.gaps.values() if gap.what.startswith("branch on")]


@pytest.mark.parametrize(
    ("source", "parameters"),
    [
        ("if u:\n    net = big(); w = 1000\nelse:\n    net = small(); w = 10\ntrain(net, w)", BIG),
        ("if u:\n    net = small(); w = 10\nelse:\n    net = big(); w = 1000\ntrain(net, w)", BIG),
        # more work by its text, less by its tensors
        ("if u:\n    net = long_but_small(); w = 10\nelse:\n    net = big(); w = 1000\ntrain(net, w)", BIG),
        ("net = big()\nw = 1000\nif u:\n    net = long_but_small(); w = len(range(10))\ntrain(net, w)", BIG),
        # an early return of a model
        ("def make():\n    if u:\n        return big(), 1000\n    return small(), 10\ntrain(*make())", BIG),
        ("def make():\n    if u:\n        return small(), 10\n    return big(), 1000\ntrain(*make())", BIG),
        ("def make():\n    if u == 1:\n        return small(), 10\n    elif u == 2:\n        return big(), 1000\n    else:\n        return long_but_small(), 10\ntrain(*make())", BIG),
        # nested
        ("if u == 1:\n    if u == 2:\n        net = long_but_small(); w = 10\n    else:\n        net = big(); w = 1000\nelse:\n    net = small(); w = 10\ntrain(net, w)", BIG),
        ("if u == 1:\n    net = long_but_small(); w = 10\nelse:\n    if u == 2:\n        net = small(); w = 10\n    else:\n        net = big(); w = 1000\ntrain(net, w)", BIG),
        # values that only choose
        ("name, w = ('small', 10) if u else ('big', 1000)\ntrain(globals()[name](), w)", BIG),
        ("name, w = ('big', 1000) if u else ('small', 10)\ntrain(globals()[name](), w)", BIG),
        ("make = small if u else big\nnet = make()\ntrain(net, net.in_features)", BIG),
        ("if u:\n    make = small\nelse:\n    make = big\nnet = make()\ntrain(net, net.in_features)", BIG),
        ("make = big\nif u:\n    make = small\nnet = make()\ntrain(net, net.in_features)", BIG),
        # numbers: the larger, in whatever order and however they come
        ("w = 10\nif u:\n    w = 1000\ntrain(nn.Linear(w, w), w)", BIG),
        ("w = 1000\nif u:\n    w = 10\ntrain(nn.Linear(w, w), w)", BIG),
        ("if u:\n    w = 10\nelse:\n    w = 1000\ntrain(nn.Linear(w, w), w)", BIG),
        # one number larger on each side: they belong together
        ("if u:\n    w, n = 1000, 1\nelse:\n    w, n = 10, 3\ntrain(nn.Sequential(*[nn.Linear(w, w) for _ in range(n)]), w)", BIG),
        # whichever side raises or stops is not the script's way
        ("if u:\n    raise SystemExit\nnet = big()\ntrain(net, 1000)", BIG),
        ("if u:\n    net = big()\n    net.no_such_thing.x()\n    raise ValueError\nelse:\n    net = small()\ntrain(net, 10)", SMALL),
    ],
)  # fmt: skip
def test_the_larger_side_counts(source: str, parameters: int) -> None:
    reading = reading_of(source)
    assert reading.stopped is None
    assert reading.parameters_total == parameters
    assert reading.kind == "training"


@pytest.mark.parametrize(
    ("first", "second", "side"), [("big", "long_but_small", "branch"), ("long_but_small", "big", "else side")]
)
def test_the_portrait_says_so_at_the_line(first: str, second: str, side: str) -> None:
    width = {"big": 1000, "long_but_small": 10}
    source = f"if u:\n    net = {first}(); w = {width[first]}\nelse:\n    net = {second}(); w = {width[second]}\ntrain(net, w)"
    (gap,) = branches(reading_of(source))
    assert gap.where is not None
    assert (gap.where.file, gap.where.line) == ("main.py", HEAD.count("\n") + 1)
    assert str(gap.assumed).startswith(f"the {side} is taken; it needs ")
    assert "MiB, the other side" in str(gap.assumed)


def test_a_side_that_stops_the_script_is_not_taken() -> None:
    source = "def broken():\n    raise ValueError('not for us')\nif u:\n    net = big()\n    w = 1000\nelse:\n    net = broken()\n    w = broken() + broken() + broken()\ntrain(net, w)"
    reading = reading_of(source)
    assert reading.stopped is None
    assert reading.parameters_total == BIG
    (gap,) = branches(reading)
    assert str(gap.assumed).startswith(
        "the branch is taken; with the other side the script does not go through: the script raises ValueError: not for us"
    )


def test_readings_are_bounded_and_what_was_not_measured_is_said() -> None:
    source = (
        "".join(f"if u == {n}:\n    a{n} = small()\nelse:\n    a{n} = big()\n" for n in range(6)) + "train(small(), 10)"
    )
    told = [str(gap.assumed) for gap in branches(reading_of(source, Limits(readings=2)))]
    assert len(told) == 6
    assert sum("was not measured" in one for one in told) == 4


def test_no_second_reading_without_an_unknown_branch() -> None:
    asked: list[str] = []

    class Counting:
        def __init__(self) -> None:
            self.inner = text_sources({"main.py": HEAD + "train(small(), 10)"})

        def read(self, path: str) -> bytes | None:
            asked.append(path)
            return self.inner.read(path)

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

    reading = read(Request("main.py"), Counting(), time.monotonic)  # type: ignore[arg-type]
    assert reading.parameters_total == SMALL
    assert asked.count("main.py") <= 2
    assert largest_bytes(reading.trace) > 0
