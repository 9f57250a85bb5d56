"""How messages are read and written.

What we publish is strict: a model forbids fields it does not name. What others publish is read tolerantly by
:func:`read`: unknown fields are dropped and reported, defaults are filled, and every remaining fault is listed with
its JSON path.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

Token = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}$")]
"""A name that can stand in a NATS subject and in a key: letters, digits, ``_`` and ``-``."""

MAX_MESSAGE_BYTES = 1_000_000
"""Largest message body that is read (NATS's default ``max_payload`` is 1 MiB)."""


class Message(BaseModel):
    """Base of every event and state: frozen, and strict about fields it does not name."""

    # built when first used: a command that needs one model should not pay for all
    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, ser_json_inf_nan="null", defer_build=True
    )


M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a message: ``path`` in JSONPath notation (``$.task.batch_size_per_gpu``) and a sentence."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class InvalidMessage(ValueError):
    """A message that cannot be read; ``faults`` lists every reason with its JSON path."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = faults
        super().__init__("; ".join(map(str, faults)))


def json_path(location: tuple[int | str, ...]) -> str:
    """``("task", "gpus", 0)`` as ``$.task.gpus[0]``."""
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)


def read(model: type[M], data: bytes | str | Mapping[str, Any]) -> tuple[M, list[str]]:
    """Read ``data`` as ``model`` and return it with the JSON paths of the fields that were ignored.

    Raises:
        InvalidMessage: ``data`` is too large, not a JSON object, or does not fit ``model``.
    """
    document = _document(data)
    ignored: list[str] = []
    while True:
        try:
            return model.model_validate(document), ignored
        except ValidationError as error:
            errors = error.errors(include_url=False, include_context=False, include_input=False)
            extra = [e["loc"] for e in errors if e["type"] == "extra_forbidden"]
            removed = [loc for loc in extra if _remove(document, loc)]
            if not removed:
                faults = [Fault(json_path(e["loc"]), e["msg"]) for e in errors if e["type"] != "extra_forbidden"]
                raise InvalidMessage(faults or [Fault("$", str(error))]) from None
            ignored += [json_path(loc) for loc in removed]


def _document(data: bytes | str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(data, Mapping):
        return deepcopy(dict(data))
    if len(data) > MAX_MESSAGE_BYTES:
        raise InvalidMessage([Fault("$", f"is {len(data)} bytes; at most {MAX_MESSAGE_BYTES} are read")])
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidMessage([Fault("$", f"is not JSON: {error}")]) from None
    if not isinstance(document, dict):
        raise InvalidMessage([Fault("$", f"must be a JSON object, not {type(document).__name__}")])
    return document


def _remove(document: Any, location: tuple[int | str, ...]) -> bool:
    """Delete the field at ``location``; tagged-union steps that are no keys of the document are passed over."""
    for part in location[:-1]:
        try:
            document = document[part]
        except (KeyError, IndexError, TypeError):
            continue
    if isinstance(document, dict) and location[-1] in document:
        del document[location[-1]]
        return True
    return False
