"""What is left of a device and of its node."""
# ruff: noqa: ARG002 - one signature for all, whatever each needs of it

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oarlock_matcher.core.filters.base import Mask, gib
from oarlock_matcher.core.fleet import FleetTable, Rows
from oarlock_matcher.core.interference import speed_together
from oarlock_matcher.core.policy_settings import PolicySettings
from oarlock_matcher.core.shapes import Shape


def memory_fits(free: NDArray[np.int64], shape: Shape) -> Mask:
    """Whether devices with `free` bytes hold the shape: the predicted peak within the task's threshold of what is
    free (margin that the user asked for), the 99 % reservation within all of it."""
    mask: Mask = free >= shape.bytes_at_least
    return mask


def memory_sentence(free: int, shape: Shape, what: str) -> str:
    if shape.device_bytes is not None and free * shape.threshold < shape.device_bytes:
        allowed = free * shape.threshold
        return f"needs {gib(shape.device_bytes)}, {gib(free)} × {shape.threshold:.2f} = {gib(allowed)} {what}"
    return f"its reservation of {gib(shape.reserve_bytes or 0)} exceeds the {gib(free)} {what}"


class DeviceSizeFilter:
    """The device would be too small even if it were idle."""

    code = "memory_too_small"
    static = False

    def concerns(self, shape: Shape) -> bool:
        return shape.count > 0 and (shape.device_bytes is not None or shape.reserve_bytes is not None)

    def admits(self, fleet: FleetTable, shape: Shape, rows: Rows, settings: PolicySettings) -> Mask:
        return memory_fits(fleet.bytes_usable[rows], shape)

    def sentence(self, fleet: FleetTable, shape: Shape, row: int, slot: int) -> str:
        return memory_sentence(int(fleet.bytes_usable[row, slot]), shape, "usable")


class NodeSizeFilter:
    """The node has fewer processors or less main memory than the task needs, even when idle."""

    code = "node_too_small"
    static = False

    def concerns(self, shape: Shape) -> bool:
        return shape.cpu_milli > 0 or shape.memory_bytes > 0

    def admits(self, fleet: FleetTable, shape: Shape, rows: Rows, settings: PolicySettings) -> Mask:
        nodes = fleet.row_node[rows]
        enough = (fleet.cpu_total[nodes] >= shape.cpu_milli) & (fleet.memory_total[nodes] >= shape.memory_bytes)
        mask: Mask = enough[:, np.newaxis]
        return mask

    def sentence(self, fleet: FleetTable, shape: Shape, row: int, slot: int) -> str:
        node = fleet.row_node[row]
        if fleet.cpu_total[node] < shape.cpu_milli:
            total = int(fleet.cpu_total[node]) / 1000
            return f"needs {shape.cpu_milli / 1000:g} processors, {fleet.node_name(row)} has {total:g}"
        total = int(fleet.memory_total[node])
        return f"needs {gib(shape.memory_bytes)} of main memory, {fleet.node_name(row)} has {gib(total)}"


class MemoryFilter:
    """What is left of a shared device's memory."""

    code = "memory_in_use"
    static = False

    def concerns(self, shape: Shape) -> bool:
        return shape.count > 0 and (shape.device_bytes is not None or shape.reserve_bytes is not None)

    def admits(self, fleet: FleetTable, shape: Shape, rows: Rows, settings: PolicySettings) -> Mask:
        return memory_fits(fleet.bytes_free[rows], shape)

    def sentence(self, fleet: FleetTable, shape: Shape, row: int, slot: int) -> str:
        total = int(fleet.bytes_usable[row, slot])
        what = f"left of {gib(total)}, {_holders(fleet, row, slot)}"
        return memory_sentence(int(fleet.bytes_free[row, slot]), shape, what)


class ExclusiveFilter:
    """A task for whole devices needs idle ones."""

    code = "busy"
    static = False

    def concerns(self, shape: Shape) -> bool:
        return shape.count > 0 and shape.whole

    def admits(self, fleet: FleetTable, shape: Shape, rows: Rows, settings: PolicySettings) -> Mask:
        mask: Mask = fleet.idle[rows]
        return mask

    def sentence(self, fleet: FleetTable, shape: Shape, row: int, slot: int) -> str:
        return f"the task needs the whole device, {_holders(fleet, row, slot)}"


