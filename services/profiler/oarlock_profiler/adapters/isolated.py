"""Reads scripts in a process of their own, with limits on time, memory and files.

A process for each script, started before it comes: nothing that one script makes the reader remember can reach the
next one's portrait. The job goes in and the portrait comes out as bytes on pipes; the child has no bus, no credentials
and an empty environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
import resource
import sys

from oarlock_profiler.adapters.portray import Job, NothingToRead, portray
from oarlock_profiler.adapters.sources import SourcesError
from oarlock_profiler.core.overlays import load
from oarlock_profiler.ports import CannotRead
from oarlock_schemas import Portrait, read

MAX_ANSWER_BYTES = 16 * 2**20
_FREQUENT = ("paddle", "torch", "numpy")
"""Libraries whose meaning is loaded before a script comes."""

GRACE_SECONDS = 10.0
"""Beyond the reading's own budget: the start of the process, and turning the trace into numbers."""


class Readers:
    """Processes that read one script each. One is kept ready, so that no script waits for imports.

    Args:
        seconds: longest reading of one script.
        memory_bytes: most address space of the process that reads.
    """

    def __init__(self, *, seconds: float, memory_bytes: int) -> None:
        self._seconds = seconds
        self._memory_bytes = memory_bytes
        self._spare: asyncio.Task[asyncio.subprocess.Process] | None = None

    def prepare(self) -> None:
        """Start the process for the next script, unless it stands ready."""
        if self._spare is None:
            self._spare = asyncio.create_task(self._spawn())

    async def read(self, job: Job) -> Portrait:
        """The portrait of ``job``.

        Raises:
            CannotRead: the bundle cannot be opened, or the reader ran out of time or memory.
        """
        process = await self._ready()
        self.prepare()
        patience = self._seconds + GRACE_SECONDS
        try:
            async with asyncio.timeout(patience):
                out, err = await process.communicate(pickle.dumps(job))
        except TimeoutError:
            raise CannotRead("too_long", f"reading the script took longer than {patience:g} s") from None
        finally:
            await _end(process)
        return _understand(process.returncode, out, err, self._memory_bytes)

    async def close(self) -> None:
        """End the process that stands ready."""
        spare, self._spare = self._spare, None
        if spare is not None:
            await _end(await spare)

    async def _ready(self) -> asyncio.subprocess.Process:
        spare, self._spare = self._spare, None
        if spare is not None:
            process = await spare
            if process.returncode is None:
                return process
        return await self._spawn()

    async def _spawn(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-IB",
            "-m",
            "oarlock_profiler.adapters.isolated",
            str(self._memory_bytes),
            str(int(self._seconds + GRACE_SECONDS)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"PATH": os.defpath},
            start_new_session=True,
            limit=MAX_ANSWER_BYTES,
        )


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _understand(status: int | None, out: bytes, err: bytes, memory_bytes: int) -> Portrait:
    if status != 0 or not out:
        last = err.decode("utf-8", "replace").strip().rsplit("\n", 1)[-1][:500]
        if "MemoryError" in last or status in {-9, -6, -11}:
            raise CannotRead("too_large", f"reading the script needed more than {memory_bytes // 2**20} MiB of memory")
        raise CannotRead("unreadable", f"the reader ended with {status}: {last}")
    answer = json.loads(out)
    if "code" in answer:
        raise CannotRead(answer["code"], answer["message"])
    return read(Portrait, answer["portrait"])[0]


def limit(memory_bytes: int, seconds: int) -> None:
    """Leave this process as little as reading needs: memory, processor time, no new files, no core dump."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def answer(job: Job) -> dict[str, object]:
    """The portrait of ``job`` as JSON values (``portrait``), or why there is none (``code``, ``message``)."""
    try:
        portrait, _ = portray(job)
    except SourcesError as error:
        return {"code": "bad_bundle", "message": str(error)}
    except NothingToRead as error:
        return {"code": "nothing_to_read", "message": str(error)}
    return {"portrait": portrait.model_dump(mode="json")}


def main(arguments: list[str]) -> int:
    """The child: one pickled job on standard input (from our parent only), one JSON answer on standard output."""
    limit(int(arguments[0]), int(arguments[1]))
    for library in _FREQUENT:
        load(library)
    job: Job = pickle.load(sys.stdin.buffer)  # noqa: S301 (our own parent wrote it)
    sys.stdout.write(json.dumps(answer(job), allow_nan=False))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
