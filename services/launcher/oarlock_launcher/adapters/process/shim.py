"""Stands between the launcher and one run, so that the run outlives the launcher and its end is never missed.

Started as a script of its own with one argument, the run's folder. It reads ``shim.json`` there, starts the command in
a session and process group of its own under limits, writes its output into ``log`` (bounded), forwards SIGTERM, kills
what is left of the whole tree at the end, and writes ``exit.json``. As a child subreaper it inherits even those
descendants that left the session. Creating ``started.json`` exclusively makes a second start of the same folder
harmless. Should the shim itself be killed, the kernel kills the command.

Standard library only, because it runs isolated (``python -I -S``), and it stays small.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import IO, Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_CHUNK = 65_536
_DRAIN_SECONDS = 2.0
_TAIL_LINES = 200
_libc = ctypes.CDLL(None, use_errno=True)


class Log:
    """The run's output in one file: a line per line, led by ``o`` or ``e`` for the stream it came from.

    A line that is over ``line_bytes`` is cut. After ``total_bytes`` nothing more is written, but lines are still
    counted and the last ones kept.
    """

    def __init__(self, path: Path, line_bytes: int, total_bytes: int) -> None:
        self._file = path.open("ab", buffering=0)
        self._line_bytes = line_bytes
        self._room = total_bytes
        self._partial = {b"o": b"", b"e": b""}
        self.tail: deque[bytes] = deque(maxlen=_TAIL_LINES)
        self.lines = 0
        self.unwritten = 0

    def feed(self, stream: bytes, data: bytes) -> None:
        """Take output as it comes. A carriage return ends a line too, as progress bars use it."""
        *lines, rest = (self._partial[stream] + data).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        out = bytearray()
        for line in lines:
            out += self._line(stream, line)
        while len(rest) > self._line_bytes:
            out += self._line(stream, rest[: self._line_bytes])
            rest = rest[self._line_bytes :]
        self._partial[stream] = rest
        if out:
            self._file.write(out)

    def end(self) -> None:
        """Write what has no line end."""
        for stream, rest in self._partial.items():
            if rest:
                self._file.write(self._line(stream, rest))
                self._partial[stream] = b""
        self._file.close()

    def _line(self, stream: bytes, line: bytes) -> bytes:
        line = line[: self._line_bytes]
        self.lines += 1
        self.tail.append(line)
        if len(line) + 2 > self._room:
            self._room = 0
            self.unwritten += 1
            return b""
        self._room -= len(line) + 2
        return stream + line + b"\n"


def main(folder: Path) -> int:
    """Run what ``folder`` describes; the shim's own exit code says only whether it did its work."""
    os.umask(0o077)
    plan = json.loads((folder / "shim.json").read_text())
    started = folder / "started.json"
    try:
        claim = os.open(started, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return 3
    os.close(claim)
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    os.set_blocking(wake_read, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda signum, _: asked.append(signum))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    killed_before = _memory_kills()
    begun = time.time()
    log = Log(folder / "log", plan["line_bytes"], plan["log_bytes"])
    try:
        child = _spawn(plan)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        log.end()
        _write(folder / "exit.json", {"error": f"cannot execute {plan['command'][0]!r}: {error}"})
        _write(started, {"failed": True})
        return 0
    _write(
        started,
        {
            "pid": os.getpid(),
            "start": _start_ticks(os.getpid()),
            "child": child.pid,
            "child_start": _start_ticks(child.pid),
        },
    )
    status = _attend(child, log, wake_read, asked, plan["grace_seconds"])
    log.end()
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = os.waitstatus_to_exitcode(status)
    _write(
        folder / "exit.json",
        {
            "exit_code": code if code >= 0 else None,
            "signal": -code if code < 0 else None,
            "started_at": begun,
            "ended_at": time.time(),
            "peak_process_bytes": usage.ru_maxrss * 1024,
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "memory_kills": _memory_kills() - killed_before,
            "lines": log.lines,
            "unwritten": log.unwritten,
            "tail": [line.decode("utf-8", errors="replace") for line in log.tail],
        },
    )
    return 0


def _spawn(plan: dict[str, Any]) -> subprocess.Popen[bytes]:
    parent = os.getpid()

    def prepare() -> None:
        # In the child, between fork and exec; the shim has one thread, so any call is safe here.
        signal.set_wakeup_fd(-1)
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(127)
        for name, value in plan["limits"].items():
            _limit(getattr(resource, name), value)
        if plan["user_id"] is not None:
            os.setgroups([])
            os.setresgid(plan["group_id"], plan["group_id"], plan["group_id"])
            os.setresuid(plan["user_id"], plan["user_id"], plan["user_id"])
            # Changing identity clears the parent-death signal.
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.umask(0o077)

    return subprocess.Popen(
        plan["command"],
        cwd=plan["working_folder"],
        env=plan["environment"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        close_fds=True,
        restore_signals=True,
        preexec_fn=prepare,  # noqa: PLW1509  (there is one thread)
    )


def _limit(which: int, value: int) -> None:
    """Lower a limit; one that is lower already stays."""
    _, hard = resource.getrlimit(which)
    ceiling = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (ceiling, ceiling))


def _attend(child: subprocess.Popen[bytes], log: Log, wake: int, asked: list[int], grace_seconds: float) -> int:
    """Move output until the child has ended and its tree is gone; returns its wait status."""
    selector = selectors.DefaultSelector()
    selector.register(wake, selectors.EVENT_READ)
    pipes: dict[int, tuple[bytes, IO[bytes]]] = {}
    for stream, pipe in ((b"o", child.stdout), (b"e", child.stderr)):
        if pipe is not None:
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ)
            pipes[pipe.fileno()] = (stream, pipe)
    status: int | None = None
    kill_at = deadline = float("inf")
    while status is None or (pipes and time.monotonic() < deadline):
        left = min(kill_at, deadline) - time.monotonic()
        for key, _ in selector.select(None if left == float("inf") else max(0.0, left)):
            if key.fd == wake:
                with contextlib.suppress(BlockingIOError):
                    os.read(wake, _CHUNK)
            elif not _pump(key.fd, *pipes[key.fd], log):
                selector.unregister(pipes.pop(key.fd)[1])
        if asked and kill_at == float("inf"):
            _signal_group(child.pid, signal.SIGTERM)
            kill_at = time.monotonic() + grace_seconds
        if time.monotonic() >= kill_at:
            _signal_group(child.pid, signal.SIGKILL)
            _kill_descendants()
            kill_at = time.monotonic() + 1.0
        if status is None:
            status = _reap(child.pid)
            if status is not None:
                # The run is over when its main process is: what it left behind must not go on using the devices.
                _signal_group(child.pid, signal.SIGKILL)
                _kill_descendants()
                deadline = time.monotonic() + _DRAIN_SECONDS
        else:
            _reap(child.pid)
    _kill_descendants()
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return status
        _kill_descendants()


