"""Publishing, asking, watching, bundles, and setting up."""

from __future__ import annotations

import asyncio
import re

import pytest
from nats.aio.msg import Msg
from pydantic import BaseModel

from oarlock_runtime import (
    Bus,
    BusMessage,
    BusUnavailable,
    Context,
    EmbeddedServer,
    InvalidName,
    InvalidPayload,
    PayloadTooLarge,
    PermanentError,
    RemoteError,
    Service,
    TemporaryError,
)


class Question(BaseModel):
    n: int


async def test_ensure_is_idempotent_and_bounded(bus: Bus) -> None:
    await asyncio.gather(bus.ensure(), bus.ensure())
    for info in await bus.jetstream.streams_info():
        assert info.config.max_bytes is not None
        assert info.config.max_bytes > 0, info.config.name
        assert info.config.storage == "file"
    assert (await bus.jetstream.stream_info("KV_oarlock_devices")).config.max_age == 15
    assert (await bus.jetstream.stream_info("KV_oarlock_leaders")).config.max_age == 5


async def test_ensure_mends_what_differs_and_keeps_larger_limits(bus: Bus) -> None:
    config = (await bus.jetstream.stream_info("oarlock_TASKS")).config
    larger = (config.max_bytes or 0) + 1
    await bus.jetstream.update_stream(config.evolve(subjects=["oarlock.tasks.submitted"], max_bytes=larger))
    await bus.ensure()
    mended = (await bus.jetstream.stream_info("oarlock_TASKS")).config
    assert mended.subjects == ["oarlock.tasks.>"]
    assert mended.max_bytes == larger


async def test_two_prefixes_share_a_server_without_meeting(nats: EmbeddedServer, bus: Bus) -> None:
    async with await Bus.connect(nats.url, token=nats.token, prefix="other") as other:
        await other.ensure()
        await bus.publish(bus.subjects.submitted("t"), {"of": "oarlock"})
        await other.publish(other.subjects.submitted("t"), {"of": "other"})
        await other.bucket("tasks").put("k", {})
        assert await bus.bucket("tasks").keys() == []
        async for message in other.watch(other.subjects.all_tasks(), start="all"):
            assert message.json() == {"of": "other"}
            break


async def test_headers_are_cloudevents_with_dedup_id_and_trace(bus: Bus) -> None:
    await bus.publish(bus.subjects.placed("lab", "t1"), {"a": 1}, msg_id="t1:placed:1", headers={"X": "a\r\nEvil: yes"})
    async for message in bus.watch(bus.subjects.placed(), start="all"):
        headers = message.headers
        break
    assert headers["Nats-Msg-Id"] == headers["ce-id"] == message.message_id == "t1:placed:1"
    assert headers["ce-type"] == "oarlock.tasks.placed"
    assert headers["ce-source"] == "/oarlock/test"
    assert headers["ce-specversion"] == "1.0"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", headers["ce-time"])
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", headers["traceparent"])
    assert headers["X"] == "a Evil: yes"
    assert "Evil" not in headers


async def test_what_is_too_large_is_refused_before_it_costs_the_connection(bus: Bus) -> None:
    with pytest.raises(PayloadTooLarge, match="over the limit"):
        await bus.publish(bus.subjects.submitted(), b"x" * (1 << 20))
    # Under the server's limit, over the stream's: what the stream takes must also fit a dead letter.
    with pytest.raises(PermanentError, match="refuses"):
        await bus.publish(bus.subjects.submitted(), b"x" * 1_000_000)
    with pytest.raises(PayloadTooLarge):
        await bus.publish_core(bus.subjects.metrics("lab", "n1"), b"x" * (1 << 20))
    assert bus.connected
    assert bus.reconnect_count == 0


@pytest.mark.parametrize("payload", [{"a": object()}, {"a": float("nan")}])
async def test_what_is_no_json_is_refused(bus: Bus, payload: dict[str, object]) -> None:
    with pytest.raises(InvalidPayload):
        await bus.publish(bus.subjects.submitted(), payload)


async def test_unstored_subjects_cannot_be_published_or_watched(bus: Bus) -> None:
    with pytest.raises(PermanentError, match="publish_core"):
        await bus.publish(bus.subjects.metrics("lab", "n1"), {})
    with pytest.raises(PermanentError, match="one stream"):
        async for _ in bus.watch(bus.subjects.metrics()):
            raise AssertionError("nothing is stored there")


async def test_watch_starts_where_told(bus: Bus) -> None:
    subject = bus.subjects.logs("t")
    sequences = [await bus.publish(subject, {"n": n}) for n in range(3)]

    async def first(start: object) -> object:
        async for message in bus.watch(subject, start=start):  # type: ignore[arg-type]
            return int(message.json()["n"])
        return None

    assert await first("all") == 0
    assert await first("last") == 2
    assert await first(sequences[1]) == 1

    listening = asyncio.Event()

    async def newest() -> object:
        async for message in bus.watch(subject, caught_up=listening):
            return int(message.json()["n"])
        return None

    waiting = asyncio.create_task(newest())
    async with asyncio.timeout(10):
        await listening.wait()
        await bus.publish(subject, {"n": 3})
        assert await waiting == 3


async def test_watch_sees_each_message_once_over_a_kill_of_the_server(nats: EmbeddedServer, bus: Bus) -> None:
    subject = bus.subjects.logs("t")
    seen: list[int] = []
    halfway = asyncio.Event()

    async def follow() -> None:
        async for message in bus.watch(subject, start="all"):
            seen.append(message.json()["n"])
            if len(seen) == 300:
                halfway.set()
            if len(seen) == 600:
                return

    following = asyncio.create_task(follow())
    async with asyncio.timeout(40):
        for n in range(600):
            if n == 400:
                await halfway.wait()
                nats.kill()
                nats.start()
            await bus.publish(subject, {"n": n}, msg_id=str(n))
        await following
    assert seen == list(range(600))


