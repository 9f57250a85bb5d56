"""Settings of the matcher; read once in ``__main__``."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from oarlock_runtime import RuntimeSettings


class MatcherSettings(RuntimeSettings):
    """Environment variables with the prefix ``OARLOCK_``, beside those every service has."""

    tick_seconds: float = Field(default=1.0, gt=0, description="How often time-outs and holds are looked at.")
    leader_ttl_seconds: float = Field(default=5.0, ge=1, description="How long stand-bys wait after a leader died.")
    record_decisions: Path | None = Field(
        default=None, description="File that gets every decision's input as a JSON line, for `oarlock replay`."
    )
