"""The device's own share: what a process holds of a device before its first tensor, and what communication adds.

A CUDA context is the driver's bookkeeping (it grows with the number of multiprocessors) plus the kernels that are
loaded. Since CUDA 11.7 modules are loaded when first used (``CUDA_MODULE_LOADING=LAZY``); before that, a process
loaded all of its framework's kernels at start, which is why older stacks hold a gigabyte more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from oarlock_profiler.core.devices import DeviceSpec
from oarlock_profiler.core.memory.interval import Interval

MIB = 1 << 20

Loading = Literal["lazy", "eager"]


@dataclass(frozen=True, slots=True)
class ContextRow:
    """Context of one device kind (or of every kind of ``arch``), in MiB, and who measured it."""

    vendor: str
    arch: str | None
    kinds: tuple[str, ...]
    framework: str | None
    loading: Loading
    low_mib: int
    mib: int
    high_mib: int
    source: str


# Exact kinds first, then architectures, then vendors. `mib` after the first matrix product and convolution.
CONTEXTS: tuple[ContextRow, ...] = (
    ContextRow(
        "nvidia",
        "sm_75",
        ("T4",),
        "pytorch",
        "lazy",
        105,
        135,
        160,
        "torch-preflight cost model: T4, torch 2.11, CUDA 12.8: 105 MiB after init, 131 with cuBLAS, 135 with cuDNN",
    ),
    ContextRow(
        "nvidia",
        "sm_86",
        ("RTX 3090",),
        "pytorch",
        "lazy",
        240,
        256,
        330,
        "invoke-ai/InvokeAI#9413: RTX 3090, torch 2.7.1+cu128: 256 MiB idle",
    ),
    ContextRow(
        "nvidia",
        "sm_86",
        ("RTX 3090",),
        "pytorch",
        "eager",
        1200,
        1488,
        1700,
        "pytorch/pytorch#49877: RTX 3090, torch 1.7.1+cu110: about 1488 MiB",
    ),
    ContextRow(
        "nvidia",
        "sm_75",
        ("RTX 2080 Ti",),
        "pytorch",
        "eager",
        800,
        879,
        1100,
        "pytorch/pytorch#49877: RTX 2080 Ti, torch 1.6, CUDA 10.1: 1035 MiB less a tensor of 156.25 MiB",
    ),
    ContextRow(
        "nvidia",
        "sm_70",
        (),
        "pytorch",
        "eager",
        300,
        1343,
        1500,
        "transformers docs perf_train_gpu_one: V100 16 GB, 1343 MB with kernels loaded (torch 1.x, CUDA 11); "
        "pytorch/pytorch#20532: 300 to 400 MB on torch 1.1",
    ),
    ContextRow("nvidia", "sm_70", (), None, "lazy", 240, 320, 480, "pytorch/pytorch#20532: 300 to 400 MB on a V100"),
    ContextRow("nvidia", "sm_75", (), None, "lazy", 100, 140, 260, "as T4; grows with the multiprocessors"),
    ContextRow("nvidia", "sm_80", (), None, "lazy", 360, 450, 560, "between RTX 3090 and H100 by multiprocessors"),
    ContextRow("nvidia", "sm_86", (), None, "lazy", 120, 240, 340, "as RTX 3090; grows with the multiprocessors"),
    ContextRow("nvidia", "sm_89", (), None, "lazy", 160, 300, 460, "as RTX 3090; grows with the multiprocessors"),
    ContextRow("nvidia", "sm_90", (), None, "lazy", 450, 560, 700, "extrapolated by multiprocessors"),
    ContextRow("nvidia", "sm_100", (), None, "lazy", 450, 650, 900, "extrapolated by multiprocessors"),
    ContextRow("nvidia", "sm_120", (), None, "lazy", 350, 520, 800, "extrapolated by multiprocessors"),
    ContextRow("nvidia", None, (), None, "lazy", 100, 320, 600, "range of the kinds above"),
    ContextRow("nvidia", None, (), None, "eager", 400, 1100, 1700, "range of reports before lazy module loading"),
)

ANY_ACCELERATOR = ContextRow(
    "", None, (), None, "lazy", 100, 400, 1600, "no measurement of this kind is known: the range of all known kinds"
)


@dataclass(frozen=True, slots=True)
class Context:
    """A context's interval in bytes; ``assumed`` says that no measurement of this kind stands behind it."""

    bytes: Interval
    source: str
    assumed: bool


def context_of(device: DeviceSpec | None, framework: str | None, loading: Loading = "lazy") -> Context:
    """The context of ``framework`` on ``device`` (None: on an accelerator yet unknown)."""
    if device is not None and device.is_host:
        raise ValueError("main memory has no device context; use host_base")
    if device is None:
        row = ANY_ACCELERATOR
    else:
        row = next((row for row in CONTEXTS if _fits(row, device, framework, loading)), ANY_ACCELERATOR)
        if loading == "lazy" and device.context_bytes is not None and not row.kinds:
            value = device.context_bytes
            interval = Interval(round(value * 0.75), value, round(value * 1.5))
            return Context(interval, device.context_source or "device catalogue", assumed=False)
    assumed = not row.kinds and not (row.arch and "extrapolated" not in row.source)
    interval = Interval(row.low_mib * MIB, row.mib * MIB, row.high_mib * MIB)
    return Context(interval, row.source, assumed)


def _fits(row: ContextRow, device: DeviceSpec, framework: str | None, loading: Loading) -> bool:
    return (
        row.vendor == device.vendor
        and row.loading == loading
        and (row.arch is None or row.arch == device.arch)
        and (not row.kinds or any(device.name.startswith(kind) for kind in row.kinds))
        and (row.framework is None or framework in (None, row.framework) or not row.kinds)
    )


def communication_of(devices: int, strategy: str | None) -> Interval:
    """Buffers of the collective library (NCCL, HCCL, …) for ``devices`` ranks, in bytes.

    NCCL keeps, per channel and direction, a ring buffer of ``NCCL_BUFFSIZE`` (4 MiB) for each protocol; two to
    sixteen channels are opened by topology (NVIDIA NCCL user guide). Sharded and tensor-parallel strategies open more
    than one communicator.
    """
    if devices <= 1:
        return Interval(0, 0, 0)
    groups = 1 if strategy in {None, "none", "ddp", "dp"} else 2
    return Interval(60 * MIB * groups, 220 * MIB * groups, 700 * MIB * groups)


# Resident memory of a process that has imported the framework and done its first step, in MiB: (low, value, high).
# CPU figures measured on Debian 12, Python 3.11 with numpy 2.3, torch 2.13 and paddlepaddle 3.3.1 (CPU wheels);
# with an accelerator the driver's and libraries' host parts come on top.
_HOST_BASE_MIB: dict[str, tuple[int, int, int]] = {
    "numpy": (25, 32, 60),
    "pytorch": (220, 300, 450),
    "paddlepaddle": (240, 300, 450),
}
_ACCELERATOR_HOST_MIB = (600, 1500, 3000)


def host_base(framework: str | None, *, accelerator: bool) -> Interval:
    """Main memory that the interpreter and the framework's libraries hold, in bytes."""
    low, value, high = _HOST_BASE_MIB.get(framework or "", (15, 150, 450))
    if accelerator:
        low, value, high = (a + b for a, b in zip((low, value, high), _ACCELERATOR_HOST_MIB, strict=True))
    return Interval(low * MIB, value * MIB, high * MIB)
