"""Looks at devices and processes: samples once a second, the inventory every few."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from oarlock_accelerators import DeviceSample as DeviceReading
from oarlock_accelerators import Health, ProcessMemory, Snapshot
from oarlock_runtime import OarlockError, get_logger
from oarlock_schemas import DeviceSample, NodeMetrics, ProcessSample
from oarlock_telemetry.core.attribution import owners
from oarlock_telemetry.core.runs import Facts, Key, Reading
from oarlock_telemetry.core.simulation import simulated_bytes, simulated_utilization
from oarlock_telemetry.handlers.entries import device_sample, device_state, faults
from oarlock_telemetry.handlers.runs import RunFollower
from oarlock_telemetry.ports import Board, Channel, Machine, Node, Processes

log = get_logger("telemetry")

SAMPLE_SECONDS = 1.0
HEARTBEAT_SECONDS = 5.0
PROBE_SECONDS = 60.0
_SAVE_SECONDS = 5.0
_WRITES_AT_ONCE = 32


@dataclass(frozen=True)
class Round:
    """One look at everything. ``members``: the run's processes, without those that only watch over it."""

    at_seconds: float
    devices: Mapping[str, DeviceReading]
    processes: Mapping[str, Sequence[ProcessMemory]]
    owners: Mapping[int, Key]
    members: Mapping[Key, Sequence[int]] = field(default_factory=dict)


