"""Followed runs in one file of this node, replaced as a whole."""

from __future__ import annotations

import os
from pathlib import Path
from types import MappingProxyType

from pydantic import TypeAdapter, ValidationError

from oarlock_telemetry.core.follow import State
from oarlock_telemetry.core.runs import Followed

_RUNS: TypeAdapter[list[Followed]] = TypeAdapter(list[Followed])


class StateFile:
    """See ``ports.StateStore``."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path = folder / "runs.json"

    def load(self) -> State:
        """The runs as last written; none where the file is missing. One that cannot be read is set aside."""
        try:
            runs = _RUNS.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return State()
        except ValidationError:
            self._path.replace(self._path.with_suffix(".unreadable"))
            return State()
        return State(MappingProxyType({run.facts.key: run for run in runs}))

    def save(self, state: State) -> None:
        temporary = self._path.with_suffix(".tmp")
        with temporary.open("wb") as file:
            file.write(_RUNS.dump_json(list(state.runs.values())))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)
