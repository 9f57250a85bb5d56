"""This machine's devices and those of a simulated fleet, through the vendors' files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import psutil

from oarlock_accelerators import Fleet, Inventory, Snapshot, Vendor, vendors
from oarlock_accelerators.vendors.simulated import SimulatedLoad, SimulatedVendor
from oarlock_runtime import escape_token, get_logger
from oarlock_telemetry.ports import Node

T = TypeVar("T")

log = get_logger("telemetry")

Loads = Callable[[], Mapping[str, Sequence[SimulatedLoad]]]


class Machines:
    """See ``ports.Machine``.

    Args:
        site: of this machine's devices.
        node: this machine's name.
        fleet: simulated nodes; None for none.
        loads: what runs on the simulated devices now.
        real: the vendors whose devices on this machine are offered; None for all, or for none where the fleet file
            says that this machine offers nothing.
    """

    def __init__(
        self, site: str, node: str, fleet: Fleet | None, loads: Loads, real: Sequence[Vendor] | None = None
    ) -> None:
        self._site = site
        self._node = node
        self._fleet = fleet
        offered = fleet is None or fleet.include_this_machine
        known = [vendor for vendor in vendors() if vendor.name != "simulated"] if real is None else list(real)
        self._real = known if offered else []
        self._simulated = SimulatedVendor(fleet, loads) if fleet is not None else None
        self._present: list[Vendor] = []
        self._problems: set[str] = set()
        self._turns: dict[str, asyncio.Lock] = {}

    @property
    def node_names(self) -> frozenset[str]:
        """Every node that this telemetry speaks for."""
        simulated = () if self._fleet is None else (node_name(node.name) for node in self._fleet.nodes)
        return frozenset((self._node, *simulated))

    async def nodes(self) -> Sequence[Node]:
        """See ``ports.Machine``. Vendors without a device are asked again at the next call, in case one appears."""
        found = await asyncio.gather(*(self._ask(vendor, vendor.probe) for vendor in self._real))
        self._note(found)
        self._present = [vendor for vendor, inventory in zip(self._real, found, strict=True) if inventory.devices]
        nodes = []
        if self._real:
            cores = os.cpu_count()
            nodes.append(
                Node(
                    self._site,
                    self._node,
                    None if cores is None else cores * 1000,
                    int(psutil.virtual_memory().total),
                    tuple(device for inventory in found for device in inventory.devices),
                )
            )
        for each in () if self._fleet is None else self._fleet.nodes:
            cpu = None if each.cpu_cores is None else int(each.cpu_cores * 1000)
            nodes.append(Node(each.site, node_name(each.name), cpu, each.memory_bytes, each.devices))
        return nodes

    async def sample(self) -> Sequence[Snapshot]:
        """See ``ports.Machine``."""
        present = [*self._present, *([self._simulated] if self._simulated else [])]
        return await asyncio.gather(*(self._ask(vendor, vendor.sample) for vendor in present))

    async def _ask(self, vendor: Vendor, question: Callable[[], T]) -> T:
        """In a thread, and one question of a vendor at a time, as its library wants it."""
        async with self._turns.setdefault(vendor.name, asyncio.Lock()):
            return await asyncio.to_thread(question)

    def _note(self, found: Sequence[Inventory]) -> None:
        """Say once what could not be identified."""
        for inventory in found:
            for problem in inventory.problems:
                if problem not in self._problems:
                    self._problems.add(problem)
                    log.warning("a device cannot be offered", vendor=inventory.vendor, problem=problem)


def node_name(name: str) -> str:
    """A node's name as a token of subjects and keys."""
    return escape_token(name).replace("=", "_")
