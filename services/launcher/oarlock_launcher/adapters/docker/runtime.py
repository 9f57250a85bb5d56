"""Starts runs as containers and finds them again by their labels: the ``docker`` runtime."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Collection
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from oarlock_launcher.adapters import plan
from oarlock_launcher.adapters.docker.engine import Engine
from oarlock_launcher.core import container as box
from oarlock_launcher.core.container import docker_run_line
from oarlock_launcher.core.logs import Line
from oarlock_launcher.core.run import DeviceGrant, Ending, Gang, Key, Run
from oarlock_launcher.ports import Code, Devices, Handle, RuntimeUnavailable
from oarlock_schemas import TaskPlaced

_ENGINE_RETRY_SECONDS = 2.0
_NEVER = "0001-01-01T00:00:00Z"


class DockerRuntime:
    """See ``ports.Runtime``. ``root`` holds one folder per run, for its code and output.

    ``node``: the one whose containers these are, where several launchers of the site may share an engine; None: all.
    """

    name = "docker"

    def __init__(
        self,
        root: Path,
        engine: Engine,
        code: Code,
        devices: Devices,
        policy: plan.ContainerPolicy,
        *,
        grace_seconds: float = 10.0,
        node: str | None = None,
    ) -> None:
        self._root = root
        self._node = node
        self._engine = engine
        self._code = code
        self._devices = devices
        self._policy = policy
        self._grace_seconds = grace_seconds
        root.mkdir(parents=True, exist_ok=True)
        root.chmod(0o711)

    async def prepare(self, run: Run, placed: TaskPlaced) -> None:
        """See ``ports.Runtime``."""
        present = await self._engine.inspect(self._name(run))
        if present is not None and present["State"]["StartedAt"] != _NEVER:
            return
        await asyncio.to_thread(_clear, self._folder(run.key))
        await self._code.fetch(placed.task.source, self._folder(run.key) / "code")
        # The user inside the container is whoever the image says; the folders above are closed to others.
        await asyncio.to_thread(_open_to_all, self._folder(run.key))
        await self._engine.ensure_image((await self._container(run, placed)).image)

    async def start(self, run: Run, placed: TaskPlaced) -> Handle:
        """See ``ports.Runtime``."""
        container = await self._container(run, placed)
        attributes = await self._engine.start(container)
        pid = int(attributes["State"].get("Pid") or 0)
        return Handle(attributes["Id"], pid or None, container.command, docker_run_line(container))

    async def follow(self, run: Run) -> AsyncIterator[Line]:
        """See ``ports.Runtime``.

        A stream may end before the engine has written down the last lines, and where the engine goes away. So reading
        is over only when a reading that began after the container's end is; lines already given are passed over.
        """
        seen = 0
        while True:
            try:
                state = await self._engine.inspect(self._name(run))
                over = state is None or not state["State"]["Running"]
                async for line in self._engine.logs(self._name(run)):
                    if line.number > seen:
                        seen = line.number
                        yield line
                if over:
                    return
            except RuntimeUnavailable:
                await asyncio.sleep(_ENGINE_RETRY_SECONDS)

    async def wait(self, run: Run) -> Ending:
        """See ``ports.Runtime``."""
        name = self._name(run)
        while True:
            try:
                await self._engine.wait(name)
                attributes = await self._engine.inspect(name)
                if attributes is None:
                    return Ending(note="the container was removed by somebody else; its exit code is not known")
                if not attributes["State"]["Running"]:
                    return _ending(attributes["State"])
            except RuntimeUnavailable:
                await asyncio.sleep(_ENGINE_RETRY_SECONDS)

    async def stop(self, run: Run) -> None:
        """See ``ports.Runtime``."""
        while True:
            try:
                await self._engine.stop(self._name(run), self._grace_seconds)
                return
            except RuntimeUnavailable:
                await asyncio.sleep(_ENGINE_RETRY_SECONDS)

    async def discard(self, run: Run) -> None:
        """See ``ports.Runtime``."""
        await self._engine.remove(self._name(run))
        await asyncio.to_thread(shutil.rmtree, self._folder(run.key), ignore_errors=True)

    async def find(self, known: Collection[Run]) -> dict[Key, Run]:
        """See ``ports.Runtime``. Containers that were created and never started are removed."""
        by_key = {run.key: run for run in known}
        found: dict[Key, Run] = {}
        for attributes in await self._engine.of_site(self._policy.site):
            run = from_labels(attributes)
            if run is None or (self._node is not None and any(device.node != self._node for device in run.devices)):
                continue
            if attributes["State"]["StartedAt"] == _NEVER:
                await self._engine.remove(attributes["Id"])
                continue
            found[run.key] = by_key.get(run.key, run)
        return found

    def _name(self, run: Run) -> str:
        return plan.container_name(run, self._policy.site)

    async def _container(self, run: Run, placed: TaskPlaced) -> box.Container:
        devices = await self._devices.find(run.devices[0].vendor, [grant.uid for grant in run.devices])
        folder = self._folder(run.key)
        seen = (self._policy.host_root or self._root) / folder.name
        folders = plan.CodeFolders(folder / "code", seen / "code", seen / "output")
        return plan.plan_container(run, placed, devices, self._policy, folders)

    def _folder(self, key: Key) -> Path:
        return self._root / f"{key[0]}.{key[1]}"


def _ending(state: dict[str, Any]) -> Ending:
    return Ending(
        exit_code=state["ExitCode"],
        memory_killed=bool(state.get("OOMKilled")),
        ended_at_seconds=_seconds(state.get("FinishedAt")),
        note=state.get("Error") or None,
    )


def from_labels(attributes: dict[str, Any]) -> Run | None:
    """The run a container belongs to; None where the labels are not ours or were tampered with."""
    found = attributes["Config"].get("Labels") or {}
    state = attributes["State"]
    try:
        devices = tuple(
            DeviceGrant(str(d["uid"]), str(d["kind"]), str(d["vendor"]), str(d["node"]), int(d["fence"]))
            for d in json.loads(found[box.LABEL_DEVICES])
        )
        timeout = found.get(box.LABEL_TIMEOUT)
        run = Run(
            task_id=found[box.LABEL_TASK],
            attempt=int(found[box.LABEL_ATTEMPT]),
            devices=devices,
            exclusive=found.get(box.LABEL_EXCLUSIVE) == "true",
            accepted_at_seconds=_seconds(attributes.get("Created")) or 0.0,
            timeout_seconds=None if timeout is None else float(timeout),
            gang=_gang(found.get(box.LABEL_GANG)),
        )
    except (KeyError, TypeError, ValueError):
        return None
    return replace(
        run,
        phase="running",
        # It may be long ago; its launcher lost its records, not its word.
        launch_told=True,
        run_id=attributes["Id"],
        pid=state.get("Pid") or None,
        started_at_seconds=_seconds(state.get("StartedAt")) or run.accepted_at_seconds,
    )


def _gang(text: str | None) -> Gang | None:
    """The gang a container belongs to, as its label says."""
    if text is None:
        return None
    read = json.loads(text)
    nodes, uids = tuple(map(str, read["nodes"])), tuple(map(str, read["device_uids"]))
    return Gang(str(read["node"]), nodes, tuple(map(int, read["counts"])), uids)


def _seconds(text: str | None) -> float | None:
    """An engine's time (nanoseconds, ``Z``) as seconds since the epoch."""
    if not text or text == _NEVER:
        return None
    head, _, fraction = text.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{head}.{(fraction or '0')[:6]:0<6}+00:00").timestamp()


def _clear(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    for path in (folder, folder / "code", folder / "output"):
        path.mkdir()


def _open_to_all(folder: Path) -> None:
    folder.chmod(0o755)
    (folder / "output").chmod(0o777)
    for path in (folder / "code", *(folder / "code").rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
