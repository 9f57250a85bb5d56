"""Runs as real containers, on a real engine with a stand-in for NVIDIA's hook."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import docker
import docker.errors
import pytest

from oarlock_launcher.settings import LauncherSettings
from oarlock_runtime import Bus

if TYPE_CHECKING:
    from tests.launcher.conftest import DockerEngine, Matcher, StandInGpus
    from tests.service_process import ServiceProcess

pytestmark = pytest.mark.docker


@pytest.fixture
def engine(docker_engine: DockerEngine, matcher: Matcher) -> Iterator[docker.DockerClient]:
    """The engine, to look at it from outside; nothing may be left on it."""
    client = docker.DockerClient(base_url=docker_engine.host)
    yield client
    for container in client.containers.list(all=True, filters=ours(matcher), ignore_removed=True):
        with contextlib.suppress(docker.errors.APIError):
            container.remove(force=True)
    client.close()


def ours(matcher: Matcher) -> dict[str, str | list[str] | bool]:
    """The filter for the containers of this test process."""
    return {"label": f"oarlock.site={matcher.site}"}


def shell(text: str) -> list[str]:
    return ["sh", "-c", text]


async def test_a_task_on_device_2_sees_device_2_only(
    matcher: Matcher,
    gpu_launcher: LauncherSettings,
    gpus: StandInGpus,
    docker_engine: DockerEngine,
    engine: docker.DockerClient,
) -> None:
    show = shell("ls /dev | grep nvidia; echo $NVIDIA_VISIBLE_DEVICES")
    await matcher.place("one", devices=gpus.placed(2), image=docker_engine.image, command=show)
    await matcher.place("two", devices=gpus.placed(1, 3), image=docker_engine.image, command=show)
    one, two = await matcher.finished("one"), await matcher.finished("two")
    assert one.log_tail == ["nvidia2", gpus.uid(2)], one
    assert two.log_tail == ["nvidia1", "nvidia3", f"{gpus.uid(1)},{gpus.uid(3)}"]
    launched = await matcher.launched("one")
    assert launched.runtime == "docker"
    assert f"--gpus device={gpus.uid(2)}" in launched.docker_command
    assert "--cap-drop ALL --security-opt no-new-privileges" in launched.docker_command
    # Cleaned up when the end was told.
    await asyncio.wait_for(_empty(engine, matcher), 15)


async def _empty(engine: docker.DockerClient, matcher: Matcher) -> None:
    while await asyncio.to_thread(engine.containers.list, all=True, filters=ours(matcher), ignore_removed=True):  # noqa: ASYNC110
        await asyncio.sleep(0.1)


async def test_the_shown_line_starts_the_same_container(
    matcher: Matcher,
    gpu_launcher: LauncherSettings,
    gpus: StandInGpus,
    docker_engine: DockerEngine,
    engine: docker.DockerClient,
) -> None:
    command = shell('echo "it\'s $WORD"; ls /dev | grep nvidia')
    await matcher.place(
        "line", devices=gpus.placed(0, 2), image=docker_engine.image, command=command, environment={"WORD": "a b'c"}
    )
    finished = await matcher.finished("line")
    line = (await matcher.launched("line")).docker_command.replace("--detach", "--rm", 1)
    line = line.replace("docker run", f"/usr/bin/docker -H {docker_engine.host} run", 1)
    assert finished.log_tail == ["it's a b'c", "nvidia0", "nvidia2"]
    # The line names the container, which the launcher removes when its end was told.
    await asyncio.wait_for(_empty(engine, matcher), 15)
    again = await asyncio.create_subprocess_exec("sh", "-c", line, stdout=asyncio.subprocess.PIPE)
    output, _ = await again.communicate()
    assert output.decode().splitlines() == finished.log_tail


async def test_a_start_that_fails_leaves_nothing(
    matcher: Matcher,
    gpu_launcher: LauncherSettings,
    gpus: StandInGpus,
    docker_engine: DockerEngine,
    engine: docker.DockerClient,
) -> None:
    # The inventory still lists it, the driver no longer knows it.
    (unknown,) = gpus.placed(9)
    await matcher.place("unknown", devices=[unknown], image=docker_engine.image, command=["true"])
    await matcher.place("program", devices=gpus.placed(0), image=docker_engine.image, command=["/no/such"])
    await matcher.place("image", devices=gpus.placed(1), image="no/such:image", command=["true"])
    unknown_end = await matcher.finished("unknown")
    assert unknown_end.outcome == "error" and "unknown device" in str(unknown_end.message)
    program = await matcher.finished("program")
    assert program.outcome == "error" and "/no/such" in str(program.message)
    image = await matcher.finished("image")
    assert image.outcome == "error" and "pulling is off" in str(image.message)
    await asyncio.wait_for(_empty(engine, matcher), 15)


async def test_going_over_the_memory_limit_is_oom(
    matcher: Matcher, docker_launcher: ServiceProcess, docker_engine: DockerEngine
) -> None:
    placed = await matcher.place(
        "fat",
        devices=[matcher.cpu().model_copy(update={"reserved_bytes": 24 << 20})],
        image=docker_engine.image,
        command=shell("echo before; dd if=/dev/zero of=/dev/null bs=256M count=1"),
    )
    finished = await matcher.finished("fat")
    assert finished.outcome == "oom", finished
    assert "memory limit" in str(finished.message)
    assert f"--memory {2 * placed.devices[0].reserved_bytes}" in (await matcher.launched("fat")).docker_command
    # A framework's own message counts as well, where the run failed.
    await matcher.place(
        "said",
        image=docker_engine.image,
        command=shell("echo 'Out of memory error on GPU 0. Cannot allocate 2.0GB memory' >&2; false"),
    )
    said = await matcher.finished("said")
    assert (said.outcome, said.exit_code) == ("oom", 1)


async def test_cancel_timeout_and_confinement(
    matcher: Matcher, docker_launcher: ServiceProcess, docker_engine: DockerEngine, engine: docker.DockerClient
) -> None:
    image = docker_engine.image
    await matcher.place("stop", image=image, command=shell("echo up; sleep 600"))
    await matcher.place("slow", image=image, command=["sleep", "600"], scheduler={"run_timeout_seconds": 1})
    code = "echo '#' > /workspace/x; echo y > /output/y && cat /workspace/main.py /output/y"
    code += "; busybox grep -E 'CapEff|NoNewPrivs' /proc/self/status"
    await matcher.place("held", "inside = 1", image=image, command=shell(code))
    await matcher.output("stop", lambda lines: "up" in lines)
    launched = await matcher.launched("stop")
    shown = engine.containers.get(launched.run_id).attrs["HostConfig"]
    assert shown["CapDrop"] == ["ALL"] and shown["SecurityOpt"] == ["no-new-privileges"]
    assert shown["PidsLimit"] == 4096 and shown["NetworkMode"] == "none" and shown["Init"] is True
    labels = engine.containers.get(launched.run_id).labels
    assert labels["oarlock.task_id"] == "stop" and labels["oarlock.attempt"] == "1"
    assert labels["oarlock.site"] == matcher.site and int(labels["oarlock.fence"]) > 0
    await matcher.bus.publish(matcher.bus.subjects.cancel("stop"), {})
    assert (await matcher.finished("stop")).outcome == "cancelled"
    assert (await matcher.finished("slow")).outcome == "timeout"
    held = (await matcher.finished("held")).log_tail
    assert any("Read-only" in line for line in held)
    assert "inside = 1y" in held
    assert any(line.split() == ["CapEff:", "0000000000000000"] for line in held)
    assert any(line.split() == ["NoNewPrivs:", "1"] for line in held)


async def test_killed_launcher_adopts_its_containers(
    matcher: Matcher, docker_launcher: ServiceProcess, docker_engine: DockerEngine
) -> None:
    image = docker_engine.image
    await matcher.place("ends", image=image, command=shell("echo one; sleep 2; echo two"))
    await matcher.place("stays", image=image, command=["sleep", "600"])
    await matcher.launched("ends")
    await matcher.launched("stays")
    await matcher.output("ends", lambda lines: "one" in lines)
    await docker_launcher.kill()
    await docker_launcher.start()
    finished = await matcher.finished("ends")
    assert (finished.outcome, finished.exit_code, finished.log_tail) == ("ok", 0, ["one", "two"])
    await matcher.bus.publish(matcher.bus.subjects.cancel("stays"), {})
    assert (await matcher.finished("stays")).outcome == "cancelled"
    for task_id in ("ends", "stays"):
        assert await matcher.stored(matcher.bus.subjects.launched(task_id)) == 1
        assert await matcher.stored(matcher.bus.subjects.finished(task_id)) == 1
    assert await matcher.stored(matcher.bus.subjects.logs("ends")) == 2


async def test_containers_are_adopted_by_their_labels_when_the_records_are_lost(
    matcher: Matcher, docker_launcher: ServiceProcess, docker_engine: DockerEngine, engine: docker.DockerClient
) -> None:
    image = docker_engine.image
    placed = await matcher.place("orphan", image=image, command=["sleep", "600"], exclusive=True)
    await matcher.launched("orphan")
    await docker_launcher.kill()
    # One that was created and never started, as a crash between the two calls leaves it.
    labels = engine.containers.get(f"oarlock-{matcher.site}-orphan-1").labels
    engine.containers.create(
        image,
        ["true"],
        name=f"oarlock-{matcher.site}-never-1",
        labels={**labels, "oarlock.task_id": "never"},
        network_mode="none",
    )
    shutil.rmtree(docker_launcher.folder / "records")
    await docker_launcher.start()
    await matcher.bus.publish(matcher.bus.subjects.cancel("orphan"), {})
    finished = await matcher.finished("orphan")
    assert finished.outcome == "cancelled"
    assert finished.device_uids == [placed.devices[0].uid]
    await asyncio.wait_for(_empty(engine, matcher), 15)


async def test_nats_of_our_image_answers(docker_engine: DockerEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", docker_engine.host)
    monkeypatch.setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
    monkeypatch.setenv("TESTCONTAINERS_CONNECTION_MODE", "docker_host")
    monkeypatch.setenv("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1")
    # Read at import, so only now.
    from testcontainers.community.nats import NatsContainer  # noqa: PLC0415

    with NatsContainer(docker_engine.nats_image) as container:
        async with await Bus.connect(container.nats_uri(), name="test") as bus:
            await bus.ensure()
            await bus.bucket("tasks").put("t", {"a": 1})
            entry = await bus.bucket("tasks").get("t")
            assert entry is not None and entry.value == {"a": 1}
