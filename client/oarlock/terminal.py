"""What others wrote, made harmless for the terminal that shows it.

Names, messages and output come from strangers. A terminal obeys control sequences: they move the cursor, rewrite what
stands above, set the window's title or the clipboard. Nothing of that reaches a terminal through us.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters (C0 without tab and line feed, DEL, C1), what turns the direction of writing, lone surrogates."""

PIPE_WIDTH = 160
"""Columns of a table where the output is no terminal."""


def plain(text: str) -> str:
    """``text`` without colours, and with every other control character as its escape (``\\x1b``)."""
    return text if text.isprintable() else _COMMANDS.sub(_escape, _COLOURS.sub("", text))


def plain_json(document: str) -> str:
    """The same for a JSON document, which stays the same document: in JSON such characters stand in strings only."""
    return _COMMANDS.sub(lambda match: f"\\u{ord(match[0]):04x}", document)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class Terminal(Console):
    """A console that takes strings as they are: no markup, no emoji codes, no control characters."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, soft_wrap=False, markup=False, emoji=False)
        if not self.is_terminal:
            self.width = PIPE_WIDTH

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """See :class:`rich.console.Console`."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(plain(segment.text), segment.style)


def forgive_encodings() -> None:
    """Where the terminal's encoding lacks a character, show a question mark rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        # Not there where a program has put an object of its own in place of the stream.
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")


def speaks_unicode() -> bool:
    """Whether standard output can carry any character."""
    return (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") in {"utf8", "utf16", "utf32"}
