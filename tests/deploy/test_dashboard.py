"""Every panel shows something: the real services run, a real Prometheus asks them, each expression yields numbers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from oarlock import AsyncClient
from oarlock.bundle import load
from oarlock.up import SERVICES, Up
from oarlock_runtime import DeadLetters
from oarlock_schemas import DeviceState

from .conftest import ROOT

GRAFANA = ROOT / "deploy" / "grafana"
DASHBOARD: dict[str, Any] = json.loads((GRAFANA / "dashboards" / "oarlock.json").read_text())
PANELS = {f"{p['title']} ({p['id']})": p for p in DASHBOARD["panels"] if p["type"] != "row"}
EXAMPLES = ROOT / "examples"
PATIENCE_SECONDS = 30.0

pytestmark = pytest.mark.prometheus


@dataclass(frozen=True)
class Watched:
    """A Prometheus that has watched the services work since ``since`` (seconds since the epoch)."""

    url: str
    since: float

    def values(self, expression: str) -> list[float]:
        """Every finite value that the expression had since then."""
        query: dict[str, str | float] = {
            "query": expression.replace("$__rate_interval", "10s"),
            "start": self.since,
            "end": time.time(),
            "step": 1,
        }
        answer = httpx.get(f"{self.url}/api/v1/query_range", params=query, trust_env=False)
        assert answer.status_code == httpx.codes.OK, answer.text
        series = answer.json()["data"]["result"]
        return [value for one in series for _, text in one["values"] if math.isfinite(value := float(text))]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def configuration(up: Up) -> dict[str, Any]:
    """The committed configuration; only how services are found, and how often they are asked, is this machine's."""
    document: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())
    document["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    document["rule_files"] = [str(ROOT / "deploy" / "prometheus" / "alerts.yml")]
    (job,) = document["scrape_configs"]
    names = job.pop("dns_sd_configs")[0]["names"]
    ports = {service.name: service.health_port for service in up.services}
    assert set(names) == set(ports)
    job["static_configs"] = [
        {"targets": [f"127.0.0.1:{ports[name]}"], "labels": {"__meta_dns_name": name}} for name in names
    ]
    return document


@contextlib.contextmanager
def watching(program: str, up: Up, folder: Path) -> Iterator[str]:
    """Prometheus, until the block ends."""
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration(up)))
    port = free_port()
    command = [
        program,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not ready(url):
                assert process.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
                time.sleep(0.1)
            yield url
        finally:
            process.terminate()
            process.wait(30)


def ready(url: str) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(f"{url}/-/ready", trust_env=False).status_code == httpx.codes.OK
    return False


async def work(up: Up) -> None:
    """A real run, a simulated one, a task that fits nowhere, and a message that nobody can read."""
    async with await AsyncClient.connect(up.connection) as client, asyncio.timeout(120):
        seen: set[bool] = set()
        async for change in client.bus.bucket("devices", DeviceState).watch():
            seen |= {change.value.simulated} if change.value else set()
            if seen == {True, False}:
                break
        await client.bus.publish(client.bus.subjects.submitted("unreadable"), {"task": "no object"})
        too_large = await client.submit(EXAMPLES / "torch_gpt_too_large.py")
        ended = []
        for arguments in (["--seconds", "3"], ["--seconds", "2"]):
            real = await client.submit(load(EXAMPLES / "numpy_mlp.py", {"arguments": arguments}))
            simulated = await client.submit(EXAMPLES / "paddle_cnn_cifar10.py")
            ended += [await client.wait(real), await client.wait(simulated)]
            assert await client.run_record(real) is not None and await client.run_record(simulated) is not None
        assert [record.state for record in ended] == ["succeeded"] * 4
        assert (await client.wait(too_large)).state == "rejected"
        assert len(await DeadLetters(client.bus).list("profiler")) == 1


@pytest.fixture(scope="module")
def watched(prometheus: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Services that have done some work under Prometheus' eyes."""
    folder = tmp_path_factory.mktemp("watched")
    up = Up(
        folder / "up",
        fleet=ROOT / "deploy" / "fleets" / "seed.yaml",
        environment={"OARLOCK_SIMULATED_LONGEST_SECONDS": "3"},
    )
    up.start()
    try:
        with watching(prometheus, up, folder) as url:
            seen = Watched(url, time.time())
            asyncio.run(work(up))
            yield seen
    finally:
        up.stop()


@pytest.mark.parametrize("title", PANELS)
def test_a_panel_shows_numbers(watched: Watched, title: str) -> None:
    for target in PANELS[title]["targets"]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not watched.values(target["expr"]):
            assert time.monotonic() < deadline, f"no value of {target['expr']} since the services began to work"
            time.sleep(1)


def test_the_services_do_not_alarm_while_all_is_well(watched: Watched) -> None:
    answer = httpx.get(f"{watched.url}/api/v1/alerts", trust_env=False).json()["data"]["alerts"]
    # The unreadable message is a dead letter, and somebody is to be told.
    assert {alert["labels"]["alertname"] for alert in answer} == {"OarlockDeadLetters"}
    rules = httpx.get(f"{watched.url}/api/v1/rules", trust_env=False).json()["data"]["groups"]
    assert [r["lastError"] for group in rules for r in group["rules"] if r.get("lastError")] == []


def test_the_numbers_are_those_of_the_runs(watched: Watched) -> None:
    assert max(watched.values('oarlock_runs_completed_total{outcome="ok", simulated="false"}')) == 2
    assert max(watched.values('oarlock_rejections_total{code="no_device_fits"}')) == 1
    assert max(watched.values('sum(up{job="oarlock"})')) == len(SERVICES)
    booked = watched.values("max(oarlock_fleet_booked_bytes)")
    assert max(booked) > 2**20
    measured = watched.values('oarlock_run_peak_memory_bytes{simulated="false"}')
    assert min(measured) > 2**20


def test_the_committed_dashboard_is_what_the_script_writes() -> None:
    done = subprocess.run(
        [sys.executable, str(GRAFANA / "dashboard.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nrun: python deploy/grafana/dashboard.py"


def test_panels_fill_the_grid_without_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken and all(x < 24 for x, _ in cells), panel["title"]
        taken |= cells
    identities = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(identities) == len(set(identities))


def test_provisioning_finds_the_dashboard_and_prometheus() -> None:
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]
    (source,) = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())["datasources"]
    assert source["type"] == "prometheus" and source["url"] == "http://prometheus:9090" and "prometheus" in compose
    (provider,) = yaml.safe_load((GRAFANA / "provisioning/dashboards/oarlock.yml").read_text())["providers"]
    mounts = [mount.split(":")[1] for mount in compose["grafana"]["volumes"]]
    assert provider["options"]["path"] in mounts
