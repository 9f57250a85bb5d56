"""Settings every service shares. Read once, in a service's ``__main__``, then passed on as values."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class RuntimeSettings(BaseSettings):
    """Environment variables with the prefix ``OARLOCK_``. A service's own settings inherit from this."""

    model_config = SettingsConfigDict(env_prefix="OARLOCK_", extra="ignore", populate_by_name=True)

    nats_url: str = "nats://127.0.0.1:4222"
    """Server, or several separated by commas. Default: the well-known port on this machine."""

    prefix: str = "oarlock"
    """First token of every subject and of stream and bucket names. Change it to share a server."""

    nats_user: str | None = None
    """User of this service in the server's configuration; see ``deploy/nats``."""

    nats_password: SecretStr | None = None
    """Password of ``nats_user``."""

    nats_token: SecretStr | None = None
    """Token of an embedded server; used instead of a user."""

    nats_creds: Path | None = None
    """Credentials file (JWT and seed) of a server with decentralised authentication."""

    http_host: str = "127.0.0.1"
    """Address for /healthz, /readyz and /metrics. Default: only this machine; containers set 0.0.0.0."""

    http_port: int | None = Field(default=None, ge=0, le=65535)
    """Port for health and metrics; 0 takes a free one; None, the default, serves none."""

    log_format: Literal["json", "console"] = "json"
    """``json`` for collectors, ``console`` for people."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe level that is written."""

    otlp_endpoint: str | None = Field(default=None, validation_alias="OTEL_EXPORTER_OTLP_ENDPOINT")
    """Base URL of an OTLP/HTTP collector. None, the default, exports no traces and costs next to nothing."""

    connect_timeout_seconds: float = Field(default=60.0, gt=0)
    """How long the first connection may take before the service gives up with exit code 1. A minute outlasts the
    start of a server that is started beside the service."""

    stop_grace_seconds: float = Field(default=20.0, ge=0)
    """How long handlers may go on after SIGTERM. Below the 30 s after which Kubernetes kills."""
