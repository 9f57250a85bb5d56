"""Runs in the oracle's environment: executes scripts for real and writes the allocator's peaks as JSON.

``python cpu_run.py paddle|torch SCRIPTS.json PEAKS.json``; ``SCRIPTS.json`` maps names to texts. For each script the
peak of tensor bytes up to the end of the first step, and the greatest of the later steps; for PyTorch also the same
without the scratch of kernels that a GPU does not run (``first_without``, ``steady_without``, ``own_kernels``).
Standalone on purpose: the oracle's environment has the framework and nothing of ours.
"""

import gc
import json
import sys
from pathlib import Path
from typing import Any

OWN_KERNELS = {
    "aten::mkldnn_convolution",
    "aten::convolution_backward",
    "aten::_slow_conv2d_forward",
    "aten::slow_conv3d_forward",
    "aten::slow_conv_transpose2d",
    "aten::slow_conv_dilated2d",
    "aten::mkldnn_rnn_layer",
    "aten::mkldnn_rnn_layer_backward",
}
"""Kernels of PyTorch's CPU build that reorder or unfold their tensors into scratch; no GPU kernel takes it like this.
Only what is allocated and given back inside one call of such a kernel counts as its scratch."""


class Paddle:
    """Peaks from PaddlePaddle's own statistics of its CPU allocator."""

    def __init__(self) -> None:
        import paddle  # type: ignore[import-not-found]  # noqa: PLC0415

        self.core = paddle.base.core

    def current(self) -> int:
        return int(self.core.host_memory_stat_current_value("Allocated", 0))

    def reset(self) -> None:
        self.core.host_memory_stat_reset_peak_value("Allocated", 0)

    def run(self, text: str) -> dict[str, Any]:
        import paddle  # noqa: PLC0415

        gc.collect()
        base, peaks = self.current(), list[int]()
        self.reset()
        originals: dict[Any, Any] = {}

        def wrap(cls: Any) -> None:
            original = cls.__dict__.get("step")
            if original is None:
                return
            originals[cls] = original

            def step(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
                result = original(optimizer, *args, **kwargs)
                peaks.append(self.core.host_memory_stat_peak_value("Allocated", 0) - base)
                self.reset()
                return result

            cls.step = step

        for cls in {c for c in vars(paddle.optimizer).values() if isinstance(c, type)}:
            wrap(cls)
        try:
            exec(compile(text, "script.py", "exec"), {"__name__": "__main__"})
        finally:
            for cls, original in originals.items():
                cls.step = original
        return {"first": peaks[0], "steady": max(peaks[1:])}


class Torch:
    """Peaks from the allocation events of PyTorch's profiler."""

    def run(self, text: str) -> dict[str, Any]:
        import torch  # type: ignore[import-not-found]  # noqa: PLC0415
        from torch.profiler import (  # type: ignore[import-not-found]  # noqa: PLC0415
            ProfilerActivity,
            profile,
            record_function,
        )

        gc.collect()  # what an earlier script left must not be freed while this one is watched
        original: dict[Any, Any] = {}

        def wrap(cls: Any) -> None:
            step = cls.__dict__.get("step")
            if step is None:
                return
            original[cls] = step

            def marked(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
                result = step(optimizer, *args, **kwargs)
                with record_function("oracle-step"):
                    pass
                return result

            cls.step = marked

        for cls in {c for c in vars(torch.optim).values() if isinstance(c, type)}:
            wrap(cls)
        try:
            with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
                exec(compile(text, "script.py", "exec"), {"__name__": "__main__"})
        finally:
            for cls, step in original.items():
                cls.step = step
        events: list[tuple[int, int, int, str]] = []  # time, bytes, bytes of scratch, name of what holds it
        for root in prof.profiler.kineto_results.experimental_event_tree():
            _walk(root, "", events)
        events.sort(key=lambda event: event[0])
        first = _peaks(events)
        return {**first, "own_kernels": sorted({name for _, _, scratch, name in events if scratch})}


def _walk(node: Any, holder: str, events: list[tuple[int, int, int, str]]) -> None:
    """Allocations and ends of steps below ``node``, in order; ``holder`` is the kernel whose scratch they may be."""
    if node.name == "oracle-step":
        events.append((node.start_time_ns, 0, 0, "step"))
        return
    if node.name == "[memory]":
        size = int(node.typed[1].alloc_size)
        events.append((node.start_time_ns, size, 0, ""))
        return
    if holder or node.name not in OWN_KERNELS:
        for child in node.children:
            _walk(child, holder, events)
        return
    found: list[Any] = []
    _allocations(node, found)
    pending: dict[int, int] = {}
    scratch: set[int] = set()
    for place, event in enumerate(found):
        pointer, size = int(event.typed[1].ptr), int(event.typed[1].alloc_size)
        if size > 0:
            pending[pointer] = place
        elif pointer in pending:
            scratch |= {pending.pop(pointer), place}
    for place, event in enumerate(found):
        size = int(event.typed[1].alloc_size)
        events.append((event.start_time_ns, size, size if place in scratch else 0, node.name))


def _allocations(node: Any, found: list[Any]) -> None:
    for child in node.children:
        if child.name == "[memory]":
            found.append(child)
        else:
            _allocations(child, found)
    found.sort(key=lambda event: event.start_time_ns)


def _peaks(events: list[tuple[int, int, int, str]]) -> dict[str, Any]:
    """Peaks per step, with all that was allocated and without the scratch of the kernels named above."""
    found: dict[str, Any] = {}
    for suffix, share in (("", 0), ("_without", 1)):
        peaks, now, high = list[int](), 0, 0
        for _, nbytes, scratch, name in events:
            if name == "step":
                peaks.append(high)
                high = now
            now += nbytes - share * scratch
            high = max(high, now)
        found[f"first{suffix}"], found[f"steady{suffix}"] = peaks[0], max(peaks[1:])
    return found


def main() -> None:
    framework, scripts, out = sys.argv[1:]
    runner: Any = Paddle() if framework == "paddle" else Torch()
    results: dict[str, Any] = {}
    for name, text in json.loads(Path(scripts).read_text()).items():
        try:
            results[name] = runner.run(text)
        except Exception as error:
            results[name] = {"error": f"{type(error).__name__}: {error}"}
    Path(out).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
