"""Structured logs: one JSON object per line (or coloured lines for people), never a secret.

``task_id`` and ``trace_id`` are bound by the runtime while a message is handled, so a handler just logs.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, Literal, cast

import structlog

from oarlock_runtime.tracing import current_trace_id

_SECRET_KEY = re.compile(r"pass(word|wd)?$|secret|token$|authorization|api_?key|cred(s|entials)?$|cookie", re.I)
_URL_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")
_HIDDEN = "***"
_TEXT_MAX_LENGTH = 8192


def configure_logging(
    service: str,
    *,
    log_format: Literal["json", "console"] = "json",
    level: Literal["debug", "info", "warning", "error"] = "info",
) -> None:
    """Set up logging of this process: everything goes to standard error.

    Call once, from ``__main__``. Standard-library loggers (uvicorn, nats) are shown from ``warning`` up.
    """
    renderer: Any = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _add_trace,
            structlog.processors.format_exc_info,
            redact,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=_to_stderr,
        cache_logger_on_first_use=False,
    )
    structlog.contextvars.bind_contextvars(service=service)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")


def _to_stderr(*_: Any) -> structlog.PrintLogger:
    # Looked up at each use, as whoever runs us may replace it.
    return structlog.PrintLogger(sys.stderr)


def get_logger(name: str | None = None) -> structlog.stdlib.BoundLogger:
    """A logger: ``log.info("event in words", key=value)``.

    In a process that never calls :func:`configure_logging` (a command, a notebook), warnings go to standard error and
    standard output stays the program's own.
    """
    if not structlog.is_configured():
        structlog.configure(
            processors=[
                structlog.contextvars.merge_contextvars,
                structlog.processors.add_log_level,
                structlog.processors.format_exc_info,
                redact,
                structlog.dev.ConsoleRenderer(colors=False),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
            logger_factory=_to_stderr,
            cache_logger_on_first_use=False,
        )
    logger = structlog.get_logger(component=name) if name else structlog.get_logger()
    return cast("structlog.stdlib.BoundLogger", logger)


def redact(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Processor: hide values whose key names a secret, and user information in URLs, at any depth."""
    for key in list(event):
        event[key] = _redacted(key, event[key], 0)
    return event


def _redacted(key: str, value: Any, depth: int) -> Any:
    if _SECRET_KEY.search(key) and value is not None:
        return _HIDDEN
    if isinstance(value, str):
        return _URL_USERINFO.sub(f"{_HIDDEN}@", value[:_TEXT_MAX_LENGTH])
    if isinstance(value, Mapping) and depth < 4:
        return {k: _redacted(str(k), v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple) and depth < 4:
        return [_redacted("", v, depth + 1) for v in value]
    return value


def _add_trace(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if (trace_id := current_trace_id()) and "trace_id" not in event:
        event["trace_id"] = trace_id
    return event
