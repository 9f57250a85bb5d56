"""Unpacks a zip or tar archive into a folder: bounded in files and bytes, and never outside the folder.

Only regular files and folders are written; links, devices and absolute or climbing names end the unpacking. Sizes are
counted as bytes come out, not as the archive's index claims them.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from oarlock_launcher.ports import CannotStart

_CHUNK = 256 * 1024


@dataclass(frozen=True, slots=True)
class CodeLimits:
    """How large a task's code may be, unpacked."""

    files: int = 20_000
    total_bytes: int = 512 * 1024 * 1024


def unpack(data: bytes, folder: Path, limits: CodeLimits) -> None:
    """Unpack ``data`` into the existing, empty ``folder``.

    Raises:
        CannotStart: it is no archive, damaged, too large, or holds a name that would leave the folder.
    """
    budget = _Budget(limits)
    try:
        if zipfile.is_zipfile(io.BytesIO(data)):
            _unpack_zip(data, folder, budget)
        else:
            _unpack_tar(data, folder, budget)
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        EOFError,
        OSError,
        RuntimeError,
        NotImplementedError,
        ValueError,
    ) as error:
        raise CannotStart(f"the bundle cannot be unpacked: {error}") from error


class _Budget:
    def __init__(self, limits: CodeLimits) -> None:
        self._limits = limits
        self._files = 0
        self._bytes = 0

    def file(self) -> None:
        self._files += 1
        if self._files > self._limits.files:
            raise CannotStart(f"the code has more than {self._limits.files} files; mount data sets instead")

    def grow(self, count: int) -> None:
        self._bytes += count
        if self._bytes > self._limits.total_bytes:
            raise CannotStart(f"the code is over {self._limits.total_bytes} bytes unpacked; mount data sets instead")


def _unpack_zip(data: bytes, folder: Path, budget: _Budget) -> None:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            budget.file()
            mode = member.external_attr >> 16
            if mode & 0o170000 not in (0, 0o100000, 0o040000):
                raise CannotStart(f"the bundle holds {member.filename[:200]!r}, which is neither file nor folder")
            target = inside(folder, member.filename)
            if member.is_dir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            with archive.open(member) as source:
                _write(source, target, budget, executable=bool(mode & 0o100))


def _unpack_tar(data: bytes, folder: Path, budget: _Budget) -> None:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:*") as archive:
        for member in _members(archive):
            budget.file()
            target = inside(folder, member.name)
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            source = archive.extractfile(member) if member.isfile() else None
            if source is None:
                raise CannotStart(f"the bundle holds {member.name[:200]!r}, which is neither file nor folder")
            _write(source, target, budget, executable=bool(member.mode & 0o100))


def _members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Members as they are met, so that a long index is not read before the first limit applies."""
    while (member := archive.next()) is not None:
        yield member
        # TarFile keeps every header it has read; a bundle of a million empty names would fill memory.
        archive.members = []  # type: ignore[attr-defined]


def inside(folder: Path, name: str) -> Path:
    """``folder`` joined with an archive's ``name``.

    Raises:
        CannotStart: the name is absolute, climbs, or cannot be a file name.
    """
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if not name or "\0" in name or len(name) > 4096 or name.startswith(("/", "\\")) or ".." in parts:
        raise CannotStart(f"the bundle holds {name[:200]!r}, which is not inside it")
    return folder.joinpath(*parts)


def _write(source: IO[bytes], target: Path, budget: _Budget, *, executable: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as file:
        while chunk := source.read(_CHUNK):
            budget.grow(len(chunk))
            file.write(chunk)
    target.chmod(0o755 if executable else 0o644)


def copy_tree(source: Path, folder: Path, limits: CodeLimits) -> None:
    """Copy a file or folder; links that lead out of ``source`` are left out.

    Raises:
        CannotStart: it is not there, or too large.
    """
    budget = _Budget(limits)
    root = source.resolve()
    try:
        if root.is_file():
            budget.file()
            with root.open("rb") as file:
                _write(file, folder / source.name, budget, executable=False)
            return
        if not root.is_dir():
            raise CannotStart(f"source.path {str(source)!r} is not on this node")
        for path in _walk(root):
            budget.file()
            target = folder / path.relative_to(root)
            if path.is_dir():
                target.mkdir(parents=True, exist_ok=True)
            elif path.is_file():
                with path.open("rb") as file:
                    _write(file, target, budget, executable=bool(path.stat().st_mode & 0o100))
    except OSError as error:
        raise CannotStart(f"source.path {str(source)!r} cannot be read: {error.strerror}") from error


def _walk(root: Path) -> Iterator[Path]:
    for path in sorted(root.iterdir()):
        if path.name in (".git", "__pycache__", ".venv", "node_modules"):
            continue
        if not path.resolve().is_relative_to(root):
            continue
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)
