"""The users of ``deploy/nats``: each can do its work and nothing of another's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pydantic import BaseModel

from oarlock_runtime import (
    Bus,
    BusUnavailable,
    Context,
    DeadLetters,
    EmbeddedServer,
    EmbeddedServerError,
    Leadership,
    OarlockError,
    PermanentError,
    Service,
)

if TYPE_CHECKING:
    from tests.runtime.conftest import Recorder

CONFIG = Path(__file__).parents[2] / "deploy" / "nats" / "nats-server.conf"
USERS = ("admin", "profiler", "matcher", "launcher", "telemetry", "gateway", "submitter")
PASSWORDS = {f"OARLOCK_{user.upper()}_PASSWORD": f"password-of-{user}" for user in USERS}


class Event(BaseModel):
    n: int


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """The production configuration, on a free port and in a folder of this test's own."""
    # The file's monitoring port is fixed; the test's copy must not meet another server's.
    folder = tmp_path / "conf"
    folder.mkdir()
    text = CONFIG.read_text()
    assert 'store_dir: "/data"' in text
    assert "http: 8222" in text
    text = text.replace('"/data"', f'"{tmp_path / "data"}"').replace("http: 8222", "http: -1")
    (folder / "nats-server.conf").write_text(text)
    (folder / "users.conf").write_text((CONFIG.parent / "users.conf").read_text())
    with EmbeddedServer(tmp_path / "data", config=folder / "nats-server.conf", environment=PASSWORDS) as server:
        yield server


class Fleet:
    """A bus for each user, with the streams made by the administrator."""

    def __init__(self, server: EmbeddedServer, stack: AsyncExitStack) -> None:
        self._server = server
        self._stack = stack

    async def user(self, name: str) -> Bus:
        bus = await Bus.connect(self._server.url, name=name, user=name, password=f"password-of-{name}")
        return await self._stack.enter_async_context(bus)


@pytest.fixture
async def fleet(secured: EmbeddedServer) -> AsyncIterator[Fleet]:
    async with AsyncExitStack() as stack:
        fleet = Fleet(secured, stack)
        await (await fleet.user("admin")).ensure()
        yield fleet


async def test_wrong_and_missing_passwords_are_refused(fleet: Fleet, secured: EmbeddedServer, tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match="refused user 'launcher'"):
        await Bus.connect(secured.url, user="launcher", password="password-of-matcher")
    with pytest.raises(PermanentError, match="refused"):
        await Bus.connect(secured.url)
    with pytest.raises(EmbeddedServerError, match="OARLOCK_ADMIN_PASSWORD"):
        EmbeddedServer(tmp_path / "open", config=CONFIG).start()


@pytest.mark.parametrize(
    ("user", "subject"),
    [
        ("launcher", "oarlock.tasks.placed.local.t1"),
        ("launcher", "oarlock.tasks.submitted"),
        ("launcher", "oarlock.dead.matcher"),
        ("profiler", "oarlock.tasks.placed.local.t1"),
        ("profiler", "oarlock.runs.completed.t1"),
        ("matcher", "oarlock.tasks.finished.t1"),
        ("matcher", "oarlock.estimator.recalibrated"),
        ("telemetry", "oarlock.tasks.finished.t1"),
        ("gateway", "oarlock.tasks.placed.local.t1"),
        ("submitter", "oarlock.tasks.profiled.t1"),
        ("submitter", "oarlock.dead.profiler"),
    ],
)
async def test_a_user_may_not_publish_what_is_anothers(fleet: Fleet, user: str, subject: str) -> None:
    bus = await fleet.user(user)
    with pytest.raises(PermanentError, match="may not publish"):
        await bus.publish(subject, {})
    assert bus.connected


@pytest.mark.parametrize(
    ("user", "subject"),
    [
        ("matcher", "oarlock.tasks.placed.local.t1"),
        ("launcher", "oarlock.tasks.launched.t1"),
        ("launcher", "oarlock.logs.t1"),
        ("profiler", "oarlock.tasks.profiled.t1"),
        ("telemetry", "oarlock.runs.completed.t1"),
        ("gateway", "oarlock.tasks.cancel.t1"),
        ("submitter", "oarlock.tasks.submitted"),
        ("admin", "oarlock.tasks.placed.local.t1"),
    ],
)
async def test_a_user_may_publish_what_is_its_own(fleet: Fleet, user: str, subject: str) -> None:
    assert await (await fleet.user(user)).publish(subject, {}) > 0


@pytest.mark.parametrize(
    ("user", "bucket"),
    [
        ("launcher", "leases"),
        ("launcher", "leaders"),
        ("launcher", "devices"),
        ("matcher", "gangs"),
        ("telemetry", "gangs"),
        ("profiler", "leases"),
        ("telemetry", "tasks"),
        ("gateway", "leases"),
        ("matcher", "devices"),
        ("submitter", "tasks"),
    ],
)
async def test_a_user_may_not_write_anothers_state(fleet: Fleet, user: str, bucket: str) -> None:
    with pytest.raises(PermanentError, match="may not write"):
        await (await fleet.user(user)).bucket(bucket).put("k", {})
    assert await (await fleet.user("admin")).bucket(bucket).get("k") is None


