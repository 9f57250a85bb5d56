"""What a vendor file provides: the one interface that launcher, telemetry and matcher know."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from oarlock_accelerators.handover import ContainerHandover, ProcessHandover
from oarlock_accelerators.model import Device, Inventory, Kind, Snapshot


class Vendor(ABC):
    """One accelerator vendor. A module of ``oarlock_accelerators.vendors`` exposes one as ``VENDOR``.

    ``probe`` and ``sample`` touch the machine, may block for some seconds, never raise for an absent driver or tool
    (the result's ``reason`` says it), and may be called from any one thread at a time. ``container`` and ``process``
    are pure.
    """

    name: ClassVar[str]
    """Short lower-case name, equal to the module's."""
    title: ClassVar[str]
    """Name for people."""
    kinds: ClassVar[tuple[Kind, ...]]
    """Every kind of device known of this vendor."""
    words: ClassVar[tuple[str, ...]] = ()
    """Words people put before a device's name that carry no information (``NVIDIA``, ``Tesla``)."""
    domestic: ClassVar[bool] = False
    paddle_device_type: ClassVar[str | None] = None
    """What ``paddle.set_device`` calls it; ``None`` when no Paddle build is known."""
    paddle_custom_device: ClassVar[bool] = False
    """Whether Paddle drives it through a plug-in, which needs ``PADDLE_XCCL_BACKEND`` to launch several."""
    torch_device_type: ClassVar[str | None] = None
    """What ``torch.device`` calls it (some need the vendor's plug-in); ``None`` when none is known."""

    @abstractmethod
    def probe(self) -> Inventory:
        """Which devices are on this machine."""

    @abstractmethod
    def sample(self) -> Snapshot:
        """Read every device once, and the memory of the processes on them."""

    @abstractmethod
    def container(self, devices: Sequence[Device]) -> ContainerHandover:
        """How a container is given exactly ``devices``.

        Raises:
            HandoverError: it cannot be.
        """

    @abstractmethod
    def process(self, devices: Sequence[Device]) -> ProcessHandover:
        """How a child process is made to see exactly ``devices``.

        Raises:
            HandoverError: it cannot be.
        """
