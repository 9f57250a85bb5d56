"""Reads scripts in a process of their own, with limits on time, memory and files.

A new process for each script: nothing that one script makes the reader remember can reach the next one's portrait. The
job goes in and the portrait comes out as bytes on pipes; the child has no bus, no credentials and an empty environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
import resource
import sys
from dataclasses import replace

from oarlock_profiler.adapters.portray import Job, portray
from oarlock_profiler.adapters.sources import SourcesError
from oarlock_profiler.ports import CannotRead
from oarlock_schemas import Portrait, read

MAX_ANSWER_BYTES = 16 * 2**20
GRACE_SECONDS = 10.0
"""Beyond the reading's own budget: the start of the process, and turning the trace into numbers."""


async def portray_isolated(job: Job, *, memory_bytes: int) -> Portrait:
    """The portrait of ``job``, read in a child process.

    Raises:
        CannotRead: the bundle cannot be opened, or the reader ran out of time or memory.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-IB",
        "-m",
        "oarlock_profiler.adapters.isolated",
        str(memory_bytes),
        str(int(job.seconds + GRACE_SECONDS)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.defpath},
        start_new_session=True,
        limit=MAX_ANSWER_BYTES,
    )
    try:
        async with asyncio.timeout(job.seconds + GRACE_SECONDS):
            out, err = await process.communicate(pickle.dumps(job))
    except TimeoutError:
        raise CannotRead("too_long", f"reading the script took longer than {job.seconds + GRACE_SECONDS:g} s") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode != 0 or not out:
        last = err.decode("utf-8", "replace").strip().rsplit("\n", 1)[-1][:500]
        if "MemoryError" in last or process.returncode in {-9, -6, -11}:
            raise CannotRead("too_large", f"reading the script needed more than {memory_bytes // 2**20} MiB of memory")
        raise CannotRead("unreadable", f"the reader ended with {process.returncode}: {last}")
    answer = json.loads(out)
    if "code" in answer:
        raise CannotRead(answer["code"], answer["message"])
    return read(Portrait, answer["portrait"])[0]


def _limit(memory_bytes: int, seconds: int) -> None:
    """As little as reading needs: memory, processor time, no new files, no core dump."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main(arguments: list[str]) -> int:
    """The child: one pickled job on standard input (from our parent only), one JSON answer on standard output."""
    _limit(int(arguments[0]), int(arguments[1]))
    job: Job = pickle.load(sys.stdin.buffer)  # noqa: S301 (our own parent wrote it)
    try:
        portrait, _ = portray(replace(job))
        answer: dict[str, object] = {"portrait": portrait.model_dump(mode="json")}
    except SourcesError as error:
        answer = {"code": "bad_bundle", "message": str(error)}
    except ValueError as error:
        answer = {"code": "nothing_to_read", "message": str(error)}
    sys.stdout.write(json.dumps(answer, allow_nan=False))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
