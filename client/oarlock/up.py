"""``oarlock up``: the embedded server and every service, as one lasting thing on one machine.

Each service is a process of its own, started as anyone would start it (``python -m oarlock_matcher``) and told where
the bus is by environment variables. A service that dies is started again, with growing pauses. Everything ends with
this process: it stops the services before the server, and on Linux the kernel ends them if this process is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from oarlock.connection import STATE_FILE, Connection, read_state
from oarlock_runtime.embedded import EmbeddedServer

SERVICES = ("profiler", "matcher", "launcher", "telemetry", "gateway")
"""In flow order; they are stopped in the reverse order."""

START_SECONDS = 60.0
STOP_SECONDS = 25.0
_PAUSES_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0)
_STEADY_SECONDS = 60.0
_PR_SET_PDEATHSIG = 1
_ANOTHER_BUS = frozenset({f"OARLOCK_{name}" for name in ("NATS_USER", "NATS_PASSWORD", "NATS_CREDS", "PREFIX")})
"""Variables by which clients reach another Oarlock; what starts here has a bus of its own."""


class UpError(RuntimeError):
    """It could not be started; the message says why and what to do."""


@dataclass(slots=True)
class _Service:
    name: str
    environment: dict[str, str]
    health_port: int
    log: Path
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    failures: int = 0


@dataclass(slots=True)
class Up:
    """Everything of one machine. Use :meth:`start`, then :meth:`watch` until a signal, then :meth:`stop`."""

    data: Path
    nats_port: int = 0
    http_port: int = 0
    fleet: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    tell: Callable[[str], None] = lambda _line: None
    server: EmbeddedServer | None = None
    services: list[_Service] = field(default_factory=list)
    http_token: str = ""

    @property
    def connection(self) -> Connection:
        """How to reach what runs here."""
        if self.server is None:
            raise UpError("not started")
        return Connection(
            url=self.server.url,
            token=self.server.token,
            gateway_url=f"http://127.0.0.1:{self.http_port}",
            gateway_token=self.http_token,
        )

    def start(self) -> None:
        """Start the server and the services, and return when every one is ready.

        Raises:
            UpError: another one runs on this data, a port is taken, or a service did not become ready.
            oarlock_runtime.embedded.EmbeddedServerError: the server did not start.
        """
        self.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        if running := read_state(self.data):
            raise UpError(f"already running on {self.data} (process {running['pid']}); stop it, or choose --data")
        if self.http_port and not _free(self.http_port):
            raise UpError(f"port {self.http_port} is taken; choose another --http-port")
        self.http_port = self.http_port or _free_port()
        self.http_token = self._kept_token()
        (self.data / "logs").mkdir(exist_ok=True)
        self.server = EmbeddedServer(self.data / "nats", self.nats_port)
        self.server.start()
        try:
            self.services = [self._service(name) for name in SERVICES]
            for service in self.services:
                self._spawn(service)
            self._await_ready()
        except BaseException:
            self.stop()
            raise
        self._write_state()

    def _kept_token(self) -> str:
        """The gateway's token, made once and kept, so that a browser's login outlives a restart."""
        path = self.data / "http-token"
        with contextlib.suppress(OSError):
            if token := path.read_text(encoding="ascii").strip():
                return token
        token = secrets.token_urlsafe(24)
        path.touch(mode=0o600)
        path.write_text(token, encoding="ascii")
        return token

    def _service(self, name: str) -> _Service:
        server = self.server
        if server is None or server.token is None:
            raise UpError("the server has not started")
        port = self.http_port if name == "gateway" else _free_port()
        environment = {
            **{name: value for name, value in os.environ.items() if name.upper() not in _ANOTHER_BUS},
            "OARLOCK_NATS_URL": server.url,
            "OARLOCK_NATS_TOKEN": server.token,
            "OARLOCK_HTTP_PORT": str(port),
            "OARLOCK_DATA_DIR": str(self.data / name),
            "OARLOCK_LOG_FORMAT": "json",
            "PYTHONUNBUFFERED": "1",
            **self.environment,
        }
        if self.fleet is not None:
            environment["OARLOCK_FLEET"] = str(self.fleet.resolve())
        if name == "gateway":
            environment["OARLOCK_GATEWAY_TOKEN"] = self.http_token
        return _Service(name, environment, port, self.data / "logs" / f"{name}.log")

    def _spawn(self, service: _Service) -> None:
        with service.log.open("ab") as log:
            service.process = subprocess.Popen(
                [sys.executable, "-m", f"oarlock_{service.name}"],
                env=service.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
            )
        service.started_at = time.monotonic()

    def _await_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        with httpx.Client(timeout=2.0, trust_env=False) as client:
            for service in self.services:
                while not _ready(client, service):
                    if service.process is not None and service.process.poll() is not None:
                        raise UpError(f"{service.name} ended with {service.process.returncode}:\n{_tail(service.log)}")
                    if time.monotonic() > deadline:
                        raise UpError(f"{service.name} is not ready after {START_SECONDS:g} s:\n{_tail(service.log)}")
                    time.sleep(0.05)
                self.tell(f"{service.name} is ready")

    def _write_state(self) -> None:
        connection = self.connection
        running = [service for service in self.services if service.process]
        state = {
            "pid": os.getpid(),
            "nats_url": connection.url,
            "nats_token": connection.token,
            "http_url": connection.gateway_url,
            "http_token": connection.gateway_token,
            "services": {s.name: {"pid": s.process.pid, "http_port": s.health_port} for s in running if s.process},
        }
        path = self.data / STATE_FILE
        temporary = path.with_suffix(".new")
        temporary.touch(mode=0o600)
        temporary.write_text(json.dumps(state, indent=2), encoding="utf-8")
        temporary.replace(path)

    async def watch(self) -> None:
        """Start again what dies, until SIGINT or SIGTERM."""
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopping.set)
        while not stopping.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), 0.5)
            if not stopping.is_set():
                self._revive()

    def _revive(self) -> None:
        if self.server is not None and not self.server.running:
            self.tell("nats-server ended; starting it again")
            self.server.restart()
        now = time.monotonic()
        for service in self.services:
            if service.process is None or service.process.poll() is None:
                continue
            if now - service.started_at > _STEADY_SECONDS:
                service.failures = 0
            pause = _PAUSES_SECONDS[min(service.failures, len(_PAUSES_SECONDS) - 1)]
            if now - service.started_at >= pause:
                self.tell(f"{service.name} ended with {service.process.returncode}; starting it again")
                service.failures += 1
                self._spawn(service)
                self._write_state()

    def stop(self) -> None:
        """Stop the services, last of the flow first, then the server; nothing is left running."""
        running = [s.process for s in reversed(self.services) if s.process is not None and s.process.poll() is None]
        for process in running:
            process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for process in running:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self.server is not None:
            self.server.stop()
        (self.data / STATE_FILE).unlink(missing_ok=True)


def _ready(client: httpx.Client, service: _Service) -> bool:
    try:
        return client.get(f"http://127.0.0.1:{service.health_port}/readyz").status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def _tail(path: Path, lines: int = 12) -> str:
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
