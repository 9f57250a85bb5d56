"""One trace from the first publish to the last effect, exported only where asked."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import threading
from contextlib import redirect_stderr, redirect_stdout
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from pydantic import BaseModel

from oarlock_runtime import Bus, Context, RuntimeSettings, Service, Tracing, configure_logging, get_logger
from oarlock_runtime.tracing import current_trace_id, parse_traceparent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.runtime.conftest import Recorder

    Lines = Callable[[], list[dict[str, object]]]


class Event(BaseModel):
    n: int


class Receiver:
    """An OTLP/HTTP collector that keeps what it is sent."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                if self.path == "/v1/traces":
                    receiver.requests.append(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def spans(self) -> list[tuple[str, Span]]:
        """(service name, span)."""
        return [
            (attribute.value.string_value, span)
            for request in self.requests
            for resource in request.resource_spans
            for attribute in resource.resource.attributes
            if attribute.key == "service.name"
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def two_services(bus: Bus, recorder: Recorder, endpoint: str | None) -> tuple[Service, Service]:
    async def profile(event: Event, context: Context) -> None:
        await context.publish(bus.subjects.profiled("t"), event)

    profiler = Service(bus, "profiler", tracing=Tracing("profiler", endpoint))
    profiler.consume("profiler", bus.subjects.all_submitted(), Event, profile)
    matcher = Service(bus, "matcher", tracing=Tracing("matcher", endpoint))
    matcher.consume("matcher", bus.subjects.profiled(), Event, recorder)
    return profiler, matcher


async def test_a_task_is_one_trace_across_services_and_exported(
    bus: Bus, recorder: Recorder, receiver: Receiver
) -> None:
    client = Tracing("client", receiver.url)
    profiler, matcher = two_services(bus, recorder, receiver.url)
    async with profiler, matcher:
        with client.span("submit") as root:
            await bus.publish(bus.subjects.submitted("t"), Event(n=1))
        await recorder.next()
    await asyncio.to_thread(client.close)

    by_service = dict(receiver.spans())
    assert set(by_service) == {"oarlock-client", "oarlock-profiler", "oarlock-matcher"}
    assert {span.trace_id.hex() for span in by_service.values()} == {f"{root.get_span_context().trace_id:032x}"}
    assert by_service["oarlock-profiler"].parent_span_id == by_service["oarlock-client"].span_id
    assert by_service["oarlock-matcher"].parent_span_id == by_service["oarlock-profiler"].span_id
    assert by_service["oarlock-profiler"].name == "profiler oarlock.tasks.submitted"


async def test_a_failed_handler_is_a_failed_span_with_its_exception(
    bus: Bus, recorder: Recorder, receiver: Receiver
) -> None:
    async def fail_once(event: Event, context: Context) -> None:
        if context.delivery_count == 1:
            raise ValueError("unlucky")

    recorder.behave = fail_once
    svc = Service(bus, "profiler", tracing=Tracing("profiler", receiver.url))
    svc.consume("profiler", bus.subjects.all_submitted(), Event, recorder, backoff=(0.01,))
    async with svc:
        await bus.publish(bus.subjects.submitted("t"), Event(n=1))
        assert [await recorder.next(), await recorder.next()] == [(1, 1), (1, 2)]
    failed, succeeded = sorted((span for _, span in receiver.spans()), key=lambda span: span.start_time_unix_nano)
    assert failed.status.code == 2
    assert failed.events[0].name == "exception"
    assert succeeded.status.code != 2


async def test_without_an_endpoint_the_trace_still_travels(bus: Bus, recorder: Recorder) -> None:
    profiler, matcher = two_services(bus, recorder, None)
    async with profiler, matcher:
        await bus.publish(bus.subjects.submitted("t"), Event(n=1), headers={"traceparent": PARENT})
        await recorder.next()
    assert recorder.messages[0].headers["traceparent"].split("-")[1] == PARENT.split("-")[1]


PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    "header",
    [
        "",
        "00-zz",
        "00-" + "0" * 32 + "-" + "1" * 16 + "-01",
        PARENT.replace("00-", "ff-", 1),
        PARENT + "-x",
        PARENT.upper(),
    ],
)
def test_malformed_traces_are_none(header: str) -> None:
    assert parse_traceparent({"traceparent": header}) is None


def test_spans_nest_without_an_exporter() -> None:
    tracing = Tracing("x")
    assert current_trace_id() is None
    with tracing.span("outer", {"traceparent": PARENT}), tracing.span("inner"):
        assert current_trace_id() == PARENT.split("-")[1]
    assert current_trace_id() is None


@pytest.fixture
def logs(capsys: pytest.CaptureFixture[str]) -> Iterator[Lines]:
    """What this process has logged since the last look."""
    configure_logging("profiler", level="debug")
    yield lambda: [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def test_logs_are_json_with_the_trace_and_without_secrets(logs: Lines) -> None:
    with Tracing("x").span("s", {"traceparent": PARENT}):
        get_logger("bus").info(
            "connecting",
            url="nats://user:hunter2@host:4222",
            password="hunter2",
            nats_token="hunter2",
            nested={"api_key": "hunter2", "list": ["nats://u:hunter2@h"]},
            tokens_per_second=7,
        )
    [line] = logs()
    assert "hunter2" not in json.dumps(line)
    assert (line["event"], line["service"], line["component"]) == ("connecting", "profiler", "bus")
    assert (line["trace_id"], line["level"], line["tokens_per_second"]) == (PARENT.split("-")[1], "info", 7)
    assert line["url"] == "nats://***@host:4222"


async def test_a_handlers_logs_carry_task_and_trace(logs: Lines, bus: Bus, recorder: Recorder) -> None:
    async def talk(event: Event, context: Context) -> None:
        context.log.info("profiling")

    recorder.behave = talk
    svc = Service(bus, "profiler")
    svc.consume("profiler", bus.subjects.all_submitted(), Event, recorder)
    async with svc:
        await bus.publish(bus.subjects.submitted("t9"), Event(n=1), headers={"traceparent": PARENT})
        await recorder.next()
    [line] = [entry for entry in logs() if entry["event"] == "profiling"]
    assert (line["task_id"], line["trace_id"]) == ("t9", PARENT.split("-")[1])


def test_an_unconfigured_process_keeps_its_standard_output() -> None:
    out, err = io.StringIO(), io.StringIO()
    structlog.reset_defaults()
    with redirect_stdout(out), redirect_stderr(err):
        log = get_logger("x")
        log.info("chatter")
        log.warning("matters")
    assert out.getvalue() == ""
    assert "matters" in err.getvalue()
    assert "chatter" not in err.getvalue()


def test_settings_come_from_the_environment_and_hide_secrets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OARLOCK_NATS_URL", "nats://bus:4222")
    monkeypatch.setenv("OARLOCK_NATS_PASSWORD", "hunter2")
    monkeypatch.setenv("OARLOCK_HTTP_PORT", "0")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
    settings = RuntimeSettings()
    assert (settings.nats_url, settings.http_port) == ("nats://bus:4222", 0)
    assert settings.otlp_endpoint == "http://collector:4318"
    assert settings.nats_password is not None
    assert settings.nats_password.get_secret_value() == "hunter2"
    assert "hunter2" not in repr(settings)
