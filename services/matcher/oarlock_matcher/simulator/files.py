"""Fleets and workloads from files: the public openb CSVs, and Oarlock's own CSV and YAML.

Own fleet (YAML): `nodes: [{name, site, cpus, memory_gib, devices: [{kind, count, memory_gib, vendor, price_per_hour,
domestic, link}]}]`. Own tasks (YAML `tasks: [...]`, or CSV with the same columns): `task_id, owner, priority, cpus,
memory_gib, devices, compute_milli, device_gib, kinds` (`A|B`), `arrival_seconds, duration_seconds`; all are optional.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from oarlock_matcher.core.demand import Demand
from oarlock_matcher.core.devices import Device, DeviceModel, Node

MIB = 2**20
GIB = 2**30
OPENB_NODE_COLUMNS = {"sn", "cpu_milli", "memory_mib", "gpu", "model"}
OPENB_POD_COLUMNS = {"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}


@dataclass(frozen=True, slots=True)
class Job:
    """A task of a workload. `arrival_seconds` and `duration_seconds` are `None` where the file gives none.

    `steps`: where given, a run on a kind whose step time the demand knows lasts this many steps instead.
    """

    demand: Demand
    arrival_seconds: float | None = None
    duration_seconds: float | None = None
    steps: float | None = None

    def seconds_on(self, kind: str | None) -> float:
        """How long the run lasts on devices of this kind; 0 when nothing is known."""
        step = None if kind is None else self.demand.step_seconds.get(kind)
        if self.steps is not None and step is not None:
            return self.steps * step
        return self.duration_seconds or 0.0


class BadFile(Exception):
    """A fleet or workload file that cannot be used; the message says which, where and why."""


def read_nodes(path: Path) -> list[Node]:
    """The fleet in `path`, in the order of the file.

    Raises:
        BadFile: unreadable, of no known layout, or empty.
    """
    rows = _rows(path, "nodes")
    try:
        if rows and rows[0].keys() >= OPENB_NODE_COLUMNS:
            nodes = [_openb_node(row) for row in rows]
        else:
            nodes = [_own_node(row) for row in rows]
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise BadFile(f"{path}: a node cannot be read ({type(error).__name__}: {error})") from error
    if not nodes:
        raise BadFile(f"{path}: no nodes in it")
    return nodes


def read_jobs(path: Path) -> list[Job]:
    """The workload in `path`, in the order of the file.

    Raises:
        BadFile: unreadable, of no known layout, or empty.
    """
    rows = _rows(path, "tasks")
    try:
        if rows and rows[0].keys() >= OPENB_POD_COLUMNS:
            jobs = [_openb_job(row) for row in rows]
        else:
            jobs = [_own_job(row, number) for number, row in enumerate(rows)]
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise BadFile(f"{path}: a task cannot be read ({type(error).__name__}: {error})") from error
    if not jobs:
        raise BadFile(f"{path}: no tasks in it")
    for job in jobs:
        faults = job.demand.faults()
        if faults:
            raise BadFile(f"{path}: task {job.demand.task_id}: {'; '.join(faults)}")
    return jobs


def _rows(path: Path, what: str) -> list[Mapping[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"{path}: cannot be read ({error})") from error
    if path.suffix.lower() == ".csv":
        return list(csv.DictReader(text.splitlines()))
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadFile(f"{path}: is not YAML ({error})") from error
    if not isinstance(found, dict) or not isinstance(found.get(what), list):
        raise BadFile(f"{path}: has no list under `{what}:`")
    rows: list[Mapping[str, Any]] = found[what]
    return rows


def _openb_node(row: Mapping[str, Any]) -> Node:
    # The trace gives no device memory; pods ask for none either. 0 bytes usable would forbid real tasks, not pods.
    model = DeviceModel(kind=row["model"], vendor="openb", memory_bytes=0)
    devices = tuple(Device(f"{row['sn']}/{i}", row["sn"], model) for i in range(int(row["gpu"])))
    return Node(row["sn"], "openb", int(row["cpu_milli"]), int(row["memory_mib"]) * MIB, devices)


def _openb_job(row: Mapping[str, Any]) -> Job:
    kinds = row.get("gpu_spec") or ""
    count = int(row["num_gpu"])
    demand = Demand(
        task_id=row["name"],
        device_count=count,
        compute_milli=int(row["gpu_milli"]) if count else 1000,
        cpu_milli=int(row["cpu_milli"]),
        memory_bytes=int(row["memory_mib"]) * MIB,
        required_kinds=frozenset(kinds.split("|")) if kinds and count else frozenset(),
    )
    created, deleted, scheduled = (_number(row.get(k)) for k in ("creation_time", "deletion_time", "scheduled_time"))
    begun = created if scheduled is None else scheduled
    lasted = None if deleted is None or begun is None else max(1.0, deleted - begun)
    return Job(demand, created, lasted)


def _own_node(row: Mapping[str, Any]) -> Node:
    name = str(row["name"])
    devices: list[Device] = []
    for group in row.get("devices") or ():
        model = DeviceModel(
            kind=str(group["kind"]),
            vendor=str(group.get("vendor", "unknown")),
            memory_bytes=int(float(group["memory_gib"]) * GIB),
            fp32_flops=_number(group.get("fp32_flops")),
            fp16_flops=_number(group.get("fp16_flops")),
            bf16_flops=_number(group.get("bf16_flops")),
            link=group.get("link"),
            price_per_hour=_number(group.get("price_per_hour")),
            tdp_watts=_number(group.get("tdp_watts")),
            domestic=bool(group.get("domestic", False)),
            simulated=True,
        )
        for _ in range(int(group.get("count", 1))):
            devices.append(Device(f"{name}/{len(devices)}", name, model))
    cpus, memory = _number(row.get("cpus")), _number(row.get("memory_gib"))
    return Node(
        name,
        str(row.get("site", "local")),
        None if cpus is None else int(cpus * 1000),
        None if memory is None else int(memory * GIB),
        tuple(devices),
    )


def _own_job(row: Mapping[str, Any], number: int) -> Job:
    device_gib = _number(row.get("device_gib"))
    device_bytes = None if device_gib is None else int(device_gib * GIB)
    kinds = row.get("kinds") or ""
    listed = kinds.split("|") if isinstance(kinds, str) else list(kinds)
    step_seconds = row.get("step_seconds") or {}
    demand = Demand(
        task_id=str(row.get("task_id") or f"task-{number}"),
        owner=str(row.get("owner") or "anonymous"),
        priority=int(row.get("priority") or 0),
        device_count=int(1 if row.get("devices") in (None, "") else row["devices"]),
        compute_milli=int(row.get("compute_milli") or 1000),
        device_bytes=device_bytes,
        reserve_bytes=device_bytes,
        cpu_milli=int(float(row.get("cpus") or 0) * 1000),
        memory_bytes=int(float(row.get("memory_gib") or 0) * GIB),
        required_kinds=frozenset(k for k in listed if k),
        step_seconds={str(k): float(v) for k, v in step_seconds.items()} if isinstance(step_seconds, dict) else {},
        expected_seconds=_number(row.get("duration_seconds")),
    )
    return Job(demand, _number(row.get("arrival_seconds")), _number(row.get("duration_seconds")))


def _number(text: object) -> float | None:
    return None if text is None or text == "" else float(str(text))
