"""A container as it is started, and the ``docker run`` line that would start the same one."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

_NOTHING: Mapping[str, str] = MappingProxyType({})

LABEL_TASK = "oarlock.task_id"
LABEL_ATTEMPT = "oarlock.attempt"
LABEL_SITE = "oarlock.site"
LABEL_FENCE = "oarlock.fence"
LABEL_DEVICES = "oarlock.devices"
LABEL_TIMEOUT = "oarlock.timeout_seconds"
LABEL_EXCLUSIVE = "oarlock.exclusive"
LABEL_GANG = "oarlock.gang"


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """Devices that a vendor's runtime hook brings in by their own ids."""

    driver: str
    device_ids: tuple[str, ...]
    capabilities: tuple[str, ...] = ("gpu",)


@dataclass(frozen=True, slots=True)
class Bind:
    """A folder or file of the host."""

    source: str
    target: str
    read_only: bool = True


@dataclass(frozen=True, slots=True)
class Node:
    """A character device."""

    host_path: str
    container_path: str
    permissions: str = "rwm"


@dataclass(frozen=True, slots=True)
class DeviceAccess:
    """What makes exactly the placed devices usable inside a container."""

    gpus: tuple[GpuRequest, ...] = ()
    nodes: tuple[Node, ...] = ()
    binds: tuple[Bind, ...] = ()
    groups: tuple[str, ...] = ()
    security_options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True)
class Confinement:
    """What every container is held to. ``None`` leaves the engine's default."""

    memory_bytes: int | None = None
    shm_bytes: int | None = 8 * 1024**3
    pids: int | None = 4096
    network: str | None = None
    user: str | None = None
    init: bool = True


@dataclass(frozen=True, slots=True)
class Container:
    """Everything that is told to the engine."""

    name: str
    image: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    working_folder: str | None
    binds: tuple[Bind, ...]
    access: DeviceAccess
    confinement: Confinement
    labels: Mapping[str, str]

    @property
    def all_binds(self) -> tuple[Bind, ...]:
        return (*self.binds, *self.access.binds)

    @property
    def full_environment(self) -> dict[str, str]:
        return {**self.environment, **self.access.environment}


def docker_run_line(container: Container) -> str:
    """The equivalent ``docker run`` line, quoted for a POSIX shell."""
    return shlex.join(docker_run_arguments(container))


def docker_run_arguments(container: Container) -> list[str]:
    """The argument vector of that line."""
    held = container.confinement
    out = ["docker", "run", "--detach", "--name", container.name]
    out += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    for option in container.access.security_options:
        out += ["--security-opt", option]
    if held.memory_bytes is not None:
        out += ["--memory", str(held.memory_bytes), "--memory-swap", str(held.memory_bytes)]
    if held.shm_bytes is not None:
        out += ["--shm-size", str(held.shm_bytes)]
    if held.pids is not None:
        out += ["--pids-limit", str(held.pids)]
    out += ["--ulimit", "core=0"]
    if held.network is not None:
        out += ["--network", held.network]
    if held.user is not None:
        out += ["--user", held.user]
    if held.init:
        out.append("--init")
    for request in container.access.gpus:
        # Docker reads the value as CSV, so a list of ids needs its own quotes inside the shell's.
        ids = ",".join(request.device_ids)
        out += ["--gpus", f'"device={ids}"' if len(request.device_ids) > 1 else f"device={ids}"]
    for node in container.access.nodes:
        out += ["--device", f"{node.host_path}:{node.container_path}:{node.permissions}"]
    for group in container.access.groups:
        out += ["--group-add", group]
    for bind in container.all_binds:
        out += ["--volume", f"{bind.source}:{bind.target}" + (":ro" if bind.read_only else "")]
    for name, value in sorted(container.full_environment.items()):
        out += ["--env", f"{name}={value}"]
    for name, value in sorted(container.labels.items()):
        out += ["--label", f"{name}={value}"]
    if container.working_folder is not None:
        out += ["--workdir", container.working_folder]
    # The command replaces whatever entry point the image has, as it does through the engine's API.
    if container.command:
        out += ["--entrypoint", container.command[0]]
    return [*out, container.image, *container.command[1:]]
