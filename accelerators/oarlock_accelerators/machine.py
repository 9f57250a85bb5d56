"""A stable name for this machine that does not give its machine id away."""

from __future__ import annotations

import hashlib
import hmac
import socket
import uuid
from pathlib import Path

_ID_FILES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_APPLICATION = b"oarlock device identity v1"


def machine_id(id_files: tuple[Path, ...] = _ID_FILES, host_name: str | None = None) -> str:
    """A UUID that is the same after a restart and differs between machines and between containers of one image.

    machine-id(5) asks programs to publish only a keyed hash of the id; the host name goes in because containers made
    from one image share the file.
    """
    secret = next((text for text in map(_read, id_files) if text), "")
    name = socket.gethostname() if host_name is None else host_name
    digest = hmac.digest(secret.encode() or b"-", _APPLICATION + b"\0" + name.encode(), hashlib.sha256)
    return str(uuid.UUID(bytes=digest[:16], version=4))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()[:256]
    except OSError:
        return ""
