"""The routes: a JSON API, server-sent events, and the page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request
from fastapi import Path as PathParameter
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from pydantic.json_schema import models_json_schema

from oarlock_gateway.adapters.access import SECURITY_HEADERS, Guard
from oarlock_gateway.ports import Desk, Feed
from oarlock_runtime import BusUnavailable
from oarlock_schemas import InvalidMessage, SubmitReply, TaskRecord, TaskSubmitted, read_yaml

TaskId = Annotated[str, PathParameter(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}$")]
_FOLDER = Path(__file__).parent / "static"
_KEEP_ALIVE_SECONDS = 15.0
_BODY_SECONDS = 30.0
_TASK = {"schema": {"$ref": "#/components/schemas/TaskSubmitted"}}
_TASK_BODIES = {"application/json": _TASK, "application/yaml": _TASK}
_REFERENCE = "#/components/schemas/{model}"
_VERSION = "0.1.0"
_FILES = {"app.js": "text/javascript", "app.css": "text/css"}


def routes(app: FastAPI, desk: Desk, feed: Feed, guard: Guard, *, max_body_bytes: int, max_streams: int) -> None:
    """Add everything to ``app``."""
    app.title = "Oarlock"
    app.include_router(_api(desk, feed, guard, max_body_bytes, _Streams(max_streams)))
    app.include_router(_page(guard))

    @app.middleware("http")
    async def guarded(request: Request, call_next: Any) -> Response:
        response: Response = await call_next(request)
        if not request.url.path.startswith("/docs"):
            for name, value in SECURITY_HEADERS.items():
                response.headers.setdefault(name, value)
        return response

    def described() -> dict[str, Any]:
        """The OpenAPI document, with the body that `submit` reads by itself."""
        if app.openapi_schema is None:
            whole = get_openapi(title=app.title, version=_VERSION, routes=app.routes)
            _, models = models_json_schema([(TaskSubmitted, "validation")], ref_template=_REFERENCE)
            whole["components"]["schemas"] |= models["$defs"]
            app.openapi_schema = whole
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]

    @app.exception_handler(BusUnavailable)
    async def unavailable(_: Request, error: BusUnavailable) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 503, {"Retry-After": "2"})


def _api(desk: Desk, feed: Feed, guard: Guard, max_body_bytes: int, streams: _Streams) -> APIRouter:
    api = APIRouter(prefix="/api", dependencies=[Depends(guard.check)])

    @api.post(
        "/tasks",
        status_code=202,
        response_model=SubmitReply,
        responses={422: {"model": SubmitReply}},
        openapi_extra={"requestBody": {"required": True, "content": _TASK_BODIES}},
    )
    async def submit(request: Request) -> Any:
        """Submit a task (JSON; YAML with `Content-Type: application/yaml`). Answers its id, or every fault."""
        reply = await desk.submit(await _body(request, max_body_bytes))
        if reply.task_id is None:
            return JSONResponse(reply.model_dump(mode="json"), 422)
        return reply

    @api.get("/tasks")
    async def tasks(
        state: Annotated[list[str] | None, Query(description="only these states")] = None,
        limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    ) -> list[TaskRecord]:
        """Tasks, oldest first."""
        return [record for record in await desk.tasks() if not state or record.state in state][-limit:]

    @api.get("/tasks/{task_id}")
    async def task(task_id: TaskId) -> dict[str, Any]:
        """One task: its record and its events so far."""
        record = await _known(desk, task_id)
        return {"task": record.model_dump(mode="json"), "events": await desk.history(task_id)}

    @api.post("/tasks/{task_id}/cancel", status_code=202)
    async def cancel(task_id: TaskId, reason: Annotated[str | None, Query(max_length=1024)] = None) -> dict[str, str]:
        """Ask that a task be stopped, wherever it is."""
        record = await _known(desk, task_id)
        if record.final:
            raise HTTPException(409, f"task {task_id} has ended: {record.state}")
        await desk.cancel(task_id, reason)
        return {"task_id": task_id}

    @api.get("/tasks/{task_id}/events")
    async def task_events(task_id: TaskId) -> StreamingResponse:
        """The task's events as server-sent events, from its first on."""
        await _known(desk, task_id)
        return streams.open(desk.events(task_id))

    @api.get("/tasks/{task_id}/logs")
    async def task_logs(task_id: TaskId) -> StreamingResponse:
        """The task's output as server-sent events, from its first line on."""
        await _known(desk, task_id)
        return streams.open(desk.logs(task_id))

    @api.get("/events")
    async def events() -> StreamingResponse:
        """Every task's events from now on."""
        return streams.open(desk.events(None))

    @api.get("/board/events")
    async def board() -> StreamingResponse:
        """What the page shows: a snapshot, then every change."""
        return streams.open(feed.patches())

    @api.get("/fleet")
    async def fleet() -> dict[str, Any]:
        """Every device, its samples and who holds what on it."""
        whole = feed.snapshot()
        return {name: whole[name] for name in ("devices", "leases", "samples")}

    return api


