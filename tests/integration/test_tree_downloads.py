"""A tree that a task left on its way to a person, over real HTTP: every byte is checked, a broken one goes on, and no
name leads out of the folder. The storage is a double with faults; the server's answers are made here."""

import hashlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from crucible.client import tree_download
from crucible.client.output_shapes import OutputView, SignedGet
from crucible.client.tree_download import CorruptTree, Got, TreeDownload
from crucible.core.datasets import manifest_key, object_key
from crucible.model.dataset_tree import HEAD, OBJECT_BYTES, Tree
from crucible.model.errors import Conflict, InvalidRequest, StorageFailed
from doubles.storage import StorageDouble, running_storage
from doubles.trees import TreesDouble

PAGE = 2


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Iterator[StorageDouble]:
    monkeypatch.setattr(tree_download, "AGAIN_AFTER_S", (0.0, 0.0, 0.0))
    with running_storage() as double:
        yield double


class Desk:
    """What a server says of one tree, page by page."""

    def __init__(self, storage: StorageDouble, tree: Tree) -> None:
        self.storage = storage
        self.tree = tree
        self.asked: list[int] = []

    def __call__(self, first: int) -> OutputView:
        self.asked.append(first)
        page = self.tree.objects[first : first + PAGE]
        return {
            "task": 3,
            "digest": self.tree.digest,
            "size_bytes": self.tree.size_bytes,
            "files": len(self.tree.entries),
            "created_at": "2026-01-01T00:00:00Z",
            "manifest": self.got(self.tree.digest, None, manifest_key(self.tree.digest)),
            "first": first,
            "objects": [self.got(one.name, one.size, object_key(one.name)) for one in page],
            "total": len(self.tree.objects),
            "lives_s": 3600.0,
        }

    def got(self, name: str, size: int | None, key: str) -> SignedGet:
        signed = self.storage.sign("GET", key)
        return {"name": name, "size": size, "url": signed.url, "headers": signed.headers}


def files(big: int = 0) -> dict[str, bytes]:
    dice = random.Random(1)
    found = {"a.txt": b"hello\n", "deep/er/b.bin": dice.randbytes(3 << 20), "same": b"hello\n", "empty": b""}
    found |= {"new\nline": b"x", "run.sh": b"#!/bin/sh\n", "ümläut/\U0001f525": b"y"}
    found |= {f"m{n}": dice.randbytes(1 << 20) for n in range(3)}
    return found | ({"big": dice.randbytes(big)} if big else {})


def fetch(desk: Desk, folder: Path) -> Path:
    return TreeDownload(desk, lambda got: None).into(folder)


def test_a_tree_comes_whole(storage: StorageDouble, tmp_path: Path) -> None:
    body = files(OBJECT_BYTES + 5)
    desk = Desk(storage, TreesDouble(storage).add(body, links={"deep/link": "../a.txt"}, programs="run.sh"))
    heard: list[Got] = []
    folder = TreeDownload(desk, heard.append).into(tmp_path / "new")
    assert folder == tmp_path / "new/task-00003"
    assert {name: (folder / name).read_bytes() for name in body} == body
    assert os.readlink(folder / "deep/link") == "../a.txt" and os.access(folder / "run.sh", os.X_OK)
    assert not os.access(folder / "a.txt", os.X_OK)
    assert heard[-1].objects == heard[-1].of_objects == len(desk.tree.objects)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["task-00003"]
    with pytest.raises(Conflict, match="is there already"):
        fetch(desk, tmp_path / "new")


def test_one_that_broke_off_goes_on(storage: StorageDouble, tmp_path: Path) -> None:
    desk = Desk(storage, TreesDouble(storage).add(files()))
    last = desk.tree.objects[-1]
    storage.fail("GET", object_key(last.name), "503", 4)
    with pytest.raises(StorageFailed, match="503"):
        fetch(desk, tmp_path)
    assert not (tmp_path / "task-00003").exists()
    before = storage.count("GET", "objects/")
    assert before == len(desk.tree.objects) - 1
    folder = fetch(desk, tmp_path)
    assert storage.count("GET", "objects/") == before + 1
    assert {name: (folder / name).read_bytes() for name in files()} == files()


