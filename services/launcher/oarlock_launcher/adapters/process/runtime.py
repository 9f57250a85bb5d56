"""Starts runs as processes and finds them again: the ``process`` runtime.

A run belongs to its shim, not to the launcher: the launcher may be killed and started again at any time, and takes the
run over by the shim's process id and start time. Linux only, for process file descriptors and /proc.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import py_compile
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from oarlock_accelerators import Device, ProcessHandover
from oarlock_launcher.adapters import plan
from oarlock_launcher.adapters.code.sources import entry_of
from oarlock_launcher.adapters.devices import framework_environment, process_access
from oarlock_launcher.adapters.process.folder import Identity, LogReader, RunFolder
from oarlock_launcher.core.command import NothingToRun, command_line
from oarlock_launcher.core.environment import run_environment
from oarlock_launcher.core.logs import Line
from oarlock_launcher.core.run import Ending, Key, Run
from oarlock_launcher.ports import CannotStart, Code, Devices, Handle
from oarlock_schemas import TaskPlaced

_SHIM = Path(__file__).with_name("shim.py")
_POLL_SECONDS = 0.1
_START_SECONDS = 15.0
_STOP_MARGIN_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ProcessPolicy:
    """How runs are held.

    ``user``: account the runs get; the launcher must be root. ``memory_bytes`` limits the address space, which is far
    more than a GPU program's memory: leave it None unless all runs are on the CPU. ``processes`` counts all processes
    of the account. ``pass_environment``: the launcher's variables that runs may see.
    """

    python: str = sys.executable
    user: str | None = None
    memory_bytes: int | None = None
    processes: int | None = None
    open_files: int = 65_536
    grace_seconds: float = 10.0
    log_bytes: int = 64 * 1024 * 1024
    line_bytes: int = 8192
    pass_environment: Mapping[str, str] = field(default_factory=dict)


class ProcessRuntime:
    """See ``ports.Runtime``. ``root`` holds one folder per run."""

    name = "process"

    def __init__(
        self, root: Path, code: Code, devices: Devices, policy: ProcessPolicy, containers: plan.ContainerPolicy
    ) -> None:
        self._root = root
        self._code = code
        self._devices = devices
        self._policy = policy
        self._containers = containers
        self._shims: dict[Key, subprocess.Popen[bytes]] = {}
        self._account = _account(policy.user)
        root.mkdir(parents=True, exist_ok=True)
        root.chmod(0o711 if self._account else 0o700)
        # A script that is run is compiled at each start, which takes longer than all it does.
        self._shim = py_compile.compile(str(_SHIM), cfile=str(root.parent / "shim.pyc"), doraise=True) or str(_SHIM)

    async def prepare(self, run: Run, placed: TaskPlaced) -> None:
        """See ``ports.Runtime``."""
        folder = RunFolder.of(self._root, run.key)
        if not folder.planned:
            devices = await self._found(run)
            await self._prepare(run, placed, folder, process_access(devices))

    async def start(self, run: Run, placed: TaskPlaced) -> Handle:
        """See ``ports.Runtime``."""
        shown = plan.shown_line(run, placed, await self._found(run), self._containers)
        return await self._spawn(run, RunFolder.of(self._root, run.key), shown)

    async def follow(self, run: Run) -> AsyncIterator[Line]:
        """See ``ports.Runtime``."""
        folder = RunFolder.of(self._root, run.key)
        reader = LogReader(folder)
        while True:
            over = not self._going_on(folder)
            read = False
            for line in reader.lines():
                read = True
                yield line
            if over and not read:
                return
            if not read:
                await asyncio.sleep(_POLL_SECONDS)

    async def wait(self, run: Run) -> Ending:
        """See ``ports.Runtime``."""
        folder = RunFolder.of(self._root, run.key)
        shim = folder.shim()
        if shim is not None and folder.exit() is None:
            await _ended(shim)
        self._collect(run.key)
        if folder.exit() is None:
            # The kernel kills the command with its shim; wait for that rather than report an end too early.
            child = folder.child()
            if child is not None:
                _kill_group(child)
                await _ended(child)
        return folder.ending()

    async def stop(self, run: Run) -> None:
        """See ``ports.Runtime``."""
        folder = RunFolder.of(self._root, run.key)
        shim = folder.shim()
        if shim is None or not shim.alive:
            return
        _send(shim, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(_ended(shim), self._policy.grace_seconds + _STOP_MARGIN_SECONDS)
        if shim.alive:
            _send(shim, signal.SIGKILL)

    async def discard(self, run: Run) -> None:
        """See ``ports.Runtime``. What the run wrote into its own folder goes with it."""
        self._collect(run.key)
        folder = RunFolder.of(self._root, run.key)
        if folder.path.exists() and not self._going_on(folder):
            await asyncio.to_thread(shutil.rmtree, folder.path, ignore_errors=True)

    async def find(self, known: Collection[Run]) -> dict[Key, Run]:
        """See ``ports.Runtime``. Folders without a record are of runs long told; they are removed."""
        found = {run.key: run for run in known if RunFolder.of(self._root, run.key).claimed}
        names = {RunFolder.of(self._root, run.key).path.name for run in known}
        for path in self._root.iterdir():
            if path.name not in names and not self._going_on(RunFolder(path)):
                await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)
        return found

    async def _found(self, run: Run) -> list[Device]:
        return await self._devices.find(run.devices[0].vendor, [grant.uid for grant in run.devices])

    async def _prepare(self, run: Run, placed: TaskPlaced, folder: RunFolder, access: ProcessHandover) -> None:
        """Fetch the code and write the plan, which is the last thing written."""
        if folder.path.exists():
            await asyncio.to_thread(shutil.rmtree, folder.path)
        for path in (folder.path, folder.code, folder.temporary):
            path.mkdir(mode=0o711 if self._account and path == folder.path else 0o700)
        source = placed.task.source
        for mount in placed.task.mounts:
            if mount.source != mount.target:
                raise CannotStart(
                    f"mount {mount.source[:200]!r} → {mount.target[:200]!r}: a process sees the node's own folders; "
                    "name the same path on both sides, or run on a site with containers"
                )
        await self._code.fetch(source, folder.code)
        await asyncio.to_thread(_own, folder, self._account)
        vendor, framework = run.devices[0].vendor, plan.framework_of(placed)
        told = framework_environment(vendor, framework, len(run.all_device_uids))
        visibility = {**access.environment, **told, **plan.gang_environment(run, placed)}
        try:
            what = plan.program(run, placed, entry_of(source, folder.code), visibility, None)
            command = command_line(what, self._policy.python)
        except NothingToRun as error:
            raise CannotStart(str(error)) from error
        environment, _ = run_environment(
            self._base_environment(folder) | plan.array_variables(placed),
            placed.task.environment,
            visibility,
            {*access.unset, *plan.reserved_variables(run)},
        )
        folder.write_plan(
            {
                "command": list(command),
                "environment": environment,
                "working_folder": str(folder.code),
                "limits": self._limits(),
                "user_id": None if self._account is None else self._account.pw_uid,
                "group_id": None if self._account is None else self._account.pw_gid,
                "grace_seconds": self._policy.grace_seconds,
                "log_bytes": self._policy.log_bytes,
                "line_bytes": self._policy.line_bytes,
            }
        )

    async def _spawn(self, run: Run, folder: RunFolder, shown: str) -> Handle:
        """Start the shim where none has claimed the folder, and await what it says."""
        if not folder.claimed and run.key not in self._shims:
            with (folder.path / "shim.err").open("wb") as errors:
                self._shims[run.key] = subprocess.Popen(  # noqa: ASYNC220  (forks and returns; the shim waits, not we)
                    [sys.executable, "-I", "-S", self._shim, str(folder.path)],
                    cwd="/",
                    env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    start_new_session=True,
                )
        try:
            async with asyncio.timeout(_START_SECONDS):
                while (started := folder.started()) is None:
                    if run.key in self._shims and self._shims[run.key].poll() is not None and not folder.started():
                        break
                    await asyncio.sleep(0.005)
        except TimeoutError:
            raise CannotStart(f"the run's process did not start within {_START_SECONDS:g} s") from None
        if started is None:
            text = (folder.path / "shim.err").read_text(errors="replace").strip()[-500:]
            raise CannotStart(f"the run's process could not be started: {text or 'its watcher ended at once'}")
        if "failed" in started:
            raise CannotStart(str((folder.exit() or {}).get("error", "the command could not be executed")))
        written = folder.plan() or {}
        return Handle(str(started["child"]), started["child"], tuple(written.get("command", ())), shown)

    def _base_environment(self, folder: RunFolder) -> dict[str, str]:
        search = [str(Path(self._policy.python).parent), "/usr/local/bin", "/usr/bin", "/bin"]
        return {
            **self._policy.pass_environment,
            "PATH": ":".join(dict.fromkeys(search)),
            "HOME": str(folder.code),
            "TMPDIR": str(folder.temporary),
            "LANG": "C.UTF-8",
            "PYTHONUNBUFFERED": "1",
        }

    def _limits(self) -> dict[str, int]:
        wanted = {
            "RLIMIT_CORE": 0,
            "RLIMIT_NOFILE": self._policy.open_files,
            "RLIMIT_AS": self._policy.memory_bytes,
            "RLIMIT_NPROC": self._policy.processes,
        }
        return {name: value for name, value in wanted.items() if value is not None}

    def _going_on(self, folder: RunFolder) -> bool:
        shim = folder.shim()
        return shim is not None and shim.alive

    def _collect(self, key: Key) -> None:
        """Take the exit status of a shim that is our own child."""
        shim = self._shims.get(key)
        if shim is not None and shim.poll() is not None:
            del self._shims[key]


async def _ended(process: Identity) -> None:
    """Return when this process has ended."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if not process.alive:
            return
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        loop.add_reader(descriptor, lambda: None if done.done() else done.set_result(None))
        try:
            await done
        finally:
            loop.remove_reader(descriptor)
    finally:
        os.close(descriptor)


def _send(process: Identity, number: signal.Signals) -> None:
    """Signal this very process: the descriptor is opened first, so the id cannot have passed to another since."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if process.alive:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, number)
    finally:
        os.close(descriptor)


def _kill_group(process: Identity) -> None:
    if process.alive:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _account(user: str | None) -> pwd.struct_passwd | None:
    """The account runs get.

    Raises:
        CannotStart: there is none of that name, or we may not change to it.
    """
    if user is None:
        return None
    if os.geteuid() != 0:
        raise CannotStart(f"only root can start runs as {user!r}: leave OARLOCK_PROCESS_USER empty")
    try:
        return pwd.getpwnam(user)
    except KeyError as error:
        raise CannotStart(f"there is no account {user!r} on this node") from error


def _own(folder: RunFolder, account: pwd.struct_passwd | None) -> None:
    if account is None:
        return
    for root in (folder.code, folder.temporary):
        for path in (root, *root.rglob("*")):
            os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
