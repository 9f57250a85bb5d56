"""From a bundle on this machine to a portrait: opens the sources, reads, and puts numbers to it. One process, no bus.

The command's ``explain`` calls it directly; the service calls it in a worker process with limits.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oarlock_profiler.adapters.sources import open_sources, text_sources
from oarlock_profiler.core.calibration import State
from oarlock_profiler.core.devices import DeviceSpec
from oarlock_profiler.core.interpreter.budget import Limits
from oarlock_profiler.core.overlays.declared import ENTRY as DECLARED_ENTRY
from oarlock_profiler.core.overlays.declared import declared_source
from oarlock_profiler.core.portrait import Setting, build
from oarlock_profiler.core.reader import read
from oarlock_profiler.core.reading import Reading, Request, Sources
from oarlock_schemas import Portrait, TaskSubmitted


class NothingToRead(ValueError):
    """Neither code, nor a model that is known by its name."""


@dataclass(frozen=True)
class Job:
    """Everything one reading needs; plain values, so that it can be sent to another process.

    Exactly one of ``path`` (a file, folder or archive on this machine) and ``text`` (the script itself) is given, or
    neither: then the task is sized from what was ``declared``.
    """

    path: str | None = None
    text: str | None = None
    entry: str | None = None
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    declared: Mapping[str, Any] = field(default_factory=dict)
    world_size: int = 1
    library_paths: tuple[str, ...] = ()
    fleet: tuple[DeviceSpec, ...] = ()
    target: DeviceSpec | None = None
    calibration: State | None = None
    seconds: float = 30.0
    follow: bool = False
    """Also keep the reader's path, in the reading."""


def job_of(task: TaskSubmitted, **more: Any) -> Job:
    """What a submitted task says of the reading; ``more`` gives the rest (``path``, ``text``, ``fleet``…)."""
    spec, policy = task.task, task.resource_policy
    declared = {
        "type": spec.type,
        "framework": spec.framework,
        "model_name": spec.model_name,
        "sequence_length": spec.sequence_length,
        "batch_size_per_gpu": spec.batch_size_per_gpu,
        "distributed_strategy": policy.distributed_strategy,
        "allow_mixed_precision": policy.allow_mixed_precision,
    }
    devices = spec.num_gpus_estimate
    return Job(
        entry=task.source.entry,
        arguments=tuple(task.arguments),
        environment=task.run_variables,
        declared={name: value for name, value in declared.items() if value is not None},
        world_size=devices if isinstance(devices, int) else 1,
        **more,
    )


def portray(job: Job) -> tuple[Portrait, Reading]:
    """Read and measure; the reading itself is for those who want to see the reader's path.

    Raises:
        NothingToRead: neither code nor a model that is known by its name.
        SourcesError: the bundle cannot be opened.
    """
    opened, entry = _open(job)
    sources = _Remembering(opened)
    request = Request(
        entry=entry,
        arguments=job.arguments,
        environment=job.environment,
        declared=job.declared,
        world_size=job.world_size,
    )
    reading = read(request, sources, time.monotonic, Limits(seconds=job.seconds), follow=job.follow)
    setting = Setting(
        fleet=job.fleet,
        target=job.target,
        calibration=job.calibration,
        declared=job.declared,
        devices=job.world_size if job.world_size > 1 else None,
        source_digest=sources.digest(job.arguments),
    )
    portrait = build(reading, setting)
    if entry == DECLARED_ENTRY and portrait.method == "interpreted":
        # No script was read: the model came from the built-in zoo by its declared name.
        portrait = portrait.model_copy(update={"method": "zoo"})
    return portrait, reading


def _open(job: Job) -> tuple[Sources, str]:
    if job.path is not None:
        path = Path(job.path)
        sources = open_sources(path, library_paths=job.library_paths)
        return sources, job.entry or sources.entry
    if job.text is not None:
        entry = job.entry or "main.py"
        return text_sources({entry: job.text}, library_paths=job.library_paths), entry
    written = declared_source(job.declared)
    if written is not None:
        return text_sources({DECLARED_ENTRY: written}, library_paths=job.library_paths), DECLARED_ENTRY
    raise NothingToRead("there is no code to read, and no model_name that is known")


class _Remembering:
    """Sources that remember what was read of the bundle, so that the digest covers it (and nothing else)."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self.seen: dict[str, bytes] = {}

    def read(self, path: str) -> bytes | None:
        """See ``core.reading.Sources``."""
        data = self._sources.read(path)
        if data is not None:
            self.seen[path] = hashlib.sha256(data).digest()
        return data

    def exists(self, path: str) -> bool:
        """See ``core.reading.Sources``."""
        return self._sources.exists(path)

    def listdir(self, path: str) -> Sequence[str]:
        """See ``core.reading.Sources``."""
        return self._sources.listdir(path)

    def library(self, module: str) -> tuple[str, bytes] | None:
        """See ``core.reading.Sources``."""
        return self._sources.library(module)

    def library_file(self, package: str, path: str) -> bytes | None:
        """See ``core.reading.Sources``."""
        return self._sources.library_file(package, path)

    def digest(self, arguments: Sequence[str]) -> str:
        """Names the code and how it is started: runs of the same code with the same arguments learn together."""
        whole = hashlib.sha256()
        named = [part for path, data in sorted(self.seen.items()) for part in (path.encode(), data)]
        for part in [*named, *(argument.encode("utf-8", "surrogatepass") for argument in arguments)]:
            whole.update(len(part).to_bytes(8, "big") + part)
        return whole.hexdigest()
