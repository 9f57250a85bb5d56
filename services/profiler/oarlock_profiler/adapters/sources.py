"""Bundles as the reader may see them: a script, a folder, a notebook, a zip or tar archive, or texts in memory.

Nothing outside the bundle is ever opened: paths are resolved against its root, links that lead out of it are not
followed, and archives are read in memory, never unpacked. Sources of libraries are read as text from the library path.
"""

from __future__ import annotations

import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from oarlock_schemas import is_notebook, notebook_script

MAX_FILE_BYTES = 4_000_000
"""Largest file that is read; larger ones are data, which the reader does not need."""

MAX_NOTEBOOK_BYTES = 64_000_000
"""Largest notebook: its outputs (pictures, tables) may be far larger than the cells' source, which alone counts."""

MAX_MEMBERS = 50_000
MAX_UNPACKED_BYTES = 256 * 2**20
"""Most bytes of an archive's files that are held in memory; a bomb stops there."""

_ENTRIES = ("main.py", "train.py", "run.py", "__main__.py")


class SourcesError(ValueError):
    """The bundle cannot be opened, or has no script to begin with; the message says how to mend it."""


class Library:
    """Modules on the library path, read as text."""

    def __init__(self, folders: Sequence[str | Path] = ()) -> None:
        self._folders = [Path(folder) for folder in folders]

    def find(self, module: str) -> tuple[str, bytes] | None:
        """``a.b`` as ``a/b/__init__.py`` or ``a/b.py`` under the first folder that has it."""
        if not all(part.isidentifier() for part in module.split(".")):
            return None
        relative = Path(*module.split("."))
        for folder in self._folders:
            for candidate in (relative / "__init__.py", relative.with_suffix(".py")):
                data = _read_file(folder / candidate)
                if data is not None:
                    return candidate.as_posix(), data
            if (folder / relative).is_dir():
                return f"{relative.as_posix()}/__init__.py", b""
        return None

    def file(self, package: str, path: str) -> bytes | None:
        """A file beside a package's modules; a link that leads out of the package is not followed."""
        clean = _clean(path)
        if clean is None or not all(part.isidentifier() for part in package.split(".")):
            return None
        for folder in self._folders:
            root = folder / Path(*package.split("."))
            if root.is_dir():
                inside = (root / clean).resolve()
                return _read_file(inside) if inside.is_relative_to(root.resolve()) else None
        return None


def wrong_library_path(folder: Path) -> str | None:
    """Why no module can be found under ``folder``, and what to give instead; None when some can."""
    if not folder.exists():
        return f"{folder} does not exist; give the folder that holds the library's package, such as site-packages"
    if not folder.is_dir():
        unpack = "unpack it and give that folder" if folder.suffix in {".whl", ".zip", ".gz"} else "give its folder"
        return f"{folder} is a file; {unpack}"
    if (folder / "__init__.py").is_file():
        return f"{folder} is the package itself; give the folder that holds it: {folder.parent}"
    try:
        children = list(folder.iterdir())
    except OSError as error:
        return f"{folder} cannot be read: {error.strerror}"
    if any(_is_module(child) for child in children):
        return None
    inner = [child for child in children if child.is_dir() and any(map(_is_module, _listed(child)))]
    nearer = f"; perhaps {inner[0]} is meant" if inner else ""
    return f"{folder} holds no Python module or package{nearer}"


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _is_module(path: Path) -> bool:
    return path.suffix == ".py" or (path / "__init__.py").is_file()


class TextSources:
    """Texts in memory, by relative path."""

    def __init__(self, files: Mapping[str, bytes], library: Library, entry: str | None) -> None:
        self._files = {clean: data for path, data in files.items() if (clean := _clean(path)) is not None}
        self._library = library
        self._entry = entry

    @property
    def entry(self) -> str:
        """The script to begin with.

        Raises:
            SourcesError: it cannot be told.
        """
        return self._entry or _choose_entry(sorted(self._files))

    def read(self, path: str) -> bytes | None:
        """See ``core.reading.Sources``."""
        clean = _clean(path)
        data = None if clean is None else self._files.get(clean)
        return _source_of(data) if is_notebook(path) else data

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        clean = _clean(path)
        if clean is None:
            return False
        return clean in self._files or not clean or any(name.startswith(f"{clean}/") for name in self._files)

    def listdir(self, path: str) -> Sequence[str]:
        """Names in a folder, sorted."""
        clean = _clean(path)
        if clean is None:
            return []
        prefix = f"{clean}/" if clean else ""
        return sorted({name[len(prefix) :].split("/")[0] for name in self._files if name.startswith(prefix)})

    def library(self, module: str) -> tuple[str, bytes] | None:
        """See ``core.reading.Sources``."""
        return self._library.find(module)

    def library_file(self, package: str, path: str) -> bytes | None:
        """See ``core.reading.Sources``."""
        return self._library.file(package, path)


