"""Packages of user code: an archive that tries anything but files below its folder is refused, and leaves nothing."""

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from crucible.agent import package
from crucible.agent.package import BadPackage, unpack

Member = tuple[tarfile.TarInfo, bytes]


def file(name: str, body: bytes = b"x", mode: int = 0o644) -> Member:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(body), mode
    return member, body


def special(name: str, kind: bytes, target: str = "") -> Member:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, b""


def archive(path: Path, *members: Member, mode: str = "w:gz") -> str:
    with tarfile.open(path, mode) as out:  # type: ignore[call-overload]
        for member, body in members:
            out.addfile(member, io.BytesIO(body))
    return str(path)


def test_files_and_folders_come_out_with_the_program_bit_only(tmp_path: Path) -> None:
    source = archive(
        tmp_path / "p", special("pkg", tarfile.DIRTYPE), file("pkg/a.py", b"A"), file("./run", b"R", 0o4777)
    )
    unpack(source, str(tmp_path / "code"))
    assert (tmp_path / "code/pkg/a.py").read_bytes() == b"A"
    assert (tmp_path / "code/run").stat().st_mode & 0o7777 == 0o700
    assert (tmp_path / "code/pkg/a.py").stat().st_mode & 0o7777 == 0o600


@pytest.mark.parametrize(
    "member",
    [
        file("../evil"),
        file("a/../../evil"),
        file("/tmp/evil"),
        file("a\\..\\evil"),
        file("a/" * 600 + "x"),
        special("link", tarfile.SYMTYPE, "/etc"),
        special("link", tarfile.LNKTYPE, "/etc/passwd"),
        special("fifo", tarfile.FIFOTYPE),
        special("null", tarfile.CHRTYPE),
        special("disk", tarfile.BLKTYPE),
    ],
    ids=lambda member: member[0].name[:12] + member[0].type.decode(),
)
def test_an_evil_member_refuses_the_whole_package(tmp_path: Path, member: Member) -> None:
    source = archive(tmp_path / "p", file("good.py"), member, file("link/passwd"))
    with pytest.raises(BadPackage):
        unpack(source, str(tmp_path / "code"))
    assert not (tmp_path / "code").exists()
    assert not (tmp_path / "evil").exists() and not Path("/tmp/evil").exists()


def test_a_bomb_is_refused_before_it_fills_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "MAX_UNPACKED_BYTES", 1 << 20)
    source = archive(tmp_path / "p", *[file(f"zeros{i}", bytes(1 << 18)) for i in range(100)])
    assert Path(source).stat().st_size < 1 << 18
    with pytest.raises(BadPackage, match="more than"):
        unpack(source, str(tmp_path / "code"))
    assert sum(path.stat().st_size for path in (tmp_path / "code.tmp").iterdir()) <= 1 << 20


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "MAX_FILES", 10)
    with pytest.raises(BadPackage, match="more than"):
        unpack(archive(tmp_path / "p", *[file(f"f{i}") for i in range(11)]), str(tmp_path / "code"))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body: b"",
        lambda body: b"not an archive",
        lambda body: body[: len(body) // 2],
        lambda body: body[:100] + b"garbage" + body[107:],
    ],
)
def test_what_is_not_a_whole_archive_is_refused(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    source = Path(archive(tmp_path / "p", file("a.py", bytes(range(256)) * 100)))
    source.write_bytes(spoil(source.read_bytes()))
    with pytest.raises(BadPackage):
        unpack(str(source), str(tmp_path / "code"))
    assert not (tmp_path / "code").exists()


def test_a_name_that_is_a_file_and_a_folder_is_refused(tmp_path: Path) -> None:
    source = archive(tmp_path / "p", file("a/b"), file("a"))
    with pytest.raises(BadPackage):
        unpack(source, str(tmp_path / "code"))
    source = archive(tmp_path / "q", file("a"), file("a/b"))
    with pytest.raises(BadPackage):
        unpack(source, str(tmp_path / "code"))
