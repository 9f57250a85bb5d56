"""One trace per task, carried from service to service in the W3C ``traceparent`` header.

Without an endpoint nothing is recorded or exported: a span is then sixteen random bytes and a context variable, so ids
still travel and still stand in every log line. With one, spans go to an OTLP/HTTP collector in batches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags

TRACEPARENT = "traceparent"
_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_ids = RandomIdGenerator()
_EXPORT_TIMEOUT_SECONDS = 5


class Tracing:
    """Makes spans for one service.

    Args:
        service: the service's name as shown by the tracing back end.
        endpoint: base URL of an OTLP/HTTP collector (``/v1/traces`` is added); None exports nothing.
    """

    def __init__(self, service: str, endpoint: str | None = None) -> None:
        self._provider: TracerProvider | None = None
        if endpoint:
            # Not set as the global provider: a process may hold several services (``oarlock up``).
            self._provider = TracerProvider(resource=Resource.create({"service.name": f"oarlock-{service}"}))
            exporter = OTLPSpanExporter(endpoint=endpoint.rstrip("/") + "/v1/traces", timeout=_EXPORT_TIMEOUT_SECONDS)
            self._provider.add_span_processor(BatchSpanProcessor(exporter))
            self._tracer = self._provider.get_tracer("oarlock_runtime")

    @contextmanager
    def span(
        self,
        name: str,
        headers: Mapping[str, str] | None = None,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Mapping[str, str | int | float | bool] | None = None,
    ) -> Iterator[Span]:
        """Enter a span: a child of the ``traceparent`` in ``headers``, else of the current span, else a new trace.

        An exception that leaves the block is recorded on the span and goes on.
        """
        parent = parse_traceparent(headers) if headers else None
        context = trace.set_span_in_context(NonRecordingSpan(parent), Context()) if parent else None
        if self._provider is None:
            known = parent or trace.get_current_span().get_span_context()
            span: Span = NonRecordingSpan(known if known.is_valid else new_span_context())
        else:
            span = self._tracer.start_span(name, context=context, kind=kind, attributes=dict(attributes or {}))
        try:
            with trace.use_span(span, end_on_exit=True, record_exception=True, set_status_on_exception=False):
                yield span
        except Exception as error:
            span.set_status(Status(StatusCode.ERROR, str(error)[:500]))
            raise

    def close(self) -> None:
        """Send what is still in the batch. Bounded by the export time-out; blocks, so call it from a thread."""
        if self._provider is not None:
            self._provider.shutdown()
            self._provider = None


def new_span_context() -> SpanContext:
    """The start of a trace that nothing records (yet)."""
    return SpanContext(
        _ids.generate_trace_id(), _ids.generate_span_id(), is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED)
    )


def parse_traceparent(headers: Mapping[str, str]) -> SpanContext | None:
    """The remote parent named by a ``traceparent`` header; None where there is none or it is malformed."""
    match = _TRACEPARENT.fullmatch(headers.get(TRACEPARENT, ""))
    if not match:
        return None
    context = SpanContext(
        int(match[1], 16), int(match[2], 16), is_remote=True, trace_flags=TraceFlags(int(match[3], 16))
    )
    return context if context.is_valid else None


def current_traceparent() -> str:
    """The ``traceparent`` of the current span; a new trace's where there is none, so that every task has one."""
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        context = new_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def current_trace_id() -> str | None:
    """The current trace's id in hexadecimal, None outside any span."""
    context = trace.get_current_span().get_span_context()
    return f"{context.trace_id:032x}" if context.is_valid else None
