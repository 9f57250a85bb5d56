"""A notebook's pictures count for nothing: only the source of its cells is read."""

from __future__ import annotations

import io
import json
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

from oarlock_profiler.adapters.sources import (
    MAX_FILE_BYTES,
    MAX_NOTEBOOK_BYTES,
    SourcesError,
    archive_sources,
    open_sources,
    text_sources,
)
from oarlock_profiler.core.portrait import build
from oarlock_profiler.core.reader import read
from oarlock_profiler.core.reading import Request

SOURCE = ["import math\n", "x = math.sqrt(16)\n"]


def notebook(output_bytes: int) -> bytes:
    """A notebook of one cell, with an output of this size."""
    output = {"output_type": "display_data", "data": {"image/png": "A" * output_bytes}, "metadata": {}}
    cell = {"cell_type": "code", "source": SOURCE, "outputs": [output], "metadata": {}, "execution_count": 1}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def archive(kind: str, data: bytes) -> bytes:
    """``data`` as ``train.ipynb`` in an archive."""
    buffer = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as zipped:
            zipped.writestr("train.ipynb", data)
    else:
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            info = tarfile.TarInfo("train.ipynb")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def test_a_damaged_archive_is_named_whatever_its_unpacking_raises() -> None:
    whole = archive("zip", notebook(3_000))
    refused = 0
    for at in range(30, len(whole), 7):
        damaged = whole[:at] + bytes([whole[at] ^ 0x5A]) + whole[at + 1 :]
        try:
            archive_sources(damaged)
        except SourcesError:
            refused += 1
    assert refused > 10


def test_large_notebook_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "train.ipynb").write_bytes(notebook(2 * MAX_FILE_BYTES))
    script = open_sources(tmp_path / "train.ipynb").read("train.ipynb")
    assert script is not None
    assert script.decode().splitlines()[:2] == ["import math", "x = math.sqrt(16)"]


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_large_notebook_in_an_archive(kind: str) -> None:
    sources = archive_sources(archive(kind, notebook(2 * MAX_FILE_BYTES)), entry="train.ipynb")
    script = sources.read("train.ipynb")
    assert script is not None
    assert script.startswith(b"import math")


def test_a_notebook_past_its_own_limit_is_data(tmp_path: Path) -> None:
    (tmp_path / "train.ipynb").write_bytes(notebook(MAX_NOTEBOOK_BYTES))
    assert open_sources(tmp_path / "train.ipynb").read("train.ipynb") is None


def test_what_only_calls_itself_a_notebook_has_the_limit_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "train.ipynb").write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    assert open_sources(tmp_path / "train.ipynb").read("train.ipynb") is None


def test_an_archive_without_its_entry_says_so_at_a_place() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr("other.py", "x = 1")
    sources = archive_sources(buffer.getvalue(), entry="main.py")
    portrait = build(read(Request("main.py"), sources, time.monotonic))
    (told,) = [unknown for unknown in portrait.unknowns if "is not in the bundle" in unknown.why]
    assert (told.file, told.line) == ("main.py", 1)


def test_a_name_longer_than_the_file_system_takes(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import " + "a" * 400 + "\nx = open('b' * 4000)\n")
    sources = open_sources(tmp_path)
    reading = read(Request("main.py"), sources, time.monotonic)
    assert reading.stopped is None
    assert not sources.exists("a" * 400)


def test_sizes_given_as_a_range_without_end() -> None:
    script = "import paddle\nx = paddle.zeros([2, 3]).transpose(range(10**12))\ny = paddle.zeros(range(10**30))\n"
    started = time.monotonic()
    reading = read(Request("main.py"), text_sources({"main.py": script}), time.monotonic)
    assert reading.stopped is None
    assert time.monotonic() - started < 20
