"""Traces written by hand: a linear layer trained on one device, as the engine would write them."""

from __future__ import annotations

from oarlock_profiler.core.devices import DeviceSpec
from oarlock_profiler.core.engine.trace import Op, Storage, Trace
from oarlock_profiler.core.findings import Findings, Where
from oarlock_profiler.core.reading import ModuleNode, OptimizerInfo, Reading, TensorSpec

WIDTH = 1024
GIB = 1 << 30

RTX_3090 = DeviceSpec(
    "RTX 3090",
    "nvidia",
    24 * GIB,
    arch="sm_86",
    bandwidth_bytes_per_second=936e9,
    fp32_flops_per_second=35.6e12,
    tf32_flops_per_second=35.6e12,
    fp16_flops_per_second=71.2e12,
    bf16_flops_per_second=71.2e12,
    bf16_supported=True,
    price_per_hour=2.0,
)
A100 = DeviceSpec(
    "A100-SXM4-80GB",
    "nvidia",
    80 * GIB,
    arch="sm_80",
    bandwidth_bytes_per_second=2039e9,
    fp32_flops_per_second=19.5e12,
    tf32_flops_per_second=156e12,
    fp16_flops_per_second=312e12,
    bf16_flops_per_second=312e12,
    bf16_supported=True,
)
THIS_MACHINE = DeviceSpec("cpu", "cpu", 8 * GIB)


def linear_trace(*, batch: int, device: str = "gpu:0", steps: int = 2, layers: int = 1) -> Trace:
    """``layers`` square layers of 1024 with Adam: weights and gradients of 4 MiB, activations of ``batch`` × 4 KiB."""
    trace = Trace()
    weight, rows = 4 * WIDTH * WIDTH, 4 * batch * WIDTH

    def make(nbytes: int, kind: str, op: str) -> Storage:
        return trace.allocate(nbytes, kind, device=device, op=op, where=Where("main.py", 7))  # type: ignore[arg-type]

    parameters = [make(weight, "parameter", "parameter") for _ in range(layers)]
    states: list[Storage] = []
    gradients: list[Storage] = []
    for step in range(steps):
        trace.mark("step_begin", step)
        trace.phase = "forward"
        gradients = []  # zero_grad(set_to_none=True)
        inputs = make(rows, "input", "to")
        kept = []
        for _ in range(layers):
            kept.append(make(rows, "saved", "linear"))
            trace.add(_op("linear", "forward", 2 * batch * WIDTH * WIDTH, 2 * rows + weight))
        trace.phase = "backward"
        for _ in range(layers):
            gradients.append(make(weight, "gradient", "linear_backward"))
            trace.add(_op("linear_backward", "backward", 4 * batch * WIDTH * WIDTH, 2 * rows + 2 * weight))
            kept.pop()
        trace.phase = "optimizer"
        if not states:
            states = [make(weight, "optimizer", "adam") for _ in range(2 * layers)]
        trace.step_end()
        del inputs
    del parameters, states, gradients
    return trace


def _op(name: str, phase: str, flops: int, moved: int) -> Op:
    where = Where("main.py", 12)
    return Op(name, name, "float32", phase, flops, moved, 0, "fc", where, matmul=True)  # type: ignore[arg-type]


def reading_of(trace: Trace, *, batch: int, framework: str = "pytorch") -> Reading:
    """A reading around ``trace``."""
    findings = Findings()
    findings.fact("batch size", batch, Where("main.py", 3))
    return Reading(
        framework,
        "training",
        trace,
        findings,
        parameters_total=WIDTH * WIDTH,
        parameters_trainable=WIDTH * WIDTH,
        roots=[ModuleNode("", "Net", WIDTH * WIDTH, WIDTH * WIDTH, [(batch, WIDTH)])],
        inputs=[TensorSpec((batch, WIDTH), "float32")],
        batch_size=batch,
        precision="float32",
        optimizer=OptimizerInfo("Adam", WIDTH * WIDTH),
        steps_per_epoch=100,
        epochs=3,
    )
