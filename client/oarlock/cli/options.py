"""Options that several verbs share, and how a verb runs against the bus."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from oarlock.sdk import AsyncClient

T = TypeVar("T")


class Format(StrEnum):
    """How a verb answers."""

    table = "table"
    json = "json"


FormatOption = Annotated[Format, typer.Option("--format", "-f", help="table for people, json for programs")]
DataOption = Annotated[
    Path | None, typer.Option("--data", help="folder of `oarlock up` [default: ~/.local/share/oarlock]")
]


def with_client(work: Callable[[AsyncClient], Awaitable[T]], data: Path | None = None) -> T:
    """Connect, do ``work``, disconnect."""
    import asyncio

    from oarlock.connection import Connection
    from oarlock.sdk import AsyncClient
    from oarlock_runtime import configure_logging

    # A person at a terminal is told by exit code and message, not by log lines.
    configure_logging("client", log_format="console", level="error")

    async def run() -> T:
        async with await AsyncClient.connect(Connection.discover(data)) as client:
            return await work(client)

    return asyncio.run(run())


def print_json(value: Any) -> None:
    """One JSON document on standard output. Models are written in JSON mode."""
    sys.stdout.write(_document(value, indent=2) + "\n")


def print_json_line(value: Any) -> None:
    """One line of JSON, at once (for streams)."""
    sys.stdout.write(_document(value) + "\n")
    sys.stdout.flush()


def _document(value: Any, indent: int | None = None) -> str:
    from oarlock.terminal import plain_json, speaks_unicode

    return plain_json(json.dumps(_plain(value), ensure_ascii=not speaks_unicode(), indent=indent))


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return value
