"""What the profiler's handlers need of the world."""

from __future__ import annotations

from typing import Protocol

from oarlock_profiler.core.calibration import State
from oarlock_profiler.core.devices import DeviceSpec
from oarlock_schemas import Portrait, TaskSubmitted


class CannotRead(Exception):
    """The task's code cannot be had or read at all; ``code`` is for machines, the message for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Reader(Protocol):
    """Reads a task's script under limits of time and memory, in another process."""

    async def read(self, task: TaskSubmitted, fleet: list[DeviceSpec], calibration: State) -> Portrait:
        """The portrait; ``fleet`` are the device kinds to predict for.

        Raises:
            CannotRead: there is nothing to read, and nothing was declared to size the task by.
            oarlock_runtime.TemporaryError: the code's store does not answer now.
        """
        ...
