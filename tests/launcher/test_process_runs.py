"""Runs as real processes, started by a real launcher over a real bus."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil
import pytest

from oarlock_schemas import TaskCancel

sys.path.insert(0, str(Path(__file__).parent))
from conftest import LauncherProcess, Matcher  # noqa: E402


async def test_a_script_runs_and_ends_once(matcher: Matcher, launcher: LauncherProcess) -> None:
    placed = await matcher.place("t1", "import sys\nprint('hello', sys.argv[1:])", arguments=["--epochs", "2"])
    launched = await matcher.launched("t1")
    finished = await matcher.finished("t1")
    assert (finished.outcome, finished.exit_code) == ("ok", 0)
    assert launched.runtime == "process" and launched.pid is not None and not launched.simulated
    assert launched.docker_command.startswith("docker run --detach --name oarlock-t1-1 --cap-drop ALL")
    assert finished.log_tail == ["hello ['--epochs', '2']"]
    record = await matcher.record("t1")
    assert [step.state for step in record.history] == ["launching", "running", "succeeded"]
    # The same placement again, under another message id, as after a lost acknowledgement: nothing starts.
    await matcher.publish(placed, msg_id="again")
    await matcher.place("t2", "print('after')")
    await matcher.finished("t2")
    assert await matcher.stored(matcher.bus.subjects.launched("t1")) == 1
    assert await matcher.stored(matcher.bus.subjects.finished("t1")) == 1


async def test_the_environment_holds_nothing_of_the_launchers(matcher: Matcher, launcher: LauncherProcess) -> None:
    script = "import os, json\nprint(json.dumps(dict(os.environ)))"
    await matcher.place("env", script, environment={"MINE": "1", "CUDA_VISIBLE_DEVICES": "3", "oarlock_x": "y"})
    (line,) = await matcher.output("env", lambda lines: len(lines) == 1)
    environment = __import__("json").loads(line)
    assert environment["MINE"] == "1"
    assert environment["CUDA_VISIBLE_DEVICES"] == ""
    assert not [name for name in environment if name.upper().startswith("OARLOCK_") or "SECRET" in name]
    assert launcher.nats.token not in line
