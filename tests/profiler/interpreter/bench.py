"""A small engine and an in-memory bundle: what the interpreter needs to run a snippet without any framework."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from oarlock_profiler.core.engine.trace import Trace
from oarlock_profiler.core.findings import Findings
from oarlock_profiler.core.interpreter.budget import Budget, Limits
from oarlock_profiler.core.interpreter.machine import Machine
from oarlock_profiler.core.reader import interpret
from oarlock_profiler.core.reading import Request


class Files:
    """A bundle given as a mapping of relative path to text, and a library path likewise."""

    def __init__(self, files: Mapping[str, str | bytes], library: Mapping[str, str] | None = None) -> None:
        self.files = {k: v.encode() if isinstance(v, str) else v for k, v in files.items()}
        self.libraries = dict(library or {})

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)

    def exists(self, path: str) -> bool:
        return path in self.files

    def listdir(self, path: str) -> Sequence[str]:
        prefix = f"{path}/" if path else ""
        return sorted({f[len(prefix) :].partition("/")[0] for f in self.files if f.startswith(prefix)})

    def library(self, module: str) -> tuple[str, bytes] | None:
        for path in (module.replace(".", "/") + "/__init__.py", module.replace(".", "/") + ".py"):
            if path in self.libraries:
                return f"<library>/{path}", self.libraries[path].encode()
        return None

    def library_file(self, package: str, path: str) -> bytes | None:
        text = self.libraries.get(f"{package.replace('.', '/')}/{path}")
        return None if text is None else text.encode()


class StillEngine:
    """An engine in which nothing ever trains."""

    steady = False
    backward_calls = unstepped = micro_batches = 0

    def __init__(self) -> None:
        self.trace = Trace()


class Ran:
    """What a snippet left behind."""

    def __init__(self, machine: Machine, stopped: str | None) -> None:
        self.machine = machine
        self.stopped = stopped

    def __getitem__(self, name: str) -> Any:
        return self.machine.importer.modules["__main__"].attrs[name]

    @property
    def gaps(self) -> list[str]:
        return [f"{g.what}: {g.why}" for g in self.machine.findings.gaps.values()]


def run(
    source: str | bytes,
    *arguments: str,
    files: Mapping[str, str | bytes] | None = None,
    library: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    engine: Any = None,
) -> Ran:
    """Interpret ``source`` as ``main.py`` of a bundle."""
    request = Request("main.py", arguments, dict(environment or {}))
    budget = Budget(limits or Limits(seconds=20), time.monotonic)
    sources = Files({"main.py": source, **(files or {})}, library)
    machine = Machine(request, sources, engine or StillEngine(), Findings(), budget)
    return Ran(machine, interpret(machine, request))