async def test_a_user_hears_neither_anothers_inbox_nor_the_bus(fleet: Fleet) -> None:
    spy, gateway, profiler = await fleet.user("launcher"), await fleet.user("gateway"), await fleet.user("profiler")
    heard: list[str] = []

    async def listen(message: object) -> None:
        heard.append(str(message))

    for subject in ("_INBOX_gateway.>", "_INBOX.>", ">", "oarlock.>", "$KV.>", "oarlock.submit"):
        await spy.subscribe(subject, listen)
    await spy.flush()

    async def answer(body: object, context: Context) -> dict[str, str]:
        return {"id": "t1"}

    svc = Service(profiler, "profiler")
    svc.serve(profiler.subjects.submit(), answer)
    async with svc:
        await profiler.flush()
        assert (await gateway.request(gateway.subjects.submit(), {})).json() == {"id": "t1"}
        assert (await (await fleet.user("submitter")).request("oarlock.submit", {})).json() == {"id": "t1"}
    await gateway.publish(gateway.subjects.submitted("t1"), {})
    await spy.flush()
    assert heard == []


@pytest.mark.parametrize(
    ("user", "durable", "filter_subject"),
    [
        ("profiler", "profiler-submitted", "oarlock.tasks.submitted.*"),
        ("matcher", "matcher-profiled", "oarlock.tasks.profiled.*"),
        ("launcher", "launcher-local-placed", "oarlock.tasks.placed.local.*"),
        ("telemetry", "telemetry-launched", "oarlock.tasks.launched.*"),
    ],
)
async def test_a_service_can_consume_fail_and_bury(
    fleet: Fleet, recorder: Recorder, user: str, durable: str, filter_subject: str
) -> None:
    """The whole of the runtime with a service's own user: consume, retry, give back, dead letter."""

    async def by_number(event: Event, context: Context) -> None:
        if event.n == 2:
            raise PermanentError("no")
        if event.n == 1 and context.delivery_count == 1:
            raise ValueError("once")

    recorder.behave = by_number
    admin, bus = await fleet.user("admin"), await fleet.user(user)
    await bus.ensure()
    svc = Service(bus, user)
    svc.consume(durable, filter_subject, Event, recorder, backoff=(0.01,))
    async with svc:
        for n in range(3):
            await admin.publish(filter_subject.replace("*", f"t{n}"), Event(n=n))
        assert sorted(await recorder.take(4)) == [0, 1, 1, 2]
        async with asyncio.timeout(20):
            async for _ in admin.watch(admin.subjects.dead(user), start="all"):
                break
    [letter] = await DeadLetters(admin).list(user)
    assert letter.data == b'{"n":2}'


@pytest.mark.parametrize(
    ("durable", "filter_subject"),
    [("matcher-profiled", "oarlock.tasks.profiled.*"), ("launcher-local-placed", "oarlock.tasks.placed.elsewhere.*")],
)
async def test_a_launcher_can_consume_neither_the_matchers_nor_another_sites(
    fleet: Fleet, recorder: Recorder, durable: str, filter_subject: str
) -> None:
    launcher, admin = await fleet.user("launcher"), await fleet.user("admin")
    svc = Service(launcher, "launcher", stop_grace_seconds=0)
    svc.consume(durable, filter_subject, Event, recorder)
    await admin.publish(filter_subject.replace("*", "t1"), Event(n=1))
    denied = asyncio.Event()

    async def note(_: object) -> None:
        denied.set()

    async with svc:
        async with asyncio.timeout(20):
            while "consumer" not in str(svc.troubles()) or "not started" in str(svc.troubles()):
                await launcher.flush()
        assert recorder.calls.empty()
    with pytest.raises(Exception, match="not found"):
        await admin.jetstream.consumer_info("oarlock_TASKS", durable)


async def test_the_matcher_leads_and_its_state_is_watched(fleet: Fleet) -> None:
    matcher, gateway = await fleet.user("matcher"), await fleet.user("gateway")
    elected: asyncio.Queue[int] = asyncio.Queue()

    async def lead(epoch: int) -> None:
        await matcher.bucket("leases").change("GPU-1", lambda _: {"holder": "t1"})
        elected.put_nowait(epoch)

    await asyncio.wait_for(Leadership(matcher.bucket("leaders"), "matcher", "m1").run(lead), 20)
    assert elected.get_nowait() > 0
    async with asyncio.timeout(10):
        async for change in gateway.bucket("leases").watch():
            assert change.value == {"holder": "t1"}
            break


async def test_launchers_meet_in_a_book_and_see_which_nodes_are_there(fleet: Fleet) -> None:
    launcher, telemetry = await fleet.user("launcher"), await fleet.user("telemetry")
    await launcher.bucket("gangs").change("t1.1", lambda _: {"told": False})
    await telemetry.bucket("devices").put("local.node1.GPU-1", {})
    assert await launcher.bucket("devices").keys("local.>") == ["local.node1.GPU-1"]
    async with asyncio.timeout(10):
        async for change in launcher.bucket("gangs").watch():
            assert change.value == {"told": False}
            break


async def test_bundles_go_from_gateway_to_launcher_and_not_back(fleet: Fleet) -> None:
    key = await (await fleet.user("gateway")).bundles.put(b"print()" * 50_000)
    launcher = await fleet.user("launcher")
    assert await launcher.bundles.get(key) == b"print()" * 50_000
    with pytest.raises(OarlockError):
        await launcher.bundles.put(b"evil")


async def test_missing_streams_are_said_with_their_cure(secured: EmbeddedServer) -> None:
    async with await Bus.connect(secured.url, user="matcher", password="password-of-matcher") as bus:
        with pytest.raises(BusUnavailable, match="oarlock_runtime ensure"):
            await bus.ensure()
