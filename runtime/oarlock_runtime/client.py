"""The NATS client, made safe against what strangers may put on the bus, and against its own slow moments."""

from __future__ import annotations

import asyncio

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

    async def _process_pong(self) -> None:
        """Take a server's answer to a ping, also to one whose asker has gone.

        In nats-py 2.16 an answer that comes after ``flush`` has given up raises in the read loop, which ends it without
        a word: the connection stays open and deaf until two more pings are missed.
        """
        if self._pongs and self._pongs[0].done():
            self._pongs[0] = asyncio.get_running_loop().create_future()
        await super()._process_pong()
