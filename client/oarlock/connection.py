"""Where the bus is: the environment, or what a running ``oarlock up`` left in its data folder."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oarlock_runtime.settings import RuntimeSettings

STATE_FILE = "up.json"


def data_folder() -> Path:
    """The folder of a lasting ``oarlock up``: ``OARLOCK_DATA_DIR``, else ``$XDG_DATA_HOME/oarlock``."""
    if folder := os.environ.get("OARLOCK_DATA_DIR"):
        return Path(folder)
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "oarlock"


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach the bus, and the gateway where one is known."""

    url: str
    prefix: str = "oarlock"
    token: str | None = None
    user: str | None = None
    password: str | None = None
    creds: Path | None = None
    gateway_url: str | None = None
    gateway_token: str | None = None

    @classmethod
    def discover(cls, data: Path | None = None) -> Connection:
        """From the environment when ``OARLOCK_NATS_URL`` is set; else from a running ``oarlock up``; else defaults."""
        settings = RuntimeSettings()
        state = None if os.environ.get("OARLOCK_NATS_URL") else read_state(data or data_folder())
        if state:
            return cls(
                url=state["nats_url"],
                prefix=state.get("prefix", "oarlock"),
                token=state.get("nats_token"),
                gateway_url=state.get("http_url"),
                gateway_token=state.get("http_token"),
            )
        return cls(
            url=settings.nats_url,
            prefix=settings.prefix,
            token=settings.nats_token.get_secret_value() if settings.nats_token else None,
            user=settings.nats_user,
            password=settings.nats_password.get_secret_value() if settings.nats_password else None,
            creds=settings.nats_creds,
        )


def read_state(folder: Path) -> dict[str, Any] | None:
    """What a running ``oarlock up`` says of itself, or None when none runs there."""
    try:
        state = json.loads((folder / STATE_FILE).read_text(encoding="utf-8"))
        os.kill(int(state["pid"]), 0)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return state if isinstance(state, dict) else None
