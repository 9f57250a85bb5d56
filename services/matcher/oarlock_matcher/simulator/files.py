"""Fleets and workloads from files: the public openb CSVs, own CSV and YAML, and the fleet files of `oarlock up`.

Own fleet (YAML): `nodes: [{name, count, site, cpus, memory_gib, devices: [{kind, count, memory_gib, vendor,
price_per_hour, domestic, link}]}]`; as CSV one row for each group of devices, `name, site, cpus, memory_gib, kind,
devices, device_gib, vendor, price_per_hour, domestic, link`, where rows of one name are one node. Own tasks (YAML
`tasks: [...]`, or CSV with the same columns): `task_id, owner, priority, cpus, memory_gib, devices, compute_milli,
device_gib, kinds` (`A|B`), `arrival_seconds, duration_seconds`, and in YAML `step_seconds: {KIND: seconds}`; all are
optional. Columns come in any order, others are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import yaml

from oarlock_accelerators.fleet import Fleet, FleetError
from oarlock_matcher.adapters.fleet_kinds import device_model
from oarlock_matcher.core.demand import Demand
from oarlock_matcher.core.devices import Device, DeviceModel, Node
from oarlock_matcher.simulator.rows import BadFile, Row, read_text, rows_of

MIB = 2**20
GIB = 2**30
OPENB_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
OPENB_POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
OWN_TASK_COLUMNS = (
    *("task_id", "owner", "priority", "cpus", "memory_gib", "devices", "compute_milli", "device_gib", "kinds"),
    *("arrival_seconds", "duration_seconds", "step_seconds"),
)
MOST_NODES = 200_000
EARLIEST = -1e15
"""Times count from wherever the file likes."""


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


def read_nodes(path: Path) -> list[Node]:
    """The fleet in `path`, in the order of the file.

    Raises:
        BadFile: unreadable, of no known layout, or empty.
    """
    text = read_text(path)
    if path.suffix.lower() != ".csv" and _is_fleet_file(text):
        return _fleet_file(path, text)
    rows = rows_of(path, text, "nodes")
    if rows[0].has(*OPENB_NODE_COLUMNS):
        nodes = [_openb_node(row) for row in rows]
    elif path.suffix.lower() == ".csv":
        nodes = _own_csv_nodes(rows)
    else:
        nodes = [node for row in rows for node in _own_nodes(row)]
    names: set[str] = set()
    for node in nodes:
        if node.name in names:
            raise BadFile(f"{path}: there are two nodes named {node.name!r}. Give each a name of its own")
        names.add(node.name)
    return nodes


def read_jobs(path: Path) -> list[Job]:
    """The workload in `path`, in the order of the file.

    Raises:
        BadFile: unreadable, of no known layout, or empty.
    """
    rows = rows_of(path, read_text(path), "tasks")
    openb = rows[0].has(*OPENB_POD_COLUMNS)
    if not openb and path.suffix.lower() == ".csv" and not any(rows[0].has(name) for name in OWN_TASK_COLUMNS):
        rows[0].bad(
            f"the columns are {', '.join(rows[0].fields)}",
            f"Use those of the openb traces ({', '.join(OPENB_POD_COLUMNS)}) or some of {', '.join(OWN_TASK_COLUMNS)}",
        )
    jobs: list[Job] = []
    for number, row in enumerate(rows):
        job = _openb_job(row) if openb else _own_job(row, number)
        faults = job.demand.faults()
        if faults:
            row.bad(f"task {job.demand.task_id}: {'; '.join(faults)}", "Put it right or take the row out")
        jobs.append(job)
    return jobs


def more_nodes(nodes: Sequence[Node], name: str, count: int) -> list[Node]:
    """The fleet with `count` more nodes like the one named: what planners ask for.

    Raises:
        BadFile: there is no such node.
    """
    like = next((node for node in nodes if node.name == name), None)
    if like is None:
        raise BadFile(f"there is no node {name!r} to add more of. Name one of {', '.join(n.name for n in nodes[:8])}")
    taken = {node.name for node in nodes}
    free = (f"{name}+{n}" for n in range(1, len(nodes) + count + 1) if f"{name}+{n}" not in taken)
    return [*nodes, *(_renamed(like, new) for new in islice(free, count))]


def _renamed(node: Node, name: str) -> Node:
    devices = tuple(replace(d, uid=f"{name}/{number}", node=name) for number, d in enumerate(node.devices))
    return replace(node, name=name, devices=devices)


def _is_fleet_file(text: str) -> bool:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return False
    return isinstance(root, yaml.MappingNode) and any(key.value == "fleet" for key, _ in root.value)


def _fleet_file(path: Path, text: str) -> list[Node]:
    try:
        fleet = Fleet.parse(text, str(path))
    except FleetError as error:
        raise BadFile(str(error)) from error
    nodes: list[Node] = []
    for found in fleet.nodes:
        devices: list[Device] = []
        for device in found.devices:
            kind = device.kind
            if kind is None or device.total_bytes is None:
                raise BadFile(f"{path}: {device.name} on {found.name} is of no known kind. Describe it in an own file")
            model = device_model(kind.name, device.vendor, device.total_bytes, device.price_per_hour, True)
            devices.append(Device(device.uid, found.name, model))
        cpu = None if found.cpu_cores is None else int(1000 * found.cpu_cores)
        nodes.append(Node(found.name, found.site, cpu, found.memory_bytes, tuple(devices)))
    return nodes


def _openb_node(row: Row) -> Node:
    name, count = row.needed_text("sn"), row.needed_whole("gpu")
    if count > 1024:
        row.bad(f"`gpu` is {count}", "Write how many devices this one node has")
    # The trace gives no device memory; pods ask for none either. 0 bytes usable would forbid real tasks, not pods.
    model = DeviceModel(kind=row.needed_text("model") if count else "none", vendor="openb", memory_bytes=0)
    devices = tuple(Device(f"{name}/{i}", name, model) for i in range(count))
    return Node(name, "openb", row.needed_whole("cpu_milli"), row.needed_whole("memory_mib") * MIB, devices)


def _openb_job(row: Row) -> Job:
    count = row.needed_whole("num_gpu")
    demand = Demand(
        task_id=row.needed_text("name"),
        device_count=count,
        compute_milli=row.needed_whole("gpu_milli") if count else 1000,
        cpu_milli=row.needed_whole("cpu_milli"),
        memory_bytes=row.needed_whole("memory_mib") * MIB,
        required_kinds=frozenset(row.words("gpu_spec")) if count else frozenset(),
    )
    created, deleted, scheduled = (
        row.number(k, EARLIEST) for k in ("creation_time", "deletion_time", "scheduled_time")
    )
    begun = created if scheduled is None else scheduled
    lasted = None if deleted is None or begun is None else max(1.0, deleted - begun)
    return Job(demand, created, lasted)


def _own_csv_nodes(rows: Sequence[Row]) -> list[Node]:
    """Rows of one name are one node; each row is one group of its devices."""
    if not rows[0].has("name"):
        rows[0].bad(
            f"the columns are {', '.join(rows[0].fields)}",
            f"Use those of the openb traces ({', '.join(OPENB_NODE_COLUMNS)}) or name, kind, devices, device_gib, …",
        )
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(row.needed_text("name"), []).append(row)
    nodes: list[Node] = []
    for name, parts in grouped.items():
        devices: list[Device] = []
        for part in parts:
            if part.text("kind") is not None:
                _add_devices(devices, name, part, "devices", "device_gib")
        nodes.append(_own_node(parts[0], name, devices))
    return nodes


def _own_nodes(row: Row) -> list[Node]:
    name, count = row.needed_text("name"), row.whole("count", 1)
    if (count or 1) > MOST_NODES:
        row.bad(f"`count` is {count}", f"A fleet has at most {MOST_NODES} nodes")
    nodes: list[Node] = []
    for number in range(1, (count or 1) + 1):
        own = name if count is None else f"{name}-{number}"
        devices: list[Device] = []
        for group in row.rows("devices"):
            _add_devices(devices, own, group, "count", "memory_gib")
        nodes.append(_own_node(row, own, devices))
    return nodes


def _own_node(row: Row, name: str, devices: Sequence[Device]) -> Node:
    cpus, memory = row.number("cpus"), row.number("memory_gib")
    return Node(
        name,
        row.text("site") or "local",
        None if cpus is None else int(cpus * 1000),
        None if memory is None else int(memory * GIB),
        tuple(devices),
    )


def _add_devices(devices: list[Device], node: str, group: Row, count: str, memory: str) -> None:
    model = DeviceModel(
        kind=group.needed_text("kind"),
        vendor=group.text("vendor") or "unknown",
        memory_bytes=int(group.needed_number(memory) * GIB),
        fp32_flops=group.number("fp32_flops"),
        fp16_flops=group.number("fp16_flops"),
        bf16_flops=group.number("bf16_flops"),
        link=group.text("link"),
        price_per_hour=group.number("price_per_hour"),
        tdp_watts=group.number("tdp_watts"),
        domestic=group.yes("domestic"),
        simulated=True,
    )
    wanted = group.whole(count)
    if (wanted or 0) > 1024:
        group.bad(f"`{count}` is {wanted}", "Write how many devices this one node has")
    for _ in range(1 if wanted is None else wanted):
        devices.append(Device(f"{node}/{len(devices)}", node, model))


def _own_job(row: Row, number: int) -> Job:
    device_gib, devices, milli = row.number("device_gib"), row.whole("devices"), row.whole("compute_milli", 1)
    device_bytes = None if device_gib is None else int(device_gib * GIB)
    demand = Demand(
        task_id=row.text("task_id") or f"task-{number}",
        owner=row.text("owner") or "anonymous",
        priority=row.whole("priority", -1e9) or 0,
        device_count=1 if devices is None else devices,
        compute_milli=1000 if milli is None else milli,
        device_bytes=device_bytes,
        reserve_bytes=device_bytes,
        cpu_milli=int((row.number("cpus") or 0) * 1000),
        memory_bytes=int((row.number("memory_gib") or 0) * GIB),
        required_kinds=frozenset(row.words("kinds")),
        step_seconds=row.numbers("step_seconds"),
        expected_seconds=row.number("duration_seconds"),
    )
    return Job(demand, row.number("arrival_seconds", EARLIEST), row.number("duration_seconds"))
