"""Every subject on the bus, made by functions that refuse ids which would change its shape.

A task id comes from outside. ``tasks.placed.{site}.{task_id}`` with the id ``x.>`` would be another subject, so a
token is checked each time it enters a subject. Wildcards are spelt with the :data:`ANY` object, which no text can be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from oarlock_runtime.errors import InvalidName

TOKEN_MAX_LENGTH: Final = 128
_TOKEN = re.compile(r"[A-Za-z0-9_=-]{1,128}")
_SAFE = re.compile(r"[A-Za-z0-9_-]")
_PREFIX = re.compile(r"[A-Za-z0-9_-]{1,32}")


class Any_(Enum):
    """Type of :data:`ANY`."""

    ANY = "*"


ANY: Final = Any_.ANY
"""Stands for any one token in a subscription."""

Token = str | Any_


def token(text: Token, what: str = "name") -> str:
    """Return ``text`` if it may stand between two dots of a subject.

    Raises:
        InvalidName: it is empty, over 128 characters, or holds anything but letters, digits, ``_``, ``-``, ``=``.
    """
    if isinstance(text, Any_):
        return text.value
    if not isinstance(text, str) or not _TOKEN.fullmatch(text):
        raise InvalidName(
            f"{what} {str(text)[:80]!r} cannot be part of a subject",
            fix=f"use 1 to {TOKEN_MAX_LENGTH} letters, digits, '_' or '-', or escape_token()",
        )
    return text


def escape_token(text: str) -> str:
    """Write any text as one token: what is not a letter, digit, ``_`` or ``-`` becomes ``=XX`` per UTF-8 byte.

    For names we do not choose, such as host names with dots. :func:`unescape_token` is the inverse.
    """
    escaped = "".join(c if _SAFE.fullmatch(c) else "".join(f"={b:02X}" for b in c.encode()) for c in text)
    return token(escaped, "escaped name")


def unescape_token(text: str) -> str:
    """Inverse of :func:`escape_token`.

    Raises:
        InvalidName: an escape is broken.
    """
    try:
        return re.sub(
            r"(?:=[0-9A-F]{2})+", lambda m: bytes.fromhex(m[0].replace("=", "")).decode(), token(text, "escaped name")
        )
    except UnicodeDecodeError as error:
        raise InvalidName(f"escaped name {text[:80]!r} is not UTF-8") from error


@dataclass(frozen=True)
class Subjects:
    """The subjects under one prefix. Several Oarlocks share a server by using different prefixes."""

    prefix: str = "oarlock"

    def __post_init__(self) -> None:
        if not _PREFIX.fullmatch(self.prefix):
            raise InvalidName(
                f"prefix {self.prefix[:80]!r} cannot start a subject", fix="use 1 to 32 letters, digits, '_' or '-'"
            )

    def submit(self) -> str:
        """Request/reply: TaskSubmitted in; the id or every fault out."""
        return f"{self.prefix}.submit"

    def submitted(self, task_id: Token | None = None) -> str:
        """A task asked for. Others may publish it without the id in the subject."""
        return f"{self.prefix}.tasks.submitted" + ("" if task_id is None else f".{token(task_id, 'task id')}")

    def all_submitted(self) -> list[str]:
        """Filters that match both forms of :meth:`submitted`."""
        return [self.submitted(), self.submitted(ANY)]

    def profiled(self, task_id: Token = ANY) -> str:
        return self._task("profiled", task_id)

    def queued(self, task_id: Token = ANY) -> str:
        return self._task("queued", task_id)

    def rejected(self, task_id: Token = ANY) -> str:
        return self._task("rejected", task_id)

    def placed(self, site: Token = ANY, task_id: Token = ANY) -> str:
        """A placement, addressed to the launcher of one site."""
        return f"{self.prefix}.tasks.placed.{token(site, 'site')}.{token(task_id, 'task id')}"

    def launched(self, task_id: Token = ANY) -> str:
        return self._task("launched", task_id)

    def finished(self, task_id: Token = ANY) -> str:
        return self._task("finished", task_id)

    def cancel(self, task_id: Token = ANY) -> str:
        return self._task("cancel", task_id)

    def of_task(self, task_id: str) -> list[str]:
        """Filters for everything that happens to one task, whatever its site."""
        named = (self.submitted, self.profiled, self.queued, self.rejected, self.launched, self.finished, self.cancel)
        return [*(subject(task_id) for subject in named), self.placed(task_id=task_id)]

    def all_tasks(self) -> str:
        """Everything that happens to tasks, in order."""
        return f"{self.prefix}.tasks.>"

    def completed(self, task_id: Token = ANY) -> str:
        """A run record: predicted and measured side by side."""
        return f"{self.prefix}.runs.completed.{token(task_id, 'task id')}"

    def estimator_recalibrated(self) -> str:
        return f"{self.prefix}.estimator.recalibrated"

    def policy_updated(self) -> str:
        return f"{self.prefix}.policy.updated"

    def metrics(self, site: Token = ANY, node: Token = ANY) -> str:
        """Device samples; core NATS, never stored."""
        return f"{self.prefix}.metrics.{token(site, 'site')}.{token(node, 'node')}"

    def logs(self, task_id: Token = ANY) -> str:
        return f"{self.prefix}.logs.{token(task_id, 'task id')}"

    def dead(self, service: Token = ANY) -> str:
        """Messages the named service could not handle."""
        return f"{self.prefix}.dead.{token(service, 'service')}"

    def event_type(self, subject: str) -> str:
        """The CloudEvents type of a subject: its fixed part, without ids (``oarlock.tasks.placed``)."""
        parts = subject.split(".")
        fixed = 2 if len(parts) > 1 and parts[1] in {"metrics", "logs", "dead", "submit"} else 3
        return ".".join(parts[:fixed])

    def _task(self, event: str, task_id: Token) -> str:
        return f"{self.prefix}.tasks.{event}.{token(task_id, 'task id')}"
