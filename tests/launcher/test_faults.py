"""The server goes away in mid-run, and runs are held to their limits."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from oarlock_runtime import EmbeddedServer

if TYPE_CHECKING:
    from tests.launcher.conftest import Matcher
    from tests.service_process import ServiceProcess


async def ended(pid: int) -> None:
    """Await the end of a process that is not our child."""
    if psutil.pid_exists(pid):
        await asyncio.to_thread(psutil.wait_procs, [psutil.Process(pid)], 15)


async def test_a_run_that_ends_while_the_server_is_down_ends_once(
    matcher: Matcher, launcher: ServiceProcess, nats: EmbeddedServer
) -> None:
    go = launcher.folder / "go"
    script = (
        "import pathlib, time\nprint('before', flush=True)\n"
        f"while not pathlib.Path({str(go)!r}).exists(): time.sleep(0.02)\nprint('after')"
    )
    await matcher.place("down", script)
    launched = await matcher.launched("down")
    await matcher.output("down", lambda lines: "before" in lines)
    nats.kill()
    go.touch()
    assert launched.pid is not None
    await ended(launched.pid)
    nats.start()
    finished = await matcher.finished("down", seconds=60)
    assert (finished.outcome, finished.log_tail) == ("ok", ["before", "after"])
    assert (await matcher.record("down")).state == "succeeded"
    await matcher.place("later", "print('x')")
    assert (await matcher.finished("later", seconds=60)).outcome == "ok"
    assert await matcher.stored(matcher.bus.subjects.finished("down")) == 1
    assert await matcher.stored(matcher.bus.subjects.logs("down")) == 2


async def test_server_and_launcher_both_killed(
    matcher: Matcher, launcher: ServiceProcess, nats: EmbeddedServer
) -> None:
    await matcher.place("both", "import time\nprint('up', flush=True)\ntime.sleep(1)\nprint('done')")
    await matcher.output("both", lambda lines: "up" in lines)
    nats.kill()
    await launcher.kill()
    await launcher.start()
    nats.start()
    finished = await matcher.finished("both", seconds=60)
    assert (finished.outcome, finished.log_tail) == ("ok", ["up", "done"])
    assert await matcher.stored(matcher.bus.subjects.launched("both")) == 1
    assert await matcher.stored(matcher.bus.subjects.finished("both")) == 1


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other accounts can reach, which pytest's own is not."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


async def test_limits(matcher: Matcher, launcher: ServiceProcess) -> None:
    await launcher.stop()
    launcher.extra["OARLOCK_PROCESS_MEMORY_BYTES"] = str(512 << 20)
    await launcher.start()
    await matcher.place("core", "import resource; print(resource.getrlimit(resource.RLIMIT_CORE))")
    await matcher.place("memory", "a = bytearray(600 << 20)")
    assert (await matcher.finished("core")).log_tail == ["(0, 0)"]
    memory = await matcher.finished("memory")
    assert (memory.outcome, memory.message) == ("oom", "MemoryError")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start runs as another account")
async def test_runs_of_another_account_cannot_touch_the_launcher(
    matcher: Matcher, launcher: ServiceProcess, open_folder: Path
) -> None:
    await launcher.stop()
    launcher.folder = open_folder / "launcher"
    launcher.extra |= {
        "OARLOCK_PROCESS_USER": "nobody",
        "OARLOCK_PROCESS_MAX_PROCESSES": "20",
        "OARLOCK_PYTHON": "/usr/bin/python3",
    }
    await launcher.start()
    script = f"""
import os, pathlib, signal
print(os.getuid(), os.getgroups())
open('own', 'w').write('x')
for attempt in (
    lambda: os.kill(os.getppid(), signal.SIGKILL),
    lambda: os.listdir({str(launcher.folder / "records")!r}),
    lambda: open('../shim.json').read(),
    lambda: open('../exit.json', 'w'),
):
    try:
        attempt()
        print('could')
    except PermissionError:
        print('could not')
children = 0
try:
    for _ in range(50):
        if os.fork() == 0:
            signal.pause()
        children += 1
except BlockingIOError:
    pass
print('held' if children < 20 else 'free')
"""
    await matcher.place("nobody", script)
    finished = await matcher.finished("nobody")
    assert finished.outcome == "ok", finished
    assert finished.log_tail[1:] == ["could not"] * 4 + ["held"]
    assert not finished.log_tail[0].startswith("0 ")
    # The children it left are gone with it.
    nobody = [p for p in psutil.process_iter(["username", "cmdline"]) if p.info["username"] == "nobody"]
    assert not [p for p in nobody if str(open_folder) in " ".join(p.info["cmdline"] or [])]
