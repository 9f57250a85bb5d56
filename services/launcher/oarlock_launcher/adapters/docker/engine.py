"""The few calls to the engine that a run needs, as coroutines; its errors become ours.

The SDK blocks, so each call has a thread: a run that is followed and awaited keeps two for as long as it lasts.
They are daemon threads, since the launcher must be able to end while containers go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import docker
import docker.errors
import docker.types
import requests
from docker.models.containers import Container as EngineContainer

from oarlock_launcher.adapters.docker.frames import FrameLines
from oarlock_launcher.core.container import LABEL_SITE, Container
from oarlock_launcher.core.logs import Line
from oarlock_launcher.ports import CannotStart, RuntimeUnavailable

T = TypeVar("T")

_CALL_SECONDS = 60
_PULL_SECONDS = 3600
_LOG_OPTIONS = {"max-size": "64m", "max-file": "1"}
_CONFLICT = 409
_CHUNKS_AHEAD = 16


class Engine:
    """One Docker engine.

    Args:
        base_url: address of the engine; None takes ``DOCKER_HOST`` or the usual socket.
        pull: whether an image that is not there is fetched.
        line_bytes: longest log line; longer ones are cut into several.
    """

    def __init__(self, base_url: str | None = None, *, pull: bool = True, line_bytes: int = 8192) -> None:
        self._base_url = base_url
        self._pull = pull
        self._line_bytes = line_bytes
        self._made: docker.DockerClient | None = None

    async def ensure_image(self, image: str) -> None:
        """Have the image on the engine.

        Raises:
            CannotStart: it is not there and cannot be had.
            RuntimeUnavailable: the engine does not answer.
        """

        def ensure(client: docker.DockerClient) -> None:
            try:
                client.images.get(image)
                return
            except docker.errors.ImageNotFound:
                if not self._pull:
                    raise CannotStart(f"image {image} is not on this engine, and pulling is off") from None
            try:
                repository, tag = split_image(image)
                client.images.pull(repository, tag=tag)
            except docker.errors.APIError as error:
                raise CannotStart(f"image {image} cannot be pulled: {error.explanation or error}") from error

        await self._call(ensure)

    async def start(self, container: Container) -> dict[str, Any]:
        """Create and start it, or find it; returns what the engine says of it.

        Raises:
            CannotStart: the engine refuses; what was created is removed.
            RuntimeUnavailable: the engine does not answer.
        """

        def start(client: docker.DockerClient) -> dict[str, Any]:
            with contextlib.suppress(docker.errors.NotFound):
                present = client.containers.get(container.name)
                if present.status != "created":
                    return dict(present.attrs)
                # Created by a launcher that died before starting it, so it never ran.
                present.remove(force=True)
            made: EngineContainer | None = None
            try:
                made = client.containers.create(container.image, **_arguments(container))
                made.start()
                made.reload()
                return dict(made.attrs)
            except docker.errors.APIError as error:
                if made is not None:
                    # The engine leaves it in state "created" when a hook fails, whatever auto-remove says.
                    made.remove(force=True, v=True)
                elif error.status_code == _CONFLICT:
                    return dict(client.containers.get(container.name).attrs)
                raise CannotStart(f"the container cannot be started: {error.explanation or error}") from error

        return await self._call(start)

    async def inspect(self, name: str) -> dict[str, Any] | None:
        """What the engine says of a container; None where there is none."""

        def inspect(client: docker.DockerClient) -> dict[str, Any] | None:
            try:
                return dict(client.containers.get(name).attrs)
            except docker.errors.NotFound:
                return None

        return await self._call(inspect)

    async def wait(self, name: str) -> None:
        """Return when it no longer runs (or is gone)."""

        def wait(client: docker.DockerClient) -> None:
            with contextlib.suppress(docker.errors.NotFound):
                client.containers.get(name).wait(timeout=None)

        await self._call(wait)

    async def stop(self, name: str, grace_seconds: float) -> None:
        """Ask it to end, and kill it after the grace."""

        def stop(client: docker.DockerClient) -> None:
            with contextlib.suppress(docker.errors.NotFound):
                client.containers.get(name).stop(timeout=int(grace_seconds))

        await self._call(stop)

    async def remove(self, name: str) -> None:
        """Remove it with its anonymous volumes, running or not."""

        def remove(client: docker.DockerClient) -> None:
            try:
                client.containers.get(name).remove(force=True, v=True)
            except docker.errors.NotFound:
                return
            except docker.errors.APIError as error:
                # Somebody is removing it already.
                if error.status_code != _CONFLICT:
                    raise

        await self._call(remove)

    async def of_site(self, site: str) -> list[dict[str, Any]]:
        """All containers that bear the site's label, running or not."""

        def find(client: docker.DockerClient) -> list[dict[str, Any]]:
            found = client.containers.list(all=True, filters={"label": f"{LABEL_SITE}={site}"}, ignore_removed=True)
            return [dict(each.attrs) for each in found]

        return await self._call(find)

    async def logs(self, name: str) -> AsyncIterator[Line]:
        """Its output from the beginning, until it has ended."""
        waiting: asyncio.Queue[list[Line] | None] = asyncio.Queue(_CHUNKS_AHEAD)
        loop = asyncio.get_running_loop()
        over = threading.Event()

        def hand_over(lines: list[Line] | None) -> None:
            # Blocks while the reader is behind, so that a flood waits in the engine and not in memory.
            with contextlib.suppress(RuntimeError):
                handing = asyncio.run_coroutine_threadsafe(waiting.put(lines), loop)
                while not over.is_set():
                    with contextlib.suppress(TimeoutError):
                        return handing.result(1.0)

        def read(client: docker.DockerClient) -> None:
            splitter = FrameLines(self._line_bytes)
            api = client.api
            url = f"{api.base_url}/v{api.api_version}/containers/{name}/logs"
            asked = {"stdout": "1", "stderr": "1", "follow": "1", "tail": "all"}
            try:
                with api.get(url, params=asked, stream=True, timeout=None) as answer:
                    if answer.status_code != requests.codes.ok:
                        return
                    for data in answer.iter_content(chunk_size=None):
                        hand_over(list(splitter.feed(data)))
                        if over.is_set():
                            return
                hand_over(list(splitter.end()))
            finally:
                hand_over(None)

        reading = asyncio.ensure_future(self._call(read))
        try:
            while (lines := await waiting.get()) is not None:
                for line in lines:
                    yield line
            await reading
        finally:
            over.set()
            reading.cancel()

    async def _call(self, function: Callable[[docker.DockerClient], T]) -> T:
        def call() -> T:
            try:
                return function(self._client())
            except (requests.exceptions.ConnectionError, requests.exceptions.Timeout) as error:
                raise RuntimeUnavailable(f"the Docker engine does not answer: {error}") from error
            except docker.errors.APIError as error:
                raise RuntimeUnavailable(f"the Docker engine answered: {error.explanation or error}") from error
            except docker.errors.DockerException as error:
                raise RuntimeUnavailable(f"the Docker engine cannot be reached: {error}") from error

        return await _in_thread(call)

    def _client(self) -> docker.DockerClient:
        if self._made is None:
            if self._base_url:
                self._made = docker.DockerClient(base_url=self._base_url, timeout=_CALL_SECONDS)
            else:
                self._made = docker.from_env(timeout=_CALL_SECONDS)
        return self._made


