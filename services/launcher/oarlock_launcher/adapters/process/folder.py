"""A run's folder on this node, and what its shim has written there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oarlock_launcher.core.logs import Line
from oarlock_launcher.core.run import Ending, Key

_STREAMS = {b"o": "stdout", b"e": "stderr"}
_READ_BYTES = 256 * 1024
_SIGKILL = 9


@dataclass(frozen=True, slots=True)
class Identity:
    """A process that cannot be taken for another: its id with the time it started, in ticks since boot."""

    pid: int
    start: int

    @property
    def alive(self) -> bool:
        """Whether this very process is there and no zombie."""
        try:
            text = Path(f"/proc/{self.pid}/stat").read_text(errors="replace")
        except OSError:
            return False
        fields = text.rpartition(")")[2].split()
        return fields[0] not in ("Z", "X") and int(fields[19]) == self.start


@dataclass(frozen=True, slots=True)
class RunFolder:
    """``code`` is the working folder; ``shim.json``, ``started.json``, ``exit.json`` and ``log`` are the shim's."""

    path: Path

    @classmethod
    def of(cls, root: Path, key: Key) -> RunFolder:
        return cls(root / f"{key[0]}.{key[1]}")

    @property
    def code(self) -> Path:
        return self.path / "code"

    @property
    def temporary(self) -> Path:
        return self.path / "tmp"

    @property
    def output(self) -> Path:
        return self.path / "output"

    @property
    def planned(self) -> bool:
        return (self.path / "shim.json").exists()

    @property
    def claimed(self) -> bool:
        """Whether a shim has taken the folder, so that no other will."""
        return (self.path / "started.json").exists()

    def write_plan(self, plan: dict[str, Any]) -> None:
        temporary = self.path / "shim.json.tmp"
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(plan, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.path / "shim.json")

    def started(self) -> dict[str, Any] | None:
        """What the shim wrote on starting; None while it has not."""
        return _read(self.path / "started.json")

    def shim(self) -> Identity | None:
        """The shim's process, when it has said who it is."""
        known = self.started()
        return Identity(known["pid"], known["start"]) if known and "pid" in known else None

    def child(self) -> Identity | None:
        """The run's main process."""
        known = self.started()
        return Identity(known["child"], known["child_start"]) if known and "child" in known else None

    def exit(self) -> dict[str, Any] | None:
        """What the shim wrote at the end; None while it has not."""
        return _read(self.path / "exit.json")

    def plan(self) -> dict[str, Any] | None:
        return _read(self.path / "shim.json")

    def ending(self) -> Ending:
        """How the run ended, once its shim is gone."""
        known = self.exit()
        if known is None:
            return Ending(note="the process that watched over the run was killed; its exit code is not known")
        if "error" in known:
            return Ending(exit_code=127, note=known["error"])
        killed = known["memory_kills"] > 0 and (known["signal"] == _SIGKILL or known["exit_code"] == 128 + _SIGKILL)
        return Ending(
            exit_code=known["exit_code"],
            signal=known["signal"],
            memory_killed=killed,
            ended_at_seconds=known["ended_at"],
            peak_process_bytes=known["peak_process_bytes"] or None,
            log_tail=tuple(known["tail"]),
        )


class LogReader:
    """Reads a run's log as it grows, line by line, from the beginning."""

    def __init__(self, folder: RunFolder) -> None:
        self._path = folder.path / "log"
        self._offset = 0
        self._rest = b""
        self._number = 0

    def lines(self) -> Iterator[Line]:
        """The lines written since the last call. Blocks on nothing but the disk."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read(_READ_BYTES)
        except OSError:
            return
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._number += 1
            stream = _STREAMS.get(line[:1], "stdout")
            yield Line(
                "stderr" if stream == "stderr" else "stdout", line[1:].decode("utf-8", errors="replace"), self._number
            )


def _read(path: Path) -> dict[str, Any] | None:
    """The object in ``path``; None where there is none, or only an empty claim, or what a crash left of one."""
    try:
        value: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return value