def test_broken_lines_and_expired_addresses_are_waited_out(storage: StorageDouble, tmp_path: Path) -> None:
    desk = Desk(storage, TreesDouble(storage).add(files()))
    storage.fail("GET", "manifests/", "403")
    storage.fail("GET", "objects/", "cut", 2)
    storage.fail("GET", "objects/", "403", 2)
    folder = fetch(desk, tmp_path)
    assert (folder / "deep/er/b.bin").read_bytes() == files()["deep/er/b.bin"]


@pytest.mark.parametrize("which", ["pack", "part"])
def test_other_bytes_are_never_believed(storage: StorageDouble, tmp_path: Path, which: str) -> None:
    desk = Desk(storage, TreesDouble(storage).add(files(OBJECT_BYTES + 1)))
    victim = next(one for one in desk.tree.objects if (one.size == 1) == (which == "part"))
    key = object_key(victim.name)
    right = storage.objects[key]
    storage.objects[key] = bytes([right[0] ^ 1]) + right[1:]
    with pytest.raises(CorruptTree, match="has other content in storage than was left"):
        fetch(desk, tmp_path)
    assert not (tmp_path / "task-00003").exists()
    storage.objects[key] = right
    assert fetch(desk, tmp_path).exists()


@pytest.mark.parametrize(("change", "words"), [(b"", "shorter"), (b"more", "longer")])
def test_an_object_of_another_length_is_refused(
    storage: StorageDouble, tmp_path: Path, change: bytes, words: str
) -> None:
    desk = Desk(storage, TreesDouble(storage).add({"a": b"hello"}))
    key = object_key(desk.tree.objects[0].name)
    storage.objects[key] = storage.objects[key] + change if change else storage.objects[key][:-1]
    with pytest.raises(CorruptTree, match=words):
        fetch(desk, tmp_path)


def test_what_was_damaged_on_this_disk_meanwhile_is_found(storage: StorageDouble, tmp_path: Path) -> None:
    desk = Desk(storage, TreesDouble(storage).add(files()))
    storage.fail("GET", object_key(desk.tree.objects[-1].name), "503", 4)
    with pytest.raises(StorageFailed):
        fetch(desk, tmp_path)
    (draft,) = tmp_path.iterdir()
    (draft / "tree/deep/er/b.bin").write_bytes(b"0" * (3 << 20))
    with pytest.raises(CorruptTree):
        fetch(desk, tmp_path)
    assert fetch(desk, tmp_path).exists(), "the next run brings all of it"


@pytest.mark.parametrize(
    "line",
    [
        '{"path":"../x","size":0,"sha256":"%s"}' % ("ab" * 32),
        '{"path":"/etc/x","size":0,"sha256":"%s"}' % ("ab" * 32),
        '{"path":"a/../../x","size":0,"sha256":"%s"}' % ("ab" * 32),
        '{"path":"x","link":"/etc/passwd"}',
        '{"path":"x","link":"../../y"}',
        '{"path":"a","link":"b"}\n{"path":"a/b","size":0,"sha256":"%s"}' % ("ab" * 32),
        '{"path":"a\\u0000b","size":0,"sha256":"%s"}' % ("ab" * 32),
        '{"path":"x","size":-1,"sha256":"%s"}' % ("ab" * 32),
        "not json",
    ],
)
def test_a_manifest_whose_names_lead_elsewhere_writes_nothing(
    storage: StorageDouble, tmp_path: Path, line: str
) -> None:
    desk = Desk(storage, TreesDouble(storage).add({"a": b"x"}))
    manifest = f"{HEAD}\n{line}\n".encode()
    digest = hashlib.sha256(manifest).hexdigest()
    desk.tree = Tree(digest, desk.tree.entries)  # type: ignore[arg-type]
    storage.objects[f"manifests/{digest}"] = manifest
    target = tmp_path / "deep/folder"
    with pytest.raises(InvalidRequest):
        fetch(desk, target)
    there = [path for path in tmp_path.rglob("*") if path.is_file() or path.is_symlink()]
    assert [path.name for path in there] == ["manifest"] and not (target / "task-00003").exists()


def test_another_manifest_than_was_named_is_refused(storage: StorageDouble, tmp_path: Path) -> None:
    desk = Desk(storage, TreesDouble(storage).add({"a": b"x"}))
    storage.objects[manifest_key(desk.tree.digest)] += b"\n"
    with pytest.raises(InvalidRequest, match="the manifest is not the one of"):
        fetch(desk, tmp_path)
