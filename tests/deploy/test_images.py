"""The images, and compose.yaml made of them, on a real engine without a registry."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from testcontainers.community.nats import NatsContainer

from oarlock import AsyncClient
from oarlock.up import SERVICES
from oarlock_runtime import Bus, PermanentError

from .conftest import ROOT, Engine
from .images import service_images
from .test_compose import COMPOSE, EXAMPLE, environment, filled

pytestmark = pytest.mark.docker

PASSWORDS = {name: f"secret-of-{name}" for name in EXAMPLE if name.endswith("_PASSWORD")}
CLIENT_PORT = 4222


@pytest.fixture(scope="module")
def client(engine: Engine) -> Iterator[docker.DockerClient]:
    client = docker.DockerClient(base_url=engine.host)
    yield client
    client.close()


@pytest.fixture(scope="module")
def nats(engine: Engine) -> Iterator[NatsContainer]:
    """The server as compose.yaml runs it: the image of deploy/nats with the configuration of deploy/nats."""
    settings = {
        "DOCKER_HOST": engine.host,
        "TESTCONTAINERS_RYUK_DISABLED": "true",
        "TESTCONTAINERS_CONNECTION_MODE": "docker_host",
        "TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1",
    }
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        container = NatsContainer(image=engine.nats_image)
        container.with_command("-c /etc/nats/nats-server.conf")
        container.with_volume_mapping(str(ROOT / "deploy" / "nats"), "/etc/nats", "ro")
        for name, value in PASSWORDS.items():
            container.with_env(name, value)
        with container:
            yield container
    finally:
        for name, earlier in before.items():
            os.environ.pop(name) if earlier is None else os.environ.update({name: earlier})


def password(user: str) -> str:
    return PASSWORDS[f"OARLOCK_{user.upper()}_PASSWORD"]


async def test_the_server_of_the_image_lets_in_its_users_and_nobody_else(nats: NatsContainer) -> None:
    url = f"nats://127.0.0.1:{nats.get_exposed_port(CLIENT_PORT)}"
    async with await Bus.connect(url, user="admin", password=password("admin")) as admin:
        await admin.ensure()
        await admin.bucket("policy").put("matcher", {"preset": "cost"})
    async with await Bus.connect(url, name="matcher", user="matcher", password=password("matcher")) as matcher:
        entry = await matcher.bucket("policy").get("matcher")
        assert entry is not None and entry.value == {"preset": "cost"}
    with pytest.raises(PermanentError):
        await Bus.connect(url)
    with pytest.raises(PermanentError):
        await Bus.connect(url, user="admin", password=password("matcher"))


@pytest.fixture(scope="module")
def images(client: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An image of each service."""
    return service_images(client, SERVICES, tmp_path_factory.mktemp("images"))


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_holds_its_own_service_and_no_other(
    client: docker.DockerClient, images: dict[str, str], service: str
) -> None:
    def output(command: str) -> str:
        answer = client.containers.run(
            images[service], entrypoint=["sh", "-c", command], remove=True, network_mode="none", read_only=True
        )
        return str(answer.decode()).strip()

    names = "import importlib.metadata as m; print(*sorted(d.name for d in m.distributions() if 'oarlock' in d.name))"
    user, ours, binaries, written = output(
        f'id -u; python -c "{names}"; ls /opt/oarlock/bin | grep -c -e nats-server -e "^pip";'
        "touch /opt/oarlock/x 2>&1 || true"
    ).splitlines()
    assert user == "10001"
    shared = {"oarlock-runtime", "oarlock-schemas"} | ({"oarlock-accelerators"} if service != "gateway" else set())
    assert set(ours.split()) == shared | {f"oarlock-{service}"}
    assert binaries == "0"
    assert written.endswith("Read-only file system")