class Observer:
    """The two loops of one telemetry.

    Args:
        machine: devices.
        processes: processes of this machine.
        channel: the bus.
        runs: the followed runs.
        board: what Prometheus is shown.
        clock: seconds since the epoch.
        runtime: how runs are started on this node, for the inventory.
        seed: of simulated runs.
        prices: of an hour of a device, by kind.
    """

    def __init__(
        self,
        machine: Machine,
        processes: Processes,
        channel: Channel,
        runs: RunFollower,
        board: Board,
        clock: Callable[[], float],
        *,
        runtime: str,
        seed: str,
        prices: Mapping[str, float] | None = None,
    ) -> None:
        self._machine = machine
        self._processes = processes
        self._channel = channel
        self._runs = runs
        self._board = board
        self._clock = clock
        self._runtime = runtime
        self._seed = seed
        self._prices = prices or {}
        self._nodes: Sequence[Node] = ()
        self._last: Mapping[str, DeviceReading] = {}
        self._failed: set[str] = set()
        self._probed = asyncio.Event()

    async def keep_inventory(self) -> None:
        """Probe, then write every device's entry before it expires."""
        probed_at = float("-inf")
        while True:
            now = self._clock()
            if now - probed_at >= PROBE_SECONDS:
                self._nodes = await self._machine.nodes()
                self._runs.devices = {device.uid: device for node in self._nodes for device in node.devices}
                probed_at = now
            if not self._last:
                self._last = _by_uid(await self._machine.sample())
            self._probed.set()
            await self._write_entries()
            await asyncio.sleep(HEARTBEAT_SECONDS)

    async def keep_sampling(self) -> None:
        """Sample at a steady pace, and at once when a run begins."""
        await self._probed.wait()
        saved_at = self._clock()
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            await self.look()
            if self._clock() - saved_at >= _SAVE_SECONDS and self._runs.going_on:
                self._runs.save()
                saved_at = self._clock()
            due = max(due + SAMPLE_SECONDS, loop.time())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(due - loop.time()):
                    await self._runs.began.wait()
            self._runs.began.clear()

    async def look(self) -> None:
        """One round: devices, processes, runs; published and added up."""
        snapshots, parents = await asyncio.gather(self._machine.sample(), asyncio.to_thread(self._processes.parents))
        self._last = _by_uid(snapshots)
        own, members = await asyncio.to_thread(self._attribute, parents)
        processes: dict[str, list[ProcessMemory]] = {}
        for snapshot in snapshots:
            for process in snapshot.processes:
                processes.setdefault(process.uid, []).append(process)
        seen = Round(self._clock(), self._last, processes, own, members)
        readings = await asyncio.to_thread(self._readings, seen)
        self._runs.sampled(readings)
        await self._publish(seen)

    def loads(self) -> dict[str, list[tuple[int, float]]]:
        """What simulated runs put on each device now: bytes and utilisation."""
        found: dict[str, list[tuple[int, float]]] = {}
        for run in self._runs.going_on:
            if run.facts.simulated:
                for uid in run.facts.device_uids:
                    used = simulated_bytes(run.facts, self._seed, self._room(uid))
                    found.setdefault(uid, []).append((used or 0, simulated_utilization(run.facts, self._seed)))
        return found

    def _room(self, uid: str) -> int | None:
        device = self._runs.devices.get(uid)
        if device is None or device.total_bytes is None:
            return None
        return device.total_bytes - (device.kind.idle_bytes or 0 if device.kind else 0)

    def _attribute(self, parents: Mapping[int, int]) -> tuple[dict[int, Key], dict[Key, list[int]]]:
        """Whose process is whose. Reads /proc, so it runs in a thread."""
        roots: dict[int, Key] = {}
        watchers = set()
        for run in self._runs.going_on:
            facts = run.facts
            pid = facts.pid
            if facts.simulated:
                continue
            if pid is None and facts.runtime == "docker":
                pid = self._processes.container_pid(facts.run_id, list(parents))
            if pid is None or pid not in parents:
                continue
            roots[pid] = facts.key
            watcher = self._processes.watcher(pid)
            if watcher is not None:
                roots[watcher] = facts.key
                watchers.add(watcher)
        own = {pid: key for pid, key in owners(parents, roots).items() if pid not in watchers}
        members: dict[Key, list[int]] = {}
        for pid, key in own.items():
            members.setdefault(key, []).append(pid)
        return own, members

    def _readings(self, seen: Round) -> dict[Key, Reading]:
        return {run.facts.key: self._reading(run.facts, seen) for run in self._runs.going_on}

    def _reading(self, facts: Facts, seen: Round) -> Reading:
        """One run at this moment, over its devices."""
        reasons: dict[str, str] = {}
        devices = [seen.devices[uid] for uid in facts.device_uids if uid in seen.devices]
        if not devices:
            return Reading(seen.at_seconds, reasons=dict.fromkeys(_FIELDS, "the run's devices were not sampled"))
        alone = all(self._alone(facts, uid, seen) for uid in facts.device_uids)
        process = self._own_bytes(facts, seen, reasons)
        device: int | None = None
        if alone and facts.vendor != "cpu":
            device = max((d.used_bytes for d in devices if d.used_bytes is not None), default=None)
        elif facts.vendor != "cpu":
            reasons["device_bytes"] = reasons["power_watts"] = "the device was shared with other processes"
        busy = [d.utilization_ratio for d in devices if d.utilization_ratio is not None]
        hot = [d.temperature_celsius for d in devices if d.temperature_celsius is not None]
        watts = [d.power_watts for d in devices if d.power_watts is not None]
        for name in ("utilization_ratio", "temperature_celsius", "power_watts"):
            for each in devices:
                if name in each.absent:
                    reasons.setdefault(name, each.absent[name])
        return Reading(
            at_seconds=seen.at_seconds,
            process_bytes=process,
            device_bytes=device,
            utilization_ratio=sum(busy) / len(busy) if busy else None,
            temperature_celsius=max(hot, default=None),
            power_watts=sum(watts) if alone and len(watts) == len(devices) else None,
            device_total_bytes=min((d.total_bytes for d in devices if d.total_bytes is not None), default=None),
            reasons=reasons,
        )

    def _own_bytes(self, facts: Facts, seen: Round, reasons: dict[str, str]) -> int | None:
        """Memory of the run's own processes on the device where they use most."""
        if facts.simulated:
            used = simulated_bytes(facts, self._seed, self._room(facts.device_uids[0]))
            if used is None:
                reasons["process_bytes"] = "nothing was predicted, so there is nothing to simulate"
            return used
        members = seen.members.get(facts.key, ())
        if not members:
            reasons["process_bytes"] = "none of the run's processes was seen on this node"
            return None
        if facts.vendor == "cpu":
            return self._processes.memory_bytes(members)
        largest: int | None = None
        for uid in facts.device_uids:
            mine = [p for p in seen.processes.get(uid, ()) if p.pid in members]
            known = [p.used_bytes for p in mine if p.used_bytes is not None]
            if known:
                largest = max(largest or 0, sum(known))
            elif mine:
                reasons["process_bytes"] = mine[0].reason or "the vendor tells no memory per process"
        if largest is None:
            reasons.setdefault("process_bytes", "none of the run's processes was seen on its devices")
        return largest

    def _alone(self, facts: Facts, uid: str, seen: Round) -> bool:
        """Whether everything on the device is this run's."""
        others = any(uid in run.facts.device_uids and run.facts.key != facts.key for run in self._runs.going_on)
        foreign = any(seen.owners.get(p.pid) != facts.key for p in seen.processes.get(uid, ()))
        return not others and (facts.simulated or not foreign)

    async def _publish(self, seen: Round) -> None:
        shown = {}
        at = _rfc3339(seen.at_seconds)
        for node in self._nodes:
            samples: list[DeviceSample] = []
            for device in node.devices:
                reading = seen.devices.get(device.uid)
                if reading is not None:
                    samples.append(
                        device_sample(device, reading, _shown_processes(device.vendor, device.uid, seen), at)
                    )
            metrics = NodeMetrics(site=node.site, node=node.name, at=at, devices=samples)
            shown[f"{node.site}.{node.name}"] = metrics
            # A sample that cannot be sent now is of no use later.
            with contextlib.suppress(OarlockError):
                await self._channel.metrics(metrics)
        self._board.show(shown)

    async def _write_entries(self) -> None:
        at = _rfc3339(self._clock())
        slots = asyncio.Semaphore(_WRITES_AT_ONCE)

        async def write(node: Node, uid: str) -> None:
            reading = self._last.get(uid)
            device = self._runs.devices[uid]
            state = device_state(node, device, reading, self._runtime, at, self._prices)
            if state is not None:
                async with slots:
                    await self._channel.device(state, cordon=self._newly_failed(uid, reading))

        results = await asyncio.gather(
            *(write(node, device.uid) for node in self._nodes for device in node.devices), return_exceptions=True
        )
        failures = [error for error in results if isinstance(error, Exception)]
        if failures:
            log.warning("inventory not written in full", devices=len(failures), error=str(failures[0]))

    def _newly_failed(self, uid: str, reading: DeviceReading | None) -> bool:
        """Whether a device has just failed: it is cordoned then, and stays so until an operator has looked at it."""
        failed = reading is not None and not reading.simulated and bool(faults(reading))
        new = failed and uid not in self._failed
        if failed:
            self._failed.add(uid)
        elif reading is not None and reading.health is Health.OK:
            self._failed.discard(uid)
        if new and reading is not None:
            log.error("device failed and was cordoned", uid=uid, reason=reading.health_reason)
        return new


_FIELDS = ("process_bytes", "device_bytes", "utilization_ratio", "temperature_celsius", "power_watts")


def _by_uid(snapshots: Sequence[Snapshot]) -> dict[str, DeviceReading]:
    return {reading.uid: reading for snapshot in snapshots for reading in snapshot.samples}


def _shown_processes(vendor: str, uid: str, seen: Round) -> list[ProcessSample]:
    """The processes on a device; on the CPU only those of runs, since there everything is a process."""
    return [
        ProcessSample(pid=p.pid, used_bytes=p.used_bytes, task_id=key[0] if key else None)
        for p in seen.processes.get(uid, ())
        if p.used_bytes is not None and ((key := seen.owners.get(p.pid)) is not None or vendor != "cpu")
    ]


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
