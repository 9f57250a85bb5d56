"""Fetches a task's code and has it read in isolation: the :class:`~oarlock_profiler.ports.Reader` of the service."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from pathlib import Path

from oarlock_profiler.adapters.isolated import Readers
from oarlock_profiler.adapters.portray import job_of
from oarlock_profiler.core.calibration import State
from oarlock_profiler.core.devices import DeviceSpec
from oarlock_profiler.ports import CannotRead
from oarlock_runtime import Bus, PermanentError
from oarlock_schemas import Portrait, TaskSubmitted

GIT_SECONDS = 120.0
MAX_MESSAGE_BYTES = 700_000
"""A portrait travels with its task in one message; past this the model tree is cut, then evidence."""


class TaskReader:
    """Reads inline scripts, bundles of the object store, paths under the allowed roots, and git repositories."""

    def __init__(
        self, bus: Bus, *, seconds: float, memory_bytes: int, library_paths: list[Path], roots: list[Path]
    ) -> None:
        self._bus = bus
        self._seconds = seconds
        self._readers = Readers(seconds=seconds, memory_bytes=memory_bytes)
        self._library_paths = tuple(str(path) for path in library_paths)
        self._roots = roots

    async def stand_by(self) -> None:
        """Keep a reader ready until cancelled (a background loop of the service)."""
        self._readers.prepare()
        try:
            await asyncio.Event().wait()
        finally:
            await self._readers.close()

    async def read(self, task: TaskSubmitted, fleet: list[DeviceSpec], calibration: State) -> Portrait:
        """See :class:`oarlock_profiler.ports.Reader`."""
        with tempfile.TemporaryDirectory(prefix="oarlock-read-") as folder:
            code = await self._fetch(task, Path(folder))
            job = job_of(
                task,
                **code,
                fleet=tuple(fleet),
                calibration=calibration,
                library_paths=self._library_paths,
                seconds=self._seconds,
            )
            portrait = await self._readers.read(job)
        return fitted(portrait)

    async def _fetch(self, task: TaskSubmitted, folder: Path) -> dict[str, str | None]:
        source = task.source
        if source.inline is not None:
            return {"text": source.inline}
        if source.bundle is not None:
            try:
                data = await self._bus.bundles.get(source.bundle)
            except PermanentError as error:
                raise CannotRead("bad_bundle", str(error)) from error
            archive = folder / "bundle.zip"
            archive.write_bytes(data)
            return {"path": str(archive)}
        if source.path is not None:
            return {"path": str(self._allowed(source.path))}
        if source.git is not None:
            await _clone(source.git, folder / "code")
            return {"path": str(folder / "code")}
        return {}

    def _allowed(self, path: str) -> Path:
        resolved = Path(path).resolve()
        if not any(resolved.is_relative_to(root) for root in self._roots):
            raise CannotRead(
                "path_not_allowed",
                f"{path} is under none of OARLOCK_SOURCE_ROOTS; submit the code itself (`oarlock submit`)",
            )
        if not resolved.exists():
            raise CannotRead("no_such_path", f"the profiler finds nothing at {path}")
        return resolved


async def _clone(repository: str, folder: Path) -> None:
    """A shallow checkout. Only network transports that cannot run commands of the repository's choosing.

    Raises:
        CannotRead: the address is not one we take, or git says no.
    """
    address, _, revision = repository.partition("@") if "://" in repository else (repository, "", "")
    if not address.startswith(("https://", "http://", "ssh://", "git://")) or address.startswith("-"):
        raise CannotRead("bad_git", f"{repository!r} is no https, ssh or git address")
    command = ["git", "-c", "protocol.ext.allow=never", "clone", "--quiet", "--depth", "1", "--no-tags"]
    if revision and not revision.startswith("-"):
        command += ["--branch", revision]
    process = await asyncio.create_subprocess_exec(
        *command,
        "--",
        address,
        str(folder),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin:/usr/local/bin", "GIT_TERMINAL_PROMPT": "0", "HOME": str(folder.parent)},
    )
    try:
        async with asyncio.timeout(GIT_SECONDS):
            _, err = await process.communicate()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        raise CannotRead("bad_git", f"git took longer than {GIT_SECONDS:g} s to fetch {address}") from None
    if process.returncode:
        raise CannotRead("bad_git", f"git cannot fetch {address}: {err.decode('utf-8', 'replace').strip()[:300]}")


def fitted(portrait: Portrait) -> Portrait:
    """The portrait within :data:`MAX_MESSAGE_BYTES`: first the model's depth goes, then the tail of the lists."""
    if len(portrait.model_dump_json()) <= MAX_MESSAGE_BYTES:
        return portrait
    shallow = portrait.model_copy(update={"model": [n.model_copy(update={"children": []}) for n in portrait.model]})
    if len(shallow.model_dump_json()) <= MAX_MESSAGE_BYTES:
        return shallow
    return shallow.model_copy(
        update={
            "evidence": portrait.evidence[:100],
            "unknowns": portrait.unknowns[:100],
            "kernels": portrait.kernels[:200],
        }
    )
