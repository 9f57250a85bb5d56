"""One task on two nodes: two real launchers of one site, each starting its part."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from tests.launcher.test_process_runs import SLEEPER, gone, said
from tests.service_process import ServiceProcess

from oarlock_runtime import Bus, EmbeddedServer
from oarlock_schemas import DeviceState, GangBook, PlacedDevice, TaskLaunched

if TYPE_CHECKING:
    from tests.launcher.conftest import Matcher

NODES = ("left", "right")


@dataclass
class Pair:
    """The launchers of the two nodes, and the placements that span them."""

    matcher: Matcher
    bus: Bus
    left: ServiceProcess
    right: ServiceProcess

    def devices(self) -> list[PlacedDevice]:
        """This machine's CPU, as seen from each node."""
        return [self.matcher.cpu().model_copy(update={"node": node}) for node in NODES]

    async def launched(self, task_id: str) -> dict[str, TaskLaunched]:
        """Await the launch on both nodes."""
        found: dict[str, TaskLaunched] = {}
        async with asyncio.timeout(60):
            async for message in self.bus.watch(self.bus.subjects.launched(task_id), start="all"):
                event = message.parse(TaskLaunched)
                assert event.node not in found, "each part is launched once"
                found[event.node] = event
                if len(found) == len(NODES):
                    return found
        raise AssertionError

    async def book(self, task_id: str, until: Callable[[GangBook], bool]) -> GangBook:
        """The gang's book, once ``until`` says so."""
        async with asyncio.timeout(60):
            async for change in self.bus.bucket("gangs", GangBook).watch(f"{task_id}.1"):
                if change.value is not None and until(change.value):
                    return change.value
        raise AssertionError

    async def over(self, task_id: str, launched: dict[str, TaskLaunched]) -> None:
        """The end was told once, and nothing runs any more."""
        for event in launched.values():
            assert event.pid is not None
            await gone(event.pid)
        await self.book(task_id, lambda book: book.told)
        assert await self.matcher.stored(self.bus.subjects.finished(task_id)) == 1
        assert await self.matcher.stored(self.bus.subjects.launched(task_id)) == len(launched)


@asynccontextmanager
async def launchers(
    nats: EmbeddedServer, bus: Bus, matcher: Matcher, folder: Path, settings: dict[str, str]
) -> AsyncIterator[Pair]:
    """A launcher for each node of one site, while they run."""
    extra = {"OARLOCK_SITE_SHARED": "true", "OARLOCK_RUN_GRACE_SECONDS": "1", **settings}
    made = []
    for node in NODES:
        home = folder / node / "launcher"
        home.mkdir(parents=True)
        made.append(ServiceProcess("launcher", nats, home, matcher.site, node, extra))
    await asyncio.gather(*(launcher.start() for launcher in made))
    yield Pair(matcher, bus, *made)
    await asyncio.gather(*(launcher.end() for launcher in made))


@pytest.fixture
async def pair(nats: EmbeddedServer, bus: Bus, matcher: Matcher, tmp_path: Path) -> AsyncIterator[Pair]:
    """Both launchers, running."""
    async with launchers(nats, bus, matcher, tmp_path, {"OARLOCK_GANG_LOST_SECONDS": "1"}) as both:
        yield both


MEETING = """
import json, os, socket, sys
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    with socket.create_server(where) as server:
        for _ in range(world - 1):
            peer, _ = server.accept()
            print("met", peer.recv(10).decode(), flush=True)
            peer.close()
else:
    while True:
        try:
            with socket.create_connection(where, 5) as peer:
                peer.sendall(str(rank).encode())
                break
        except OSError:
            pass
names = "WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK PADDLE_TRAINER_ID PADDLE_TRAINERS_NUM".split()
print(json.dumps({name: os.environ[name] for name in names}))
own, every = os.environ["PADDLE_CURRENT_ENDPOINT"], os.environ["PADDLE_TRAINER_ENDPOINTS"].split(",")
assert every[rank] == own and len(set(every)) == world
"""


