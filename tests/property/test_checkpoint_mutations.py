"""No change to a checkpoint goes unnoticed, and the next older valid one is taken instead (F35, F37; R8)."""

import itertools
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.train.checkpoint_manifest import Origin, decode, encode
from crucible.train.checkpoint_request import CorruptCheckpoint
from crucible.train.checkpoint_store import Checkpoint, CheckpointStore
from crucible.train.durable import file_pieces

PARTS = {"weights.bin": bytes(range(200)), "optimizer/state": b"momentum" * 9, "empty": b""}
KINDS = ("pieces", "whole files", "shards")


class Battery:
    """A store with three checkpoints, whose newest is changed and put back."""

    def __init__(self, folder: Path, kind: str = "pieces", attempt: int = 1) -> None:
        self.kind = kind
        ranks = 2 if kind == "shards" else 1
        self.savers = [
            CheckpointStore(str(folder / "store"), Origin(ranks, rank, "job-1", attempt)) for rank in range(ranks)
        ]
        self.store = CheckpointStore(str(folder / "store"))
        for step in (100, 200, 300):
            self.save(folder / "source", step)
        self.newest = Path(self.store.folder(300))
        self.files = sorted(path for path in self.newest.rglob("*") if path.is_file())
        self.manifests = [path for path in self.files if path.parent == self.newest]
        self.tried = 0

    def save(self, source: Path, step: int) -> None:
        for rank, saver in enumerate(self.savers):
            for name, data in PARTS.items():
                path = source / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data and data + b"%d %d" % (step, rank))
            saver.commit(source, step, is_sharded=self.kind == "shards")
        if self.kind == "whole files":
            as_first_format(Path(self.store.folder(step)))

    def taken(self) -> tuple[Checkpoint | None, list[CorruptCheckpoint]]:
        skipped: list[CorruptCheckpoint] = []
        return self.store.latest(skipped.append), skipped

    def expect_refused(self, what: str) -> None:
        """The newest is passed over with a reason, by a full check and by a store that has hashed it before."""
        found, skipped = self.taken()
        assert found is not None and found.step == 200, what
        assert [problem.step for problem in skipped] == [300] and skipped[0].reason, what
        assert not self.store.is_valid(300), what
        self.tried += 1

    def expect_restored(self) -> None:
        found, skipped = self.taken()
        assert found is not None and found.step == 300 and not skipped

    def change(self, path: Path, data: bytes, what: str) -> None:
        original = path.read_bytes()
        path.write_bytes(data)
        self.expect_refused(what)
        path.write_bytes(original)


def as_first_format(folder: Path) -> None:
    """As a checkpoint looked before there were pieces: a file had one digest, whatever its size."""
    manifest = decode((folder / "manifest.json").read_bytes())
    (folder / "manifest.json").write_bytes(encode(replace(manifest, piece_bytes=None)))


def in_small_pieces(folder: Path) -> None:
    """As another Crucible may save: a reader takes pieces of any size from 1 MiB to 1 GiB."""
    manifest = decode((folder / "manifest.json").read_bytes())
    (part,) = manifest.parts
    pieces = file_pieces(str(folder / manifest.root / part.name), 1 << 20)
    assert len(pieces) > len(part.pieces)
    cut = replace(manifest, piece_bytes=1 << 20, parts=(replace(part, pieces=pieces),))
    (folder / "manifest.json").write_bytes(encode(cut))


@pytest.fixture(params=KINDS)
def battery(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Battery]:
    made = Battery(tmp_path, request.param)
    made.expect_restored()
    yield made
    made.expect_restored()


def places(path: Path) -> range:
    """Every byte of a part; of a manifest, which is longer, every third."""
    return range(0, path.stat().st_size, 3 if path.suffix == ".json" else 1)


def test_a_flipped_byte_anywhere_is_noticed(battery: Battery) -> None:
    for path in battery.files:
        data = path.read_bytes()
        for place in places(path):
            flipped = data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :]
            battery.change(path, flipped, f"{path.name} byte {place}")
    assert battery.tried >= 400


def test_a_file_cut_short_anywhere_is_noticed(battery: Battery) -> None:
    for path in battery.files:
        data = path.read_bytes()
        for length in places(path):
            battery.change(path, data[:length], f"{path.name} cut to {length}")
    assert battery.tried >= 400


def test_extra_bytes_are_noticed(battery: Battery) -> None:
    for path in battery.files:
        for extra in (b"\0", b" ", b"\n", b"{}", os.urandom(4096)):
            battery.change(path, path.read_bytes() + extra, f"{path.name} + {extra[:8]!r}")
            battery.change(path, extra + path.read_bytes(), f"{extra[:8]!r} + {path.name}")


def test_a_missing_file_is_noticed(battery: Battery) -> None:
    for path in battery.files:
        path.rename(path.with_name("hidden"))
        battery.expect_refused(f"{path.name} missing")
        path.with_name("hidden").rename(path)


