"""How an end is understood: ok, error, oom, cancelled, timeout or lost, and a sentence for people."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from oarlock_launcher.core.run import Ending, StopReason

_OOM = re.compile(
    r"ResourceExhaustedError"  # Paddle, any device
    r"|Out of memory error on (?:GPU|XPU|NPU|MLU|DCU|device)"  # Paddle's allocator, by device
    r"|\b(?:Cannot allocate|Allocate) \S+ memory on (?:GPU|XPU|NPU|MLU)"  # Paddle's second line
    r"|\bOutOfMemoryError\b"  # torch.OutOfMemoryError, torch.cuda.OutOfMemoryError, Java-like wrappers
    r"|\b(?:CUDA|HIP|XPU|NPU|MUSA|MLU|HPU|MPS backend|CPU) out of memory"  # torch and its vendors' plug-ins
    r"|CUDA error: out of memory|hipErrorOutOfMemory|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY"
    r"|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED"
    r"|DefaultCPUAllocator: (?:not enough|can't allocate) memory"  # torch on the host
    r"|\bMemoryError\b"  # Python
    r"|numpy[\w.]*\._ArrayMemoryError|Unable to allocate .* for an array"  # NumPy
    r"|\bEL0004\b|Failed to allocate memory.*(?:HBM|NPU)|aclrtMalloc.*(?:failed|207001)"  # Ascend CANN
    r"|XPU memory (?:is )?not enough|xpu_malloc failed"  # Kunlunxin
    r"|cnrtErrorNoMem|CNRT_RET_ERR_NOMEM"  # Cambricon
    r"|musaErrorMemoryAllocation"  # Moore Threads
    r"|std::bad_alloc"
)
_LOOK_BACK_LINES = 200
_MESSAGE_MAX_LENGTH = 500
_SIGKILL = 9


@dataclass(frozen=True, slots=True)
class Understood:
    """An outcome of ``oarlock_schemas.Outcome`` and why."""

    outcome: str
    message: str | None = None


def out_of_memory_line(lines: Sequence[str]) -> str | None:
    """The last of ``lines`` (newest last; at most 200 are looked at) in which a framework says it ran out of memory.

    Lines of a task are text that it chose; this is believed only of a run that also failed.
    """
    for line in reversed(lines[-_LOOK_BACK_LINES:]):
        if _OOM.search(line[:4096]):
            return line[:_MESSAGE_MAX_LENGTH]
    return None


def understand(
    ending: Ending, stop_reason: StopReason | None = None, stop_note: str | None = None, oom_line: str | None = None
) -> Understood:
    """What the end of a run means.

    A run that was asked to end has ended for that reason, whatever its exit code: a script that handles SIGTERM and
    leaves with 0 was cancelled all the same.
    """
    if stop_reason is not None:
        return Understood(stop_reason, stop_note)
    code = ending.exit_code
    if code == 0:
        return Understood("ok")
    if ending.memory_killed:
        return Understood("oom", "killed because it went over its memory limit")
    if code is None and ending.signal is None:
        return Understood("lost", ending.note or "how it ended is not known")
    if oom_line is not None:
        return Understood("oom", oom_line.strip())
    return Understood("error", ending.note or _message(ending))


def _message(ending: Ending) -> str:
    last = next((line.strip() for line in reversed(ending.log_tail) if line.strip()), None)
    if ending.signal is not None:
        how = f"killed by signal {ending.signal}"
    elif ending.exit_code == 128 + _SIGKILL:
        how = "exit code 137: killed by signal 9"
    else:
        how = f"exit code {ending.exit_code}"
    return f"{how}: {last}"[:_MESSAGE_MAX_LENGTH] if last else how