async def _in_thread(call: Callable[[], T]) -> T:
    """The result of a blocking call made in a thread of its own."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        try:
            outcome: tuple[T | None, BaseException | None] = (call(), None)
        except BaseException as error:
            outcome = (None, error)
        # The loop may have been closed while the engine kept us waiting.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, *outcome)

    threading.Thread(target=run, daemon=True, name="docker").start()
    return await done


def split_image(image: str) -> tuple[str, str | None]:
    """Repository and tag; ``latest`` where none is named, so that the engine does not pull every tag."""
    if "@" in image:
        return image, None
    head, _, last = image.rpartition("/")
    name, colon, tag = last.partition(":")
    return (f"{head}/{name}" if head else name), (tag if colon else "latest")


def _arguments(container: Container) -> dict[str, Any]:
    """The SDK's arguments, in the order of the ``docker run`` line of ``core.container``."""
    held, access = container.confinement, container.access
    out: dict[str, Any] = {
        "name": container.name,
        "detach": True,
        "entrypoint": list(container.command[:1]) or None,
        "command": list(container.command[1:]),
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges", *access.security_options],
        "ulimits": [docker.types.Ulimit(name="core", soft=0, hard=0)],
        "init": held.init,
        "device_requests": [
            docker.types.DeviceRequest(
                driver=request.driver, device_ids=list(request.device_ids), capabilities=[list(request.capabilities)]
            )
            for request in access.gpus
        ],
        "devices": [f"{node.host_path}:{node.container_path}:{node.permissions}" for node in access.nodes],
        "group_add": list(access.groups),
        "volumes": {
            bind.source: {"bind": bind.target, "mode": "ro" if bind.read_only else "rw"} for bind in container.all_binds
        },
        "environment": container.full_environment,
        "labels": dict(container.labels),
        "log_config": docker.types.LogConfig(type="json-file", config=_LOG_OPTIONS),
    }
    optional = {
        "mem_limit": held.memory_bytes,
        "memswap_limit": held.memory_bytes,
        "shm_size": held.shm_bytes,
        "pids_limit": held.pids,
        "network_mode": held.network,
        "user": held.user,
        "working_dir": container.working_folder,
    }
    return {**out, **{name: value for name, value in optional.items() if value is not None}}
