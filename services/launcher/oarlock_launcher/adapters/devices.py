"""The accelerators of this node, as their vendors' files find them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from oarlock_accelerators import ContainerHandover as VendorHandover
from oarlock_accelerators import Device, HandoverError, Inventory, ProcessHandover, find_kind
from oarlock_accelerators import vendor as vendor_named
from oarlock_launcher.core.container import Bind, DeviceAccess, GpuRequest, Node
from oarlock_launcher.core.run import DeviceGrant
from oarlock_launcher.ports import CannotStart

_PROBE_AGE_SECONDS = 2.0
"""How old a probe may be when devices are handed over: a start asks more than once, and some tools take a second."""


class ProbedDevices:
    """Finds devices by probing just before they are handed over, since an index can shift."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock``: steady seconds."""
        self._clock = clock
        self._known: dict[str, tuple[float, Inventory]] = {}
        self._turns: dict[str, asyncio.Lock] = {}

    async def find(self, vendor: str, uids: Sequence[str]) -> list[Device]:
        """See ``ports.Devices``."""
        async with self._turns.setdefault(vendor, asyncio.Lock()):
            inventory = await self._inventory(vendor)
        found = {device.uid: device for device in inventory.devices}
        missing = [uid for uid in uids if uid not in found]
        if missing:
            why = inventory.reason or f"{vendor} shows {', '.join(found) or 'nothing'}"
            raise CannotStart(f"unknown device {', '.join(missing)}: it is not on this node ({why})")
        return [found[uid] for uid in uids]

    async def _inventory(self, vendor: str) -> Inventory:
        at, inventory = self._known.get(vendor, (float("-inf"), None))
        if inventory is None or self._clock() - at > _PROBE_AGE_SECONDS:
            try:
                inventory = await asyncio.to_thread(vendor_named(vendor).probe)
            except KeyError as error:
                raise CannotStart(str(error.args[0])) from error
            self._known[vendor] = (self._clock(), inventory)
        return inventory


def described(grants: Sequence[DeviceGrant]) -> list[Device]:
    """Devices as the placement describes them, as if they were real: for the line that is shown of a simulated run."""
    return [
        Device(
            uid=grant.uid,
            vendor=grant.vendor,
            name=grant.kind,
            kind=find_kind(grant.kind),
            total_bytes=None,
            index=grant.index,
        )
        for grant in grants
    ]


def container_access(devices: Sequence[Device]) -> DeviceAccess:
    """How a container is given exactly ``devices``, in the core's own values.

    Raises:
        CannotStart: they are of several vendors, or their vendor cannot hand them over.
    """
    vendor = _one_vendor(devices)
    try:
        return _access(vendor_named(vendor).container(devices))
    except (KeyError, HandoverError) as error:
        raise CannotStart(f"the devices cannot be given to a container: {error}") from error


def process_access(devices: Sequence[Device]) -> ProcessHandover:
    """How a process is made to see exactly ``devices``.

    Raises:
        CannotStart: as ``container_access``.
    """
    vendor = _one_vendor(devices)
    try:
        return vendor_named(vendor).process(devices)
    except (KeyError, HandoverError) as error:
        raise CannotStart(f"the devices cannot be given to a process: {error}") from error


def framework_environment(vendor: str, framework: str | None, device_count: int) -> dict[str, str]:
    """What a framework needs to be told of a vendor: Paddle's launcher must know a plug-in's back end by name."""
    try:
        known = vendor_named(vendor)
    except KeyError:
        return {}
    if framework == "paddlepaddle" and device_count > 1 and known.paddle_custom_device and known.paddle_device_type:
        return {"PADDLE_XCCL_BACKEND": known.paddle_device_type}
    if framework == "paddlepaddle" and device_count > 1 and vendor == "cpu":
        # What its own launcher says where there are no accelerators (launch/controllers/collective.py, 3.3).
        return {"PADDLE_DISTRI_BACKEND": "gloo"}
    return {}


def _one_vendor(devices: Sequence[Device]) -> str:
    vendors = {device.vendor for device in devices}
    if len(vendors) != 1:
        raise CannotStart(f"one run cannot use devices of several vendors: {', '.join(sorted(vendors)) or 'none'}")
    return vendors.pop()


def _access(handover: VendorHandover) -> DeviceAccess:
    return DeviceAccess(
        gpus=tuple(GpuRequest(r.driver, r.device_ids, r.capabilities) for r in handover.device_requests),
        nodes=tuple(
            Node(n.host_path, n.container_path or n.host_path, n.permissions)
            for n in handover.device_nodes
            if n.required
        ),
        binds=tuple(Bind(m.path, m.path) for m in handover.mounts if m.required),
        groups=handover.group_add,
        security_options=handover.security_options,
        environment=dict(handover.environment),
    )
