"""One task on two nodes as containers: two launchers of one site, which here share an engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import docker
import pytest
from tests.launcher.test_docker_runs import _empty, engine, shell
from tests.launcher.test_gang_runs import NODES, Pair, launchers

from oarlock_runtime import Bus, EmbeddedServer
from oarlock_schemas import TaskLaunched

if TYPE_CHECKING:
    from tests.launcher.conftest import DockerEngine, Matcher
    from tests.service_process import ServiceProcess

pytestmark = pytest.mark.docker

__all__ = ["engine"]


@pytest.fixture
async def containers(
    nats: EmbeddedServer, bus: Bus, matcher: Matcher, docker_engine: DockerEngine, tmp_path: Path
) -> AsyncIterator[Pair]:
    """Both launchers, running; what they may use for gangs is the host's network."""
    settings = {
        "OARLOCK_RUNTIME": "docker",
        "DOCKER_HOST": docker_engine.host,
        "OARLOCK_DOCKER_NETWORK": "none",
        "OARLOCK_DOCKER_GANG_NETWORK": "host",
        "OARLOCK_DOCKER_PULL": "false",
    }
    async with launchers(nats, bus, matcher, tmp_path, settings) as both:
        yield both


def running(engine: docker.DockerClient, launched: TaskLaunched) -> bool:
    try:
        return bool(engine.containers.get(launched.run_id).attrs["State"]["Running"])
    except docker.errors.NotFound:
        return False


async def test_containers_of_a_gang_know_each_other_and_end_together(
    containers: Pair, docker_engine: DockerEngine, engine: docker.DockerClient
) -> None:
    place, image = containers.matcher.place, docker_engine.image
    told = "echo $RANK of $WORLD_SIZE at $PADDLE_TRAINER_ENDPOINTS; [ -n $MASTER_PORT ] && echo $MASTER_ADDR"
    await place("d1", devices=containers.devices(), image=image, command=shell(told))
    assert (await containers.matcher.finished("d1")).outcome == "ok"
    lines = await containers.matcher.output("d1", lambda lines: len(lines) == 4)
    assert {line.split(" at ")[0] for line in lines} >= {"[left] 0 of 2", "[right] 1 of 2"}
    assert len({line.split(" at ")[1] for line in lines if " at " in line}) == 1

    await place("d2", devices=containers.devices(), image=image, command=["sleep", "600"])
    launched = await containers.launched("d2")
    left, right = (engine.containers.get(launched[node].run_id) for node in NODES)
    assert left.attrs["HostConfig"]["NetworkMode"] == "host" and left.name != right.name
    assert json.loads(right.labels["oarlock.gang"])["nodes"] == list(NODES)
    # A launcher comes back without its records, and takes over its own container only, as part of the gang.
    await containers.right.kill()
    for record in (containers.right.folder / "records").glob("d2.*"):
        record.unlink()
    await containers.right.start()
    left.kill("SIGKILL")
    finished = await containers.matcher.finished("d2", seconds=60)
    assert finished.outcome == "error" and len(finished.device_uids) == 2, finished
    await containers.book("d2", lambda book: book.told)
    assert not any(running(engine, each) for each in launched.values())
    assert await containers.matcher.stored(containers.bus.subjects.finished("d2")) == 1
    await asyncio.wait_for(_empty(engine, containers.matcher), 15)


async def test_a_launcher_that_has_its_site_to_itself_starts_no_part_of_a_gang(
    matcher: Matcher, docker_launcher: ServiceProcess, docker_engine: DockerEngine
) -> None:
    (cpu,) = [matcher.cpu()]
    far = cpu.model_copy(update={"node": "far"})
    await matcher.place("d3", devices=[cpu, far], image=docker_engine.image, command=["true"])
    finished = await matcher.finished("d3")
    assert finished.outcome == "refused" and "OARLOCK_SITE_SHARED" in str(finished.message)
