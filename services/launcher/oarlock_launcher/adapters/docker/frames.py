"""Splits a Docker log stream into lines.

The engine sends frames of eight bytes of header (stream, three zeros, length big-endian) and a payload; a line may
spread over frames and a frame may hold many lines. https://docs.docker.com/reference/api/engine/ (attach).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from oarlock_launcher.core.logs import Line

_HEADER = struct.Struct(">BxxxL")
_STDERR = 2


class FrameLines:
    """Feed it what comes from the engine; it gives the lines that are complete."""

    def __init__(self, line_bytes: int) -> None:
        self._line_bytes = line_bytes
        self._buffer = b""
        self._partial = {1: b"", _STDERR: b""}
        self._number = 0

    def feed(self, data: bytes) -> Iterator[Line]:
        """Lines completed by ``data``."""
        self._buffer += data
        while len(self._buffer) >= _HEADER.size:
            stream, length = _HEADER.unpack_from(self._buffer)
            if len(self._buffer) < _HEADER.size + length:
                return
            payload = self._buffer[_HEADER.size : _HEADER.size + length]
            self._buffer = self._buffer[_HEADER.size + length :]
            yield from self._lines(_STDERR if stream == _STDERR else 1, payload)

    def end(self) -> Iterator[Line]:
        """What has no line end."""
        for stream, rest in self._partial.items():
            if rest:
                yield self._line(stream, rest)
                self._partial[stream] = b""

    def _lines(self, stream: int, payload: bytes) -> Iterator[Line]:
        text = (self._partial[stream] + payload).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = text.split(b"\n")
        for line in lines:
            yield self._line(stream, line)
        while len(rest) > self._line_bytes:
            yield self._line(stream, rest[: self._line_bytes])
            rest = rest[self._line_bytes :]
        self._partial[stream] = rest

    def _line(self, stream: int, line: bytes) -> Line:
        self._number += 1
        text = line[: self._line_bytes].decode("utf-8", errors="replace")
        return Line("stderr" if stream == _STDERR else "stdout", text, self._number)
