"""What the control groups of this process allow it: the limits a container or a Slurm job was given.

Reads both layouts of the Linux kernel: version 2 (one tree) and version 1 (a tree per controller). A group's limit
holds for all groups below it, so the smallest on the way to the root counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_NO_LIMIT = 1 << 60
"""Version 1 writes "unlimited" as the largest multiple of a page."""


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """The tightest memory limit that applies, and what the group that carries it uses now."""

    limit_bytes: int
    used_bytes: int | None
    """Without the page cache that the kernel can drop at once; ``None`` when it cannot be read."""


def memory_group(
    membership: Path = Path("/proc/self/cgroup"), mounted_at: Path = Path("/sys/fs/cgroup")
) -> MemoryGroup | None:
    """The memory group that limits this process, or ``None`` when nothing does."""
    found: MemoryGroup | None = None
    for group, limit_name, usage_name, cache_key in _groups(membership, mounted_at):
        limit = _number(group / limit_name)
        if limit is None or limit >= _NO_LIMIT or (found is not None and limit >= found.limit_bytes):
            continue
        usage = _number(group / usage_name)
        cache = _stat(group / "memory.stat", cache_key) or 0
        found = MemoryGroup(limit, None if usage is None else max(0, usage - cache))
    return found


def _groups(membership: Path, mounted_at: Path) -> Iterator[tuple[Path, str, str, str]]:
    for line in _text(membership).splitlines():
        hierarchy, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if hierarchy == "0" and not controllers:
            root, names = mounted_at, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            root = mounted_at / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        for part in _up(root, group):
            yield part, *names


def _up(root: Path, group: str) -> Iterator[Path]:
    # Inside a container the path may name the host's tree while the mount shows only the container's part: the
    # mount's root is then the container's own group, so it is read too.
    parts = [p for p in group.split("/") if p not in ("", "..", ".")]
    for depth in range(len(parts), -1, -1):
        yield root.joinpath(*parts[:depth])


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _stat(path: Path, key: str) -> int | None:
    for line in _text(path).splitlines():
        name, _, value = line.partition(" ")
        if name == key and value.strip().isdigit():
            return int(value)
    return None
