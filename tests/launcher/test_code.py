"""Code from hostile places is unpacked inside its folder, or not at all."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from oarlock_launcher.adapters.code.archive import CodeLimits, copy_tree, unpack
from oarlock_launcher.adapters.code.git import split
from oarlock_launcher.adapters.code.sources import CodeSources
from oarlock_launcher.ports import CannotStart
from oarlock_schemas import Source

LIMITS = CodeLimits(files=100, total_bytes=1 << 20)


def zipped(*members: tuple[str, bytes], mode: int = 0o100644) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return buffer.getvalue()


def tarred(*members: tarfile.TarInfo, data: bytes = b"x") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for member in members:
            member.size = len(data) if member.isreg() else 0
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def link(name: str, target: str, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


@pytest.mark.parametrize(
    "data",
    [
        zipped(("../out.py", b"x")),
        zipped(("/etc/out.py", b"x")),
        zipped(("a\\..\\..\\out.py", b"x")),
        zipped(("link", b"/etc/passwd"), mode=0o120777),
        zipped(("bomb", b"\0" * (2 << 20))),
        zipped(*((f"f{n}", b"") for n in range(101))),
        zipped(("twice", b"1"), ("twice", b"2")),
        tarred(tarfile.TarInfo("../out.py")),
        tarred(tarfile.TarInfo("/etc/out.py")),
        tarred(link("a", "/etc", tarfile.SYMTYPE), tarfile.TarInfo("a/out.py")),
        tarred(link("a", "../../etc/passwd", tarfile.LNKTYPE)),
        tarred(link("dev", "", tarfile.CHRTYPE)),
        tarred(tarfile.TarInfo("bomb"), data=b"\0" * (2 << 20)),
        b"neither",
        zipped(("a", b"x"))[:-10],
        b"",
    ],
)
def test_hostile_bundles_are_refused(data: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "inner" / "code"
    folder.mkdir(parents=True)
    with pytest.raises(CannotStart):
        unpack(data, folder, LIMITS)
    assert [path for path in tmp_path.rglob("*") if not path.is_relative_to(folder) and path.name != "inner"] == []
    assert not any(path.is_symlink() for path in folder.rglob("*"))


def test_plain_bundles_are_unpacked(tmp_path: Path) -> None:
    for number, data in enumerate(
        (zipped(("a/b.py", b"x"), ("c.sh", b"y"), mode=0o100755), tarred(tarfile.TarInfo("a/b.py")))
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        unpack(data, folder, LIMITS)
        assert (folder / "a" / "b.py").read_bytes() == b"x"
    assert (tmp_path / "0" / "c.sh").stat().st_mode & 0o777 == 0o755


def test_folders_are_copied_without_what_leads_out(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "pkg").mkdir(parents=True)
    (source / ".git").mkdir()
    target.mkdir()
    (source / "pkg" / "a.py").write_text("x")
    (source / "out").symlink_to("/etc")
    (source / "in").symlink_to(source / "pkg" / "a.py")
    copy_tree(source, target, LIMITS)
    assert sorted(str(path.relative_to(target)) for path in target.rglob("*")) == ["in", "pkg", "pkg/a.py"]
    with pytest.raises(CannotStart, match="more than 1 files"):
        copy_tree(source, tmp_path / "again", CodeLimits(files=1))


async def test_paths_outside_the_allowed_folders(tmp_path: Path) -> None:
    async def bundle(key: str) -> bytes:
        raise AssertionError(key)

    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "sly").symlink_to("/etc")
    code = CodeSources(bundle, allowed_paths=[allowed])
    for path in ("/etc", f"{allowed}/../secret", f"{allowed}/sly", "relative"):
        with pytest.raises(CannotStart, match="OARLOCK_ALLOWED_PATHS"):
            await code.fetch(Source(path=path), tmp_path)
    with pytest.raises(CannotStart, match="must not name a folder"):
        await code.fetch(Source(git="file:///etc"), tmp_path)


def test_addresses_of_repositories() -> None:
    assert split("https://host/a/b.git@v1.2") == ("https://host/a/b.git", "v1.2")
    assert split("https://user@host/a.git") == ("https://user@host/a.git", None)
    assert split("git@host:a/b.git") == ("git@host:a/b.git", None)
    assert split("git@host:a/b.git@main") == ("git@host:a/b.git", "main")
    for bad in ("--upload-pack=sh", "ext::sh -c x", "/etc", "https://host/a b", "fd::1"):
        with pytest.raises(CannotStart):
            split(bad)
