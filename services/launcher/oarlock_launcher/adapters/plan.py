"""From a placement to what is started: the program, the container, and the ``docker run`` line for people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from oarlock_accelerators import Device
from oarlock_launcher.adapters.code.sources import entry_of, started_name
from oarlock_launcher.adapters.devices import container_access, framework_environment
from oarlock_launcher.core import container as box
from oarlock_launcher.core.command import NothingToRun, Program, command_line
from oarlock_launcher.core.environment import run_environment, visible_names
from oarlock_launcher.core.gang import RESERVED, environment
from oarlock_launcher.core.images import Image, NoImage, choose_image
from oarlock_launcher.core.run import Run
from oarlock_launcher.ports import CannotStart
from oarlock_schemas import TaskPlaced

WORKSPACE = "/workspace"
OUTPUT = "/output"
_BASE_ENVIRONMENT = {"PYTHONUNBUFFERED": "1", "LANG": "C.UTF-8", "HOME": "/tmp", "OUTPUT_DIR": OUTPUT}  # noqa: S108


@dataclass(frozen=True, slots=True)
class ContainerPolicy:
    """What a site decides about its containers.

    ``allowed_paths``: folders of the host that tasks may mount. ``host_root``: the runs' folder as the engine's host
    names it, where the launcher itself runs in a container.
    """

    site: str
    confinement: box.Confinement = field(default_factory=box.Confinement)
    images: tuple[Image, ...] = ()
    allowed_paths: tuple[Path, ...] = ()
    workspace_read_only: bool = True
    memory_share_of_booking: float = 2.0
    """A CPU task may use this many times the memory that was booked before the engine ends it."""
    host_root: Path | None = None
    gang_network: str | None = None
    """Network of containers of a gang; None: this site starts none."""


@dataclass(frozen=True, slots=True)
class CodeFolders:
    """Where a run's code lies for us, and where code and output lie for the engine."""

    code: Path
    bound_code: Path
    bound_output: Path


def framework_of(placed: TaskPlaced) -> str | None:
    """As read from the code, else as declared."""
    return placed.portrait.framework or placed.task.task.framework


def array_variables(placed: TaskPlaced) -> dict[str, str]:
    """Which task of its array a run is; empty where it is of none."""
    return placed.task.array_member.variables if placed.task.array_member else {}


def gang_environment(run: Run, placed: TaskPlaced) -> dict[str, str]:
    """How a gang's member finds the others; empty for a run that is the whole of its task."""
    return environment(run, one_process=not program(run, placed, None, {}, None).numbered_by_others)


def reserved_variables(run: Run) -> frozenset[str]:
    """Variables that the task may not set."""
    return frozenset() if run.gang is None else RESERVED


def program(
    run: Run, placed: TaskPlaced, entry: str | None, visibility: Mapping[str, str], workspace: str | None
) -> Program:
    """What is to be run, with ``entry`` (relative) below ``workspace``."""
    count = len(run.devices)
    command = placed.task.command
    return Program(
        framework=framework_of(placed),
        entry=entry if entry is None or workspace is None else f"{workspace}/{entry}",
        arguments=tuple(placed.task.arguments),
        command=None if command is None else tuple(command),
        device_count=count,
        visible=visible_names(visibility, count) if count > 1 else None,
        gang=run.gang,
        rendezvous=run.rendezvous,
    )


def plan_container(
    run: Run,
    placed: TaskPlaced,
    devices: Sequence[Device],
    policy: ContainerPolicy,
    folders: CodeFolders | None,
) -> box.Container:
    """The container that runs the placement. ``folders`` is None where it is only to be shown.

    Raises:
        CannotStart: no image is known, a mount is not allowed, or there is nothing to run.
    """
    access = container_access(devices)
    first = devices[0]
    framework = framework_of(placed)
    try:
        image = _image(run, placed, first, policy, only_shown=folders is None)
        named = started_name(placed.task.source.entry)
        entry = named if folders is None else entry_of(placed.task.source, folders.code)
        entry = None if placed.task.source.empty else entry
        told = framework_environment(first.vendor, framework, len(run.all_device_uids))
        visibility = {**access.environment, **told, **gang_environment(run, placed)}
        command = command_line(program(run, placed, entry, visibility, WORKSPACE), "python", torchrun=("torchrun",))
    except (NoImage, NothingToRun) as error:
        raise CannotStart(str(error)) from error
    variables, _ = run_environment(
        _BASE_ENVIRONMENT | array_variables(placed), placed.task.environment, visibility, reserved_variables(run)
    )
    return box.Container(
        name=container_name(run, policy.site),
        image=image,
        command=command,
        environment=variables,
        working_folder=None if placed.task.source.empty else WORKSPACE,
        binds=(*_own_binds(placed, policy, folders), *_task_binds(placed, policy)),
        access=access,
        confinement=_confinement(run, placed, policy, only_shown=folders is None),
        labels=labels(run, policy.site),
    )


