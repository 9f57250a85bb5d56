"""The fleet as arrays: one row per (node, device model), one column per device of that row.

Filters and policies work on whole columns at once. Who holds what is kept by device (`holders`), and a slot's
numbers are
always recomputed from its holders, so that no sequence of bookings can drift. Every change is noted in a log of touched
rows: caches remember how far they have read it and recompute only what changed since.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oarlock_matcher.core.devices import WHOLE_MILLI, Device, DeviceModel, Health, Node, NodeShare, Share

UNLIMITED = 2**62
"""Stands for "not known, so not limiting" in processor and memory columns."""

NO_DEVICES = DeviceModel(kind="none", vendor="none", memory_bytes=0)
"""Model of the row of a node without devices, which still takes tasks for processors only."""

Rows = NDArray[np.intp]
Holder = tuple[str, int]
"""(task id, attempt)."""


@dataclass(slots=True)
class NodeEntry:
    """A node as last seen, with its rows of the table."""

    node: Node
    rows: list[int]


class FleetTable:
    """All devices and what is left of each. Rows are never removed; what is gone is marked unavailable."""

    def __init__(self, slots: int = 8) -> None:
        self.slots = slots
        self.size = 0
        self.inventory_version = 0
        self.capacity_version = 0
        self.models: list[DeviceModel] = []
        self._model_number: dict[DeviceModel, int] = {}
        self.nodes: list[NodeEntry] = []
        self.node_number: dict[str, int] = {}
        self.devices: dict[str, Device] = {}
        self.place_of: dict[str, tuple[int, int]] = {}
        self.uids: list[list[str | None]] = []
        self.row_names: list[str] = []
        self.holders: dict[str, dict[Holder, Share]] = {}
        self.node_holders: dict[str, dict[Holder, NodeShare]] = {}
        self._several_sites = (-1, False)
        self.touched: list[int] = []
        self.touched_base = 0
        self._allocate(16)
        self._allocate_nodes(16)

    # --- storage -----------------------------------------------------------------------------------------------

    def _allocate(self, rows: int) -> None:
        """Make room for `rows` rows of `self.slots` columns, keeping what is there."""

        def grown(name: str, shape: tuple[int, ...], dtype: type) -> None:
            new: NDArray[Any] = np.zeros(shape, dtype=dtype)
            old = getattr(self, name, None)
            if old is not None:
                new[tuple(slice(0, n) for n in old.shape)] = old
            setattr(self, name, new)

        for name in ("_row_node", "_row_model"):
            grown(name, (rows,), np.intp)
        wide = (rows, self.slots)
        for name in ("_milli_free", "_bytes_free", "_bytes_usable", "_sharers", "_link", "_busy"):
            grown(name, wide, np.int64)
        for name in ("_available", "_present", "_idle"):
            grown(name, wide, np.bool_)
        self._bind()

    def _allocate_nodes(self, nodes: int) -> None:
        for name in ("cpu_free", "memory_free", "cpu_total", "memory_total"):
            new = np.full(nodes, UNLIMITED, dtype=np.int64)
            old = getattr(self, name, None)
            if old is not None:
                new[: len(old)] = old
            setattr(self, name, new)
        up = np.zeros(nodes, dtype=np.bool_)
        old_up = getattr(self, "node_up", None)
        if old_up is not None:
            up[: len(old_up)] = old_up
        self.node_up: NDArray[np.bool_] = up
        self.cpu_free: NDArray[np.int64]
        self.memory_free: NDArray[np.int64]
        self.cpu_total: NDArray[np.int64]
        self.memory_total: NDArray[np.int64]

    def _bind(self) -> None:
        """Views of the rows in use. `milli_free` and `bytes_free` are 0 where a device takes no work."""
        size = self.size
        self._row_node: NDArray[np.intp]
        self._row_model: NDArray[np.intp]
        self._milli_free: NDArray[np.int64]
        self._bytes_free: NDArray[np.int64]
        self._bytes_usable: NDArray[np.int64]
        self._sharers: NDArray[np.int64]
        self._link: NDArray[np.int64]
        self._busy: NDArray[np.int64]
        self._available: NDArray[np.bool_]
        self._present: NDArray[np.bool_]
        self._idle: NDArray[np.bool_]
        self.row_node = self._row_node[:size]
        self.row_model = self._row_model[:size]
        self.milli_free = self._milli_free[:size]
        self.bytes_free = self._bytes_free[:size]
        self.bytes_usable = self._bytes_usable[:size]
        self.sharers = self._sharers[:size]
        self.link = self._link[:size]
        self.busy = self._busy[:size]
        self.available = self._available[:size]
        self.present = self._present[:size]
        self.idle = self._idle[:size]

    def _new_row(self, node: int, model: DeviceModel) -> int:
        row = self.size
        if row == len(self._row_node):
            self._allocate(2 * row)
        number = self._model_number.get(model)
        if number is None:
            number = self._model_number[model] = len(self.models)
            self.models.append(model)
        self._row_node[row] = node
        self._row_model[row] = number
        self.uids.append([None] * self.slots)
        self.row_names.append(self.nodes[node].node.name)
        self.size += 1
        self._bind()
        self.inventory_version += 1
        self.nodes[node].rows.append(row)
        return row

    # --- inventory ---------------------------------------------------------------------------------------------

    def see_node(self, node: Node) -> None:
        """Add a node or take over what changed; devices that it no longer lists are lost."""
        number = self.node_number.get(node.name)
        if number is None:
            number = self.node_number[node.name] = len(self.nodes)
            self.nodes.append(NodeEntry(node, []))
            if number == len(self.node_up):
                self._allocate_nodes(2 * number)
        elif self.nodes[number].node == node:
            return
        entry = self.nodes[number]
        before = entry.node
        if before.site != node.site:
            self.inventory_version += 1
        entry.node = node
        self.node_up[number] = not node.draining
        self.capacity_version += 1
        self.cpu_total[number] = UNLIMITED if node.cpu_milli is None else node.cpu_milli
        self.memory_total[number] = UNLIMITED if node.memory_bytes is None else node.memory_bytes
        self._refresh_node(number)
        listed = {device.uid for device in node.devices}
        for device in before.devices:
            if device.uid not in listed and device.uid in self.place_of:
                self.change_device(device.uid, health=Health.LOST)
        for device in node.devices:
            self.see_device(device)
        if not entry.rows:
            self._touch(self._new_row(number, NO_DEVICES))

    def see_device(self, device: Device) -> None:
        """Add a device or take over what changed.

        Raises:
            KeyError: its node has not been seen.
        """
        known = self.devices.get(device.uid)
        if known == device:
            return
        number = self.node_number.get(device.node)
        if number is None:
            raise KeyError(f"device {device.uid} names node {device.node}, which has not been seen")
        if known is not None and (known.node != device.node or known.model != device.model):
            self._forget_place(device.uid)
        self.devices[device.uid] = device
        if device.uid not in self.place_of:
            row, slot = self._free_slot(number, device.model)
            self.place_of[device.uid] = (row, slot)
            self.uids[row][slot] = device.uid
            self._present[row, slot] = True
            self.inventory_version += 1
        self._refresh_device(device.uid)

    def change_device(
        self,
        uid: str,
        health: Health | None = None,
        cordoned: bool | None = None,
        foreign_bytes: int | None = None,
    ) -> None:
        """Change what is said of a known device; unknown devices are ignored (their inventory entry will come)."""
        device = self.devices.get(uid)
        if device is None:
            return
        changed = Device(
            uid=device.uid,
            node=device.node,
            model=device.model,
            usable_bytes=device.usable_bytes,
            foreign_bytes=device.foreign_bytes if foreign_bytes is None else foreign_bytes,
            health=device.health if health is None else health,
            cordoned=device.cordoned if cordoned is None else cordoned,
            link_group=device.link_group,
        )
        if changed != device:
            self.devices[uid] = changed
            self._refresh_device(uid)

    def lose_device(self, uid: str) -> None:
        self.change_device(uid, health=Health.LOST)

    def drain(self, node: str, draining: bool) -> None:
        number = self.node_number.get(node)
        if number is None:
            return
        self.node_up[number] = not draining
        for row in self.nodes[number].rows:
            self._touch(row)

    def _free_slot(self, node: int, model: DeviceModel) -> tuple[int, int]:
        number = self._model_number.get(model, -1)
        for row in self.nodes[node].rows:
            if self._row_model[row] == number:
                if None not in self.uids[row]:
                    self._widen()
                return row, self.uids[row].index(None)
        return self._new_row(node, model), 0

    def _widen(self) -> None:
        self.slots *= 2
        self._allocate(len(self._row_node))
        for uids in self.uids:
            uids.extend([None] * (self.slots - len(uids)))
        self.inventory_version += 1

    def _forget_place(self, uid: str) -> None:
        row, slot = self.place_of.pop(uid)
        self.uids[row][slot] = None
        self._present[row, slot] = self._available[row, slot] = self._idle[row, slot] = False
        self._milli_free[row, slot] = self._bytes_free[row, slot] = self._bytes_usable[row, slot] = 0
        self.inventory_version += 1
        self._touch(row)

    # --- bookings ----------------------------------------------------------------------------------------------

    def hold(self, holder: Holder, shares: Iterable[Share], node_shares: Iterable[NodeShare] = ()) -> None:
        """Book these shares for `holder`. Devices and nodes not seen yet are booked all the same."""
        for share in shares:
            self.holders.setdefault(share.device_uid, {})[holder] = share
            self._refresh_device(share.device_uid)
        for node_share in node_shares:
            self.node_holders.setdefault(node_share.node, {})[holder] = node_share
            self._refresh_node(self.node_number.get(node_share.node))

    def release(self, holder: Holder, shares: Iterable[Share], node_shares: Iterable[NodeShare] = ()) -> None:
        """Undo `hold`; what is not held is ignored."""
        for share in shares:
            held = self.holders.get(share.device_uid)
            if held is not None and held.pop(holder, None) is not None:
                if not held:
                    del self.holders[share.device_uid]
                self._refresh_device(share.device_uid)
        for node_share in node_shares:
            used = self.node_holders.get(node_share.node)
            if used is not None and used.pop(holder, None) is not None:
                if not used:
                    del self.node_holders[node_share.node]
                self._refresh_node(self.node_number.get(node_share.node))

    def _refresh_device(self, uid: str) -> None:
        place = self.place_of.get(uid)
        if place is None:
            return
        row, slot = place
        device = self.devices[uid]
        usable = device.model.memory_bytes if device.usable_bytes is None else device.usable_bytes
        held = self.holders.get(uid)
        used_bytes = device.foreign_bytes
        used_milli = used_busy = 0
        locked = False
        if held:
            for share in held.values():
                used_bytes += share.bytes
                used_milli += share.milli
                used_busy += share.busy_milli or 0
                locked = locked or share.exclusive
        up = device.health is Health.OK and not device.cordoned
        open_ = up and not locked
        self._available[row, slot] = up
        present = device.health is not Health.LOST
        if self._present[row, slot] != present or self._bytes_usable[row, slot] != usable:
            self.capacity_version += 1
        self._present[row, slot] = present
        self._busy[row, slot] = used_busy
        self._sharers[row, slot] = len(held) if held else 0
        self._bytes_usable[row, slot] = usable
        self._milli_free[row, slot] = max(0, WHOLE_MILLI - used_milli) if open_ else 0
        self._bytes_free[row, slot] = max(0, usable - used_bytes) if open_ else 0
        self._idle[row, slot] = open_ and not held
        if device.link_group is not None:
            # Any stable number will do: groups are only compared for equality, within one row.
            self._link[row, slot] = sum(ord(c) << (8 * (i % 6)) for i, c in enumerate(device.link_group)) + 1
        else:
            self._link[row, slot] = 0
        self._touch(row)

    def _refresh_node(self, number: int | None) -> None:
        if number is None:
            return
        entry = self.nodes[number]
        cpu = memory = 0
        for share in self.node_holders.get(entry.node.name, {}).values():
            cpu += share.cpu_milli
            memory += share.memory_bytes
        self.cpu_free[number] = max(0, int(self.cpu_total[number]) - cpu)
        self.memory_free[number] = max(0, int(self.memory_total[number]) - memory)
        for row in entry.rows:
            self._touch(row)

    # --- what changed ------------------------------------------------------------------------------------------

    def _touch(self, row: int) -> None:
        self.touched.append(row)
        if len(self.touched) > 4 * self.size + 65536:
            half = len(self.touched) // 2
            self.touched_base += half
            del self.touched[:half]

    @property
    def touched_end(self) -> int:
        return self.touched_base + len(self.touched)

    def changed_since(self, position: int) -> list[int] | None:
        """Rows touched since `position` (each once); `None` when the log no longer reaches back that far."""
        if position < self.touched_base:
            return None
        recent = self.touched[position - self.touched_base :]
        return list(dict.fromkeys(recent)) if len(recent) < self.size else None

    # --- reading -----------------------------------------------------------------------------------------------

    def several_sites(self) -> bool:
        """Whether the fleet has more than one site (worked out once per change of the inventory)."""
        if self._several_sites[0] != self.inventory_version:
            several = len({entry.node.site for entry in self.nodes}) > 1
            self._several_sites = (self.inventory_version, several)
        return self._several_sites[1]

    def site_of(self, row: int) -> str:
        return self.nodes[int(self.row_node[row])].node.site

    def node_name(self, row: int) -> str:
        return self.row_names[row]

    def model_of(self, row: int) -> DeviceModel:
        return self.models[int(self.row_model[row])]

    def all_rows(self) -> Rows:
        return np.arange(self.size, dtype=np.intp)
