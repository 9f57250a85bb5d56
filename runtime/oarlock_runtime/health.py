"""Each service's own HTTP: is it alive, is it ready, what does it count."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from fastapi import FastAPI, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from oarlock_runtime.errors import OarlockError

_STOP_SECONDS = 10.0


def add_health_routes(
    app: FastAPI, service: str, registry: CollectorRegistry, troubles: Callable[[], dict[str, str]]
) -> None:
    """Add /healthz, /readyz and /metrics.

    ``troubles`` names what keeps the service from working, by part; empty when it is ready.
    """

    @app.get("/healthz", tags=["health"])
    async def healthz() -> dict[str, str]:
        """The process is alive and its loop turns."""
        return {"status": "alive", "service": service}

    @app.get("/readyz", tags=["health"])
    async def readyz(response: Response) -> dict[str, Any]:
        """The bus is connected and every consumer receives; else 503 and why not."""
        found = troubles()
        response.status_code = 503 if found else 200
        return {"ready": not found, "service": service, "troubles": found}

    @app.get("/metrics", tags=["health"])
    async def metrics() -> Response:
        """Prometheus text format."""
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Signals belong to the service, which stops its consumers before its HTTP.
        yield


class HttpServer:
    """uvicorn inside the running loop, on a socket bound by us so that the port is known before the first request."""

    def __init__(self, app: FastAPI, host: str, port: int) -> None:
        self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise OarlockError(
                f"cannot listen on {host}:{port}: {error.strerror}", fix="choose another OARLOCK_HTTP_PORT, or 0"
            ) from error
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=2, ws="none"
        )
        self._server = _Server(config)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin; connections wait in the socket's queue until the loop gets to them."""
        self._socket.listen(128)
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]), name="http")

    async def stop(self) -> None:
        """End within a few seconds, open event streams included."""
        self._server.should_exit = True
        if self._task is not None:
            _, late = await asyncio.wait({self._task}, timeout=_STOP_SECONDS)
            if late:
                self._task.cancel()
        self._socket.close()
