"""Scratch memory of the vendor's libraries, as the framework gets it through its own allocator.

Which scratch a kernel takes depends on the device, so it is not in the trace: it is worked out here from the
operator's record while the trace is replayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oarlock_profiler.core.devices import DeviceSpec
from oarlock_profiler.core.engine.trace import Op
from oarlock_profiler.core.memory.convolution import layer_of, scratch_of

KIB = 1 << 10
MIB = 1 << 20

CUBLAS_WORKSPACE_BYTES = 8 * MIB + 128 * KIB
"""PyTorch's default ``CUBLAS_WORKSPACE_CONFIG`` ``:4096:2:16:8``, per thread that calls cuBLAS."""

CUBLAS_WORKSPACE_HOPPER_BYTES = 32 * MIB
"""The same from compute capability 9.0 on (``:4096:8``), after cuBLAS's own recommendation."""


@dataclass(frozen=True, slots=True)
class Libraries:
    """Scratch of cuBLAS and cuDNN for ``framework`` on ``device`` (None: no accelerator library is in use).

    PyTorch takes one cuBLAS workspace for the thread of the forward pass and one for the thread of the backward pass,
    and keeps both (``aten/src/ATen/cuda/CublasHandlePool.cpp``). PaddlePaddle leaves the workspace to cuBLAS, which
    takes it outside the framework's allocator.

    Convolutions on tensor cores take scratch (see :mod:`.convolution`); on older devices none that shows.
    """

    framework: str | None
    compute_capability: int | None

    def lasting_bytes(self, op: Op) -> tuple[str, int] | None:
        """Scratch that ``op`` takes at its first use and keeps: a key that tells uses apart, and bytes."""
        if self.framework != "pytorch" or self.compute_capability is None or not op.matmul or is_convolution(op):
            return None
        thread = "backward" if op.phase == "backward" else "forward"
        hopper = self.compute_capability >= 90
        return f"cublas-{thread}", CUBLAS_WORKSPACE_HOPPER_BYTES if hopper else CUBLAS_WORKSPACE_BYTES

    def scratch_bytes(self, op: Op, fresh: Sequence[int]) -> tuple[tuple[int, ...], bool]:
        """Scratch that ``op`` takes and gives back, one after the other, beyond what the trace already holds for it.

        ``fresh`` are the sizes of the buffers that were allocated for ``op``, in order. In bytes, and whether it is
        known well (:class:`~oarlock_profiler.core.memory.convolution.Scratch`).
        """
        if self.compute_capability is None or op.filters is None:
            return (), True
        if "depthwise" in op.kernel or not _on_tensor_cores(op.dtype, self.compute_capability):
            return (), True
        layer = layer_of(op, fresh)
        if layer is None:
            return (), True
        scratch = scratch_of(layer)
        if op.phase != "backward":
            taken: tuple[int, ...] = (scratch.forward,)
        else:
            taken = (scratch.input_gradient, scratch.weight_gradient)
        beyond = tuple(nbytes - op.workspace_bytes for nbytes in taken if nbytes > op.workspace_bytes)
        return beyond, scratch.settled


def _on_tensor_cores(dtype: str, compute_capability: int) -> bool:
    if dtype == "float32":
        return compute_capability >= 80  # TF32, which cuDNN uses by default
    if dtype == "bfloat16":
        return compute_capability >= 80
    return dtype == "float16" and compute_capability >= 70


def is_convolution(op: Op) -> bool:
    """Whether ``op`` runs in the convolution library."""
    return "conv" in op.name or "conv" in op.kernel


def libraries_of(device: DeviceSpec | None, framework: str | None, *, recent: bool = True) -> Libraries:
    """The libraries of ``framework`` on ``device``; an unknown device is taken for a common NVIDIA one.

    Stacks that are not ``recent`` (PyTorch 1.x with cuDNN 8.0) showed neither kind of scratch.
    """
    if not recent:
        return Libraries(framework, None)
    if device is None:
        return Libraries(framework, 80)
    return Libraries(framework, device.compute_capability)
