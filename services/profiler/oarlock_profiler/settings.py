"""Settings of the profiler; read once in ``__main__``."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from oarlock_profiler.adapters.sources import wrong_library_path
from oarlock_runtime import RuntimeSettings


class ProfilerSettings(RuntimeSettings):
    """Environment variables with the prefix ``OARLOCK_``, beside those every service has."""

    read_seconds: float = Field(default=60.0, gt=0, description="Longest reading of one script.")
    read_memory_bytes: int = Field(default=2 * 2**30, gt=0, description="Most memory of the process that reads.")
    read_concurrency: int = Field(default=2, ge=1, description="Scripts read at once.")
    library_path: str = Field(default="", description="Folders with library sources to read as text, joined by ':'.")
    source_roots: str = Field(
        default="",
        description="Folders under which a task's `source.path` may lie, joined by ':'. Empty: none may (a task that "
        "names a path is refused), because anyone on the bus could have any file read.",
    )

    def library_paths(self) -> list[Path]:
        """``library_path`` as folders.

        Raises:
            ValueError: no module can be found under one of them.
        """
        folders = [Path(part) for part in self.library_path.split(":") if part]
        for folder in folders:
            wrong = wrong_library_path(folder)
            if wrong is not None:
                raise ValueError(f"OARLOCK_LIBRARY_PATH: {wrong}")
        return folders

    def roots(self) -> list[Path]:
        """``source_roots`` as folders."""
        return [Path(part).resolve() for part in self.source_roots.split(":") if part]
