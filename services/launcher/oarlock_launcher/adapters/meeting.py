"""Where other nodes reach this one: its address, and ports that are free now."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

_BUS_PORT = 4222


@dataclass(frozen=True, slots=True)
class Meeting:
    """See ``ports.Meeting``."""

    address: str

    def free_ports(self, count: int) -> tuple[int, ...]:
        """Held together while they are chosen, so that they differ; another program may still take one later."""
        with contextlib.ExitStack() as stack:
            sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
            for each in sockets:
                each.bind(("", 0))
            return tuple(int(each.getsockname()[1]) for each in sockets)


def own_address(bus_url: str) -> str:
    """The address from which this machine reaches the first server of ``bus_url``; loopback where it cannot be told."""
    first = bus_url.split(",", maxsplit=1)[0].strip()
    parts = urlsplit(first if "://" in first else f"nats://{first}")
    try:
        found = socket.getaddrinfo(parts.hostname or "localhost", parts.port or _BUS_PORT, type=socket.SOCK_DGRAM)
        for family, kind, protocol, _, where in found:
            with contextlib.suppress(OSError), socket.socket(family, kind, protocol) as probe:
                # A datagram socket only looks up the route; nothing is sent.
                probe.connect(where)
                return str(probe.getsockname()[0])
    except (OSError, ValueError):
        pass
    return "127.0.0.1"