class Composed:
    """The services of compose.yaml as containers of the engine, by what the file says of each.

    Only addresses differ: the engine for tests has no names on its network, and the server is there already.
    """

    def __init__(self, client: docker.DockerClient, images: dict[str, str], nats_url: str, folder: Path) -> None:
        self._client = client
        self._images = images
        self._folder = folder
        self.nats_url = nats_url
        self.containers: dict[str, Any] = {}

    def start(self, name: str, socket: str) -> Any:
        """One service, as compose would start it."""
        entry = COMPOSE["services"][name]
        volumes = [self._volume(name, mount, socket) for mount in entry.get("volumes", [])]
        container = self._client.containers.run(
            self._images[entry["image"].removeprefix("oarlock-")],
            detach=True,
            environment={**environment(name), **PASSWORD_OF.get(name, {}), "OARLOCK_NATS_URL": self.nats_url}
            | ({"OARLOCK_DOCKER_HOST_DIR": str(self._folder / name)} if name == "launcher" else {}),
            entrypoint=entry.get("entrypoint"),
            hostname=filled(entry["hostname"]) if "hostname" in entry else None,
            read_only=entry["read_only"],
            tmpfs=dict.fromkeys(entry["tmpfs"], ""),
            cap_drop=entry["cap_drop"],
            security_opt=entry["security_opt"],
            pid_mode=entry.get("pid"),
            group_add=[str(Path(socket).stat().st_gid)] if "group_add" in entry else None,
            volumes=volumes,
            healthcheck={"interval": 1_000_000_000},
        )
        self.containers[name] = container
        return container

    def _volume(self, name: str, mount: str, socket: str) -> str:
        source, target, *mode = filled(mount).split(":")
        if target == "/var/run/docker.sock":
            source = socket
        elif target == "/data":
            place = self._folder / name
            place.mkdir(exist_ok=True)
            os.chown(place, 10001, 10001)
            source = str(place)
        return ":".join([source, target, *mode])

    def logs(self) -> str:
        """The end of every log."""
        return "\n".join(f"--- {name}\n{c.logs(tail=15).decode()}" for name, c in self.containers.items())

    def remove(self) -> None:
        """Every container of this test."""
        for container in self.containers.values():
            container.remove(force=True)


PASSWORD_OF = {
    service: {"OARLOCK_NATS_PASSWORD": password("admin" if service == "streams" else service)}
    for service in ("streams", *SERVICES)
}


@pytest.fixture(scope="module")
def composed(
    engine: Engine,
    client: docker.DockerClient,
    images: dict[str, str],
    nats: NatsContainer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Composed]:
    """Everything up, as `docker compose up` would have it."""
    server = nats.get_wrapped_container()
    server.reload()
    url = f"nats://{server.attrs['NetworkSettings']['IPAddress']}:{CLIENT_PORT}"
    folder = tmp_path_factory.mktemp("composed")
    for parent in (folder, folder.parent):
        parent.chmod(0o755)  # pytest's folders are closed to the services' user
    socket = engine.host.removeprefix("unix://")
    services = Composed(client, images, url, folder)
    try:
        ensure = services.start("streams", socket)
        assert ensure.wait(timeout=60)["StatusCode"] == 0, ensure.logs().decode()
        for name in SERVICES:
            services.start(name, socket)
        yield services
    finally:
        services.remove()


@pytest.mark.parametrize("service", SERVICES)
def test_a_composed_service_becomes_healthy_and_ready(composed: Composed, service: str) -> None:
    container = composed.containers[service]

    def healthy() -> bool:
        container.reload()
        assert container.status == "running", container.logs().decode()
        return str(container.attrs["State"]["Health"]["Status"]) == "healthy"

    eventually(healthy, 90, composed.logs)
    ask = "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/readyz')"
    eventually(lambda: container.exec_run(["python", "-c", ask]).exit_code == 0, 60, composed.logs)


async def test_a_task_runs_in_a_container_that_the_composed_launcher_starts(
    engine: Engine, composed: Composed, nats: NatsContainer
) -> None:
    task = {
        "source": {"inline": "print('unused')"},
        "image": engine.image,
        "command": ["sh", "-c", "id -u; ls; echo from the container"],
        "resource_policy": {"required_devices": ["CPU"]},
    }
    url = f"nats://127.0.0.1:{nats.get_exposed_port(CLIENT_PORT)}"
    async with AsyncClient(
        await Bus.connect(url, name="gateway", user="gateway", password=password("gateway"))
    ) as client:
        task_id = await client.submit(task)
        try:
            async with asyncio.timeout(90):
                record = await client.wait(task_id)
        except TimeoutError:
            pytest.fail(f"{await client.task(task_id)}\n{composed.logs()}")
        assert record.state == "succeeded", f"{record}\n{composed.logs()}"
        lines = [line.line async for line in client.logs(task_id) if line.stream == "stdout"]
        assert lines[-1] == "from the container"
        assert (await client.run_record(task_id)) is not None


@pytest.mark.parametrize("service", SERVICES[::-1])
def test_a_composed_service_ends_in_order_when_it_is_told(composed: Composed, service: str) -> None:
    container = composed.containers[service]
    container.stop(timeout=28)
    # The signal reached the service, not a shell around it.
    assert container.wait()["StatusCode"] == 0, container.logs().decode()[-3000:]


def eventually(condition: Callable[[], bool], seconds: float, why: Callable[[], str]) -> None:
    """Wait for what no event announces: an engine's view of a container's health."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, why()
        time.sleep(0.2)