def _page(guard: Guard) -> APIRouter:
    page = APIRouter(include_in_schema=False)

    @page.get("/")
    async def index(request: Request, token: str | None = None) -> Response:
        if token is not None:
            # Into a cookie and out of the address, where it would be kept in the history.
            if not guard.right(token):
                raise HTTPException(401, "wrong token")
            response: Response = RedirectResponse("/", 303)
            guard.remember(response)
            return response
        try:
            guard.check(request)
        except HTTPException:
            return FileResponse(_FOLDER / "login.html", 401, media_type="text/html")
        return FileResponse(_FOLDER / "index.html", media_type="text/html")

    @page.get("/static/{name}")
    async def static(name: str) -> Response:
        if name not in _FILES:
            raise HTTPException(404, "no such file")
        return FileResponse(_FOLDER / name, media_type=_FILES[name])

    return page


async def _known(desk: Desk, task_id: str) -> TaskRecord:
    record = await desk.task(task_id)
    if record is None:
        raise HTTPException(404, f"no task {task_id!r}")
    return record


async def _body(request: Request, max_bytes: int) -> bytes:
    """The request's body as JSON bytes, read no further than ``max_bytes``."""
    data = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for chunk in request.stream():
                data += chunk
                if len(data) > max_bytes:
                    raise HTTPException(
                        413, f"a submission may have at most {max_bytes} bytes; put the code into a bundle"
                    )
    except TimeoutError:
        raise HTTPException(408, f"the body did not arrive within {_BODY_SECONDS:g} s") from None
    if "yaml" not in request.headers.get("content-type", ""):
        return bytes(data)
    try:
        return json.dumps(read_yaml(bytes(data)), allow_nan=False).encode()
    except (InvalidMessage, ValueError, TypeError, RecursionError) as error:
        raise HTTPException(422, f"the body is no task file: {error}") from None


class _Streams:
    """Server-sent event streams, bounded in number."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open = 0

    def open(self, items: AsyncIterator[dict[str, Any]]) -> StreamingResponse:
        """Send ``items`` as they come, and a comment now and then so that proxies keep the line open.

        Raises:
            HTTPException: 503, too many are open.
        """
        if self._open >= self._most:
            raise HTTPException(503, "too many event streams are open", {"Retry-After": "10"})
        return StreamingResponse(
            self._lines(items), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
        )

    async def _lines(self, items: AsyncIterator[dict[str, Any]]) -> AsyncIterator[str]:
        self._open += 1
        pending: asyncio.Task[dict[str, Any]] | None = None
        try:
            yield ": open\n\n"
            while True:
                pending = pending or asyncio.ensure_future(_next(items))
                done, _ = await asyncio.wait({pending}, timeout=_KEEP_ALIVE_SECONDS)
                if not done:
                    yield ": still here\n\n"
                    continue
                try:
                    item = pending.result()
                except StopAsyncIteration:
                    return
                pending = None
                yield f"data: {json.dumps(item, ensure_ascii=False)}\n\n"
        finally:
            self._open -= 1
            if pending is not None:
                pending.cancel()


async def _next(items: AsyncIterator[dict[str, Any]]) -> dict[str, Any]:
    return await anext(items)
