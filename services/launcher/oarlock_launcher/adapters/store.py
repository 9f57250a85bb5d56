"""Runs written down as files of this node: one small JSON file each, replaced as a whole and flushed to the disk."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from oarlock_launcher.core.run import Key, Run
from oarlock_launcher.ports import Stored
from oarlock_schemas import InvalidMessage, TaskPlaced, read

_RUN: TypeAdapter[Run] = TypeAdapter(Run)
_RUN_SUFFIX, _PLACED_SUFFIX, _POSITION_SUFFIX = ".run.json", ".placed.json", ".log-position"


class FileRunStore:
    """The folder ``root`` holds the runs of one launcher; two launchers must not share it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._cancelled = root / "cancelled"
        self._cancelled.mkdir(parents=True, exist_ok=True, mode=0o700)
        root.chmod(0o700)

    def load(self) -> tuple[list[Stored], dict[str, float]]:
        """See ``ports.RunStore``. A file that cannot be read is set aside under ``.unreadable``."""
        stored = []
        for path in sorted(self._root.glob(f"*{_RUN_SUFFIX}")):
            try:
                run = _RUN.validate_json(path.read_bytes())
            except ValidationError:
                path.replace(path.with_suffix(".unreadable"))
                continue
            stored.append(Stored(run, None if run.phase == "reported" else self._placement(run.key)))
        cancelled = {}
        for path in self._cancelled.iterdir():
            cancelled[path.name] = path.stat().st_mtime
        return stored, cancelled

    def save(self, run: Run) -> None:
        self._write(self._path(run.key, _RUN_SUFFIX), _RUN.dump_json(run))

    def save_placement(self, placed: TaskPlaced) -> None:
        key = (placed.task_id, placed.attempt)
        self._write(self._path(key, _PLACED_SUFFIX), placed.model_dump_json(by_alias=True).encode())

    def forget(self, key: Key) -> None:
        for suffix in (_PLACED_SUFFIX, _POSITION_SUFFIX, _RUN_SUFFIX):
            self._path(key, suffix).unlink(missing_ok=True)

    def remember_cancel(self, task_id: str, at_seconds: float) -> None:
        path = self._cancelled / task_id
        path.touch(mode=0o600)
        os.utime(path, (at_seconds, at_seconds))

    def forget_cancel(self, task_id: str) -> None:
        (self._cancelled / task_id).unlink(missing_ok=True)

    def log_position(self, key: Key) -> int:
        with contextlib.suppress(OSError, ValueError):
            return int(self._path(key, _POSITION_SUFFIX).read_text())
        return 0

    def save_log_position(self, key: Key, number: int) -> None:
        # Not flushed: an older position only makes lines be sent again under the same ids.
        self._path(key, _POSITION_SUFFIX).write_text(str(number))

    def _placement(self, key: Key) -> TaskPlaced | None:
        try:
            return read(TaskPlaced, self._path(key, _PLACED_SUFFIX).read_bytes())[0]
        except (OSError, InvalidMessage):
            return None

    def _path(self, key: Key, suffix: str) -> Path:
        return self._root / f"{key[0]}.{key[1]}{suffix}"

    def _write(self, path: Path, data: bytes) -> None:
        temporary = path.with_suffix(".tmp")
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        folder = os.open(self._root, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
