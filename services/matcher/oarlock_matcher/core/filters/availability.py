"""Devices and nodes that take no new work."""
# ruff: noqa: ARG002 - one signature for all, whatever each needs of it

from __future__ import annotations

import numpy as np

from oarlock_matcher.core.devices import Health
from oarlock_matcher.core.filters.base import Mask
from oarlock_matcher.core.fleet import FleetTable, Rows
from oarlock_matcher.core.policy_settings import PolicySettings
from oarlock_matcher.core.shapes import Shape


class HealthFilter:
    """Failed, degraded, lost and cordoned devices."""

    code = "unavailable"
    static = False

    def concerns(self, shape: Shape) -> bool:
        return shape.count > 0

    def admits(self, fleet: FleetTable, shape: Shape, rows: Rows, settings: PolicySettings) -> Mask:
        mask: Mask = fleet.available[rows]
        return mask

    def sentence(self, fleet: FleetTable, shape: Shape, row: int, slot: int) -> str:
        device = fleet.devices[fleet.uids[row][slot] or ""]
        if device.health is not Health.OK:
            return f"the device is {device.health.value}"
        return "the device is cordoned"


class DrainFilter:
    """Nodes that are being drained."""

    code = "draining"
    static = False

    def concerns(self, shape: Shape) -> bool:
        return True

    def admits(self, fleet: FleetTable, shape: Shape, rows: Rows, settings: PolicySettings) -> Mask:
        up: Mask = fleet.node_up[fleet.row_node[rows]][:, np.newaxis]
        return up

    def sentence(self, fleet: FleetTable, shape: Shape, row: int, slot: int) -> str:
        return f"node {fleet.node_name(row)} is being drained"
