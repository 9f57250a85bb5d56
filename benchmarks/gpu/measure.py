"""``python measure.py OUT.json [--tiny] [--seconds N]``: trains each configuration in a process of its own.

Needs torch (torchvision and transformers for the models of theirs; what is missing is left out and said). Run it from
this folder or with the repository on the path. Per configuration: allocated and reserved peaks (torch), the process's
peak as NVML shows it, the context left after the cache is emptied, and the median step time. On a machine without CUDA
it still runs, with allocated and reserved peaks absent.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import itertools
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

from benchmarks.gpu.configurations import configurations  # noqa: E402 - the path is set just above

SAMPLE_SECONDS = 0.02
LEAST_SECONDS_LEFT = 20.0
MOST_SECONDS = 90.0


def main() -> int:
    """Measure until done or out of time; always writes what there is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tiny", action="store_true", help="sizes for a CPU")
    parser.add_argument("--seconds", type=float, default=460.0, help="stop before this")
    parser.add_argument("--only", help="names that contain this")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(_one(options.one, options.tiny)))
        return 0
    begun = time.monotonic()
    document: dict[str, Any] = {"machine": _machine(), "tiny": options.tiny, "runs": []}
    chosen = [c for c in configurations(tiny=options.tiny) if not options.only or options.only in c.name]
    # The next process imports its libraries while this one is measured; it touches the device only when told to.
    ahead = _start(chosen[0].name, options.tiny) if chosen else None
    for index, configuration in enumerate(chosen):
        left = options.seconds - (time.monotonic() - begun)
        if left < LEAST_SECONDS_LEFT or ahead is None:
            document["stopped"] = "out of time"
            break
        current = ahead
        ahead = _start(chosen[index + 1].name, options.tiny) if index + 1 < len(chosen) else None
        done = _finish(current, min(left, MOST_SECONDS))
        document["runs"].append({"name": configuration.name, "family": configuration.family, **done})
        options.out.write_text(json.dumps(document, indent=1))
    if ahead is not None:
        ahead.kill()
    options.out.write_text(json.dumps(document, indent=1))
    print(f"{len(document['runs'])} configurations in {time.monotonic() - begun:.0f} s, written to {options.out}")
    return 0


def _start(name: str, tiny: bool) -> subprocess.Popen[str]:
    command = [sys.executable, str(Path(__file__)), "-", "--one", name, *(["--tiny"] if tiny else [])]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def _finish(process: subprocess.Popen[str], seconds: float) -> dict[str, Any]:
    try:
        out, errors = process.communicate("go\n", timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return {"error": f"took longer than {seconds:.0f} s"}
    if process.returncode:
        return {"error": (errors.strip().splitlines() or ["no message"])[-1]}
    found: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    return found


def _machine() -> dict[str, Any]:
    import torch  # type: ignore[import-not-found]  # noqa: PLC0415 - only where it is measured

    found: dict[str, Any] = {"torch": torch.__version__, "cuda": torch.version.cuda, "device": None}
    if torch.cuda.is_available():
        found["device"] = torch.cuda.get_device_name(0)
        found["memory_bytes"] = torch.cuda.get_device_properties(0).total_memory
    return found


def _one(name: str, tiny: bool) -> dict[str, Any]:
    import torch  # noqa: PLC0415

    for module in ("torchvision", "transformers"):
        if importlib.util.find_spec(module) is not None and module in _wanted(name, tiny):
            importlib.import_module(module)
    sys.stdin.readline()
    configuration = next(c for c in configurations(tiny=tiny) if c.name == name)
    stamps: list[float] = []
    watch = _Nvml()
    _mark_steps(torch, stamps)
    watch.start()
    exec(compile(configuration.script, "script.py", "exec"), {"__name__": "__main__"})
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.synchronize()
    peak = watch.stop()
    steps = [b - a for a, b in itertools.pairwise(stamps)]
    result: dict[str, Any] = {
        "allocated_bytes": torch.cuda.max_memory_allocated() if cuda else None,
        "reserved_bytes": torch.cuda.max_memory_reserved() if cuda else None,
        "device_bytes": peak,
        "step_seconds": statistics.median(steps[1:]) if len(steps) > 1 else None,
    }
    if cuda:
        result["context_bytes"] = None if peak is None else peak - result["reserved_bytes"]
    return result


def _wanted(name: str, tiny: bool) -> str:
    return next(c.script for c in configurations(tiny=tiny) if c.name == name)


def _mark_steps(torch: Any, stamps: list[float]) -> None:
    """Note the time after each optimiser step, with the device's queue drained."""
    original = torch.optim.Optimizer.profile_hook_step

    def hook(function: Any) -> Any:
        wrapped = original(function)

        def step(*args: Any, **kwargs: Any) -> Any:
            result = wrapped(*args, **kwargs)
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            stamps.append(time.perf_counter())
            return result

        step.hooked = True  # type: ignore[attr-defined]
        return step

    torch.optim.Optimizer.profile_hook_step = staticmethod(hook)


class _Nvml(threading.Thread):
    """Samples this process's memory as NVML shows it; None where NVML or the process cannot be seen."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._over = threading.Event()
        self._peak: int | None = None
        self._idle: int | None = None

    def run(self) -> None:
        try:
            import pynvml  # type: ignore[import-untyped]  # noqa: PLC0415

            pynvml.nvmlInit()
            handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        except Exception:
            return
        self._idle = int(pynvml.nvmlDeviceGetMemoryInfo(handle).used)
        while not self._over.is_set():
            self._look(pynvml, handle)
            self._over.wait(SAMPLE_SECONDS)
        self._look(pynvml, handle)

    def _look(self, pynvml: Any, handle: Any) -> None:
        own = [
            process.usedGpuMemory
            for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
            if process.pid == os.getpid() and process.usedGpuMemory is not None
        ]
        # Inside a container the process table is empty: then the growth of the whole device stands in.
        whole = int(pynvml.nvmlDeviceGetMemoryInfo(handle).used) - (self._idle or 0)
        self._peak = max(self._peak or 0, own[0] if own else whole)

    def stop(self) -> int | None:
        """The peak in bytes."""
        gc.collect()
        self._over.set()
        self.join()
        return self._peak


if __name__ == "__main__":
    sys.exit(main())
