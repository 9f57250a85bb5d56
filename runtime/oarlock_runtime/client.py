"""The NATS client, made safe against what strangers may put on the bus."""

from __future__ import annotations

from nats.aio.client import Client

from oarlock_runtime.logging import get_logger

log = get_logger("client")


class SafeClient(Client):
    """A client whose connection survives headers that cannot be parsed.

    Anyone may publish ``NATS/1.0 <bytes>`` as headers. In nats-py 2.16 a status line that is not UTF-8 raises in the
    read loop, which drops the connection; the server then delivers the same message again, for ever. Here such headers
    read as none, and the message goes its way to its handler or to the dead letters.
    """

    async def _process_headers(self, headers: bytes) -> dict[str, str] | None:
        try:
            parsed: dict[str, str] | None = await super()._process_headers(headers)
        except Exception as error:
            log.warning("unreadable headers dropped", error=repr(error))
            return {}
        return parsed