async def test_members_meet_and_the_task_ends_once(pair: Pair) -> None:
    # What the task says of its ranks would lead its members apart.
    await pair.matcher.place("g1", MEETING, devices=pair.devices(), environment={"RANK": "7", "MASTER_PORT": "1"})
    launched = await pair.launched("g1")
    finished = await pair.matcher.finished("g1")
    assert (finished.outcome, finished.exit_code, finished.message) == ("ok", 0, None)
    assert len(finished.device_uids) == 2
    await pair.over("g1", launched)
    lines = await pair.matcher.output("g1", lambda lines: len(lines) == 3)
    assert "[left] met 1" in lines
    told = {line[1 : line.index("]")]: json.loads(line[line.index("{") :]) for line in lines if "{" in line}
    for rank, node in enumerate(NODES):
        assert told[node] == {
            "WORLD_SIZE": "2",
            "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "1",
            "NODE_RANK": str(rank),
            "PADDLE_TRAINER_ID": str(rank),
            "PADDLE_TRAINERS_NUM": "2",
        }
    record = await pair.matcher.record("g1")
    assert [step.state for step in record.history] == ["launching", "running", "succeeded"]
    # A task on one node of the shared site is that node's alone.
    await pair.matcher.place("g2", "print('alone')", devices=pair.devices()[1:])
    assert (await pair.matcher.finished("g2")).outcome == "ok"
    assert (await pair.matcher.launched("g2")).node == "right"


async def test_a_member_that_is_killed_ends_the_others(pair: Pair) -> None:
    await pair.matcher.place("k1", SLEEPER, devices=pair.devices())
    launched = await pair.launched("k1")
    pid = launched["right"].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    finished = await pair.matcher.finished("k1")
    assert finished.outcome == "error"
    assert finished.message is not None and finished.message.startswith("on right: killed by signal 9")
    assert len(finished.device_uids) == 2
    await pair.over("k1", launched)


async def test_a_member_whose_watcher_is_killed_is_lost_and_so_is_the_task(pair: Pair) -> None:
    await pair.matcher.place("w1", SLEEPER, devices=pair.devices())
    launched = await pair.launched("w1")
    shim = psutil.Process(launched["left"].pid).parent()
    assert shim is not None
    shim.kill()
    assert (await pair.matcher.finished("w1")).outcome == "lost"
    await pair.over("w1", launched)


async def test_a_member_that_cannot_begin_ends_the_others(pair: Pair) -> None:
    left, right = pair.devices()
    await pair.matcher.place("s1", SLEEPER, devices=[left, right.model_copy(update={"uid": "CPU-not-here"})])
    finished = await pair.matcher.finished("s1")
    assert finished.outcome == "error" and finished.message is not None
    assert finished.message.startswith("on right: unknown device CPU-not-here")
    await pair.book("s1", lambda book: book.told)
    assert await pair.matcher.stored(pair.bus.subjects.finished("s1")) == 1


def cancel(pair: Pair, task_id: str) -> Awaitable[int]:
    return pair.bus.publish(pair.bus.subjects.cancel(task_id), {"by": "ann"})


def preempt(pair: Pair, task_id: str) -> Awaitable[int]:
    body = {"by": "matcher", "reason": "for another", "preempt_attempt": 1}
    return pair.bus.publish(pair.bus.subjects.cancel(task_id), body)


@pytest.mark.parametrize(("stop", "outcome"), [(cancel, "cancelled"), (preempt, "preempted")])
async def test_cancel_and_preemption_end_all_members(
    pair: Pair, stop: Callable[[Pair, str], Awaitable[int]], outcome: str
) -> None:
    await pair.matcher.place("c1", SLEEPER, devices=pair.devices())
    launched = await pair.launched("c1")
    await stop(pair, "c1")
    assert (await pair.matcher.finished("c1")).outcome == outcome
    await pair.over("c1", launched)


async def test_the_time_limit_ends_all_members(pair: Pair) -> None:
    await pair.matcher.place("t1", SLEEPER, devices=pair.devices(), scheduler={"run_timeout_seconds": 1})
    launched = await pair.launched("t1")
    assert (await pair.matcher.finished("t1")).outcome == "timeout"
    await pair.over("t1", launched)


async def test_a_killed_launcher_adopts_its_member(pair: Pair) -> None:
    await pair.matcher.place("a1", SLEEPER, devices=pair.devices())
    launched = await pair.launched("a1")
    await pair.matcher.output("a1", said("[right] up"))
    await pair.right.kill()
    pid = launched["right"].pid
    assert pid is not None and psutil.pid_exists(pid)
    # The other member dies while nobody watches this one: it goes on, until its launcher is back and reads of it.
    assert launched["left"].pid is not None
    os.kill(launched["left"].pid, signal.SIGKILL)
    await pair.book("a1", lambda book: book.members["left"].phase == "ended")
    assert psutil.pid_exists(pid)
    assert await pair.matcher.stored(pair.bus.subjects.finished("a1")) == 0
    await pair.right.start()
    assert (await pair.matcher.finished("a1", seconds=60)).outcome == "error"
    await pair.over("a1", launched)


