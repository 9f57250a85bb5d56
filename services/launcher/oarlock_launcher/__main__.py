"""Wires the launcher: ``python -m oarlock_launcher``."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sys
import time
from pathlib import Path

from oarlock_accelerators import Fleet
from oarlock_launcher.adapters.channel import BusChannel
from oarlock_launcher.adapters.code.archive import CodeLimits
from oarlock_launcher.adapters.code.sources import CodeSources
from oarlock_launcher.adapters.devices import ProbedDevices
from oarlock_launcher.adapters.docker.engine import Engine
from oarlock_launcher.adapters.docker.runtime import DockerRuntime
from oarlock_launcher.adapters.images_file import read_images
from oarlock_launcher.adapters.meeting import Meeting, own_address
from oarlock_launcher.adapters.plan import ContainerPolicy
from oarlock_launcher.adapters.process.runtime import ProcessPolicy, ProcessRuntime
from oarlock_launcher.adapters.simulated import SimulatedRuntime, SimulationPolicy
from oarlock_launcher.adapters.store import FileRunStore
from oarlock_launcher.core.container import Confinement
from oarlock_launcher.core.events import Tick
from oarlock_launcher.core.logs import LogLimits
from oarlock_launcher.handlers.gangs import Gangs
from oarlock_launcher.handlers.messages import AnyObject, CancelRequest, Handlers
from oarlock_launcher.handlers.site import Site
from oarlock_launcher.handlers.telling import rfc3339
from oarlock_launcher.ports import CannotStart, Code, Devices, Runtime
from oarlock_launcher.settings import LauncherSettings
from oarlock_runtime import Bus, OarlockError, Service, Tracing, configure_logging, connect

_TICK_SECONDS = 0.5
_CONCURRENCY = 16


def build(bus: Bus, settings: LauncherSettings, devices: Devices | None = None) -> tuple[Service, Site]:
    """The launcher as a service on ``bus``; ``devices`` replaces the probing of this machine.

    Raises:
        OarlockError: the data folder is another launcher's, or a file of the settings is unusable.
        FleetError: the fleet file is.
    """
    _claim(settings.folder)
    channel = BusChannel(bus, lambda: rfc3339(time.time()), settings.node)
    limits = CodeLimits(total_bytes=settings.max_code_bytes)
    code = CodeSources(channel.bundle, allowed_paths=settings.allowed, limits=limits)
    containers = _containers(settings)
    site = Site(
        settings.site,
        _runtime(settings, code, devices or ProbedDevices(time.monotonic), containers),
        SimulatedRuntime(
            SimulationPolicy(settings.simulated_shortest_seconds, settings.simulated_longest_seconds),
            containers,
            time.time,
        ),
        FileRunStore(settings.folder / "records"),
        channel,
        Meeting(settings.node_address or own_address(settings.nats_url)),
        time.time,
        LogLimits(lines_per_second=settings.log_lines_per_second, total_bytes=settings.log_total_bytes),
    )
    simulated = sorted({node.site for node in Fleet.load(settings.fleet).nodes}) if settings.fleet else []
    sites = list(dict.fromkeys([settings.site, *simulated]))
    handlers = Handlers(
        site,
        settings.node,
        sites,
        channel,
        time.time,
        shared=settings.site_shared,
        simulates=settings.fleet is not None,
    )
    gangs = Gangs(site, settings.node, channel, time.monotonic, settings.gang_lost_seconds)
    name = f"launcher-{settings.site}" + (f"-{settings.node}" if settings.site_shared else "")
    service = Service(
        bus,
        "launcher",
        http_host=settings.http_host,
        http_port=settings.http_port,
        tracing=Tracing("launcher", settings.otlp_endpoint),
        stop_grace_seconds=settings.stop_grace_seconds,
    )
    service.consume(
        f"{name}-placed",
        [bus.subjects.placed(name) for name in sites],
        AnyObject,
        handlers.on_placed,
        concurrency=_CONCURRENCY,
    )
    service.consume(
        f"{name}-cancel",
        bus.subjects.cancel(),
        CancelRequest,
        handlers.on_cancel,
        concurrency=_CONCURRENCY,
    )

    async def ticks() -> None:
        await site.recover()
        while True:
            site.happened(Tick())
            await asyncio.sleep(_TICK_SECONDS)

    service.background(ticks, name="runs")
    if settings.site_shared:
        service.background(gangs.follow, name="gangs")
        service.background(gangs.keep_looking, name="lost nodes")
    return service, site


async def run(settings: LauncherSettings) -> None:
    """Serve until told to stop; runs go on without the launcher and are taken over by the next one."""
    configure_logging("launcher", log_format=settings.log_format, level=settings.log_level)
    bus = await connect(settings, "launcher")
    service, site = build(bus, settings)
    try:
        await service.run()
    finally:
        await site.stop()


def _runtime(settings: LauncherSettings, code: Code, devices: Devices, containers: ContainerPolicy) -> Runtime:
    runs = settings.folder / "runs"
    if settings.runtime == "docker":
        engine = Engine(settings.docker_host, pull=settings.docker_pull)
        return DockerRuntime(
            runs,
            engine,
            code,
            devices,
            containers,
            grace_seconds=settings.run_grace_seconds,
            node=settings.node if settings.site_shared else None,
        )
    processes = settings.process_max_processes or (4096 if settings.process_user else None)
    policy = ProcessPolicy(
        python=settings.python,
        user=settings.process_user,
        memory_bytes=settings.process_memory_bytes,
        processes=processes,
        grace_seconds=settings.run_grace_seconds,
        pass_environment=settings.passed_variables,
    )
    return ProcessRuntime(runs, code, devices, policy, containers)


def _containers(settings: LauncherSettings) -> ContainerPolicy:
    return ContainerPolicy(
        site=settings.site,
        confinement=Confinement(
            memory_bytes=settings.docker_memory_bytes,
            shm_bytes=settings.docker_shm_bytes,
            pids=settings.docker_max_processes,
            network=settings.docker_network,
            user=settings.docker_user,
        ),
        images=read_images(settings.images),
        allowed_paths=settings.allowed,
        workspace_read_only=not settings.docker_workspace_writable,
        gang_network=settings.docker_gang_network,
        host_root=None if settings.docker_host_dir is None else settings.docker_host_dir / "runs",
    )


def _claim(folder: Path) -> None:
    """Take the data folder for this process; the lock ends with it."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o711)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise OarlockError(
            f"the data folder {folder} is in use by another launcher", fix="set another OARLOCK_DATA_DIR"
        ) from error


def main() -> int:
    """Exit code 0 after an orderly stop, 1 when it cannot work."""
    try:
        asyncio.run(run(LauncherSettings()))
    except (OarlockError, CannotStart) as error:
        print(f"oarlock launcher: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
