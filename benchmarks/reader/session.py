"""Builds library models with the reader: one machine for many cases, so that a library is interpreted once."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.reader.cases import Case

from oarlock_profiler.adapters.sources import text_sources
from oarlock_profiler.core.engine.engine import Engine, flatten_tensors
from oarlock_profiler.core.engine.modules import LayerInstance, parameter_count
from oarlock_profiler.core.engine.trace import Op, Trace
from oarlock_profiler.core.findings import Findings, Gap
from oarlock_profiler.core.interpreter.budget import Budget, BudgetExceeded, Limits
from oarlock_profiler.core.interpreter.errors import Raised
from oarlock_profiler.core.interpreter.machine import Machine
from oarlock_profiler.core.reading import Request

_DEPTH = 20_000


@dataclass(slots=True)
class Built:
    """What the reader made of a case; ``error`` says why there is no model."""

    parameters: int | None = None
    trainable: int | None = None
    seconds: float = 0.0
    error: str | None = None
    gaps: list[Gap] = field(default_factory=list)
    internal: list[str] = field(default_factory=list)
    steps: dict[int, dict[str, Any]] = field(default_factory=dict)


class Session:
    """A machine whose imports last; the budget is renewed for each case."""

    def __init__(
        self, framework: str, library_paths: Sequence[str], seconds: float = 60.0, kernels: str = "cpu"
    ) -> None:
        self.seconds = seconds
        self.findings = Findings(limit=1_000_000)
        self.engine = Engine(Trace(), framework, findings=self.findings, kernels=kernels)
        if kernels == "cpu":
            self.engine.default_device = "cpu"
        sources = text_sources({"main.py": ""}, library_paths=library_paths)
        self.machine = Machine(Request("main.py"), sources, self.engine, self.findings, self._budget())
        self.engine.locate = lambda: self.machine.where
        self.machine.state.update(world_size=1, declared={})
        sys.setrecursionlimit(max(sys.getrecursionlimit(), _DEPTH))

    def _budget(self) -> Budget:
        return Budget(Limits(seconds=self.seconds), time.process_time)

    def run(self, case: Case, *, step: bool = True) -> Built:
        """Build the case's model, and step it at its batch sizes."""
        machine, built = self.machine, Built()
        machine.budget = self._budget()
        machine.spend = machine.budget.spend
        machine.unpatch()
        machine.guards.clear()
        machine.frames.clear()
        self.findings.gaps.clear()
        machine.internal_errors.clear()
        self.engine.roots.clear()
        begun = time.monotonic()
        try:
            space = machine.importer.run("main", "main.py", case.source.encode(), main=True).attrs
            model = space.get("model")
            if isinstance(model, LayerInstance):
                parameters = [p for _, p in model.named_parameters()]
                built.parameters = sum(parameter_count(p) for p in parameters)
                built.trainable = sum(parameter_count(p) for p in parameters if p.requires_grad)
                built.seconds = time.monotonic() - begun
                for batch in case.batches if step else ():
                    built.steps[batch] = self._step(case, model, batch)
            else:
                built.error = f"no model: {model!r}"[:300]
        except Raised as raised:
            built.error = f"raises {machine.describe(raised.value)}"
        except BudgetExceeded as exceeded:
            built.error = str(exceeded)
        except Exception as error:
            built.error = f"reader failed: {type(error).__name__}: {error}"
        built.seconds = built.seconds or time.monotonic() - begun
        built.gaps = list(self.findings.gaps.values())
        built.internal = list(machine.internal_errors)
        return built

    def _step(self, case: Case, model: LayerInstance, batch: int) -> dict[str, Any]:
        """Forward and backward: leaf shapes, bytes kept for backward, matmul FLOPs."""
        machine, engine = self.machine, self.engine
        text = case.inputs.replace("model.default_cfg['input_size']", repr(_size(model)))
        source = f"{case.source[: case.source.index('model =')]}batch = {batch}\ninputs = {text}\n"
        given = machine.importer.run("main", "main.py", source.encode(), main=True).attrs["inputs"]
        for _, layer in model.named_modules():
            layer.stats.output_shapes.clear()
            layer.stats.calls = 0
        own = {t.storage.id for _, t in (*model.named_parameters(), *model.named_buffers()) if t.storage}
        start = len(engine.trace.events)
        out = machine.call(model, (), given) if isinstance(given, dict) else machine.call(model, list(given))
        outs = flatten_tensors(out)
        kept: dict[int, int] = {}
        seen: set[int] = set()
        stack: list[Any] = [t.node for t in outs if t.node is not None]
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            for storage in node.saved or ():
                if storage.id not in own:
                    kept[storage.id] = storage.nbytes
            stack += [e.target for e in node.edges if e is not None and hasattr(e.target, "edges")]
        del stack
        result: dict[str, Any] = {
            "saved_bytes": sum(kept.values()),
            "shapes": [list(t.shape) if t.shape is not None else None for t in outs],
            "modules": {
                path: [list(s) for s in layer.stats.output_shapes]
                for path, layer in model.named_modules()
                if layer.stats.calls and not any(True for _ in layer.children())
            },
        }
        first = next(
            (t for t in outs if t.requires_grad and t.shape is not None and t.dtype.startswith(("float", "bfloat"))),
            None,
        )
        del outs, out
        if first is not None and first.shape is not None:
            engine.backward(first, engine.tensor(first.shape, first.dtype, op="ones_like"))
        result["flops"] = sum(e.flops for e in engine.trace.events[start:] if isinstance(e, Op) and e.matmul)
        for _, parameter in model.named_parameters():
            parameter.grad = None
        engine.trace.events.clear()
        return result


def _size(model: LayerInstance) -> Any:
    config = model.attrs.get("pretrained_cfg") or model.attrs.get("default_cfg")
    return config.get("input_size", (3, 224, 224)) if isinstance(config, dict) else (3, 224, 224)
