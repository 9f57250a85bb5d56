"""The errors a handler raises to say what shall become of its message.

The hierarchy is ours rather than the NATS client's, so that services never import the client and a change of client
does not change what a handler catches. What was caught first is always chained as the cause.
"""

from __future__ import annotations


class OarlockError(Exception):
    """Base of everything this package raises on purpose.

    Args:
        message: what went wrong and where.
        fix: how the reader can mend it, as one imperative sentence; ``None`` when nobody but us can.
    """

    def __init__(self, message: str, *, fix: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.message} ({self.fix})" if self.fix else self.message


class PermanentError(OarlockError):
    """Trying again cannot help: the message goes to the dead letters and is terminated."""


class TemporaryError(OarlockError):
    """Trying again later will help: the message is given back and comes again after ``delay_seconds``."""

    def __init__(self, message: str, delay_seconds: float = 1.0, *, fix: str | None = None) -> None:
        super().__init__(message, fix=fix)
        if not 0 <= delay_seconds <= 86_400:
            raise ValueError(f"delay_seconds must lie in 0..86400, not {delay_seconds}")
        self.delay_seconds = delay_seconds


class BusUnavailable(TemporaryError):
    """The server did not answer in time; the operation may or may not have happened (message ids make it safe)."""


class StaleRevision(OarlockError):
    """A compare-and-set lost: the key has moved on since ``expected`` was read.

    Attributes:
        key: the key that was to change.
        expected: the revision the caller had read; 0 for "must not exist".
    """

    def __init__(self, key: str, expected: int) -> None:
        wanted = "no value" if expected == 0 else f"revision {expected}"
        super().__init__(f"key {key!r} has moved on: expected {wanted}", fix="read it again and retry")
        self.key = key
        self.expected = expected


class Contended(TemporaryError):
    """A compare-and-set loop lost every one of its bounded attempts."""


class InvalidName(PermanentError):
    """A name that may not become part of a subject or key (dots, blanks, wildcards, too long, empty)."""


class InvalidPayload(PermanentError):
    """A body that is not the JSON its reader expects.

    Attributes:
        faults: one entry per fault: ``{"path": JSON path, "message": text}``.
    """

    def __init__(self, message: str, faults: list[dict[str, str]] | None = None, *, fix: str | None = None) -> None:
        super().__init__(message, fix=fix)
        self.faults = faults or []


class PayloadTooLarge(PermanentError):
    """A body over the size the server or the store accepts."""


class RemoteError(OarlockError):
    """The other side of a request answered with an error.

    Attributes:
        reply: the body of the answer.
    """

    def __init__(self, message: str, reply: dict[str, object]) -> None:
        super().__init__(message)
        self.reply = reply
