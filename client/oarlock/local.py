"""Reading a script on this machine, without a bus: what ``oarlock explain`` and ``oarlock fit`` do.

The one place of the client that runs a service's code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from oarlock.bundle import BundleError
from oarlock_profiler.adapters.devices import catalogue, spec_named
from oarlock_profiler.adapters.portray import Job, NothingToRead, job_of, portray
from oarlock_profiler.adapters.sources import SourcesError, wrong_library_path
from oarlock_profiler.core import calibration
from oarlock_profiler.core.devices import DeviceSpec
from oarlock_schemas import Portrait, TaskSubmitted, read, read_yaml

_SHOWN = ("A100 SXM4 80GB", "H100 SXM", "V100 SXM2 32GB", "RTX 3090", "RTX 4090", "T4", "Ascend 910B3", "H200")
"""Device kinds whose step time is predicted when none is asked about."""


class UnknownDevice(ValueError):
    """No device kind has this name; the message suggests some."""


@dataclass(frozen=True, slots=True)
class Explained:
    """A portrait, and the reader's path in words and as JSON values (empty unless it was asked for)."""

    portrait: Portrait
    path: list[str] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)


def explain_path(
    script: Path,
    arguments: Sequence[str] = (),
    *,
    gpu: str | None = None,
    entry: str | None = None,
    library_paths: Sequence[Path] = (),
    environment: Mapping[str, str] | None = None,
    world_size: int = 1,
    trace: bool = False,
) -> Explained:
    """Read a script, a folder, a notebook, an archive or a task file.

    Raises:
        UnknownDevice: ``gpu`` names no device kind.
        oarlock_schemas.InvalidMessage: the task file does not fit the schema.
        oarlock.bundle.BundleError: there is nothing to read, or no library lies where one should.
    """
    for folder in library_paths:
        wrong = wrong_library_path(folder)
        if wrong is not None:
            raise BundleError(f"--library-path: {wrong}")
    job = _job(script, arguments, entry, environment or {}, world_size)
    target = _target(gpu)
    fleet = (target,) if target is not None else tuple(spec for name in _SHOWN if (spec := spec_named(name)))
    ready = replace(job, library_paths=tuple(map(str, library_paths)), fleet=fleet, target=target, follow=trace)
    try:
        portrait, reading = portray(ready)
    except (NothingToRead, SourcesError) as error:
        raise BundleError(str(error)) from error
    if reading.trail is None:
        return Explained(portrait)
    from oarlock_profiler.core import trail_words

    return Explained(portrait, trail_words.lines(reading.trail), trail_words.values(reading.trail))


def _job(
    script: Path, arguments: Sequence[str], entry: str | None, environment: Mapping[str, str], world_size: int
) -> Job:
    if not script.exists():
        raise BundleError(f"{script} does not exist")
    if script.suffix not in {".yaml", ".yml", ".json"}:
        return Job(
            path=str(script),
            entry=entry,
            arguments=tuple(arguments),
            environment=environment,
            world_size=world_size,
        )
    task, _ = read(TaskSubmitted, read_yaml(script.read_bytes()))
    if arguments:
        task = task.model_copy(update={"arguments": list(arguments)})
    source = task.source
    if source.inline is not None:
        return job_of(task, text=source.inline)
    if source.path is not None:
        return job_of(task, path=str(script.parent / source.path))
    return job_of(task)


def _target(gpu: str | None) -> DeviceSpec | None:
    if gpu is None:
        return None
    found = spec_named(gpu)
    if found is not None:
        return found
    from oarlock_accelerators import resolve_kind

    words = set(gpu.lower().split())
    alike = [spec.name for spec in catalogue() if words & set(spec.name.lower().replace("-", " ").split())]
    near = ", ".join(resolve_kind(gpu).suggestions[:4] or (alike or [spec.name for spec in catalogue()])[:6])
    raise UnknownDevice(f"no device kind {gpu!r}; near it: {near}")


def learned_cells(state: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each cell of a calibration state: its name, the factor it alone suggests, and how many runs are behind it."""
    return calibration.describe(dict(state)) if state else []


def forget_cells(state: dict[str, Any] | None, prefix: str | None) -> dict[str, Any] | None:
    """The state without the cells below ``prefix`` (all of them when it is None); None when there is nothing."""
    return None if state is None else calibration.reset(state, prefix)
