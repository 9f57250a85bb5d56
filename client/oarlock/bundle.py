"""From a path to a task: reads task files, and packs a script with what it imports from beside it."""

from __future__ import annotations

import ast
import io
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oarlock_schemas import Fault, InvalidMessage, Source, TaskSubmitted, read, read_yaml

MAX_BUNDLE_BYTES = 64 * 1024 * 1024
MAX_FILES = 10_000
_SKIPPED = frozenset({".git", ".hg", ".svn", ".venv", "venv", "__pycache__", "node_modules", ".ipynb_checkpoints"})


class BundleError(ValueError):
    """The code cannot be packed; the message says what, where and how to mend it."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A task ready to submit, and the archive its ``source.bundle`` names (None: the code travels inline)."""

    task: TaskSubmitted
    archive: bytes | None = None
    ignored: tuple[str, ...] = ()


def load(path: Path, changes: Mapping[str, Any] | None = None) -> Packed:
    """Read a task file (``.yaml``, ``.json``) or a script (``.py``, ``.ipynb``, a folder, ``.zip``, ``.tar``).

    ``changes`` are merged over what the file says (nested mappings are merged, None is skipped).

    Raises:
        BundleError: the path cannot be read or packed.
        InvalidMessage: the task does not fit the schema; holds every fault with its path.
    """
    if not path.exists():
        raise BundleError(f"{path} does not exist")
    if path.suffix in {".yaml", ".yml", ".json"}:
        document = _document(path)
    else:
        document = {"name": path.stem, "source": {"path": str(path)}}
    _merge(document, changes or {})
    source = document.get("source")
    archive = None
    if isinstance(source, dict) and isinstance(source.get("path"), str):
        code = Path(source["path"])
        if not code.is_absolute() and path.suffix in {".yaml", ".yml", ".json"}:
            code = path.parent / code
        source, archive = pack(code, source.get("entry"))
        document["source"] = source.model_dump(exclude_defaults=True)
    task, ignored = read(TaskSubmitted, document)
    return Packed(task, archive, tuple(ignored))


def pack(path: Path, entry: str | None = None) -> tuple[Source, bytes | None]:
    """The source of a script, a folder or an archive. A script that imports nothing from beside it travels inline.

    Raises:
        BundleError: nothing there, no entry point, or too large.
    """
    if path.is_dir():
        name = entry or _only_entry(path)
        return Source(bundle="pending", entry=name), _zip(path)
    if not path.is_file():
        raise BundleError(f"{path} does not exist; give a script, a folder, a notebook or an archive")
    if path.suffix in {".zip", ".tar", ".gz", ".tgz", ".xz", ".bz2"}:
        if path.stat().st_size > MAX_BUNDLE_BYTES:
            raise BundleError(f"{path} has {path.stat().st_size} bytes; at most {MAX_BUNDLE_BYTES} are taken")
        return Source(bundle="pending", entry=entry or "main.py"), path.read_bytes()
    text = _text(path)
    if text is not None and not _needs_neighbours(path, text):
        return Source(inline=text, entry=entry or path.name), None
    return Source(bundle="pending", entry=entry or path.name), _zip(path.parent)


def _document(path: Path) -> dict[str, Any]:
    try:
        return read_yaml(path.read_bytes())
    except InvalidMessage as error:
        raise InvalidMessage([Fault(f.path, f"{path}: {f.message}") for f in error.faults]) from None


def _merge(document: dict[str, Any], changes: Mapping[str, Any]) -> None:
    for key, value in changes.items():
        if isinstance(value, Mapping):
            inner = document.setdefault(key, {})
            if isinstance(inner, dict):
                _merge(inner, value)
                if not inner:
                    del document[key]
        elif value is not None:
            document[key] = value


def _text(path: Path) -> str | None:
    """The file's text when it is small enough to travel in the message itself."""
    if path.stat().st_size > 512 * 1024 // 2:
        return None
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return None


def _needs_neighbours(path: Path, text: str) -> bool:
    """Whether the script imports a module, or names a file, that lies beside it."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # perhaps syntax newer than this Python: what it imports cannot be told
        return any(p.suffix == ".py" for p in path.parent.iterdir() if p != path)
    beside = {p.name for p in path.parent.iterdir() if p != path}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                return True
            names = [(node.module or "").split(".")[0]]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and 0 < len(node.value) < 256:
            if node.value.split("/")[0] in beside and "." in node.value:
                return True
            continue
        else:
            continue
        if any(f"{name}.py" in beside or name in beside for name in names):
            return True
    return False


def _only_entry(folder: Path) -> str:
    for name in ("main.py", "train.py"):
        if (folder / name).is_file():
            return name
    scripts = sorted(p.name for p in folder.glob("*.py"))
    if len(scripts) == 1:
        return scripts[0]
    raise BundleError(f"{folder} has no main.py or train.py; name the script to run with --entry")


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in _SKIPPED or path.is_symlink():
            continue
        if path.is_dir():
            yield from _files(path)
        elif path.is_file():
            yield path


def _zip(folder: Path) -> bytes:
    """A zip of the folder that is the same for the same content (its digest names it)."""
    buffer, total = io.BytesIO(), 0
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for count, path in enumerate(_files(folder), 1):
            total += path.stat().st_size
            if total > MAX_BUNDLE_BYTES or count > MAX_FILES:
                raise BundleError(
                    f"{folder} holds more than {MAX_BUNDLE_BYTES // 2**20} MiB or {MAX_FILES} files; "
                    "keep data outside it and mount it, or submit a smaller folder"
                )
            info = zipfile.ZipInfo(path.relative_to(folder).as_posix())
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (path.stat().st_mode & 0o777) << 16
            archive.writestr(info, path.read_bytes())
    return buffer.getvalue()
