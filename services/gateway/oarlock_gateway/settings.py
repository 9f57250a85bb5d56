"""Settings of the gateway; read once in ``__main__``."""

from __future__ import annotations

from pydantic import Field, SecretStr

from oarlock_runtime import RuntimeSettings


class GatewaySettings(RuntimeSettings):
    """Environment variables with the prefix ``OARLOCK_``, beside those every service has."""

    gateway_token: SecretStr | None = Field(
        default=None,
        description="What a client must show (`Authorization: Bearer …`, or the page's login). Without one the "
        "gateway refuses to listen beyond this machine.",
    )
    max_body_bytes: int = Field(default=1_000_000, gt=0, description="Largest body of a submission.")
    max_streams: int = Field(default=200, gt=0, description="Event streams open at once, over all clients.")