class FolderSources:
    """A folder on this machine."""

    def __init__(self, root: Path, library: Library, entry: str | None) -> None:
        self._root = root.resolve()
        self._library = library
        self._entry = entry

    @property
    def entry(self) -> str:
        """The script to begin with.

        Raises:
            SourcesError: it cannot be told.
        """
        return self._entry or _choose_entry(sorted(p.name for p in self._root.glob("*.py")))

    def _inside(self, path: str) -> Path | None:
        clean = _clean(path)
        if clean is None:
            return None
        try:
            resolved = (self._root / clean).resolve()
        except (OSError, RuntimeError, ValueError):
            return None
        return resolved if resolved.is_relative_to(self._root) else None

    def read(self, path: str) -> bytes | None:
        """See ``core.reading.Sources``."""
        inside = self._inside(path)
        if inside is None:
            return None
        if is_notebook(path):
            return _source_of(_read_file(inside, MAX_NOTEBOOK_BYTES))
        return _read_file(inside)

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        inside = self._inside(path)
        try:
            return inside is not None and inside.exists()
        except OSError:
            # a name longer than the file system takes
            return False

    def listdir(self, path: str) -> Sequence[str]:
        """Names in a folder, sorted."""
        inside = self._inside(path)
        try:
            return sorted(child.name for child in inside.iterdir()) if inside is not None else []
        except OSError:
            return []

    def library(self, module: str) -> tuple[str, bytes] | None:
        """See ``core.reading.Sources``."""
        return self._library.find(module)

    def library_file(self, package: str, path: str) -> bytes | None:
        """See ``core.reading.Sources``."""
        return self._library.file(package, path)


AnySources = TextSources | FolderSources


def text_sources(files: Mapping[str, str], *, library_paths: Sequence[str | Path] = ()) -> TextSources:
    """Texts by relative path; the only one, or the usual name, is the entry."""
    data = {path: text.encode("utf-8", "surrogatepass") for path, text in files.items()}
    return TextSources(data, Library(library_paths), next(iter(data)) if len(data) == 1 else None)


def open_sources(path: Path | str, *, library_paths: Sequence[str | Path] = (), entry: str | None = None) -> AnySources:
    """A script or notebook (its folder is the bundle), a folder, or a zip or tar archive.

    Raises:
        SourcesError: there is nothing there, or the archive is damaged or too large.
    """
    path, library = Path(path), Library(library_paths)
    if path.is_dir():
        return FolderSources(path, library, entry)
    if not path.is_file():
        raise SourcesError(f"{path} does not exist; give a script, a folder, a notebook or an archive")
    if path.suffix == ".zip" or ".tar" in path.suffixes or path.suffix == ".tgz":
        return archive_sources(path.read_bytes(), library_paths=library_paths, entry=entry)
    return FolderSources(path.parent, library, entry or path.name)


def archive_sources(data: bytes, *, library_paths: Sequence[str | Path] = (), entry: str | None = None) -> TextSources:
    """A zip or tar archive in memory.

    Raises:
        SourcesError: it is neither, damaged, or unpacks to too much.
    """
    try:
        if zipfile.is_zipfile(io.BytesIO(data)):
            files = _unzip(data)
        else:
            files = _untar(data)
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        zlib.error,
        lzma.LZMAError,
        EOFError,
        OSError,
        ValueError,
        RuntimeError,
        NotImplementedError,
    ) as error:
        if isinstance(error, SourcesError):
            raise
        raise SourcesError(f"the bundle is neither a zip nor a tar archive that can be read: {error}") from None
    return TextSources(files, Library(library_paths), entry)


def _unzip(data: bytes) -> dict[str, bytes]:
    files, total = {}, 0
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        if len(members) > MAX_MEMBERS:
            raise SourcesError(f"the bundle has more than {MAX_MEMBERS} files")
        for member in members:
            limit = _limit(member.filename)
            if member.is_dir() or member.file_size > limit:
                continue
            with archive.open(member) as file:
                content = _kept(member.filename, file.read(limit + 1))
            total = _counted(total, content)
            files[member.filename] = content
    return files


def _untar(data: bytes) -> dict[str, bytes]:
    files, total = {}, 0
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for number, member in enumerate(archive):
            if number > MAX_MEMBERS:
                raise SourcesError(f"the bundle has more than {MAX_MEMBERS} files")
            limit = _limit(member.name)
            if not member.isreg() or member.size > limit:
                continue
            file = archive.extractfile(member)
            content = _kept(member.name, file.read(limit + 1) if file is not None else b"")
            total = _counted(total, content)
            files[member.name] = content
    return files


def _limit(name: str) -> int:
    return MAX_NOTEBOOK_BYTES if is_notebook(name) else MAX_FILE_BYTES


def _kept(name: str, content: bytes) -> bytes:
    """What is held of an archive's file: of a notebook that is too large with its outputs, the source."""
    if is_notebook(name) and len(content) > MAX_FILE_BYTES:
        return _source_of(content) or b""
    return content


def _source_of(notebook: bytes | None) -> bytes | None:
    """The cells of a notebook as a script; None when even they are too large."""
    source = None if notebook is None else notebook_script(notebook)
    return source if source is not None and len(source) <= MAX_FILE_BYTES else None


def _counted(total: int, content: bytes) -> int:
    total += len(content)
    if total > MAX_UNPACKED_BYTES:
        raise SourcesError(f"the bundle unpacks to more than {MAX_UNPACKED_BYTES} bytes")
    return total


def _clean(path: str) -> str | None:
    """The path relative to the root in plain form; None when it leads out of the bundle or is no path."""
    if "\0" in path or len(path) > 4096:
        return None
    parts: list[str] = []
    for part in PurePosixPath(path.replace("\\", "/")).parts:
        if part in {"/", ".."}:
            return None
        if part != ".":
            parts.append(part)
    return "/".join(parts)


def _read_file(path: Path, limit: int = MAX_FILE_BYTES) -> bytes | None:
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except (OSError, ValueError):
        return None
    return data if len(data) <= limit else None


def _choose_entry(names: Sequence[str]) -> str:
    for name in _ENTRIES:
        if name in names:
            return name
    scripts = [name for name in names if name.endswith(".py") and "/" not in name]
    if len(scripts) == 1:
        return scripts[0]
    raise SourcesError("the bundle has no main.py or train.py; say which script to begin with (entry)")
