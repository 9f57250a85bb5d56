"""How dead letters look."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from oarlock_runtime import DeadLetter


def as_dict(letter: DeadLetter, *, whole: bool = False) -> dict[str, Any]:
    """As plain values; ``whole`` adds the body (as JSON where it is some) and the headers."""
    view: dict[str, Any] = {"number": letter.sequence, **asdict(letter.reason), "retried_at": letter.retried_at}
    if not whole:
        view.pop("traceback")
        return view
    text = letter.data.decode("utf-8", "backslashreplace")
    try:
        view["body"] = json.loads(text)
    except ValueError:
        view["body"] = text
    view["headers"] = dict(letter.headers)
    return view


def table(letters: Iterable[DeadLetter]) -> Table:
    """One row a letter."""
    made = Table(
        "number", "service", "subject", "kind", "error", "retried", box=None, pad_edge=False, header_style="dim"
    )
    for letter in letters:
        r = letter.reason
        made.add_row(str(letter.sequence), r.service, r.subject, r.kind, Text(r.message), letter.retried_at or "")
    return made
