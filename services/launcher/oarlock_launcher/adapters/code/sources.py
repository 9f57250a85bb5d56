"""Puts a task's code into a folder, wherever it comes from."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from oarlock_launcher.adapters.code.archive import CodeLimits, copy_tree, inside, unpack
from oarlock_launcher.adapters.code.git import clone
from oarlock_launcher.ports import CannotStart
from oarlock_schemas import Source, is_notebook, notebook_script

_GIT_SECONDS = 300.0
_NOTEBOOK_BYTES = 64 * 1024 * 1024


class CodeSources:
    """The four places code comes from.

    Args:
        bundle: fetches a bundle by its key; raises ``CannotStart`` or ``RuntimeUnavailable``.
        allowed_paths: folders under which ``source.path`` (and a git ``file://`` address) may lie.
        limits: how large the code may be.
    """

    def __init__(
        self,
        bundle: Callable[[str], Awaitable[bytes]],
        *,
        allowed_paths: Sequence[Path] = (),
        limits: CodeLimits | None = None,
        git_seconds: float = _GIT_SECONDS,
    ) -> None:
        self._bundle = bundle
        self._allowed = [path.resolve() for path in allowed_paths]
        self._limits = limits or CodeLimits()
        self._git_seconds = git_seconds

    async def fetch(self, source: Source, folder: Path) -> None:
        """Put the code into the empty ``folder``; see ``ports.Code``."""
        if source.inline is not None:
            await asyncio.to_thread(_write, inside(folder, source.entry), source.inline)
        elif source.bundle is not None:
            data = await self._bundle(source.bundle)
            await asyncio.to_thread(unpack, data, folder, self._limits)
        elif source.path is not None:
            await asyncio.to_thread(copy_tree, self._allowed_path(source.path), folder, self._limits)
        elif source.git is not None:
            local = source.git.partition("file://")[2]
            allow = bool(local) and self._is_allowed(Path(local.partition("@")[0]))
            await clone(source.git, folder, self._limits, timeout_seconds=self._git_seconds, allow_files=allow)
        else:
            return
        if source.path is None and not (folder / source.entry).is_file():
            raise CannotStart(f"the code holds no {source.entry!r}, which the task names as its entry")
        await asyncio.to_thread(_translate, folder, _entries(source))

    def _allowed_path(self, text: str) -> Path:
        path = Path(text)
        if not self._is_allowed(path):
            raise CannotStart(
                f"source.path {text[:200]!r} lies outside the folders this launcher may read: list its folder in "
                "OARLOCK_ALLOWED_PATHS, or submit the code as a bundle"
            )
        return path

    def _is_allowed(self, path: Path) -> bool:
        resolved = path.resolve()
        return path.is_absolute() and any(resolved.is_relative_to(root) for root in self._allowed)


def started_name(entry: str) -> str:
    """What is given to Python in place of ``entry``: a notebook's script lies beside it."""
    return f"{entry}.py" if is_notebook(entry) else entry


def entry_of(source: Source, folder: Path) -> str | None:
    """The script to run, relative to ``folder``; None where no code was given.

    ``source.path`` may name the script itself, whatever ``entry`` says.

    Raises:
        CannotStart: it is not there.
    """
    if source.empty:
        return None
    for name in _entries(source):
        if (folder / name).is_file():
            return started_name(name)
    raise CannotStart(f"the code holds no {source.entry!r}, which the task names as its entry")


def _entries(source: Source) -> list[str]:
    return [source.entry, *([Path(source.path).name] if source.path is not None else [])]


def _translate(folder: Path, entries: Iterable[str]) -> None:
    """Write a notebook's script beside it.

    Raises:
        CannotStart: the notebook is too large.
    """
    for entry in filter(is_notebook, entries):
        notebook = folder / entry
        if notebook.is_file():
            if notebook.stat().st_size > _NOTEBOOK_BYTES:
                raise CannotStart(f"{entry!r} has more than {_NOTEBOOK_BYTES} bytes: clear its outputs")
            (folder / started_name(entry)).write_bytes(notebook_script(notebook.read_bytes()))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