async def test_a_member_that_ended_while_its_launcher_was_dead_ends_the_others(pair: Pair) -> None:
    await pair.matcher.place("a2", SLEEPER, devices=pair.devices())
    launched = await pair.launched("a2")
    await pair.left.kill()
    pid = launched["left"].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await gone(pid)
    await pair.left.start()
    finished = await pair.matcher.finished("a2", seconds=60)
    assert finished.outcome == "error" and finished.message is not None and finished.message.startswith("on left:")
    await pair.over("a2", launched)


async def test_a_launcher_killed_at_any_moment_of_the_start(pair: Pair, tmp_path: Path) -> None:
    script = f"import os\nopen(os.path.join({str(tmp_path)!r}, os.environ['RANK']), 'a').write('x')"
    for number in range(4):
        for rank in ("0", "1"):
            (tmp_path / rank).unlink(missing_ok=True)
        await pair.matcher.place(f"m{number}", script, devices=pair.devices())
        await asyncio.sleep(0.05 * number)
        await pair.left.kill()
        await pair.left.start()
        assert (await pair.matcher.finished(f"m{number}", seconds=60)).outcome == "ok"
        assert [(tmp_path / rank).read_text() for rank in ("0", "1")] == ["x", "x"]
        await pair.book(f"m{number}", lambda book: book.told)
        assert await pair.matcher.stored(pair.bus.subjects.finished(f"m{number}")) == 1


async def test_a_task_that_is_cancelled_before_a_node_answers_never_begins(pair: Pair) -> None:
    await pair.right.kill()
    await pair.matcher.place("n1", "print('must not run')", devices=pair.devices())
    await pair.book("n1", lambda book: "left" in book.members)
    await cancel(pair, "n1")
    assert (await pair.matcher.finished("n1")).outcome == "cancelled"
    await pair.right.start()
    # What is placed after it has been handled after it.
    await pair.matcher.place("n2", "print('after')", devices=pair.devices()[1:])
    assert (await pair.matcher.finished("n2", seconds=60)).outcome == "ok"
    assert await pair.matcher.stored(pair.bus.subjects.launched("n1")) == 0
    assert await pair.matcher.stored(pair.bus.subjects.finished("n1")) == 1


async def test_the_part_of_a_node_that_is_gone_is_given_up(pair: Pair) -> None:
    stay = asyncio.create_task(heartbeat(pair, "left"))
    await pair.matcher.place("l1", SLEEPER, devices=pair.devices())
    launched = await pair.launched("l1")
    # While only its telemetry is away, its launcher answers for it.
    await pair.book("l1", lambda book: book.members["right"].asked_at is not None)
    await pair.book("l1", lambda book: book.members["right"].asked_at is None)
    await pair.book("l1", lambda book: book.members["right"].asked_at is not None)
    assert await pair.matcher.stored(pair.bus.subjects.finished("l1")) == 0
    # As when the machine is cut off: neither its launcher nor its telemetry says anything, and its part goes on.
    await pair.right.kill()
    finished = await pair.matcher.finished("l1", seconds=60)
    assert finished.outcome == "lost" and finished.message is not None
    assert finished.message.startswith("on right: the node has reported no devices")
    assert len(finished.device_uids) == 2
    left, right = launched["left"].pid, launched["right"].pid
    assert left is not None and right is not None
    await gone(left)
    assert psutil.pid_exists(right)
    # It comes back, and ends what it finds.
    await pair.right.start()
    await pair.over("l1", launched)
    stay.cancel()


async def heartbeat(pair: Pair, node: str) -> None:
    """What telemetry writes for a node that is there."""
    uid = pair.matcher.cpu().uid
    state = DeviceState(
        uid=uid, site=pair.matcher.site, node=node, kind="CPU", vendor="cpu", memory_bytes=1, seen_at=""
    )
    while True:
        await pair.bus.bucket("devices", DeviceState).put(f"{state.site}.{node}.{uid}", state)
        await asyncio.sleep(2)