def _image(run: Run, placed: TaskPlaced, device: Device, policy: ContainerPolicy, *, only_shown: bool) -> str:
    """The image; a name to be filled in where none is known and the line is only for people."""
    try:
        return choose_image(
            framework_of(placed),
            device.vendor,
            run.devices[0].kind,
            device.driver_version,
            wanted=placed.task.image,
            own=policy.images,
        )
    except NoImage:
        if only_shown:
            return "YOUR_IMAGE"
        raise


def container_name(run: Run, site: str) -> str:
    """One name per run, so that the engine itself refuses a second start; sites and nodes may share an engine."""
    name = f"oarlock-{site}-{run.task_id}-{run.attempt}"
    return name if run.gang is None else f"{name}-{run.gang.node}"


def labels(run: Run, site: str) -> dict[str, str]:
    """What lets a launcher that knows nothing else take a container over."""
    devices = [
        {"uid": d.uid, "kind": d.kind, "vendor": d.vendor, "node": d.node, "fence": d.fence} for d in run.devices
    ]
    out = {
        box.LABEL_TASK: run.task_id,
        box.LABEL_ATTEMPT: str(run.attempt),
        box.LABEL_SITE: site,
        box.LABEL_FENCE: str(max((device.fence for device in run.devices), default=0)),
        box.LABEL_DEVICES: json.dumps(devices, separators=(",", ":")),
    }
    if run.timeout_seconds is not None:
        out[box.LABEL_TIMEOUT] = f"{run.timeout_seconds:g}"
    if run.exclusive:
        out[box.LABEL_EXCLUSIVE] = "true"
    if run.gang is not None:
        out[box.LABEL_GANG] = json.dumps(asdict(run.gang), separators=(",", ":"))
    return out


def shown_line(run: Run, placed: TaskPlaced, devices: Sequence[Device], policy: ContainerPolicy) -> str:
    """The ``docker run`` line for a run that is not started by Docker; says why where there is none."""
    try:
        return box.docker_run_line(plan_container(run, placed, devices, policy, None))
    except CannotStart as error:
        return f"# no docker line: {error}"


def _own_binds(placed: TaskPlaced, policy: ContainerPolicy, folders: CodeFolders | None) -> tuple[box.Bind, ...]:
    if placed.task.source.empty:
        return ()
    code = "./code" if folders is None else str(folders.bound_code)
    output = "./output" if folders is None else str(folders.bound_output)
    return (box.Bind(code, WORKSPACE, policy.workspace_read_only), box.Bind(output, OUTPUT, read_only=False))


def _task_binds(placed: TaskPlaced, policy: ContainerPolicy) -> tuple[box.Bind, ...]:
    binds = []
    for mount in placed.task.mounts:
        source = Path(mount.source)
        resolved = source.resolve()
        if not source.is_absolute() or not any(resolved.is_relative_to(p.resolve()) for p in policy.allowed_paths):
            raise CannotStart(
                f"mount {mount.source[:200]!r} lies outside the folders this site lends: list its folder in "
                "OARLOCK_ALLOWED_PATHS"
            )
        if ":" in str(resolved) or ":" in mount.target or ".." in Path(mount.target).parts:
            raise CannotStart(f"mount {mount.source[:200]!r} → {mount.target[:200]!r} cannot be written as a bind")
        binds.append(box.Bind(str(resolved), mount.target, mount.read_only))
    return tuple(binds)


def _confinement(run: Run, placed: TaskPlaced, policy: ContainerPolicy, *, only_shown: bool) -> box.Confinement:
    """The site's limits; a task on the CPU is held to a multiple of what was booked for it, if that is less.

    Raises:
        CannotStart: the members of a gang could not reach each other.
    """
    held = policy.confinement
    if run.gang is not None:
        if policy.gang_network is None and not only_shown:
            raise CannotStart(
                "containers on several nodes reach each other on a network that spans the nodes: set "
                "OARLOCK_DOCKER_GANG_NETWORK (host, where the nodes may be trusted with it)"
            )
        held = replace(held, network=policy.gang_network or "host")
    own = {device.uid for device in run.devices}
    booked = [device.reserved_bytes for device in placed.devices if device.vendor == "cpu" and device.uid in own]
    if not booked or booked[0] == 0 or run.simulated:
        return held
    wanted = int(booked[0] * policy.memory_share_of_booking)
    limit = wanted if held.memory_bytes is None else min(wanted, held.memory_bytes)
    return replace(held, memory_bytes=max(limit, 16 * 1024**2))
