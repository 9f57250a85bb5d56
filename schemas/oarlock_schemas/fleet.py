"""What is known of devices: inventory, samples, and who holds what."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from oarlock_schemas.base import Message, Token


class DeviceState(Message):
    """One device as its node reports it (bucket `devices`, key `{site}.{node}.{uid}`; expires with the heartbeat)."""

    uid: Token = Field(description="The vendor's own identifier; never an index that can shift.")
    site: Token
    node: Token
    kind: str = Field(description="Canonical kind name, as in oarlock_accelerators.", examples=["A100-SXM4-40GB"])
    vendor: str = Field(examples=["nvidia"])
    reported_name: str | None = None
    index: int | None = Field(None, description="For people only: where the vendor's tool lists it now.")
    memory_bytes: int = Field(gt=0, description="Total, as the vendor's tool shows it.")
    used_bytes: int | None = Field(None, description="In use now by anybody.")
    utilization_ratio: float | None = None
    healthy: bool = True
    health_reason: str | None = None
    cordoned: bool = False
    link_group: str | None = Field(None, description="Devices of one node that share a fast link have one group.")
    price_per_hour: float | None = Field(None, description="In the fleet's currency; null: not known.")
    node_cpu_milli: int | None = None
    node_memory_bytes: int | None = None
    runtime: Literal["docker", "kubernetes", "slurm", "process"] = "process"
    simulated: bool = False
    seen_at: str


class Lease(Message):
    """A holder's share of one device."""

    task_id: Token
    attempt: int = Field(ge=1)
    owner: Token = "anonymous"
    bytes: int = Field(ge=0, description="Memory booked, in bytes.")
    compute_milli: int = Field(1000, ge=1, le=1000, description="Thousandths of the device's compute.")
    exclusive: bool = False
    busy_milli: int | None = Field(
        None,
        ge=0,
        le=1000,
        description="Predicted thousandths of the time in which it keeps the device computing alone.",
    )
    since: str


class LeaseBook(Message):
    """Who holds what on one device (bucket `leases`, key `{uid}`). Its KV revision is the fence of a placement."""

    device_uid: Token
    leases: list[Lease] = Field(default_factory=list)


class ProcessSample(Message):
    """Device memory of one process."""

    pid: int
    used_bytes: int
    task_id: Token | None = None


class DeviceSample(Message):
    """One reading of one device; absent values are null with a reason in ``absent``."""

    uid: Token
    kind: str
    vendor: str
    at: str
    total_bytes: int | None = None
    used_bytes: int | None = None
    utilization_ratio: float | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None
    processes: list[ProcessSample] = Field(default_factory=list)
    errors: list[str] = Field(default_factory=list)
    absent: dict[str, str] = Field(default_factory=dict)
    simulated: bool = False


class NodeMetrics(Message):
    """What a node publishes once a second on `metrics.{site}.{node}` (core NATS, not stored)."""

    site: Token
    node: Token
    at: str
    devices: list[DeviceSample] = Field(default_factory=list)
