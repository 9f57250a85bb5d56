"""What must never be in the tree."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [ROOT / name for name in listed.decode().split("\0") if name]


def test_no_lock_or_requirements_file_carries_an_address() -> None:
    for path in tracked():
        if re.search(r"(\.lock|package-lock\.json|requirements.*\.txt)$", path.name):
            assert not re.search(r"https?://", path.read_text(encoding="utf-8")), path


def test_no_path_of_one_machine_is_named() -> None:
    homes = re.compile(rb"/(?:root|(?:home|Users)/[a-z][a-z0-9_-]+)/")
    for path in tracked():
        if path.is_file() and path.suffix in {".py", ".md", ".yaml", ".yml", ".toml", ".sh", ".json", ""}:
            assert not homes.search(path.read_bytes()), path


def test_every_distribution_has_the_same_version() -> None:
    versions = {
        path: re.search(r'^version = "(.+)"$', path.read_text(encoding="utf-8"), re.MULTILINE)
        for path in ROOT.glob("**/pyproject.toml")
        if ".venv" not in path.parts and path.parent != ROOT
    }
    assert len(versions) == 9
    assert {match.group(1) for match in versions.values() if match} == {"0.1.0"}
