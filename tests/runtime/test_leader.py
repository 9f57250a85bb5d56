"""One leader at a time, and soon another when it is gone."""

from __future__ import annotations

import asyncio
import subprocess
import sys

from oarlock_runtime import Bus, EmbeddedServer, Leadership


class Candidate:
    """Stands for election in a task of its own and tells what happens."""

    def __init__(self, bus: Bus, name: str, ttl_seconds: float = 1.0) -> None:
        self.leadership = Leadership(bus.bucket("leaders"), "matcher", name, ttl_seconds)
        self.elected: asyncio.Queue[int] = asyncio.Queue()
        self.deposed = asyncio.Event()
        self.leading = False
        self.task = asyncio.create_task(self.leadership.run(self._lead))

    async def _lead(self, epoch: int) -> None:
        self.leading = True
        self.elected.put_nowait(epoch)
        try:
            await asyncio.Event().wait()
        finally:
            self.leading = False
            self.deposed.set()

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def test_one_leads_and_the_next_takes_over_at_once_when_it_leaves(bus: Bus) -> None:
    first = Candidate(bus, "a", ttl_seconds=5)
    async with asyncio.timeout(20):
        epoch = await first.elected.get()
        assert first.leadership.epoch == epoch
        second = Candidate(bus, "b", ttl_seconds=5)
        assert await first.leadership.holder() == "a"
        assert second.leadership.epoch is None
        loop = asyncio.get_running_loop()
        left = loop.time()
        await first.stop()
        assert await second.elected.get() > epoch
        assert loop.time() - left < 2, "it waited for the time-to-live although the leader said goodbye"
        assert first.leadership.epoch is None
        await second.stop()
        assert await second.leadership.holder() is None


async def test_leadership_lasts_longer_than_its_time_to_live(bus: Bus) -> None:
    leader = Candidate(bus, "a", ttl_seconds=1)
    epoch = await asyncio.wait_for(leader.elected.get(), 10)
    renewals = 0
    async with asyncio.timeout(20):
        async for change in bus.bucket("leaders").watch("matcher"):
            assert change.kind == "put"
            assert change.value is not None
            assert change.value["holder"] == "a"
            renewals += 1
            if renewals == 7:  # a renewal each third of the time-to-live: two of them have passed
                break
    assert leader.leadership.epoch == epoch
    await leader.stop()


LEADER = """
import asyncio, sys
from oarlock_runtime import Bus, Leadership

async def main(url, token):
    bus = await Bus.connect(url, token=token)
    async def lead(epoch):
        print(epoch, flush=True)
        await asyncio.Event().wait()
    await Leadership(bus.bucket("leaders"), "matcher", "process", 1).run(lead)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_killed_leader_is_replaced_after_its_time_to_live(nats: EmbeddedServer, bus: Bus) -> None:
    process = subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-c", LEADER, nats.url, nats.token or ""], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        old_epoch = int(await asyncio.wait_for(asyncio.to_thread(process.stdout.readline), 20))
        standby = Candidate(bus, "standby", ttl_seconds=1)
        process.kill()
        assert await asyncio.wait_for(standby.elected.get(), 10) > old_epoch
        await standby.stop()
    finally:
        process.kill()
        process.communicate()


async def test_a_usurped_leader_is_cancelled_and_stands_again(bus: Bus) -> None:
    leader = Candidate(bus, "a", ttl_seconds=2)
    async with asyncio.timeout(20):
        epoch = await leader.elected.get()
        await bus.bucket("leaders").put("matcher", {"holder": "usurper"}, ttl_seconds=1)
        await leader.deposed.wait()
        assert await leader.elected.get() > epoch
    await leader.stop()


async def test_a_leader_out_of_touch_steps_down_before_the_server_lets_go(nats: EmbeddedServer, bus: Bus) -> None:
    leader = Candidate(bus, "a", ttl_seconds=2)
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(30):
        epoch = await leader.elected.get()
        nats.kill()
        cut_off = loop.time()
        await leader.deposed.wait()
        assert loop.time() - cut_off < 2
        nats.start()
        assert await leader.elected.get() > epoch
    await leader.stop()


async def test_never_two_leaders_among_five(bus: Bus) -> None:
    candidates = [Candidate(bus, f"c{n}", ttl_seconds=1) for n in range(5)]
    async with asyncio.timeout(40):
        epochs = []
        for _ in range(4):
            winners = [asyncio.ensure_future(c.elected.get()) for c in candidates]
            done, rest = await asyncio.wait(winners, return_when=asyncio.FIRST_COMPLETED)
            for waiter in rest:
                waiter.cancel()
            epochs += [task.result() for task in done]
            leaders = [c for c in candidates if c.leading]
            assert len(leaders) == len(done) == 1
            await leaders[0].stop()
            candidates.remove(leaders[0])
    assert epochs == sorted(epochs)
    for candidate in candidates:
        await candidate.stop()


async def test_the_end_of_the_work_ends_the_candidacy(bus: Bus) -> None:
    leadership = Leadership(bus.bucket("leaders"), "matcher", "a", 1)

    async def fail(epoch: int) -> None:
        raise ValueError(f"epoch {epoch}")

    result = (await asyncio.gather(leadership.run(fail), return_exceptions=True))[0]
    assert isinstance(result, ValueError)
    assert await leadership.holder() is None
