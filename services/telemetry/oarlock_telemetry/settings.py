"""Settings of telemetry, read once in ``__main__``. Environment variables with the prefix ``OARLOCK_``."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from oarlock_runtime import RuntimeSettings, escape_token


class TelemetrySettings(RuntimeSettings):
    """One telemetry speaks for one machine, and for the nodes of a simulated fleet where it is given one."""

    site: str = "local"
    """The site this machine's devices belong to; the launcher on it must use the same."""

    node: str = Field(default_factory=lambda: escape_token(socket.gethostname()).replace("=", "_"))
    """This machine's name in the inventory; the launcher on it must use the same. Default: its host name."""

    runtime: Literal["process", "docker", "kubernetes", "slurm"] = "process"
    """How runs are started here, shown in the inventory."""

    data_dir: Path = Path("~/.local/share/oarlock/telemetry")
    """Where the runs being followed are written down."""

    fleet: Path | None = None
    """A fleet file, whose nodes are simulated beside this machine (or in its place, as the file says)."""

    prices: dict[str, float] = Field(default_factory=dict)
    """What an hour of a device costs, by kind, as a JSON object (`{"A100": 2.5}`): for the matcher's cost term and the
    price of jobs. A name that several kinds share (`A100`) means all of them; a fleet file's own price goes before."""

    simulation_seed: str = "oarlock"
    """Seed of what simulated runs are said to use."""

    @field_validator("prices")
    @classmethod
    def _prices(cls, prices: dict[str, float]) -> dict[str, float]:
        for kind, price in prices.items():
            if not 0 <= price < 1e9:
                raise ValueError(f"the price of {kind} must lie in 0..1e9, not {price}")
        return prices

    @property
    def folder(self) -> Path:
        """``data_dir`` with ``~`` resolved."""
        return self.data_dir.expanduser().absolute()
