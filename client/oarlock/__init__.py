"""Oarlock for programs and people: the SDK, the ``oarlock`` command, and the all-in-one ``oarlock up``.

Belongs here: asking and showing. Does not belong here: deciding anything that a service decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oarlock.connection import Connection
    from oarlock.sdk import AsyncClient, FleetDevice, TaskEvent, TaskNotFound
    from oarlock.sync import Client

__all__ = ["AsyncClient", "Client", "Connection", "FleetDevice", "TaskEvent", "TaskNotFound"]

_HOMES = {
    "AsyncClient": "oarlock.sdk",
    "FleetDevice": "oarlock.sdk",
    "TaskEvent": "oarlock.sdk",
    "TaskNotFound": "oarlock.sdk",
    "Client": "oarlock.sync",
    "Connection": "oarlock.connection",
}


def __getattr__(name: str) -> Any:
    """Import on first use, so that ``oarlock explain`` starts without what only the bus needs."""
    if name in _HOMES:
        from importlib import import_module  # noqa: PLC0415

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'oarlock' has no attribute {name!r}")