def test_a_file_replaced_by_something_else_is_noticed(battery: Battery) -> None:
    for path in battery.files:
        data = path.read_bytes()
        path.unlink()
        path.mkdir()
        battery.expect_refused(f"{path.name} a folder")
        path.rmdir()
        path.symlink_to("nowhere")
        battery.expect_refused(f"{path.name} a dangling link")
        path.unlink()
        os.mkfifo(path)
        battery.expect_refused(f"{path.name} a pipe")
        path.unlink()
        path.write_bytes(data)


def test_files_exchanged_for_each_other_are_noticed(battery: Battery) -> None:
    for first, second in itertools.combinations(battery.files, 2):
        one, two = first.read_bytes(), second.read_bytes()
        if one != two:
            first.write_bytes(two)
            second.write_bytes(one)
            battery.expect_refused(f"{first.name} and {second.name} exchanged")
            first.write_bytes(one)
            second.write_bytes(two)


def test_the_manifest_of_another_step_or_store_is_noticed(battery: Battery, tmp_path: Path) -> None:
    twin = Battery(tmp_path / "twin", battery.kind)  # same steps, same content, saved by someone else
    for path in battery.manifests:
        for step in (100, 200):
            battery.change(path, (Path(battery.store.folder(step)) / path.name).read_bytes(), f"that of step {step}")
        battery.change(path, (twin.newest / path.name).read_bytes(), "the same step of another store")


def test_shards_of_two_attempts_are_no_checkpoint(tmp_path: Path) -> None:
    battery, later = Battery(tmp_path, "shards"), Battery(tmp_path / "later", "shards", attempt=2)
    for path, other in zip(battery.manifests, later.manifests, strict=True):
        root = decode(other.read_bytes()).root
        shutil.copytree(later.newest / root, battery.newest / root)
        data = path.read_bytes()
        path.unlink()
        (path.parent / other.name).write_bytes(other.read_bytes())
        battery.expect_refused(f"{other.name} for {path.name}")
        (path.parent / other.name).rename(path)
        battery.expect_refused(f"{other.name} under the name of {path.name}")
        path.write_bytes(data)
    battery.expect_restored()


def test_a_whole_folder_moved_to_another_step_is_noticed(battery: Battery) -> None:
    kept = battery.newest.with_name("kept")
    battery.newest.rename(kept)
    for step in (100, 200):
        shutil.copytree(battery.store.folder(step), battery.newest)
        battery.expect_refused(f"step {step} posing as step 300")
        shutil.rmtree(battery.newest)
    kept.rename(battery.newest)


def test_parts_without_a_manifest_are_no_checkpoint(battery: Battery) -> None:
    for path in battery.manifests:
        path.rename(battery.newest.with_name(path.name))
    battery.expect_refused("no manifest")
    for path in battery.manifests:
        battery.newest.with_name(path.name).rename(path)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_rewriting_of_any_file_is_noticed(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    battery = Battery(tmp_path_factory.mktemp("battery"), data.draw(st.sampled_from(KINDS)))
    path = data.draw(st.sampled_from(battery.files))
    original = path.read_bytes()
    start = data.draw(st.integers(0, len(original)))
    end = data.draw(st.integers(start, len(original)))
    changed = original[:start] + data.draw(st.binary(max_size=40)) + original[end:]
    if changed != original:
        battery.change(path, changed, path.name)


def test_a_change_in_any_piece_of_a_long_file_is_noticed(tmp_path: Path) -> None:
    store = CheckpointStore(str(tmp_path / "store"))
    (tmp_path / "model").write_bytes(os.urandom((3 << 20) + 5))
    path = store.commit(tmp_path / "model", 1).path
    in_small_pieces(Path(store.folder(1)))
    saved = store.verify(1)
    for place in (0, (1 << 20) - 1, 1 << 20, 5 << 19, (3 << 20) + 4):
        with path.open("r+b") as file:
            file.seek(place)
            old = file.read(1)
            file.seek(place)
            file.write(bytes([old[0] ^ 1]))
        assert store.find(1) is None, place
        with path.open("r+b") as file:
            file.seek(place)
            file.write(old)
    assert store.find(1) == saved


@pytest.mark.parametrize("bad", range(1, 7))
def test_however_many_of_the_newest_are_corrupt_the_next_valid_one_is_taken(tmp_path: Path, bad: int) -> None:
    store = CheckpointStore(str(tmp_path / "store"))
    (tmp_path / "model").write_bytes(b"weights")
    saved = [store.commit(tmp_path / "model", step) for step in range(7)]
    for one in saved[7 - bad :]:
        one.path.write_bytes(b"WEIGHTS")
    skipped: list[CorruptCheckpoint] = []
    assert store.latest(skipped.append) == saved[6 - bad]
    assert len(skipped) == bad
