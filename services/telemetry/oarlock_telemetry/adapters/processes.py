"""The processes of this machine, from /proc (Linux)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

_PROC = Path("/proc")
_KIB = 1024


class ProcessTable:
    """See ``ports.Processes``."""

    def parents(self) -> dict[int, int]:
        """One pass over /proc; processes that end meanwhile are left out."""
        found = {}
        for name in os.listdir(_PROC):  # noqa: PTH208  (a Path per process, once a second, would be waste)
            if name.isdigit():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    found[int(name)] = _parent(int(name))
        return found

    def watcher(self, pid: int) -> int | None:
        """The launcher's shim, or the container engine's: both inherit whatever leaves the run's own tree.

        Known by its command line, so that a parent that stands over more than this run is never taken for one.
        """
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = _parent(pid)
            command = (_PROC / str(parent) / "cmdline").read_bytes()[:4096]
            if parent > 1 and b"shim" in command:
                return parent
        return None

    def container_pid(self, container_id: str, pids: Sequence[int]) -> int | None:
        """By the control group's path, which every engine names after the container."""
        for pid in sorted(pids):
            with contextlib.suppress(OSError):
                if container_id in (_PROC / str(pid) / "cgroup").read_text(errors="replace"):
                    return pid
        return None

    def memory_bytes(self, pids: Sequence[int]) -> int | None:
        """Proportional set sizes summed (one process: its resident size); never less than one's own high-water mark."""
        peaks, now = [], []
        for pid in pids:
            with contextlib.suppress(OSError, ValueError):
                status = _status(pid)
                if "VmHWM" not in status:
                    continue
                peaks.append(status["VmHWM"])
                now.append(status["VmRSS"] if len(pids) == 1 else _proportional(pid, status["VmRSS"]))
        return max(sum(now), *peaks) if peaks else None


def _parent(pid: int) -> int:
    text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    return int(text.rpartition(")")[2].split()[1])


def _status(pid: int) -> dict[str, int]:
    """The sizes of /proc/PID/status, in bytes; none of them for a kernel thread or a zombie."""
    found = {}
    for line in (_PROC / str(pid) / "status").read_text(errors="replace").splitlines():
        name, _, rest = line.partition(":")
        if name.startswith("Vm"):
            found[name] = int(rest.split()[0]) * _KIB
    return found


def _proportional(pid: int, resident: int) -> int:
    """PSS, where the kernel lets us read it; else the resident size, which counts shared pages in full."""
    with contextlib.suppress(OSError, ValueError):
        for line in (_PROC / str(pid) / "smaps_rollup").read_text(errors="replace").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * _KIB
    return resident