async def test_a_watch_leaves_no_consumer_behind(bus: Bus) -> None:
    await bus.publish(bus.subjects.logs("t"), {})
    reader = bus.watch(bus.subjects.logs(), start="all")
    await anext(reader)
    assert (await bus.jetstream.stream_info("oarlock_LOGS")).state.consumer_count == 1
    await reader.aclose()
    assert (await bus.jetstream.stream_info("oarlock_LOGS")).state.consumer_count == 0


async def test_core_messages_reach_who_listens(bus: Bus) -> None:
    got: asyncio.Queue[BusMessage] = asyncio.Queue()

    async def listen(message: BusMessage) -> None:
        got.put_nowait(message)
        if message.json()["n"] == 0:
            raise ValueError("one bad sample must not end the subscription")

    await bus.subscribe(bus.subjects.metrics(), listen)
    for n in range(2):
        await bus.publish_core(bus.subjects.metrics("lab", "n1"), {"n": n})
        assert (await asyncio.wait_for(got.get(), 5)).json() == {"n": n}


async def test_requests_are_answered_with_results_faults_and_errors(bus: Bus) -> None:
    async def answer(question: Question, context: Context) -> dict[str, object]:
        match question.n:
            case 1:
                return {"id": "t1", "trace": context.trace_id}
            case 2:
                raise PermanentError("no such thing", fix="ask for another")
            case 3:
                raise TemporaryError("later")
            case _:
                raise KeyError("secret detail")

    svc = Service(bus, "gateway")
    svc.serve(bus.subjects.submit(), answer, model=Question)
    async with svc:
        reply = await bus.request(bus.subjects.submit(), Question(n=1))
        assert reply.json()["id"] == "t1"
        assert re.fullmatch(r"[0-9a-f]{32}", reply.json()["trace"])
        for body, kind in (({"n": 2}, "permanent"), ({"n": 3}, "temporary"), ({"n": 4}, "internal"), ({}, "invalid")):
            with pytest.raises(RemoteError) as failed:
                await bus.request(bus.subjects.submit(), body)
            error = failed.value.reply["error"]
            assert isinstance(error, dict)
            assert error["kind"] == kind
            assert "secret" not in str(failed.value)
        assert failed.value.reply["error"]["faults"] == [{"path": "$.n", "message": "Field required"}]  # type: ignore[index]


async def test_an_unserved_request_fails_at_once(bus: Bus) -> None:
    with pytest.raises(BusUnavailable, match="nobody serves"):
        await bus.request(bus.subjects.submit(), {}, timeout_seconds=30)


async def test_a_request_that_may_be_repeated_outlives_who_was_asked_first(bus: Bus) -> None:
    asked: list[bytes] = []

    async def answer_the_second(message: Msg) -> None:
        asked.append(message.data)
        if len(asked) == 2:
            await message.respond(b"{}")

    asking = asyncio.create_task(
        bus.request(bus.subjects.submit(), {"n": 1}, timeout_seconds=30, repeat_seconds=0.5)
    )  # nobody serves it yet
    await asyncio.sleep(0)
    await bus.client.subscribe(bus.subjects.submit(), cb=answer_the_second)
    assert (await asking).json() == {}
    assert len(asked) == 2 and len(set(asked)) == 1


async def test_a_slow_request_does_not_hold_up_the_next(bus: Bus) -> None:
    second_came = asyncio.Event()

    async def answer(body: dict[str, int], context: Context) -> dict[str, int]:
        if body["n"] == 1:
            await second_came.wait()
        second_came.set()
        return body

    svc = Service(bus, "gateway")
    svc.serve(bus.subjects.submit(), answer)
    async with svc, asyncio.timeout(10):
        first, second = await asyncio.gather(
            bus.request(bus.subjects.submit(), {"n": 1}), bus.request(bus.subjects.submit(), {"n": 2})
        )
        assert (first.json(), second.json()) == ({"n": 1}, {"n": 2})


async def test_nobody_at_home_is_said_with_a_cure() -> None:
    with pytest.raises(BusUnavailable, match="oarlock up"):
        await Bus.connect("nats://user:hunter2@127.0.0.1:9", timeout_seconds=0.5)


async def test_no_secret_of_a_url_is_shown() -> None:
    with pytest.raises(BusUnavailable) as error:
        await Bus.connect("nats://user:hunter2@127.0.0.1:9", timeout_seconds=0.5)
    assert "hunter2" not in str(error.value)


async def test_bundles_are_named_by_their_content(bus: Bus) -> None:
    data = bytes(range(256)) * 4096  # 1 MiB, several pieces
    key = await bus.bundles.put(data)
    assert await bus.bundles.put(data) == key
    assert await bus.bundles.get(key) == data
    assert await bus.bundles.get(await bus.bundles.put(b"")) == b""
    with pytest.raises(PayloadTooLarge):
        await bus.bundles.put(data, max_bytes=len(data) - 1)
    with pytest.raises(PayloadTooLarge):
        await bus.bundles.get(key, max_bytes=len(data) - 1)
    with pytest.raises(InvalidName):
        await bus.bundles.get("../../etc/passwd")
    with pytest.raises(PermanentError, match="no bundle"):
        await bus.bundles.get("sha256-" + "0" * 64)
    await bus.bundles.delete(key)
    assert await bus.bundles.size_bytes(key) is None
