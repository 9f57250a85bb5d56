"""Checks out one revision of a git repository, with nothing of the repository executed and nothing of ours sent.

Hooks and credential prompts are off, only plain transports are allowed, and time and size are bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
from pathlib import Path

from oarlock_launcher.adapters.code.archive import CodeLimits
from oarlock_launcher.ports import CannotStart

_URL = re.compile(
    r"(?:https?|ssh|git)://[^\s\0/]{1,300}/[^\s\0]{1,2000}|file:///[^\s\0]{1,2000}"
    r"|[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:[^\s\0]{1,2000}"
)
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}")
_SAFE = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.symlinks=false")
_OUTPUT_KEPT = 2000


async def clone(spec: str, folder: Path, limits: CodeLimits, *, timeout_seconds: float, allow_files: bool) -> None:
    """Check ``url`` or ``url@revision`` out into the empty ``folder``, without its history.

    Raises:
        CannotStart: the address is not one, the revision is not there, or it took too long or too much.
    """
    url, revision = split(spec)
    if url.startswith("file://") and not allow_files:
        raise CannotStart("source.git must not name a folder of the launcher's machine")
    transports = "https:http:ssh:git" + (":file" if allow_files else "")
    try:
        async with asyncio.timeout(timeout_seconds):
            await _git(folder, limits, transports, "init", "--quiet", ".")
            wanted = revision or "HEAD"
            fetch = ("fetch", "--quiet", "--depth", "1", "--no-tags", "--no-recurse-submodules", "--", url, wanted)
            await _git(folder, limits, transports, *fetch)
            await _git(folder, limits, transports, "checkout", "--quiet", "--detach", "FETCH_HEAD")
    except TimeoutError:
        raise CannotStart(f"{url} could not be fetched within {timeout_seconds:g} s") from None
    # What remains is code, not a repository.
    await asyncio.to_thread(shutil.rmtree, folder / ".git")


def split(spec: str) -> tuple[str, str | None]:
    """``url[@revision]`` as its parts; an ``@`` before the host is part of the address.

    Raises:
        CannotStart: it is no address git should be given.
    """
    head, at, tail = spec.rpartition("@")
    if at and _REVISION.fullmatch(tail) and _URL.fullmatch(head):
        url, revision = head, tail
    else:
        url, revision = spec, None
    if not _URL.fullmatch(url):
        raise CannotStart(f"source.git {spec[:200]!r} is no address of a git repository")
    return url, revision


async def _git(folder: Path, limits: CodeLimits, transports: str, *arguments: str) -> None:
    """Run git on ``folder``; a file it writes may not grow over the limit of the whole code."""
    blocks = limits.total_bytes // 512
    environment = {
        "PATH": os.defpath,
        "HOME": str(folder),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/bin/true",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oStrictHostKeyChecking=accept-new",
        "GIT_ALLOW_PROTOCOL": transports,
        "GIT_LFS_SKIP_SMUDGE": "1",
    }
    try:
        process = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", f'ulimit -f {blocks} && exec git "$@"', "git", *_SAFE, *arguments),
            cwd=folder,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise CannotStart(f"git cannot be run on this node: {error}") from error
    try:
        _, output = await process.communicate()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise
    if process.returncode != 0:
        text = output.decode(errors="replace").strip()[-_OUTPUT_KEPT:]
        raise CannotStart(f"git {arguments[0]} failed: {text or f'exit code {process.returncode}'}")
