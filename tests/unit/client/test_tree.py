"""Reading a tree of files: what is taken, what is refused, and what changes meanwhile."""

import hashlib
import os
import random
import threading
from pathlib import Path

import pytest

from crucible.client import tree as reading
from crucible.client.tree import TreeChanged, read_tree
from crucible.model.errors import InvalidRequest


def make(root: Path, count: int = 10, size: int = 100) -> dict[str, bytes]:
    dice = random.Random(count)
    files = {f"d{n % 7}/f{n}": dice.randbytes(size + n) for n in range(count)}
    for name, body in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(body)
    return files


@pytest.mark.parametrize("count", [1, 10, 1000])
def test_every_file_is_there_with_its_digest(tmp_path: Path, count: int) -> None:
    files = make(tmp_path, count)
    heard: list[int] = []
    found = read_tree(tmp_path, lambda number, size: heard.append(number))
    assert {e.path: (e.size, e.sha256) for e in found.tree.entries} == {
        name: (len(body), hashlib.sha256(body).hexdigest()) for name, body in files.items()
    }
    assert sum(heard) == count


def test_alone_and_by_processes_the_digest_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, 150)
    alone = read_tree(tmp_path)
    monkeypatch.setattr(reading, "ALONE_FILES", 3)
    assert read_tree(tmp_path).tree == alone.tree


def test_links_inside_stay_links_and_programs_programs(tmp_path: Path) -> None:
    make(tmp_path, 1)
    (tmp_path / "run").write_text("#!/bin/sh\n")
    (tmp_path / "run").chmod(0o755)
    (tmp_path / "link").symlink_to("d0/f0")
    (tmp_path / "folder").symlink_to("d0")
    found = {entry.path: entry for entry in read_tree(tmp_path).tree.entries}
    assert found["run"].is_program and not found["d0/f0"].is_program
    assert found["link"].link == "d0/f0" and found["folder"].link == "d0" and "folder/f0" not in found


def test_the_time_of_a_file_is_no_part_of_its_content(tmp_path: Path) -> None:
    make(tmp_path, 3)
    before = read_tree(tmp_path).tree.digest
    os.utime(tmp_path / "d0/f0", (1, 1))
    assert read_tree(tmp_path).tree.digest == before


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "d0/../../outside"])
def test_a_link_that_leads_out_is_refused(tmp_path: Path, target: str) -> None:
    make(tmp_path, 1)
    (tmp_path / "bad").symlink_to(target)
    with pytest.raises(InvalidRequest, match="out of the tree"):
        read_tree(tmp_path)


def test_what_is_neither_file_nor_folder_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidRequest, match="neither a file"):
        read_tree(tmp_path)


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (Path(os.fsdecode(bytes(tmp_path) + b"/\xff"))).write_bytes(b"x")
    with pytest.raises(InvalidRequest, match="no UTF-8"):
        read_tree(tmp_path)


def test_no_folder_and_an_empty_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="is no folder"):
        read_tree(tmp_path / "nothing")
    with pytest.raises(InvalidRequest, match="1 to"):
        read_tree(tmp_path)


@pytest.mark.parametrize("count", [5, 1000])
def test_a_file_that_vanishes_while_it_is_read_is_told(
    tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, count)
    listed = reading._listed

    def vanishing(folder: Path, links: list[reading.Entry]) -> object:
        for found in listed(folder, links):
            if found.path == "d3/f3":
                (folder / found.path).unlink()
            yield found

    monkeypatch.setattr(reading, "_listed", vanishing)
    before = threading.active_count()
    with pytest.raises(TreeChanged, match="d3/f3 vanished while it was read; nothing was registered"):
        read_tree(tmp_path)
    assert threading.active_count() == before
