"""Runs as real processes, started by a real launcher over a real bus."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from oarlock_runtime import Bus
from oarlock_schemas import Source

if TYPE_CHECKING:
    from tests.launcher.conftest import Matcher
    from tests.service_process import ServiceProcess

SLEEPER = "import time\nprint('up', flush=True)\ntime.sleep(600)"


def said(text: str) -> Callable[[list[str]], bool]:
    """Whether some line holds ``text``."""
    return lambda lines: any(text in line for line in lines)


async def gone(pid: int) -> None:
    """Await the end of a process that is not our child."""
    if psutil.pid_exists(pid):
        _, alive = await asyncio.to_thread(psutil.wait_procs, [psutil.Process(pid)], 15)
        assert not alive or alive[0].status() == psutil.STATUS_ZOMBIE


def commit(folder: Path) -> None:
    """Make ``folder`` a git repository with its files in one commit."""
    for command in ("init -q -b main .", "add .", "-c user.name=a -c user.email=a@b commit -q -m one"):
        subprocess.run(["git", *command.split()], cwd=folder, check=True)


async def test_a_script_runs_and_ends_once(matcher: Matcher, launcher: ServiceProcess) -> None:
    placed = await matcher.place("t1", "import sys\nprint('hello', sys.argv[1:])", arguments=["--epochs", "2"])
    launched = await matcher.launched("t1")
    finished = await matcher.finished("t1")
    assert (finished.outcome, finished.exit_code) == ("ok", 0)
    assert launched.runtime == "process" and launched.pid is not None and not launched.simulated
    assert launched.docker_command.startswith(f"docker run --detach --name oarlock-{matcher.site}-t1-1 --cap-drop ALL")
    assert finished.log_tail == ["hello ['--epochs', '2']"]
    record = await matcher.record("t1")
    assert [step.state for step in record.history] == ["launching", "running", "succeeded"]
    # The same placement again, under another message id, as after a lost acknowledgement: nothing starts.
    await matcher.publish(placed, msg_id="again")
    await matcher.place("t2", "print('after')")
    await matcher.finished("t2")
    assert await matcher.stored(matcher.bus.subjects.launched("t1")) == 1
    assert await matcher.stored(matcher.bus.subjects.finished("t1")) == 1
    # Nothing is left on the node but the record.
    assert not list((launcher.folder / "runs").glob("t1*"))


async def test_the_environment_holds_nothing_of_the_launchers(matcher: Matcher, launcher: ServiceProcess) -> None:
    script = "import os, json\nprint(json.dumps(dict(os.environ)))"
    await matcher.place("env", script, environment={"MINE": "1", "CUDA_VISIBLE_DEVICES": "3", "oarlock_x": "y"})
    (line,) = await matcher.output("env", lambda lines: len(lines) == 1)
    environment = json.loads(line)
    assert environment["MINE"] == "1"
    assert environment["CUDA_VISIBLE_DEVICES"] == ""
    assert not [name for name in environment if name.upper().startswith("OARLOCK_") or "SECRET" in name]
    assert launcher.nats.token is not None and launcher.nats.token not in line


async def test_cancel_stops_the_whole_tree(matcher: Matcher, launcher: ServiceProcess) -> None:
    # A grandchild in a session of its own, as a daemon would be.
    script = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "print('child', p.pid, flush=True)\ntime.sleep(600)"
    )
    await matcher.place("c1", script)
    (line,) = await matcher.output("c1", lambda lines: len(lines) == 1)
    launched = await matcher.launched("c1")
    await matcher.bus.publish(matcher.bus.subjects.cancel("c1"), {"by": "ann", "reason": "no longer needed", "x": 1})
    finished = await matcher.finished("c1")
    assert finished.outcome == "cancelled"
    assert finished.message == "cancelled by ann: no longer needed"
    assert (await matcher.record("c1")).state == "cancelled"
    await gone(int(line.split()[1]))
    assert launched.pid is not None
    await gone(launched.pid)


async def test_cancel_before_the_placement_arrives(matcher: Matcher, launcher: ServiceProcess) -> None:
    await matcher.bus.publish(matcher.bus.subjects.cancel("c2"), {})
    # Cancellations are handled in order, so the first has been when a later one has.
    await matcher.place("other", SLEEPER)
    await matcher.launched("other")
    await matcher.bus.publish(matcher.bus.subjects.cancel("other"), {})
    await matcher.finished("other")
    await matcher.place("c2", "print('must not run')")
    finished = await matcher.finished("c2")
    assert finished.outcome == "cancelled" and finished.started_at is None
    assert await matcher.stored(matcher.bus.subjects.launched("c2")) == 0


async def test_a_run_ends_at_its_time_limit(matcher: Matcher, launcher: ServiceProcess) -> None:
    await matcher.place("slow", SLEEPER, scheduler={"run_timeout_seconds": 1})
    finished = await matcher.finished("slow")
    assert finished.outcome == "timeout"
    assert (await matcher.record("slow")).state == "failed"


async def test_exit_reasons(matcher: Matcher, launcher: ServiceProcess) -> None:
    await matcher.place("e1", "raise SystemExit(3)")
    await matcher.place("e2", "print('x'); raise ValueError('the shape is wrong')")
    await matcher.place("e3", "raise MemoryError")
    await matcher.place("e4", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    await matcher.place("e5", "import torch_is_not_here", retries=1)
    await matcher.place("e6", Source(inline="x = 1", entry="a/b.py"), command=["/no/such/program"])
    ends = {name: await matcher.finished(name) for name in ("e1", "e2", "e3", "e4", "e5", "e6")}
    assert (ends["e1"].outcome, ends["e1"].exit_code) == ("error", 3)
    assert ends["e2"].message == "exit code 1: ValueError: the shape is wrong"
    assert ends["e3"].outcome == "oom"
    assert str(ends["e4"].message).startswith("killed by signal 11")
    assert ends["e6"].outcome == "error" and "/no/such/program" in str(ends["e6"].message)
    states = {name: (await matcher.record(name)).state for name in ends}
    assert states["e1"] == states["e2"] == states["e4"] == states["e6"] == "failed"
    # Another attempt may follow these: the matcher moves them on.
    assert states["e3"] == states["e5"] == "running"


async def test_killed_launcher_adopts_and_the_task_ends_once(matcher: Matcher, launcher: ServiceProcess) -> None:
    go = launcher.folder / "go"
    script = (
        "import pathlib, time\nprint('before', flush=True)\n"
        f"while not pathlib.Path({str(go)!r}).exists(): time.sleep(0.02)\nprint('after')"
    )
    await matcher.place("a1", script)
    launched = await matcher.launched("a1")
    await matcher.output("a1", said("before"))
    await launcher.kill()
    assert launched.pid is not None and psutil.pid_exists(launched.pid)
    # It goes on, and may even end, while nobody watches.
    go.touch()
    await gone(launched.pid)
    await launcher.start()
    finished = await matcher.finished("a1")
    assert (finished.outcome, finished.exit_code) == ("ok", 0)
    assert finished.log_tail == ["before", "after"]
    assert await matcher.stored(matcher.bus.subjects.launched("a1")) == 1
    assert await matcher.stored(matcher.bus.subjects.finished("a1")) == 1
    assert await matcher.stored(matcher.bus.subjects.logs("a1")) == 2


async def test_killed_launcher_adopts_what_still_runs(matcher: Matcher, launcher: ServiceProcess) -> None:
    await matcher.place("a2", SLEEPER)
    launched = await matcher.launched("a2")
    await launcher.kill()
    await launcher.start()
    await matcher.bus.publish(matcher.bus.subjects.cancel("a2"), {})
    finished = await matcher.finished("a2")
    assert finished.outcome == "cancelled"
    assert launched.pid is not None
    await gone(launched.pid)
    assert await matcher.stored(matcher.bus.subjects.launched("a2")) == 1


async def test_launcher_killed_at_any_moment_starts_once(matcher: Matcher, launcher: ServiceProcess) -> None:
    count = launcher.folder / "count"
    script = f"open({str(count)!r}, 'a').write('x')"
    for number in range(6):
        count.unlink(missing_ok=True)
        await matcher.place(f"k{number}", script)
        await asyncio.sleep(0.02 * number)
        await launcher.kill()
        await launcher.start()
        finished = await matcher.finished(f"k{number}", seconds=60)
        assert finished.outcome == "ok", finished
        assert count.read_text() == "x"
        assert await matcher.stored(matcher.bus.subjects.finished(f"k{number}")) == 1


async def test_run_whose_watcher_is_killed_is_lost_and_dead(matcher: Matcher, launcher: ServiceProcess) -> None:
    await matcher.place("l1", SLEEPER)
    launched = await matcher.launched("l1")
    await matcher.output("l1", said("up"))
    assert launched.pid is not None
    shim = psutil.Process(launched.pid).parent()
    assert shim is not None
    shim.kill()
    finished = await matcher.finished("l1")
    assert finished.outcome == "lost"
    await gone(launched.pid)


async def test_stale_fence_is_refused(matcher: Matcher, launcher: ServiceProcess, bus: Bus) -> None:
    await matcher.place("old", "print('must not run')", lease=False)
    refused = await matcher.finished("old")
    assert refused.outcome == "refused" and "no longer held" in str(refused.message)
    # Where it goes from here is the matcher's to say.
    assert (await matcher.record("old")).state == "placed"


async def test_placement_that_was_overtaken_on_its_way_is_refused(
    matcher: Matcher, launcher: ServiceProcess, bus: Bus
) -> None:
    uid = (await matcher.place("earlier", "print()")).devices[0].uid
    placed = await matcher.place("new", "print('ran')", exclusive=True)
    assert (await matcher.finished("new")).outcome == "ok"
    # Its lease stands in the book, but its fence is older than that of a run which had the device alone.
    fence = placed.devices[0].fence - 1
    await matcher.book(uid, "late", 1)
    device = placed.devices[0].model_copy(update={"fence": fence})
    await matcher.publish(placed.model_copy(update={"task_id": "late", "devices": [device]}))
    refused = await matcher.finished("late")
    assert refused.outcome == "refused" and "stale" in str(refused.message)


async def test_a_run_that_lost_its_device_ends_before_the_next_begins(
    matcher: Matcher, launcher: ServiceProcess
) -> None:
    await matcher.place("first", SLEEPER, exclusive=True)
    launched = await matcher.launched("first")
    assert launched.pid is not None
    await matcher.place(
        "second", f"import os; print('alone', not os.path.exists('/proc/{launched.pid}'))", exclusive=True
    )
    lost = await matcher.finished("first")
    assert lost.outcome == "lost" and "second" in str(lost.message)
    finished = await matcher.finished("second")
    assert finished.log_tail == ["alone True"]


async def test_code_from_everywhere(matcher: Matcher, launcher: ServiceProcess, bus: Bus, tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "source": ["!exit 1\n", "print('from the notebook')"], "execution_count": None}]
    notebook = {"cells": cells, "nbformat": 4}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("train.py", "from pkg.inner import name\nprint(name)")
        archive.writestr("pkg/inner.py", "name = 'from the bundle'")
        archive.writestr("nb.ipynb", json.dumps(notebook))
    key = await bus.bundles.put(buffer.getvalue())
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text("print('from the folder')")
    commit(folder)
    await matcher.place("s1", Source(bundle=key, entry="train.py"))
    await matcher.place("s2", Source(path=str(folder), entry="train.py"))
    await matcher.place("s3", Source(path=str(folder / "train.py")))
    await matcher.place("s4", Source(git=f"file://{folder}@main", entry="train.py"))
    await matcher.place("s5", Source(git="ext::sh -c touch /tmp/x", entry="train.py"))
    await matcher.place("s6", Source(bundle=key, entry="other.py"))
    await matcher.place("s7", Source(bundle="sha256-" + "0" * 64))
    await matcher.place("s8", None)
    await matcher.place("s9", Source(bundle=key, entry="nb.ipynb"))
    await matcher.place("s10", Source(inline=json.dumps(notebook), entry="nb.ipynb"))
    tails = {name: (await matcher.finished(name)) for name in (f"s{number}" for number in range(1, 11))}
    assert tails["s9"].log_tail == tails["s10"].log_tail == ["from the notebook"]
    assert tails["s1"].log_tail == ["from the bundle"]
    assert tails["s2"].log_tail == tails["s3"].log_tail == ["from the folder"]
    assert tails["s4"].log_tail == ["from the folder"], tails["s4"]
    assert "no address of a git repository" in str(tails["s5"].message)
    assert "'other.py'" in str(tails["s6"].message)
    assert "no bundle" in str(tails["s7"].message)
    assert "no code to run" in str(tails["s8"].message)
    assert {tails[name].outcome for name in ("s5", "s6", "s7", "s8")} == {"error"}


async def test_simulated_devices_run_nothing_and_say_so(
    matcher: Matcher, launcher: ServiceProcess, tmp_path: Path
) -> None:
    proof = tmp_path / "executed"
    device = (await matcher.place("warm", "print()")).devices[0]
    simulated = [
        device.model_copy(update={"uid": f"SIM-{n}", "kind": "A100-SXM4-40GB", "vendor": "nvidia", "simulated": True})
        for n in range(2)
    ]
    script = f"open({str(proof)!r}, 'w')"
    await matcher.place("sim", script, devices=simulated, task={"framework": "paddlepaddle"})
    launched = await matcher.launched("sim")
    finished = await matcher.finished("sim")
    assert launched.simulated and finished.simulated and launched.pid is None
    assert finished.outcome == "ok"
    assert (await matcher.record("sim")).simulated
    assert "nothing was executed" in finished.log_tail[0]
    assert "--gpus '\"device=SIM-0,SIM-1\"'" in launched.docker_command
    assert not proof.exists()
    await matcher.place("mixed", "print()", devices=[device, simulated[0]])
    assert "mixes simulated and real" in str((await matcher.finished("mixed")).message)


async def test_a_flood_of_output_is_bounded_and_the_end_still_known(matcher: Matcher, launcher: ServiceProcess) -> None:
    script = "for i in range(50000): print('y' * 50, i)\nprint('z' * 100000)\nprint('last')"
    await matcher.place("flood", script)
    finished = await matcher.finished("flood", seconds=60)
    assert finished.outcome == "ok"
    assert finished.log_tail[-1] == "last"
    stored = await matcher.stored(matcher.bus.subjects.logs("flood"))
    assert 2000 <= stored < 10000
    lines = await matcher.output("flood", lambda lines: len(lines) == stored)
    assert any("not sent" in line for line in lines)
    assert max(map(len, lines)) <= 8192


async def test_the_launcher_stops_in_order_and_leaves_runs_alone(matcher: Matcher, launcher: ServiceProcess) -> None:
    await matcher.place("stay", SLEEPER)
    launched = await matcher.launched("stay")
    assert await launcher.stop() == 0
    assert launched.pid is not None and psutil.pid_exists(launched.pid)
    await launcher.start()
    await matcher.bus.publish(matcher.bus.subjects.cancel("stay"), {})
    assert (await matcher.finished("stay")).outcome == "cancelled"
