"""From a path to a task: what travels inline, what is packed, and what is refused."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from oarlock.bundle import BundleError, load, pack
from oarlock_schemas import InvalidMessage


def names(archive: bytes | None) -> list[str]:
    assert archive is not None
    return sorted(zipfile.ZipFile(io.BytesIO(archive)).namelist())


def test_a_script_alone_travels_inline(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import os\nprint(1)\n")
    packed = load(script)
    assert packed.archive is None
    assert packed.task.source.inline == "import os\nprint(1)\n"
    assert packed.task.source.entry == "train.py"
    assert packed.task.name == "train"


@pytest.mark.parametrize(
    "text",
    ["import helpers\n", "from helpers.net import Net\n", "from . import helpers\n", "open('config/base.yaml')\n"],
)
def test_a_script_that_needs_its_neighbours_takes_its_folder(tmp_path: Path, text: str) -> None:
    (tmp_path / "helpers.py").write_text("x = 1\n")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "base.yaml").write_text("a: 1\n")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "x.pyc").write_bytes(b"x")
    script = tmp_path / "train.py"
    script.write_text(text)
    packed = load(script)
    assert packed.task.source.bundle is not None and packed.task.source.entry == "train.py"
    assert names(packed.archive) == ["config/base.yaml", "helpers.py", "train.py"]


def test_the_same_folder_gives_the_same_archive(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("x")
    first = pack(tmp_path)[1]
    (tmp_path / "main.py").touch()
    assert pack(tmp_path)[1] == first


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "main.py").write_text("x")
    (tmp_path / "secret").write_text("s")
    (code / "link").symlink_to(tmp_path / "secret")
    (code / "folder").symlink_to(tmp_path)
    assert names(pack(code)[1]) == ["main.py"]


def test_a_folder_without_an_entry_says_how_to_name_one(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    (tmp_path / "b.py").write_text("")
    with pytest.raises(BundleError, match="--entry"):
        pack(tmp_path)
    assert pack(tmp_path, "b.py")[0].entry == "b.py"


def test_a_task_file_takes_its_code_from_beside_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(2)\n")
    (tmp_path / "task.yaml").write_text("source: {path: train.py}\npriority: 70\ntask: {framework: torch}\n")
    packed = load(tmp_path / "task.yaml", {"owner": "lab", "task": {"batch_size_per_gpu": 4, "model_name": None}})
    assert packed.task.source.inline == "print(2)\n"
    assert (packed.task.priority, packed.task.owner) == (70, "lab")
    assert (packed.task.task.framework, packed.task.task.batch_size_per_gpu) == ("pytorch", 4)


def test_a_wrong_task_file_lists_every_fault(tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text("priority: 700\ntask: {batch_size_per_gpu: none}\n")
    with pytest.raises(InvalidMessage) as caught:
        load(tmp_path / "task.yaml")
    assert {f.path for f in caught.value.faults} == {"$.priority", "$.task.batch_size_per_gpu"}


def test_what_does_not_exist_is_said(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="does not exist"):
        load(tmp_path / "nothing.py")
