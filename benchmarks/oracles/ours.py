"""The same measures from the engine: the case's source is interpreted, its model is stepped abstractly."""

from __future__ import annotations

import time
from typing import Any

from oarlock_profiler.core.engine.autograd import Node
from oarlock_profiler.core.engine.engine import Engine, flatten_tensors
from oarlock_profiler.core.engine.modules import LayerInstance
from oarlock_profiler.core.engine.trace import Alloc, Free, Op, Trace
from oarlock_profiler.core.findings import Findings
from oarlock_profiler.core.interpreter.budget import Budget, Limits
from oarlock_profiler.core.interpreter.machine import Machine
from oarlock_profiler.core.reader import interpret
from oarlock_profiler.core.reading import Request


class OneFile:
    """A bundle of one script."""

    def __init__(self, source: str) -> None:
        self.source = source.encode()

    def read(self, path: str) -> bytes | None:
        return self.source if path == "case.py" else None

    def exists(self, path: str) -> bool:
        return path == "case.py"

    def listdir(self, path: str) -> list[str]:
        return [] if path else ["case.py"]

    def library(self, module: str) -> tuple[str, bytes] | None:  # noqa: ARG002 - no library is at hand
        return None

    def library_file(self, package: str, path: str) -> bytes | None:  # noqa: ARG002 - no library is at hand
        return None


def prepare(source: str, framework: str, kernels: str = "cpu") -> tuple[Machine, Engine, dict[str, Any]]:
    """Interpret ``source``; the machine, its engine and the script's globals."""
    trace, findings = Trace(), Findings()
    engine = Engine(trace, framework, findings=findings, kernels=kernels)
    engine.default_device = "cpu" if kernels == "cpu" else engine.default_device
    machine = Machine(Request("case.py"), OneFile(source), engine, findings, Budget(Limits(), time.monotonic))
    engine.locate = lambda: machine.where
    stopped = interpret(machine, Request("case.py"))
    if stopped:
        raise RuntimeError(stopped)
    return machine, engine, machine.importer.modules["__main__"].attrs


def peak_of(trace: Trace, start: int) -> int:
    """Largest number of bytes above where ``start`` stood."""
    sizes = {event.id: event.nbytes for event in trace.events[:start] if isinstance(event, Alloc)}
    now = peak = 0
    for event in trace.events[start:]:
        if isinstance(event, Alloc):
            sizes[event.id] = event.nbytes
            now += event.nbytes
            peak = max(peak, now)
        elif isinstance(event, Free):
            now -= sizes.get(event.id, 0)
    return peak


def current_of(trace: Trace) -> int:
    """Bytes that are allocated now."""
    sizes: dict[int, int] = {}
    for event in trace.events:
        if isinstance(event, Alloc):
            sizes[event.id] = event.nbytes
        elif isinstance(event, Free):
            sizes.pop(event.id, None)
    return sum(sizes.values())


def step(machine: Machine, engine: Engine, space: dict[str, Any]) -> None:
    """Forward, and backward from a gradient of ones."""
    out = machine.call(space["model"], list(space["inputs"]))
    first = [t for t in flatten_tensors(out) if t.dtype in ("float32", "float16", "float64", "bfloat16")][:1]
    if not first or first[0].shape is None or not first[0].requires_grad:
        return
    gradient = engine.tensor(first[0].shape, first[0].dtype, op="ones_like")
    engine.backward(first[0], gradient)


def measure(source: str, framework: str) -> dict[str, Any]:
    """What :mod:`run_torch` and :mod:`run_paddle` measure, predicted."""
    machine, engine, space = prepare(source, framework)
    model = space["model"]
    result: dict[str, Any] = {}
    trace = engine.trace
    kept: dict[int, int] = {}
    own: set[int] = set()
    if isinstance(model, LayerInstance):
        parameters = [p for _, p in model.named_parameters()]
        result["parameters"] = sum(_count(p) for p in parameters)
        result["trainable"] = sum(_count(p) for p in parameters if p.requires_grad)
        own = {p.storage.id for p in parameters if p.storage} | {
            b.storage.id for _, b in model.named_buffers() if b.storage
        }
    before = current_of(trace)
    out = machine.call(model, list(space["inputs"]))
    outs = flatten_tensors(out)
    result["shapes"] = [list(t.shape) if t.shape is not None else None for t in outs]
    result["dtypes"] = [t.dtype for t in outs]
    seen: set[int] = set()
    stack = [t.node for t in outs if t.node is not None]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        for storage in node.saved or ():
            if storage.id not in own:
                kept[storage.id] = storage.nbytes
        stack += [e.target for e in node.edges if e is not None and isinstance(e.target, Node)]
    stack.clear()
    given = {t.storage.id for t in flatten_tensors(space["inputs"]) if t.storage}
    result["saved_bytes"] = sum(kept.values())
    result["saved_without_inputs"] = sum(v for k, v in kept.items() if k not in given)
    if isinstance(model, LayerInstance):
        result["modules"] = {
            path: [list(s) for s in layer.stats.output_shapes]
            for path, layer in model.named_modules()
            if layer.stats.calls
        }
    result["held"] = current_of(trace) - before
    del out, outs
    start = len(trace.events)
    step(machine, engine, space)
    result["flops"] = sum(e.flops for e in trace.events[start:] if isinstance(e, Op) and e.matmul)
    leaves = [t for t in flatten_tensors(space["inputs"]) if t.requires_grad]
    if isinstance(model, LayerInstance):
        leaves += [p for _, p in model.named_parameters()]
    for leaf in leaves:
        leaf.grad = None
    peaks = []
    for _ in range(2):
        start = len(trace.events)
        step(machine, engine, space)
        peaks.append(peak_of(trace, start))
        for leaf in leaves:
            if framework == "paddle":
                leaf.cleared = leaf.grad is not None
            else:
                leaf.grad = None
    result["peaks"] = peaks
    result["internal_errors"] = list(machine.internal_errors)
    result["gaps"] = [f"{g.what}: {g.why}" for g in machine.findings.gaps.values()]
    return result


def _count(parameter: Any) -> int:
    total = 1
    for size in parameter.shape or ():
        total *= size
    return total
