"""Runs in the oracle's environment: executes scripts for real and writes the allocator's peaks as JSON.

``python cpu_run.py paddle|torch SCRIPTS.json PEAKS.json``; ``SCRIPTS.json`` maps names to texts. For each script the
peak of tensor bytes up to the end of the first step, and the greatest of the later steps. Standalone on purpose: the
oracle's environment has the framework and nothing of ours.
"""

import gc
import json
import sys
from pathlib import Path
from typing import Any


class Paddle:
    """Peaks from PaddlePaddle's own statistics of its CPU allocator."""

    def __init__(self) -> None:
        import paddle  # type: ignore[import-not-found]  # noqa: PLC0415

        self.core = paddle.base.core

    def current(self) -> int:
        return int(self.core.host_memory_stat_current_value("Allocated", 0))

    def reset(self) -> None:
        self.core.host_memory_stat_reset_peak_value("Allocated", 0)

    def run(self, text: str) -> list[int]:
        import paddle  # noqa: PLC0415

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
        gc.collect()
        return peaks


class Torch:
    """Peaks from the allocation events of PyTorch's profiler."""

    def run(self, text: str) -> list[int]:
        import torch  # type: ignore[import-not-found]  # noqa: PLC0415
        from torch.profiler import (  # type: ignore[import-not-found]  # noqa: PLC0415
            ProfilerActivity,
            profile,
            record_function,
        )

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
        events = sorted(
            (event.start_ns(), event.name(), event.nbytes() if event.name() == "[memory]" else 0)
            for event in prof.profiler.kineto_results.events()
            if event.name() in {"[memory]", "oracle-step"}
        )
        peaks, now, high = list[int](), 0, 0
        for _, name, nbytes in events:
            if name == "oracle-step":
                peaks.append(high)
                high = now
            else:
                now += nbytes
                high = max(high, now)
        gc.collect()
        return peaks


def main() -> None:
    framework, scripts, out = sys.argv[1:]
    runner: Any = Paddle() if framework == "paddle" else Torch()
    results: dict[str, Any] = {}
    for name, text in json.loads(Path(scripts).read_text()).items():
        try:
            peaks = runner.run(text)
            results[name] = {"first": peaks[0], "steady": max(peaks[1:])}
        except Exception as error:
            results[name] = {"error": f"{type(error).__name__}: {error}"}
    Path(out).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
