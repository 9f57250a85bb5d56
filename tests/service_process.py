"""A service as a process of its own, to be killed and started again, and what its tests ask of the bus."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

from oarlock_runtime import Bus, EmbeddedServer


@dataclass
class ServiceProcess:
    """``python -m oarlock_<service>`` on a node; its log lies beside ``folder``."""

    service: str
    nats: EmbeddedServer
    folder: Path
    site: str
    node: str
    extra: dict[str, str] = field(default_factory=dict)
    """Environment variables besides the bus, the place and the folder."""
    process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it; it takes events as soon as it is connected."""
        environment = {
            **os.environ,
            "OARLOCK_NATS_URL": self.nats.url,
            "OARLOCK_NATS_TOKEN": self.nats.token or "",
            "OARLOCK_SITE": self.site,
            "OARLOCK_NODE": self.node,
            "OARLOCK_DATA_DIR": str(self.folder),
            "OARLOCK_LOG_FORMAT": "console",
            **self.extra,
        }
        with (self.folder.parent / f"{self.service}.log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", f"oarlock_{self.service}", env=environment, stdout=log, stderr=log
            )

    async def kill(self) -> None:
        """SIGKILL, as in a crash."""
        assert self.process is not None
        self.process.kill()
        await self.process.wait()

    async def stop(self) -> int:
        """SIGTERM; its exit code."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        return await asyncio.wait_for(self.process.wait(), 30)

    async def end(self) -> None:
        """Stop it if it still runs."""
        if self.process is not None and self.process.returncode is None:
            await self.stop()


@dataclass
class Speaker:
    """Speaks for the services around the one that is tested."""

    bus: Bus

    async def stored(self, subject: str) -> int:
        """How many messages the stream holds under a subject."""
        caught_up = asyncio.Event()
        count = 0

        async def read() -> None:
            nonlocal count
            async for _ in self.bus.watch(subject, start="all", caught_up=caught_up):
                count += 1

        reading = asyncio.create_task(read())
        await asyncio.wait_for(caught_up.wait(), 10)
        reading.cancel()
        return count
