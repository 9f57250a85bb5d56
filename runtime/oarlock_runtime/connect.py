"""From settings to a bus that is ready for use."""

from __future__ import annotations

from oarlock_runtime.bus import Bus
from oarlock_runtime.settings import RuntimeSettings


async def connect(settings: RuntimeSettings, name: str, *, ensure: bool = True) -> Bus:
    """Connect as ``name`` with what the settings say, and make streams and buckets exist.

    Args:
        settings: read in ``__main__``.
        name: who we are.
        ensure: set False for a user that may not create streams.

    Raises:
        BusUnavailable, PermanentError: see ``Bus.connect`` and ``Bus.ensure``.
    """
    bus = await Bus.connect(
        settings.nats_url,
        prefix=settings.prefix,
        name=name,
        token=settings.nats_token.get_secret_value() if settings.nats_token else None,
        user=settings.nats_user,
        password=settings.nats_password.get_secret_value() if settings.nats_password else None,
        creds=settings.nats_creds,
        timeout_seconds=settings.connect_timeout_seconds,
    )
    if ensure:
        try:
            await bus.ensure()
        except BaseException:
            await bus.close()
            raise
    return bus
