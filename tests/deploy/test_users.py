"""The whole loop as compose.yaml runs it: every service with its own user of deploy/nats, and no more rights."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from oarlock.up import SERVICES
from oarlock_runtime import EmbeddedServer
from oarlock_schemas import FINAL

from .conftest import ROOT
from .test_compose import EXAMPLE, environment
from .test_dashboard import free_port

PATIENCE_SECONDS = 60.0
OF_THE_ENGINE = {"OARLOCK_RUNTIME", "OARLOCK_DOCKER_HOST_DIR"}
SCRIPT = "import numpy as np\nx = np.ones((64, 1024, 128))\nprint('sum', x.sum())\n"


@dataclass
class Secured:
    """Services as processes, each with the environment that compose gives it; only addresses are this machine's."""

    server: EmbeddedServer
    folder: Path
    ports: dict[str, int] = field(default_factory=dict)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def variables(self, service: str) -> dict[str, str]:
        given = {k: v for k, v in environment(service).items() if k not in OF_THE_ENGINE}
        own = {"OARLOCK_NATS_URL": self.server.url, "OARLOCK_DATA_DIR": str(self.folder / service)}
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("OARLOCK_")}
        return {**inherited, **given, **own, "OARLOCK_HTTP_PORT": str(self.ports.get(service, 0))}

    def start(self) -> None:
        ensure = [sys.executable, "-m", "oarlock_runtime", "ensure"]
        subprocess.run(ensure, env=self.variables("streams"), check=True, timeout=60)
        for service in SERVICES:
            self.ports[service] = free_port()
            command = [sys.executable, "-m", f"oarlock_{service}"]
            with (self.folder / f"{service}.log").open("wb") as log:
                self.processes.append(subprocess.Popen(command, env=self.variables(service), stdout=log, stderr=log))

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()

    def get(self, service: str, path: str, **more: Any) -> httpx.Response | None:
        with contextlib.suppress(httpx.HTTPError):
            url = f"http://127.0.0.1:{self.ports[service]}{path}"
            return httpx.request(more.pop("method", "GET"), url, trust_env=False, **more)
        return None

    def log(self, service: str) -> str:
        return (self.folder / f"{service}.log").read_text()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    configuration = folder / "nats-server.conf"
    # The monitoring port is fixed in the file; a test must not meet another server's.
    text = (ROOT / "deploy" / "nats" / "nats-server.conf").read_text()
    configuration.write_text(text.replace("http: 8222", "http: -1"))
    (folder / "users.conf").write_text((ROOT / "deploy" / "nats" / "users.conf").read_text())
    passwords = {name: f"value-of-{name}" for name in EXAMPLE}
    with EmbeddedServer(folder / "nats", config=configuration, environment=passwords) as server:
        services = Secured(server, folder)
        try:
            services.start()
            yield services
        finally:
            services.stop()


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_is_ready_with_its_own_user(secured: Secured, service: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    answer = None
    while answer is None or answer.status_code != httpx.codes.OK:
        assert time.monotonic() < deadline, f"{answer.text if answer else ''}\n{secured.log(service)[-3000:]}"
        time.sleep(0.1)
        answer = secured.get(service, "/readyz")


def test_a_task_goes_through_the_whole_loop(secured: Secured) -> None:
    token = {"Authorization": f"Bearer {environment('gateway')['OARLOCK_GATEWAY_TOKEN']}"}
    body = {"source": {"inline": SCRIPT}}
    deadline = time.monotonic() + PATIENCE_SECONDS
    submitted = None
    while submitted is None or submitted.status_code == httpx.codes.SERVICE_UNAVAILABLE:
        assert time.monotonic() < deadline
        submitted = secured.get("gateway", "/api/tasks", method="POST", json=body, headers=token, timeout=15)
    assert submitted.status_code == httpx.codes.ACCEPTED, submitted.text
    task_id = submitted.json()["task_id"]
    record: dict[str, Any] = {"state": "submitted"}
    while record["state"] not in FINAL:
        assert time.monotonic() < deadline, str(record) + "".join(secured.log(s)[-1500:] for s in SERVICES)
        time.sleep(0.2)
        if shown := secured.get("gateway", f"/api/tasks/{task_id}", headers=token, timeout=15):
            record = shown.json()["task"]
    assert record["state"] == "succeeded", record
    # Learned from as well: telemetry may write the run record, and the profiler may read it.
    metrics = ""
    while "oarlock_calibration_runs{" not in metrics:
        assert time.monotonic() < deadline, "".join(secured.log(s)[-1500:] for s in ("telemetry", "profiler"))
        time.sleep(0.2)
        metrics = answer.text if (answer := secured.get("gateway", "/metrics")) else ""


@pytest.mark.parametrize("service", SERVICES)
def test_nothing_was_denied(secured: Secured, service: str) -> None:
    log = secured.log(service)
    assert [line for line in log.splitlines() if "not permitted" in line] == []
