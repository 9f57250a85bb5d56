"""How the launchers of several nodes run one task together."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from oarlock_schemas.base import Message, Token
from oarlock_schemas.events import Outcome


class GangMember(Message):
    """One node's part of a run: it is ready to begin, and later it has ended."""

    phase: Literal["ready", "ended"]
    device_uids: list[Token] = Field(default_factory=list)
    address: str | None = Field(None, max_length=255, description="Where the other nodes reach this one.")
    ports: list[int] = Field(default_factory=list, description="One free port for each of its devices.")
    master_port: int | None = Field(None, description="A free port for the first member to listen on.")
    asked_at: str | None = Field(
        None, description="Its node reports no devices, and another asks whether its launcher is there; null: it is."
    )
    outcome: Outcome | Literal["stopped"] | None = Field(
        None, description="`stopped`: it was ended, or never begun, because another member had failed."
    )
    message: str | None = None
    exit_code: int | None = None
    peak_process_bytes: int | None = None
    started_at: str | None = None
    finished_at: str | None = None
    log_tail: list[str] = Field(default_factory=list, max_length=50)


class GangBook(Message):
    """A run over several nodes (bucket `gangs`, key `{task_id}.{attempt}`), written by their launchers only."""

    task_id: Token
    attempt: int = Field(ge=1)
    nodes: list[Token] = Field(min_length=2, description="In the order of their ranks.")
    members: dict[Token, GangMember] = Field(default_factory=dict, description="By node; absent: not heard of yet.")
    closed_by: Token | None = Field(None, description="The node whose launcher tells the end, once all have ended.")
    told: bool = Field(False, description="`tasks.finished` has been published.")
