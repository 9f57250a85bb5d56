"""``python -m oarlock_runtime ensure``, as an administrator runs it."""

from __future__ import annotations

import os
import subprocess
import sys

from oarlock_runtime import Bus, EmbeddedServer


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "oarlock_runtime", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


async def test_it_makes_what_is_missing(nats: EmbeddedServer) -> None:
    done = run("ensure", OARLOCK_NATS_URL=nats.url, OARLOCK_NATS_TOKEN=nats.token or "", OARLOCK_PREFIX="mine")
    assert (done.returncode, done.stdout) == (0, "")
    async with await Bus.connect(nats.url, token=nats.token, prefix="mine") as bus:
        assert await bus.bucket("leases").keys() == []
        assert await bus.publish(bus.subjects.submitted(), {}) == 1


def test_failure_and_usage_have_their_own_exit_codes(nats: EmbeddedServer) -> None:
    refused = run("ensure", OARLOCK_NATS_URL=nats.url, OARLOCK_NATS_TOKEN="wrong")
    assert refused.returncode == 1
    assert "OARLOCK_NATS_TOKEN" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert run().returncode == 2
