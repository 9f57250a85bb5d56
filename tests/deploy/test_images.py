"""The images: the server with its users, and a service that meets it, on a real engine without a registry."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from testcontainers.community.nats import NatsContainer

from oarlock_runtime import Bus, PermanentError

from .conftest import ROOT, Engine, find
from .test_compose import EXAMPLE

pytestmark = pytest.mark.docker

PASSWORDS = {name: f"secret-of-{name}" for name in EXAMPLE if name.endswith("_PASSWORD")}
BASE = "oarlock-test-python:3.11"
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
def base(engine: Engine, client: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A stand-in for python:3.11-slim, from this machine's Debian mirror. Kept by the engine for the next run."""
    if any(BASE in image.tags for image in client.images.list()):
        return BASE
    (debootstrap,) = find("docker", "debootstrap")
    release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    codename = release["VERSION_CODENAME"]
    source = ["apt-get", "indextargets", "--format", "$(REPO_URI)", f"Codename: {codename}", "Identifier: Packages"]
    mirror = subprocess.run(source, capture_output=True, text=True, check=True).stdout.split()[0]
    root = tmp_path_factory.mktemp("debian") / "root"
    include = "--include=python3,python3-venv,ca-certificates"
    logged([debootstrap, "--variant=minbase", include, codename, str(root), mirror])
    logged(["chroot", str(root), "python3", "-m", "venv", "/opt/pip"])
    (root / "usr/local/bin/pip").symlink_to("/opt/pip/bin/pip")
    (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    shutil.rmtree(root / "var/cache/apt", ignore_errors=True)
    packed = root.parent / "base.tar"
    logged(["tar", "-C", str(root), "--one-file-system", "-cf", str(packed), "."])
    repository, tag = BASE.split(":")
    client.api.import_image_from_file(str(packed), repository=repository, tag=tag)
    shutil.rmtree(root.parent)
    return BASE


@pytest.fixture(scope="module")
def gateway_image(client: docker.DockerClient, base: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """deploy/Dockerfile built for the gateway, from a folder of wheels in place of an index."""
    context = tmp_path_factory.mktemp("context")
    for name in ("schemas", "accelerators", "runtime", "services"):
        shutil.copytree(ROOT / name, context / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "deploy" / "Dockerfile", context / "Dockerfile")
    ours = [str(ROOT / name) for name in ("schemas", "runtime", "services/gateway")]
    logged([sys.executable, "-m", "pip", "wheel", "--quiet", "-w", str(context / "wheels"), *ours, "hatchling>=1.25"])
    for wheel in (context / "wheels").glob("oarlock*.whl"):
        wheel.unlink()
    arguments = {"SERVICE": "gateway", "PYTHON_IMAGE": base, "PIP_FIND_LINKS": "/source/wheels", "PIP_NO_INDEX": "1"}
    image, _ = client.images.build(
        path=str(context), tag="oarlock-gateway:test", target="service", buildargs=arguments, rm=True
    )
    return str(image.tags[0])


def test_an_image_holds_its_own_service_and_no_other(client: docker.DockerClient, gateway_image: str) -> None:
    def output(*command: str) -> str:
        answer = client.containers.run(
            gateway_image, entrypoint=list(command), remove=True, network_mode="none", read_only=True
        )
        return str(answer.decode()).strip()

    assert output("id", "-u") == "10001"
    assert output("which", "python") == "/opt/oarlock/bin/python"
    listing = "import importlib.metadata as m; print(*sorted(d.name for d in m.distributions() if 'oarlock' in d.name))"
    assert output("python", "-c", listing).split() == ["oarlock-gateway", "oarlock-runtime", "oarlock-schemas"]
    assert output("sh", "-c", "ls /opt/oarlock/bin | grep -c -e nats-server -e '^pip' || true") == "0"
    assert output("sh", "-c", "touch /opt/oarlock/x 2>&1 || true").endswith("Read-only file system")


async def test_a_service_runs_from_its_image(
    client: docker.DockerClient, gateway_image: str, nats: NatsContainer
) -> None:
    server = nats.get_wrapped_container()
    server.reload()
    address = server.attrs["NetworkSettings"]["IPAddress"]
    hardened: dict[str, Any] = {
        "image": gateway_image,
        "detach": True,
        "read_only": True,
        "tmpfs": {"/tmp": ""},
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
    }
    bus = {"OARLOCK_NATS_URL": f"nats://{address}:{CLIENT_PORT}"}
    as_admin = {"OARLOCK_NATS_USER": "admin", "OARLOCK_NATS_PASSWORD": password("admin")}
    ensure = client.containers.run(
        entrypoint=["python", "-m", "oarlock_runtime", "ensure"], environment={**bus, **as_admin}, **hardened
    )
    try:
        assert ensure.wait(timeout=60)["StatusCode"] == 0, ensure.logs().decode()
    finally:
        ensure.remove(force=True)
    as_gateway = {"OARLOCK_NATS_USER": "gateway", "OARLOCK_NATS_PASSWORD": password("gateway")}
    gateway = client.containers.run(
        environment={**bus, **as_gateway, "OARLOCK_GATEWAY_TOKEN": "t"},
        healthcheck={"interval": 1_000_000_000},
        **hardened,
    )
    try:

        def health() -> bool:
            gateway.reload()
            assert gateway.status == "running", gateway.logs().decode()
            return str(gateway.attrs["State"]["Health"]["Status"]) == "healthy"

        await asyncio.to_thread(eventually, health, 90)
        ask = "import json, urllib.request as r; print(json.load(r.urlopen('http://127.0.0.1:8080/readyz'))['ready'])"
        done = await asyncio.to_thread(gateway.exec_run, ["python", "-c", ask])
        assert (done.exit_code, done.output.decode().strip()) == (0, "True")
        await asyncio.to_thread(gateway.stop, timeout=25)
        # An orderly end: the signal reached the service, not a shell around it.
        assert gateway.wait()["StatusCode"] == 0, gateway.logs().decode()
    finally:
        gateway.remove(force=True)


def eventually(condition: Callable[[], bool], seconds: float) -> None:
    """Wait for what no event announces: an engine's view of a container's health."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.2)


def logged(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command[0]}: {(done.stdout + done.stderr)[-3000:]}"
