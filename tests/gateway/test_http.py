"""The HTTP side over a real bus: submit, read, cancel, streams; and who may come in."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest
from fastapi import HTTPException, Request

from oarlock_gateway.adapters.access import Guard
from oarlock_runtime import Bus
from oarlock_schemas import TaskRecord

from .conftest import TOKEN, Gateway


async def test_a_task_is_submitted_listed_shown_and_cancelled(gateway: Gateway, bus: Bus) -> None:
    answer = await gateway.client.post("/api/tasks", json={"source": {"inline": "print(1)"}, "colour": 1})
    assert answer.status_code == 202
    task_id = answer.json()["task_id"]
    assert answer.json()["ignored"] == ["$.colour"]
    assert [t["task_id"] for t in (await gateway.client.get("/api/tasks")).json()] == [task_id]
    assert (await gateway.client.get("/api/tasks", params={"state": "running"})).json() == []
    shown = (await gateway.client.get(f"/api/tasks/{task_id}")).json()
    assert shown["task"]["state"] == "submitted"
    assert [event["event"] for event in shown["events"]] == ["submitted"]
    assert (await gateway.client.post(f"/api/tasks/{task_id}/cancel")).status_code == 202
    assert (await bus.last(bus.subjects.cancel(task_id))) is not None


async def test_yaml_is_taken_and_a_bomb_is_not(gateway: Gateway) -> None:
    headers = {"Content-Type": "application/yaml"}
    good = await gateway.client.post("/api/tasks", content="task: {model_name: ernie}\n", headers=headers)
    assert good.status_code == 202
    bomb = "a: &a [x, x]\nb: &b [*a, *a]\n"
    assert (await gateway.client.post("/api/tasks", content=bomb, headers=headers)).status_code == 422


async def test_every_fault_is_answered_with_its_path(gateway: Gateway) -> None:
    answer = await gateway.client.post("/api/tasks", json={"priority": 1000, "task": {"sequence_length": -1}})
    assert answer.status_code == 422
    assert {fault["path"] for fault in answer.json()["faults"]} == {"$.priority", "$.task.sequence_length"}


async def test_a_body_over_the_limit_is_not_read(gateway: Gateway) -> None:
    answer = await gateway.client.post("/api/tasks", json={"source": {"inline": "x" * 200_000}})
    assert answer.status_code == 413


async def test_an_unknown_or_odd_task_id_is_not_found(gateway: Gateway) -> None:
    assert (await gateway.client.get("/api/tasks/nobody")).status_code == 404
    assert (await gateway.client.get("/api/tasks/a.b")).status_code == 422
    assert (await gateway.client.get("/static/../settings.py")).status_code == 404


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}])
async def test_without_the_token_nobody_comes_in(gateway: Gateway, headers: dict[str, str]) -> None:
    async with httpx.AsyncClient(base_url=gateway.url, headers=headers, trust_env=False) as stranger:
        for path in ("/api/tasks", "/api/fleet", "/api/events"):
            assert (await stranger.get(path)).status_code == 401
        assert (await stranger.post("/api/tasks", json={})).status_code == 401
        assert "Oarlock" in (await stranger.get("/")).text


async def test_the_page_keeps_a_cookie_that_is_not_the_token(gateway: Gateway) -> None:
    async with httpx.AsyncClient(base_url=gateway.url, trust_env=False) as browser:
        entered = await browser.get("/", params={"token": TOKEN})
        assert entered.status_code == 303 and "HttpOnly" in entered.headers["set-cookie"]
        assert TOKEN not in entered.headers["set-cookie"]
        page = await browser.get("/")
        assert page.status_code == 200 and "script-src 'self'" in page.headers["content-security-policy"]
        assert (await browser.get("/api/tasks")).status_code == 200
        elsewhere = {"Origin": "http://elsewhere.example"}
        assert (await browser.post("/api/tasks", json={}, headers=elsewhere)).status_code == 403


async def test_the_board_is_streamed_and_streams_are_bounded(gateway: Gateway, bus: Bus) -> None:
    seen: list[str] = []
    async with gateway.client.stream("GET", "/api/board/events") as stream:
        lines = stream.aiter_lines()

        async def until(kind: str) -> None:
            async for line in lines:
                if line.startswith("data: "):
                    seen.append(json.loads(line[6:])["kind"])
                    if seen[-1] == kind:
                        return

        async with asyncio.timeout(30):
            await until("snapshot")
            await bus.bucket("tasks", TaskRecord).create("t1", TaskRecord(task_id="t1"))
            await until("task")
        async with (
            gateway.client.stream("GET", "/api/events") as second,
            gateway.client.stream("GET", "/api/events") as third,
        ):
            assert (second.status_code, third.status_code) == (200, 200)
            await anext(second.aiter_lines())
            await anext(third.aiter_lines())
            assert (await gateway.client.get("/api/events")).status_code == 503


async def test_the_openapi_document_resolves_and_names_the_body(gateway: Gateway) -> None:
    document = (await gateway.client.get("/openapi.json")).json()
    assert "TaskSubmitted" in document["components"]["schemas"]

    def references(node: object) -> list[str]:
        if isinstance(node, dict):
            return [v for k, v in node.items() if k == "$ref"] + [r for v in node.values() for r in references(v)]
        return [r for v in node for r in references(v)] if isinstance(node, list) else []

    for reference in references(document):
        assert reference.removeprefix("#/components/schemas/") in document["components"]["schemas"], reference


async def test_one_unreadable_message_ends_no_stream(gateway: Gateway, bus: Bus) -> None:
    task_id = (await gateway.client.post("/api/tasks", json={"source": {"inline": "print(1)"}})).json()["task_id"]
    async with gateway.client.stream("GET", "/api/events") as everything:
        lines = everything.aiter_lines()
        assert (await anext(lines)).startswith(": open")
        for rubbish in (b"", b"{", b"[]", b"\xff"):
            await bus.publish(bus.subjects.submitted(None), rubbish)
            await bus.publish(bus.subjects.finished(task_id), rubbish)
        await bus.publish(bus.subjects.cancel(task_id), {"task_id": task_id, "by": "x"})
        async with asyncio.timeout(10):
            async for line in lines:
                if line.startswith("data:"):
                    break
        assert json.loads(line.removeprefix("data:"))["event"] == "cancel"
    shown = (await gateway.client.get(f"/api/tasks/{task_id}")).json()
    assert [event["event"] for event in shown["events"]] == ["submitted", "cancel"]


async def test_times_of_a_task_file_stay_text(gateway: Gateway) -> None:
    body = "submitted_at: 2026-01-02T03:04:05Z\nscheduler: {deadline: 2026-02-01}\nname: x\n"
    answer = await gateway.client.post("/api/tasks", content=body, headers={"Content-Type": "application/yaml"})
    assert answer.status_code == 202, answer.text


@pytest.mark.parametrize(
    ("host", "code"),
    [("127.0.0.1:8750", 200), ("localhost", 200), ("[::1]:8750", 200), ("evil.example:8750", 403), ("", 403)],
)
def test_without_a_token_only_this_machines_own_names_are_answered(host: str, code: int) -> None:
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", host.encode())]}
    try:
        Guard(None).check(Request(scope))
    except HTTPException as refused:
        assert refused.status_code == code
    else:
        assert code == 200
