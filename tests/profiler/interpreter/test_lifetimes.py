"""Storages are freed when CPython would free them: the trace of a snippet's allocations and frees, in order."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock_profiler.core.engine.trace import Alloc, Free, Trace
from oarlock_profiler.core.interpreter.values import Context, HostObject, Value
from oarlock_profiler.core.overlays import registry

from .bench import StillEngine, run


class Block(HostObject):
    """Something that holds memory; ``a + b`` makes another."""

    def __init__(self, trace: Trace) -> None:
        self.storage = trace.allocate(1, "activation", device="cpu", op="", where=None)

    def py_binary(self, context: Context, op: str, other: Value, reflected: bool) -> Value:
        return Block(self.storage.trace)


@registry.entry("lifetimes_test.new")
def new(context: Any) -> Block:
    return Block(context.trace)


@registry.entry("lifetimes_test.hold")
def hold(context: Any, *args: Value) -> int:
    return len(args)


def events(source: str) -> str:
    """``+1`` for each allocation, ``-1`` for each free, while the snippet runs."""
    engine = StillEngine()
    ran = run("from lifetimes_test import new, hold\n" + source, engine=engine)
    assert ran.machine.internal_errors == []
    out = [
        f"+{e.id}" if isinstance(e, Alloc) else f"-{e.id}" for e in engine.trace.events if isinstance(e, (Alloc, Free))
    ]
    del ran
    return " ".join(out)


CASES: dict[str, tuple[str, str]] = {
    "rebinding frees the old": ("x = new()\nx = new()", "+1 +2 -1"),
    "temporaries die at once": ("new()\nx = new() + new()\ny = new()", "+1 -1 +2 +3 +4 -2 -3 +5"),
    "a chain keeps one": ("x = new()\nx = x + new()\nx = x + x", "+1 +2 +3 -2 -1 +4 -3"),
    "a frame frees its locals": ("def f():\n a = new()\n b = new()\n return b\nx = f()", "+1 +2 -1"),
    "an argument dies with its parameter": ("def f(x):\n x = x + x\n return new()\ny = f(new())", "+1 +2 -1 +3 -2"),
    "del": ("def f():\n x = new()\n del x\n new()\nf()", "+1 -1 +2 -2"),
    "containers": ("l = [new(), new()]\nl.pop()\nl = None", "+1 +2 -2 -1"),
    "loop variables": ("for i in range(2):\n x = new()\nx = None", "+1 +2 -1 -2"),
    "a loop's item is held by its variable only": ("def g():\n for _ in range(2): yield new()\ndef f():\n for x in g():\n  x = None\n  new()\nf()", "+1 -1 +2 -2 +3 -3 +4 -4"),
    "unpacked pairs": ("def g():\n for _ in range(2): yield new(), new()\nfor a, b in g():\n a = None", "+1 +2 -1 +3 +4 -2 -3"),
    "enumerate": ("def g():\n for _ in range(2): yield new()\nfor i, x in enumerate(g()):\n x = None", "+1 -1 +2 -2"),
    "comprehensions": ("l = [new() for _ in range(2)]\ndel l\nnew()", "+1 +2 -2 -1 +3 -3"),
    "exceptions keep nothing": ("def f():\n x = new()\n raise ValueError\ntry:\n f()\nexcept ValueError:\n new()\nnew()", "+1 -1 +2 -2 +3 -3"),
    "closures keep what they capture": ("def f():\n a = new()\n b = new()\n def g(): return a\n return g\ng = f()\ng = None", "+1 +2 -2 -1"),
    "attributes": ("class A: pass\na = A()\na.x = new()\na.x = new()\na = None", "+1 +2 -1 -2"),
    "method calls": ("class A:\n def f(self, x):\n  y = x + x\n  return y\na = A()\nr = a.f(new())", "+1 +2 -1"),
    "natives hold their arguments while they run": ("hold(new(), new())\nnew()", "+1 +2 -2 -1 +3 -3"),
    "augmented assignment": ("x = new()\nx += new()", "+1 +2 +3 -2 -1"),
    "with": ("class C:\n def __enter__(self): return new()\n def __exit__(self, *e): pass\ndef f():\n with C() as x: pass\n x = None\n new()\nf()", "+1 -1 +2 -2"),
    "default arguments live with the function": ("def f(x=new()): return 1\nf()\nf = None", "+1 -1"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_frees_in_order(name: str) -> None:
    source, expected = CASES[name]
    assert events(source) == expected


def test_a_generator_frees_what_it_holds_when_dropped() -> None:
    seen = events("def g():\n x = new()\n yield 1\n yield 2\nit = g()\nnext(it)\nit = None\nnew()")
    assert seen == "+1 -1 +2 -2"
