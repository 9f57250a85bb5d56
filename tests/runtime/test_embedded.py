"""The embedded server: ready, locked, and gone when it should be."""

from __future__ import annotations

import os
import select
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from oarlock_runtime import Bus, EmbeddedServer, EmbeddedServerError, PermanentError


def test_two_servers_cannot_share_a_folder(nats: EmbeddedServer) -> None:
    with pytest.raises(EmbeddedServerError, match="in use by another server"):
        EmbeddedServer(nats.data_dir).start()
    assert nats.running


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = EmbeddedServer(tmp_path, port=port)
        with pytest.raises(EmbeddedServerError, match=f"port {port} on 127.0.0.1 is taken"):
            server.start()
        assert not server.running
    server.start()  # the failed start left neither a process nor a lock behind
    assert server.port == port
    server.stop()


def test_a_bad_configuration_is_quoted(tmp_path: Path) -> None:
    bad = tmp_path / "bad.conf"
    bad.write_text("jetstream { store_dir: \n")
    with pytest.raises(EmbeddedServerError, match=r"ended while starting: .*Parse error on line 2"):
        EmbeddedServer(tmp_path / "data", config=bad).start()


async def test_the_token_is_wanted_and_private(nats: EmbeddedServer) -> None:
    for name in ("token", "nats-server.conf"):
        assert stat.S_IMODE((nats.data_dir / name).stat().st_mode) == 0o600
    assert nats.token is not None
    assert nats.token not in nats.url
    with pytest.raises(PermanentError, match="refused the connection"):
        await Bus.connect(nats.url, token="wrong", timeout_seconds=5)


async def test_data_port_and_token_survive_a_kill(nats: EmbeddedServer) -> None:
    token, port = nats.token, nats.port
    async with await Bus.connect(nats.url, token=token) as bus:
        await bus.ensure()
        await bus.publish(bus.subjects.submitted("t1"), {"n": 1})
    nats.kill()
    assert not nats.running
    nats.start()
    assert (nats.port, nats.token) == (port, token)
    async with await Bus.connect(nats.url, token=token) as bus:
        async for message in bus.watch(bus.subjects.submitted("t1"), start="all"):
            assert message.json() == {"n": 1}
            break


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_it_dies_with_its_parent(tmp_path: Path) -> None:
    script = (
        "import sys, signal\n"
        "from oarlock_runtime import EmbeddedServer\n"
        "print(EmbeddedServer(sys.argv[1]).start().pid, flush=True)\n"
        "signal.pause()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        handle = os.pidfd_open(pid)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        ended, _, _ = select.select([handle], [], [], 10)
        assert ended, "the server outlived its parent"
        os.close(handle)
    finally:
        parent.kill()
        parent.stdout and parent.stdout.close()
    EmbeddedServer(tmp_path).start().stop()  # and its folder is free again