def _pump(fd: int, stream: bytes, pipe: IO[bytes], log: Log) -> bool:
    """Read what is there; False at the end of the pipe."""
    try:
        data = os.read(fd, _CHUNK)
    except BlockingIOError:
        return True
    if data:
        log.feed(stream, data)
        return True
    pipe.close()
    return False


def _reap(main_pid: int) -> int | None:
    """Collect every child that has ended; the main one's status if it is among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == main_pid:
            found = status


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _kill_descendants() -> None:
    """Kill whoever has become our child: descendants whose parents have ended, in whatever session."""
    for pid in _children(os.getpid()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    """Direct children, from /proc."""
    found = []
    for entry in os.listdir("/proc"):  # noqa: PTH208  (a Path per process would be waste)
        if entry.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                text = Path("/proc", entry, "stat").read_text(errors="replace")
                if int(text.rpartition(")")[2].split()[1]) == pid:
                    found.append(int(entry))
    return found


def _start_ticks(pid: int) -> int:
    """When a process started, in clock ticks since boot: with its pid, an identity that is never reused."""
    text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    return int(text.rpartition(")")[2].split()[19])


def _memory_kills() -> int:
    """How often the kernel has killed a process for memory since boot."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill":
                return int(value)
    return 0


def _write(path: Path, value: dict[str, Any]) -> None:
    """Replace a file as a whole, so that a reader never sees half of it.

    Not flushed to the disk: a machine that loses its power has lost the run as well.
    """
    temporary = path.with_suffix(".tmp")
    with temporary.open("w") as file:
        json.dump(value, file)
    temporary.replace(path)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