class ComputeShareFilter:
    """A sharing task needs its share of the device's compute."""

    code = "compute_share"
    static = False

    def concerns(self, shape: Shape) -> bool:
        return shape.count > 0 and not shape.whole

    def admits(self, fleet: FleetTable, shape: Shape, rows: Rows, settings: PolicySettings) -> Mask:
        mask: Mask = fleet.milli_free[rows] >= shape.milli
        return mask

    def sentence(self, fleet: FleetTable, shape: Shape, row: int, slot: int) -> str:
        left = int(fleet.milli_free[row, slot])
        return f"needs {shape.milli} milli of compute, {left} left, {_holders(fleet, row, slot)}"


class SharersFilter:
    """No more tasks on one device than operators allow."""

    code = "sharers"
    static = False

    def concerns(self, shape: Shape) -> bool:
        return shape.count > 0 and not shape.whole

    def admits(self, fleet: FleetTable, shape: Shape, rows: Rows, settings: PolicySettings) -> Mask:
        mask: Mask = fleet.sharers[rows] < settings.sharers_per_device
        return mask

    def sentence(self, fleet: FleetTable, shape: Shape, row: int, slot: int) -> str:
        return f"already shared by {int(fleet.sharers[row, slot])} tasks, the most allowed"


class InterferenceFilter:
    """Sharers must not slow each other too much. Those of unknown utilisation count as idle."""

    code = "interference"
    static = False

    def concerns(self, shape: Shape) -> bool:
        return shape.count > 0 and not shape.whole and bool(shape.busy_milli)

    def admits(self, fleet: FleetTable, shape: Shape, rows: Rows, settings: PolicySettings) -> Mask:
        alone = fleet.sharers[rows] == 0
        together = fleet.busy[rows] + (shape.busy_milli or 0)
        mask: Mask = alone | (speed_together(together) >= settings.least_shared_speed)
        return mask

    def sentence(self, fleet: FleetTable, shape: Shape, row: int, slot: int) -> str:
        speed = float(speed_together(fleet.busy[row, slot] + (shape.busy_milli or 0)))
        return f"sharing would slow every task there to {speed:.0%} of its speed, {_holders(fleet, row, slot)}"


class ProcessorFilter:
    """The node's free processors."""

    code = "node_cpu"
    static = False

    def concerns(self, shape: Shape) -> bool:
        return shape.cpu_milli > 0

    def admits(self, fleet: FleetTable, shape: Shape, rows: Rows, settings: PolicySettings) -> Mask:
        mask: Mask = (fleet.cpu_free[fleet.row_node[rows]] >= shape.cpu_milli)[:, np.newaxis]
        return mask

    def sentence(self, fleet: FleetTable, shape: Shape, row: int, slot: int) -> str:
        free = int(fleet.cpu_free[fleet.row_node[row]])
        return f"needs {shape.cpu_milli / 1000:g} processors, {free / 1000:g} free on {fleet.node_name(row)}"


class NodeMemoryFilter:
    """The node's free main memory."""

    code = "node_memory"
    static = False

    def concerns(self, shape: Shape) -> bool:
        return shape.memory_bytes > 0

    def admits(self, fleet: FleetTable, shape: Shape, rows: Rows, settings: PolicySettings) -> Mask:
        mask: Mask = (fleet.memory_free[fleet.row_node[rows]] >= shape.memory_bytes)[:, np.newaxis]
        return mask

    def sentence(self, fleet: FleetTable, shape: Shape, row: int, slot: int) -> str:
        free = int(fleet.memory_free[fleet.row_node[row]])
        return f"needs {gib(shape.memory_bytes)} of main memory, {gib(free)} free on {fleet.node_name(row)}"


def _holders(fleet: FleetTable, row: int, slot: int) -> str:
    uid = fleet.uids[row][slot]
    held = fleet.holders.get(uid or "", {})
    names = [task for task, _ in held]
    if not names:
        return "memory is held by processes that are not ours"
    return "held by " + ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
