"""A tree on its way to storage over real HTTP: broken lines, expired signatures, files that change, and being broken
off. The storage is a double with faults; the server's answers are made here."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from crucible.client.dataset_shapes import Upload
from crucible.client.tree import TreeChanged, read_tree
from crucible.client.upload import Asks, Sent, TreeUpload
from crucible.core.datasets import manifest_key, object_key
from crucible.model.dataset_tree import Stowed
from crucible.model.errors import Conflict, StorageFailed, StorageRefused
from doubles.storage import StorageDouble, running_storage

MIB = 1 << 20


@pytest.fixture
def storage() -> Iterator[StorageDouble]:
    with running_storage() as double:
        yield double


class Desk:
    """What a server does with an upload."""

    def __init__(self, storage: StorageDouble) -> None:
        self.storage = storage
        self.registered: list[str] = []
        self.refusals = 0

    def upload(self, digest: str, objects: Sequence[Stowed], resend: bool) -> Upload:
        there = self.storage.objects
        missing = [o.name for o in objects if resend or len(there.get(object_key(o.name), b"")) != o.size]
        manifest = None if manifest_key(digest) in there else self.put(digest, manifest_key(digest))  # type: ignore[arg-type]
        return {"missing": [self.put(name, object_key(name)) for name in missing], "manifest": manifest, "lives_s": 1}

    def put(self, name: str, key: str) -> Any:
        signed = self.storage.sign("PUT", key)
        return {"name": name, "url": signed.url, "headers": dict(signed.headers)}

    def register(self, digest: str) -> Any:
        if self.refusals > 0:
            self.refusals -= 1
            raise Conflict("an object is missing")
        self.registered.append(digest)
        return {"digest": digest}


@pytest.fixture
def desk(storage: StorageDouble) -> Desk:
    return Desk(storage)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for n in range(6):
        (tmp_path / f"large{n}").write_bytes(random.Random(n).randbytes(2 * MIB))
    for n in range(50):
        (tmp_path / f"small{n}").write_bytes(random.Random(n).randbytes(1000))
    return tmp_path


def send(folder: Path, desk: Desk, *, resend: bool = False, local: Any = None) -> list[Sent]:
    heard: list[Sent] = []
    TreeUpload(local or read_tree(folder), Asks(desk.upload, desk.register), heard.append, resend=resend).run()
    return heard


def test_everything_is_sent_once_and_the_manifest_last(folder: Path, desk: Desk, storage: StorageDouble) -> None:
    heard = send(folder, desk)
    tree = read_tree(folder).tree
    puts = [key for method, key, _ in storage.requests if method == "PUT"]
    assert puts[-1] == manifest_key(tree.digest) and len(puts) == len(tree.objects) + 1 == len(set(puts))
    assert heard[-1].objects == heard[-1].of_objects == len(tree.objects)
    assert heard[-1].sent_bytes == tree.size_bytes and desk.registered == [tree.digest]
    for one in tree.objects:
        assert len(storage.objects[object_key(one.name)]) == one.size


def test_the_same_again_sends_nothing_unless_it_must(folder: Path, desk: Desk, storage: StorageDouble) -> None:
    send(folder, desk)
    before = storage.count("PUT")
    assert send(folder, desk)[-1].sent_bytes == 0 and storage.count("PUT") == before
    send(folder, desk, resend=True)
    assert storage.count("PUT") == 2 * before - 1


def test_one_changed_file_sends_little(folder: Path, desk: Desk, storage: StorageDouble) -> None:
    send(folder, desk)
    (folder / "small7").write_bytes(b"changed")
    assert send(folder, desk)[-1].sent_bytes < 200_000


def test_trouble_that_passes_is_waited_out(folder: Path, desk: Desk, storage: StorageDouble) -> None:
    storage.fail("PUT", "objects/", "cut", 2)
    storage.fail("PUT", "objects/", "lost", 1)
    storage.fail("PUT", "objects/", "403", 1)
    storage.fail("PUT", "manifests/", "cut", 1)
    send(folder, desk)
    assert len(desk.registered) == 1


def test_objects_that_went_meanwhile_are_sent_again(folder: Path, desk: Desk, storage: StorageDouble) -> None:
    desk.refusals = 2
    send(folder, desk)
    assert len(desk.registered) == 1
    desk.refusals = 3
    with pytest.raises(Conflict):
        send(folder, desk)


@pytest.mark.parametrize(("status", "error"), [("404", StorageRefused), ("507", StorageFailed)])
def test_a_storage_that_will_not_is_told_and_nothing_is_registered(
    folder: Path, desk: Desk, storage: StorageDouble, status: str, error: type[Exception]
) -> None:
    storage.fail("PUT", "objects/", status, 100)
    with pytest.raises(error, match=status):
        send(folder, desk)
    assert desk.registered == [] and storage.names("manifests/") == []


@pytest.mark.parametrize("name", ["large3", "small3"])
@pytest.mark.parametrize("how", ["vanished", "changed"])
def test_a_file_that_is_another_one_during_the_upload_registers_nothing(
    folder: Path, desk: Desk, storage: StorageDouble, name: str, how: str
) -> None:
    local = read_tree(folder)
    if how == "vanished":
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(random.Random(99).randbytes((folder / name).stat().st_size))
    with pytest.raises(TreeChanged, match=f"{name} {how} while it was read; nothing was registered"):
        send(folder, desk, local=local)
    assert desk.registered == [] and storage.names("manifests/") == []
    (folder / name).write_bytes(b"and again")
    send(folder, desk)
    assert len(desk.registered) == 1


def test_broken_off_it_goes_on_where_it_was(folder: Path, desk: Desk, storage: StorageDouble) -> None:
    local = read_tree(folder)

    def interrupted(sent: Sent) -> None:
        if sent.objects >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        TreeUpload(local, Asks(desk.upload, desk.register), interrupted).run()
    assert desk.registered == []
    sizes = {object_key(one.name): one.size for one in local.tree.objects}
    # The double keeps halves, and what was on its way may still arrive: what is whole by now is not sent again.
    whole = sum(sizes[key] for key in storage.names("objects/") if len(storage.objects[key]) == sizes[key])
    assert whole > 0
    assert send(folder, desk)[-1].sent_bytes <= local.tree.size_bytes - whole
