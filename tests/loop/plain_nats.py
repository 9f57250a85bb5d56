"""The NATS protocol in a few lines of plain Python: another program that knows nothing of Oarlock."""

from __future__ import annotations

import json
import socket
from urllib.parse import urlsplit


class PlainNats:
    """One connection. No library, only the text protocol."""

    def __init__(self, url: str, token: str) -> None:
        at = urlsplit(url)
        self._socket = socket.create_connection((at.hostname or "127.0.0.1", at.port or 4222), timeout=15)
        self._file = self._socket.makefile("rb")
        self._file.readline()
        options = {"verbose": False, "pedantic": False, "auth_token": token, "lang": "plain", "headers": True}
        self._send(b"CONNECT " + json.dumps(options).encode())
        self._send(b"PING")
        while not self._file.readline().startswith(b"PONG"):
            pass

    def _send(self, line: bytes) -> None:
        self._socket.sendall(line + b"\r\n")

    def publish(self, subject: str, body: bytes, reply: str = "") -> None:
        self._send(f"PUB {subject} {reply} {len(body)}".encode() + b"\r\n" + body)

    def subscribe(self, subject: str) -> None:
        self._send(f"SUB {subject} 1".encode())

    def receive(self) -> tuple[str, bytes]:
        """The next message: its subject and body (headers are skipped)."""
        while True:
            parts = self._file.readline().split()
            if not parts:
                raise ConnectionError("the server closed the connection")
            if parts[0] == b"PING":
                self._send(b"PONG")
            elif parts[0] == b"MSG":
                body = self._file.read(int(parts[-1]) + 2)[:-2]
                return parts[1].decode(), body
            elif parts[0] == b"HMSG":
                headers, total = int(parts[-2]), int(parts[-1])
                return parts[1].decode(), self._file.read(total + 2)[headers:-2]

    def request(self, subject: str, body: bytes) -> bytes:
        self.subscribe("_INBOX.plain")
        self.publish(subject, body, "_INBOX.plain")
        return self.receive()[1]

    def close(self) -> None:
        self._file.close()
        self._socket.close()
