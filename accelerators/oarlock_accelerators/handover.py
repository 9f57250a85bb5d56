"""How a device is given to a container or a process: plain values, computed without touching the machine.

The launcher turns these into Docker API fields, Kubernetes manifests or a child's environment. What belongs here is
*what* to pass; how to pass it is the launcher's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from oarlock_accelerators.model import Device


class HandoverError(ValueError):
    """These devices cannot be given to that runtime; the message says why and what would work."""


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A Docker ``--gpus`` style request, answered by a vendor runtime hook."""

    driver: str
    device_ids: tuple[str, ...]
    capabilities: tuple[str, ...] = ("gpu",)


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """A character device to pass through."""

    host_path: str
    """May be a link (``/dev/dri/by-path/…``): see ``ContainerHandover.resolved``."""
    required: bool = True
    """When false, the launcher passes it only where the host has it."""
    container_path: str | None = None
    """``None``: the same path as on the host."""
    permissions: str = "rwm"


@dataclass(frozen=True, slots=True)
class Mount:
    """A read-only bind mount of the vendor's driver files."""

    path: str
    required: bool = True


@dataclass(frozen=True, slots=True)
class ContainerHandover:
    """Everything a container needs to use exactly the given devices."""

    device_requests: tuple[DeviceRequest, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[Mount, ...] = ()
    group_add: tuple[str, ...] = ()
    security_options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    runtime: str | None = None
    """A container runtime of the vendor that could be used instead of nodes and mounts; the nodes suffice."""
    cdi_names: tuple[str, ...] = ()
    """Container Device Interface names; empty when the vendor publishes no CDI kind."""
    kubernetes_resources: Mapping[str, int] = field(default_factory=dict)
    """Resource name to count for a pod's limits."""

    def resolved(self, real_path: Callable[[str], str]) -> ContainerHandover:
        """The same with device links followed (``os.path.realpath``), since drivers look for the real names."""
        nodes = tuple(replace(node, host_path=real_path(node.host_path)) for node in self.device_nodes)
        return replace(self, device_nodes=nodes)

    def docker_arguments(self) -> tuple[str, ...]:
        """The same as ``docker run`` arguments, for the line shown to people (required and optional parts)."""
        out: list[str] = []
        for request in self.device_requests:
            out += ["--gpus", f'"device={",".join(request.device_ids)}"']
        for node in self.device_nodes:
            out += ["--device", f"{node.host_path}:{node.container_path or node.host_path}"]
        for mount in self.mounts:
            out += ["-v", f"{mount.path}:{mount.path}:ro"]
        for group in self.group_add:
            out += ["--group-add", group]
        for option in self.security_options:
            out += ["--security-opt", option]
        for name, value in self.environment.items():
            out += ["-e", f"{name}={value}"]
        return tuple(out)


@dataclass(frozen=True, slots=True)
class ProcessHandover:
    """The environment that makes a child process see exactly the given devices."""

    environment: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    """Variables to remove from the inherited environment, because they would win over ``environment``."""


def indices(devices: Sequence[Device]) -> tuple[int, ...]:
    """The tool indices of ``devices``, for variables that know only numbers. Probe just before using them.

    Raises:
        HandoverError: a device has no index.
    """
    out = []
    for device in devices:
        if device.index is None:
            raise HandoverError(f"{device.uid} has no index; probe the machine again before handing it over")
        out.append(device.index)
    return tuple(out)


def minors(devices: Sequence[Device]) -> tuple[int, ...]:
    """The device node numbers of ``devices``: the minor where the vendor tells it, else the index.

    Raises:
        HandoverError: a device has neither.
    """
    return tuple(device.minor if device.minor is not None else indices((device,))[0] for device in devices)


def refuse_simulated(devices: Sequence[Device]) -> None:
    """Real hand-over is for real devices.

    Raises:
        HandoverError: there are no devices, or one is simulated.
    """
    if not devices:
        raise HandoverError("no devices were given")
    for device in devices:
        if device.simulated:
            raise HandoverError(f"{device.uid} is simulated; hand it over through the simulated vendor")


def comma(numbers: Sequence[int]) -> str:
    """``0,1,3``: how visibility variables list devices."""
    return ",".join(str(number) for number in numbers)
