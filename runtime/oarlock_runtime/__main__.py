"""``python -m oarlock_runtime ensure``: make streams, buckets and the object store exist, then end.

For servers on which the services' own users may not do that (``deploy/nats``). Reads the same ``OARLOCK_`` settings as
every service, with the administrator's user.
"""

from __future__ import annotations

import asyncio
import sys

from oarlock_runtime.connect import connect
from oarlock_runtime.errors import OarlockError
from oarlock_runtime.logging import configure_logging
from oarlock_runtime.settings import RuntimeSettings


async def _ensure(settings: RuntimeSettings) -> None:
    await (await connect(settings, "ensure")).close()


def main(arguments: list[str]) -> int:
    """Returns the exit code: 0 done, 1 failed, 2 usage."""
    if arguments != ["ensure"]:
        sys.stderr.write("usage: python -m oarlock_runtime ensure\n")
        return 2
    settings = RuntimeSettings()
    configure_logging("ensure", log_format=settings.log_format, level=settings.log_level)
    try:
        asyncio.run(_ensure(settings))
    except OarlockError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
