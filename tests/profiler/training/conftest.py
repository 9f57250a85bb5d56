"""Reading snippets: ``read_script(text, arguments…)`` gives the reading of one script."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from oarlock_profiler.adapters.sources import text_sources
from oarlock_profiler.core.engine.trace import Alloc, Free, Retag, Trace
from oarlock_profiler.core.reader import read
from oarlock_profiler.core.reading import Reading, Request

ReadScript = Callable[..., Reading]


@pytest.fixture
def read_script() -> ReadScript:
    """Read one script given as text; further files by name."""

    def run(
        text: str, *arguments: str, files: Mapping[str, str] | None = None, world_size: int = 1, **declared: Any
    ) -> Reading:
        sources = text_sources({"main.py": textwrap.dedent(text), **(files or {})})
        request = Request("main.py", arguments, declared=declared, world_size=world_size)
        return read(request, sources, time.monotonic)

    return run


@pytest.fixture
def live_bytes() -> Callable[[Trace, str], int]:
    """Bytes of one kind that are still allocated when a trace ends."""

    def count(trace: Trace, kind: str) -> int:
        live: dict[int, tuple[int, str]] = {}
        for event in trace.events:
            if isinstance(event, Alloc):
                live[event.id] = (event.nbytes, event.kind)
            elif isinstance(event, Retag) and event.id in live:
                live[event.id] = (live[event.id][0], event.kind)
            elif isinstance(event, Free):
                live.pop(event.id, None)
        return sum(nbytes for nbytes, found in live.values() if found == kind)

    return count
