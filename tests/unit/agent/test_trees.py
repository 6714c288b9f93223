"""Files and folders through a stream: what is copied is the same, and what is hostile does nothing."""

import io
import os
import stat
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.agent import trees
from crucible.agent.trees import Uncopied


def packed(path: Path | str) -> tuple[io.BytesIO, list[str]]:
    stream, notes = io.BytesIO(), list[str]()
    trees.pack(str(path), stream, notes.append)
    stream.seek(0)
    return stream, notes


def archive(*members: tuple[str, bytes | str | None]) -> io.BytesIO:
    """By hand: a file's bytes, where a link leads, or None for a folder."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if content is None:
                member.type = tarfile.DIRTYPE
            elif isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
            else:
                member.size = len(content)
            tar.addfile(member, io.BytesIO(content) if isinstance(content, bytes) else None)
    stream.seek(0)
    return stream


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def a_tree(folder: Path) -> Path:
    root = folder / "tree"
    (root / "sub" / "empty").mkdir(parents=True)
    (root / "sub" / "ä name\n with odd \\ letters").write_bytes(b"odd")
    (root / "program").write_bytes(b"#!/bin/sh\n")
    (root / "program").chmod(0o755)
    (root / "large").write_bytes(os.urandom(1 << 20))
    return root


def test_a_tree_arrives_as_it_was(tmp_path: Path) -> None:
    root = a_tree(tmp_path)
    stream, notes = packed(root)
    assert trees.unpack(stream, str(tmp_path / "copy")) == (3, (1 << 20) + 3 + 10)
    assert contents(tmp_path / "copy") == contents(root)
    assert (tmp_path / "copy" / "program").stat().st_mode & 0o100
    assert not (tmp_path / "copy" / "large").stat().st_mode & 0o100
    assert int((tmp_path / "copy" / "large").stat().st_mtime) == int((root / "large").stat().st_mtime)
    assert notes == []


@pytest.mark.parametrize(("target", "made"), [("into", "into/tree"), ("new", "new"), ("new/", "new/tree")])
def test_a_copy_goes_below_a_folder_and_else_takes_the_name(tmp_path: Path, target: str, made: str) -> None:
    (tmp_path / "into").mkdir()
    trees.unpack(packed(a_tree(tmp_path))[0], f"{tmp_path}/{target}")
    assert (tmp_path / made / "program").is_file()


def test_a_single_file_keeps_or_takes_a_name(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "into").mkdir()
    trees.unpack(packed(tmp_path / "a")[0], str(tmp_path / "into"))
    trees.unpack(packed(tmp_path / "a")[0], str(tmp_path / "b"))
    assert (tmp_path / "into" / "a").read_bytes() == (tmp_path / "b").read_bytes() == b"1"


def test_links_and_pipes_are_left_out_and_named(tmp_path: Path) -> None:
    root = a_tree(tmp_path)
    (root / "link").symlink_to("/etc/passwd")
    (root / "loop").symlink_to(root)
    os.mkfifo(root / "pipe")
    stream, notes = packed(root)
    trees.unpack(stream, str(tmp_path / "copy"))
    assert not {"link", "loop", "pipe"} & set(os.listdir(tmp_path / "copy"))
    assert [note.split("'")[1] for note in notes] == ["tree/link", "tree/loop", "tree/pipe"]


def test_a_link_that_was_named_itself_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"data")
    (tmp_path / "latest").symlink_to("real")
    trees.unpack(packed(tmp_path / "latest")[0], str(tmp_path / "copy/"))
    assert (tmp_path / "copy").read_bytes() == b"data"


def test_what_is_not_there_or_no_file_cannot_be_packed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, words in ((tmp_path / "nothing", "No such file"), (tmp_path / "pipe", "neither a file nor a folder")):
        with pytest.raises(Uncopied, match=words):
            packed(path)


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(archive(("../evil", b"x")), id="up"),
        pytest.param(archive(("tree", None), ("tree/../../evil", b"x")), id="up from below"),
        pytest.param(archive(("/evil", b"x")), id="absolute"),
        pytest.param(archive(("tree//evil", b"x")), id="odd"),
        pytest.param(archive(("tree", None), ("other/evil", b"x")), id="two roots"),
        pytest.param(archive(("tree", None), ("tree/evil", "/etc/passwd")), id="a link"),
        pytest.param(archive(("tree", "/tmp"), ("tree/evil", b"x")), id="a link as root"),
        pytest.param(archive(("t" * 5000, b"x")), id="long"),
        pytest.param(archive(("tree", b"x"), ("tree/evil", b"y")), id="a file as a folder"),
        pytest.param(io.BytesIO(b"nonsense" * 200), id="no archive"),
        pytest.param(io.BytesIO(b""), id="nothing"),
    ],
)
def test_hostile_streams_write_nothing_elsewhere(tmp_path: Path, stream: io.BytesIO) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    with pytest.raises((Uncopied, OSError)):
        trees.unpack(stream, str(inside / "copy"))
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]
    assert not any("evil" in name for name in contents(inside))


def test_nothing_is_written_through_a_link_that_lies_there(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "tree").mkdir()
    (tmp_path / "copy" / "tree" / "sub").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Uncopied, match="through a link"):
        trees.unpack(archive(("tree", None), ("tree/sub/evil", b"x")), str(tmp_path / "copy"))
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_stream_that_breaks_off_leaves_no_half_file(tmp_path: Path) -> None:
    whole = packed(a_tree(tmp_path))[0].getvalue()
    with pytest.raises(Uncopied):
        trees.unpack(io.BytesIO(whole[:50_000]), str(tmp_path / "copy"))
    assert all(content in (None, b"odd", b"#!/bin/sh\n") for content in contents(tmp_path / "copy").values())


def test_what_does_not_fit_on_the_disk_is_refused_before_it_is_written(tmp_path: Path) -> None:
    stream = io.BytesIO()
    member = tarfile.TarInfo("huge")
    member.size = 1 << 60
    stream.write(member.tobuf(tarfile.GNU_FORMAT))
    stream.seek(0)
    with pytest.raises(Uncopied, match="no room"):
        trees.unpack(stream, str(tmp_path / "huge"))
    assert not list(tmp_path.iterdir())


def test_no_bit_but_the_one_of_programs_is_taken_over(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        member = tarfile.TarInfo("root")
        member.mode = 0o6777
        tar.addfile(member, io.BytesIO())
    stream.seek(0)
    trees.unpack(stream, str(tmp_path / "root"))
    assert stat.S_IMODE((tmp_path / "root").stat().st_mode) & 0o7022 == 0


@given(st.text(min_size=1, max_size=60))
def test_any_name_stays_below_its_place(name: str) -> None:
    place = trees.Place("/nonexistent/target")
    try:
        path = place.of(name)
    except (Uncopied, ValueError):  # half a surrogate pair is no name
        return
    assert os.path.normpath(path).startswith("/nonexistent/target")
