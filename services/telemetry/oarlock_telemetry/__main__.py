"""Wires telemetry: ``python -m oarlock_telemetry``."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence

from oarlock_accelerators import Fleet, Vendor
from oarlock_accelerators.fleet import FleetError
from oarlock_accelerators.vendors.simulated import SimulatedLoad
from oarlock_runtime import Bus, OarlockError, Service, Tracing, configure_logging, connect
from oarlock_telemetry.adapters.board import PrometheusBoard
from oarlock_telemetry.adapters.channel import BusChannel
from oarlock_telemetry.adapters.machine import Machines
from oarlock_telemetry.adapters.processes import ProcessTable
from oarlock_telemetry.adapters.state_file import StateFile
from oarlock_telemetry.handlers.observing import Observer
from oarlock_telemetry.handlers.runs import AnyObject, RunFollower
from oarlock_telemetry.settings import TelemetrySettings


def build(bus: Bus, settings: TelemetrySettings, real: Sequence[Vendor] | None = None) -> Service:
    """Telemetry as a service on ``bus``; ``real`` replaces the vendors that are looked for on this machine.

    Raises:
        FleetError: the fleet file cannot be used.
    """
    service = Service(
        bus,
        "telemetry",
        http_host=settings.http_host,
        http_port=settings.http_port,
        tracing=Tracing("telemetry", settings.otlp_endpoint),
        stop_grace_seconds=settings.stop_grace_seconds,
    )
    fleet = None if settings.fleet is None else Fleet.load(settings.fleet)

    def loads() -> dict[str, list[SimulatedLoad]]:
        return {uid: [SimulatedLoad(used, busy) for used, busy in each] for uid, each in observer.loads().items()}

    machine = Machines(settings.site, settings.node, fleet, loads, real)
    board = PrometheusBoard(service.registry)
    channel = BusChannel(bus)
    runs = RunFollower(machine.node_names, channel, StateFile(settings.folder), board, time.time)
    observer = Observer(
        machine,
        ProcessTable(),
        channel,
        runs,
        board,
        time.time,
        runtime=settings.runtime,
        seed=settings.simulation_seed,
        prices=settings.prices,
    )
    # Every node's telemetry hears of every run and takes its own: the node is not part of the subject.
    name = f"telemetry-{settings.site}-{settings.node}"
    service.consume(f"{name}-launched", bus.subjects.launched(), AnyObject, runs.on_launched, concurrency=8)
    service.consume(f"{name}-finished", bus.subjects.finished(), AnyObject, runs.on_finished, concurrency=8)
    service.background(observer.keep_inventory, name="inventory")
    service.background(observer.keep_sampling, name="sampling")
    return service


async def run(settings: TelemetrySettings) -> None:
    """Serve until told to stop."""
    configure_logging("telemetry", log_format=settings.log_format, level=settings.log_level)
    bus = await connect(settings, "telemetry")
    await build(bus, settings).run()


def main() -> int:
    """Exit code 0 after an orderly stop, 1 when it cannot work."""
    try:
        asyncio.run(run(TelemetrySettings()))
    except (OarlockError, FleetError) as error:
        print(f"oarlock telemetry: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
