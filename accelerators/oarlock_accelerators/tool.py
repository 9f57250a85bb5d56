"""Runs a vendor's command-line tool: bounded in time and output, in its own process group, without a shell."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence

TIMEOUT_SECONDS = 10.0
OUTPUT_LIMIT_BYTES = 4 * 1024**2


class ToolError(Exception):
    """A vendor tool gave no usable answer; the message names the tool and says why."""


class ToolMissing(ToolError):
    """The tool is not installed on this machine."""


Run = Callable[[Sequence[str]], str]
"""Runs a command line and returns what it printed; raises ``ToolError``."""


def run_tool(
    command: Sequence[str],
    *,
    timeout_seconds: float = TIMEOUT_SECONDS,
    output_limit_bytes: int = OUTPUT_LIMIT_BYTES,
) -> str:
    """The standard output of ``command`` as text. Undecodable bytes become replacement characters.

    Raises:
        ToolMissing: there is no such program.
        ToolError: it failed, took longer than ``timeout_seconds`` or printed more than ``output_limit_bytes``.
    """
    program = shutil.which(command[0])
    if program is None:
        raise ToolMissing(f"{command[0]} is not on the PATH")
    try:
        child = subprocess.Popen(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C", "LANG": "C"},
            start_new_session=True,
        )
    except OSError as error:
        raise ToolError(f"{command[0]} cannot be started: {error.strerror}") from error
    try:
        output = _collect(child, command[0], time.monotonic() + timeout_seconds, output_limit_bytes)
    finally:
        _end(child)
    if child.returncode != 0:
        raise ToolError(f"{' '.join(command)} ended with status {child.returncode}")
    return output.decode("utf-8", errors="replace")


def _collect(child: subprocess.Popen[bytes], name: str, deadline: float, limit: int) -> bytes:
    if child.stdout is None:
        raise ToolError(f"{name} has no output")
    chunks = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not selector.select(left):
                raise ToolError(f"{name} did not answer in time")
            chunk = os.read(child.stdout.fileno(), 65536)
            if not chunk:
                break
            chunks += chunk
            if len(chunks) > limit:
                raise ToolError(f"{name} printed more than {limit} bytes")
    try:
        child.wait(timeout=max(0.05, deadline - time.monotonic()))
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"{name} did not end in time") from error
    return bytes(chunks)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the group (a tool may leave helpers) and reap the child."""
    if child.returncode is None:  # not reaped yet, so the group id cannot have been taken by another
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    if child.stdout is not None:
        child.stdout.close()
