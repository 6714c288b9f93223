"""No change to a checkpoint goes unnoticed, and the next older valid one is taken instead (F35, F37; R8)."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.train.checkpoint_request import CorruptCheckpoint
from crucible.train.checkpoint_store import Checkpoint, CheckpointStore

PARTS = {"weights.bin": bytes(range(200)), "optimizer/state": b"momentum" * 9, "empty": b""}


class Battery:
    """A store with three checkpoints, whose newest is changed and put back."""

    def __init__(self, folder: Path) -> None:
        self.store = CheckpointStore(str(folder / "store"))
        source = folder / "source"
        for step in (100, 200, 300):
            for name, data in PARTS.items():
                path = source / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data and data + b"%d" % step)
            self.store.commit(source, step)
        self.newest = Path(self.store.folder(300))
        self.manifest = self.newest / "manifest.json"
        self.files = sorted(path for path in self.newest.rglob("*") if path.is_file())
        self.tried = 0

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


@pytest.fixture
def battery(tmp_path: Path) -> Iterator[Battery]:
    made = Battery(tmp_path)
    made.expect_restored()
    yield made
    made.expect_restored()


def test_a_flipped_byte_anywhere_is_noticed(battery: Battery) -> None:
    for path in battery.files:
        data = path.read_bytes()
        for place in range(len(data)):
            flipped = data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :]
            battery.change(path, flipped, f"{path.name} byte {place}")
    assert battery.tried >= 800


def test_a_file_cut_short_anywhere_is_noticed(battery: Battery) -> None:
    for path in battery.files:
        data = path.read_bytes()
        for length in range(len(data)):
            battery.change(path, data[:length], f"{path.name} cut to {length}")
    assert battery.tried >= 800


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
        if path == battery.manifest:
            continue
        data = path.read_bytes()
        path.unlink()
        path.mkdir()
        battery.expect_refused(f"{path.name} a folder")
        path.rmdir()
        path.symlink_to("nowhere")
        battery.expect_refused(f"{path.name} a dangling link")
        path.unlink()
        path.write_bytes(data)


def test_parts_exchanged_for_each_other_are_noticed(battery: Battery) -> None:
    first, second = [path for path in battery.files if path.stat().st_size and path != battery.manifest]
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)
    battery.expect_refused("exchanged")
    first.write_bytes(one)
    second.write_bytes(two)


def test_the_manifest_of_another_step_is_noticed(battery: Battery, tmp_path: Path) -> None:
    for step in (100, 200):
        other = (Path(battery.store.folder(step)) / "manifest.json").read_bytes()
        battery.change(battery.manifest, other, f"manifest of step {step}")
    twin = Battery(tmp_path / "twin")  # same steps, same content, saved by someone else
    battery.change(battery.manifest, twin.manifest.read_bytes(), "the same step of another store")


def test_a_whole_folder_moved_to_another_step_is_noticed(battery: Battery) -> None:
    kept = battery.newest.with_name("kept")
    battery.newest.rename(kept)
    shutil.copytree(battery.store.folder(100), battery.newest)
    battery.expect_refused("step 100 posing as step 300")
    shutil.rmtree(battery.newest)
    kept.rename(battery.newest)


def test_parts_without_a_manifest_are_no_checkpoint(battery: Battery) -> None:
    data = battery.manifest.read_bytes()
    battery.manifest.unlink()
    battery.expect_refused("no manifest")
    battery.manifest.write_bytes(data)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_rewriting_of_any_file_is_noticed(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    battery = Battery(tmp_path_factory.mktemp("battery"))
    path = data.draw(st.sampled_from(battery.files))
    original = path.read_bytes()
    start = data.draw(st.integers(0, len(original)))
    end = data.draw(st.integers(start, len(original)))
    changed = original[:start] + data.draw(st.binary(max_size=40)) + original[end:]
    if changed != original:
        battery.change(path, changed, path.name)


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
