"""Every decision of a leader on file, so that it can be decided again: one JSON line each, bounded in size.

A reign begins with a line that holds its settings; the lines after it are ``core.recording`` records. When the file is
full it is set aside once (``FILE.1``) and begun anew with the next reign.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from oarlock_matcher.core.effects import Effect
from oarlock_matcher.core.events import Event
from oarlock_matcher.core.policy_settings import PolicySettings
from oarlock_matcher.core.recording import BadRecord, Mismatch, decode, encode, record, replay
from oarlock_matcher.core.state import MatcherState

MAX_BYTES = 256 * 2**20


class DecisionLog:
    """Appends to ``path``; a reign calls :meth:`begin` first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._full = False

    def begin(self, settings: PolicySettings) -> None:
        """A new reign, with an empty state and ``settings``."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._size() > MAX_BYTES // 2:
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))
        self._full = False
        self._append(json.dumps({"settings": encode(settings)}))

    def write(self, event: Event, now: float, effects: Iterable[Effect]) -> None:
        """One decision. Past the bound nothing more of this reign is kept: a gap would make the rest worthless."""
        if self._full or self._size() > MAX_BYTES:
            self._full = True
            return
        self._append(record(event, now, effects))

    def _append(self, line: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def _size(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0


def replay_file(path: Path) -> Iterator[tuple[int, int, list[Mismatch]]]:
    """Each reign of the file decided again: its number, how many decisions it has, and those that came out otherwise.

    Raises:
        BadRecord: the file is no decision log, or is damaged.
    """
    reigns: list[tuple[PolicySettings, list[str]]] = []
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.startswith('{"settings"'):
                settings = decode(json.loads(line)["settings"])
                if not isinstance(settings, PolicySettings):
                    raise BadRecord(f"{path}: the first line of a reign holds no settings")
                reigns.append((settings, []))
            elif not reigns:
                raise BadRecord(f"{path} is no decision log: its first line holds no settings")
            else:
                reigns[-1][1].append(line)
    for number, (settings, lines) in enumerate(reigns):
        yield number, len(lines), replay(lines, MatcherState(settings=settings))
