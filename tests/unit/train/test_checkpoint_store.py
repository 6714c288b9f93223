"""Saving, finding and listing checkpoints on files (F2; R8)."""

import errno
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crucible import train
from crucible.train import checkpoint_parts, durable
from crucible.train.checkpoint_manifest import InvalidManifest, Manifest, Part, decode, encode, is_safe_name
from crucible.train.checkpoint_request import CheckpointError, CorruptCheckpoint, store_path
from crucible.train.checkpoint_retention import retain, sweep
from crucible.train.checkpoint_store import CheckpointStore


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    return CheckpointStore(str(tmp_path / "store"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.bin"
    path.write_bytes(b"weights")
    return path


def no_skips(problem: CorruptCheckpoint) -> None:
    raise AssertionError(problem)


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_saved_file_comes_back_as_a_file(store: CheckpointStore, model: Path) -> None:
    saved = store.commit(model, 300, {"loss": 0.5})
    found = store.latest(no_skips)
    assert found == saved
    assert found.path.name == "model.bin" and found.path.read_bytes() == b"weights"
    assert (found.step, found.size_bytes, found.metadata) == (300, 7, {"loss": 0.5})
    assert found.uri == Path(store.folder(300)).as_uri() and found.uri.endswith("/step-000000300")


def test_a_saved_folder_comes_back_as_a_folder_with_all_its_names(store: CheckpointStore, tmp_path: Path) -> None:
    source = tmp_path / "модель ☃"
    (source / "nested" / "deeper").mkdir(parents=True)
    contents = {"empty": b"", "веса.bin": b"\0\xff", "nested/a b\nc": b"1", "nested/deeper/x": b"2", "-rf": b"3"}
    for name, data in contents.items():
        (source / name).write_bytes(data)
    (tmp_path / "elsewhere").write_bytes(b"linked")
    (source / "link").symlink_to(tmp_path / "elsewhere")
    store.commit(source, 1)
    found = store.latest(no_skips)
    assert found is not None and files_in(found.path) == {**contents, "link": b"linked"}
    assert not (found.path / "link").is_symlink()


def test_names_that_are_not_unicode_survive(store: CheckpointStore, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    Path(os.fsdecode(os.fsencode(source) + b"/bad\xff")).write_bytes(b"x")
    store.commit(source, 1)
    found = store.latest(no_skips)
    assert found is not None and os.listdir(os.fsencode(found.path)) == [b"bad\xff"]


def test_the_first_commit_of_a_step_wins(store: CheckpointStore, model: Path) -> None:
    first = store.commit(model, 5)
    model.write_bytes(b"another rank's weights")
    assert store.commit(model, 5) == first
    assert sorted(os.listdir(store.folder(5))) == ["manifest.json", first.path.parent.name]


def test_saving_again_replaces_a_corrupt_checkpoint_of_the_same_step(store: CheckpointStore, model: Path) -> None:
    first = store.commit(model, 5)
    first.path.write_bytes(b"w")
    second = store.commit(model, 5)
    assert second.path != first.path and store.latest(no_skips) == second


def test_two_threads_that_save_the_same_step_get_the_same_checkpoint(store: CheckpointStore, tmp_path: Path) -> None:
    sources = []
    for name in ("a", "b", "c", "d"):
        (tmp_path / name).write_bytes(name.encode() * 100_000)
        sources.append(tmp_path / name)
    for step in range(8):
        saved: list[train.Checkpoint] = []
        barrier = threading.Barrier(len(sources))

        def save(source: Path, step: int = step, saved: Any = saved, barrier: Any = barrier) -> None:
            barrier.wait()
            saved.append(CheckpointStore(store.root).commit(source, step))

        threads = [threading.Thread(target=save, args=(source,)) for source in sources]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(saved) == 4 and len({one.manifest_sha256 for one in saved}) == 1
        assert len(os.listdir(store.folder(step))) == 2, "the losers leave nothing behind"


def test_listing_is_newest_first_and_by_number(store: CheckpointStore, model: Path) -> None:
    for step in (2, 10, 1_000_000_000, 9):
        store.commit(model, step)
    assert [one.step for one in store.committed()] == [1_000_000_000, 10, 9, 2]
    latest = store.latest(no_skips)
    assert latest is not None and latest.step == 1_000_000_000


def test_a_store_that_does_not_exist_is_empty(store: CheckpointStore) -> None:
    assert store.latest(no_skips) is None and store.committed() == [] and store.find(3) is None


def test_a_store_that_cannot_be_read_is_not_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(CheckpointError, match="cannot be listed"):
        CheckpointStore(str(tmp_path / "file")).latest(no_skips)


def test_a_step_whose_folder_cannot_be_read_is_passed_over(
    store: CheckpointStore, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = store.commit(model, 1)
    store.commit(model, 2)
    real = os.listdir

    def listdir(path: str) -> list[str]:
        if path == store.folder(2):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "listdir", listdir)
    skipped: list[CorruptCheckpoint] = []
    assert store.latest(skipped.append) == first and "cannot be read" in skipped[0].reason


@pytest.mark.parametrize("step", [-1, 1.5, "x", None, 10**18, float("nan")])
def test_a_step_must_be_a_count(store: CheckpointStore, model: Path, step: Any) -> None:
    with pytest.raises(CheckpointError, match="whole number"):
        store.commit(model, step)


def test_steps_and_metadata_may_be_numpy_values(store: CheckpointStore, model: Path) -> None:
    saved = store.commit(model, np.int64(4), {"loss": np.float32(0.5), "worst": float("nan"), "shape": (2, 3)})
    assert saved.step == 4 and saved.metadata == {"loss": 0.5, "worst": None, "shape": [2, 3]}
    assert store.latest(no_skips) == saved


@pytest.mark.parametrize("metadata", [{"a": object()}, {"a": "x" * 70_000}, {"a": {1: 2}}])
def test_metadata_must_be_small_json(store: CheckpointStore, model: Path, metadata: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError, match="metadata"):
        store.commit(model, 1, metadata)


def make_pipe(path: Path) -> None:
    path.mkdir()
    os.mkfifo(path / "pipe")


def make_folder_link(path: Path) -> None:
    path.mkdir()
    (path / "link").symlink_to(path.parent, target_is_directory=True)


def make_dangling_link(path: Path) -> None:
    path.mkdir()
    (path / "link").symlink_to(path / "nowhere")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "No such file"),
        (lambda path: path.mkdir(), "has no files"),
        (make_pipe, "not a regular file"),
        (make_folder_link, "link to a folder"),
        (make_dangling_link, "No such file"),
    ],
)
def test_a_source_that_cannot_be_saved_is_refused_and_leaves_nothing(
    store: CheckpointStore, tmp_path: Path, make: Callable[[Path], None], words: str
) -> None:
    make(tmp_path / "source")
    with pytest.raises(CheckpointError, match=words):
        store.commit(tmp_path / "source", 7)
    assert store.committed() == [] and files_in(tmp_path / "store") == {}


def test_a_source_that_contains_the_store_is_refused(store: CheckpointStore, tmp_path: Path, model: Path) -> None:
    store.commit(model, 1)
    with pytest.raises(CheckpointError, match="contains the checkpoints themselves"):
        store.commit(tmp_path, 2)


def test_a_file_that_vanishes_while_it_is_saved_commits_nothing(
    store: CheckpointStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("a", "b"):
        (source / name).write_bytes(b"x")
    found = checkpoint_parts.find_source(str(source))
    (source / "b").unlink()
    monkeypatch.setattr("crucible.train.checkpoint_store.find_source", lambda path: found)
    with pytest.raises(CheckpointError, match="step 3 was not saved"):
        store.commit(source, 3)
    assert files_in(tmp_path / "store") == {}


CALLS = ["write", "fsync", "rename", "link", "mkdir"]


@pytest.mark.parametrize("call", CALLS)
def test_a_disk_that_fills_up_at_any_call_commits_nothing_and_harms_nothing(
    store: CheckpointStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    source = tmp_path / "source"
    (source / "nested").mkdir(parents=True)
    for name in ("a", "b", "nested/c"):
        (source / name).write_bytes(os.urandom(100))
    before = store.commit(source, 1)
    kept = files_in(tmp_path / "store")
    real = getattr(os, call)
    for survived in range(100):
        left = [survived]

        def fail(*args: Any, left: list[int] = left, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*args, **kwargs)

        problem = ""
        with monkeypatch.context() as patch:
            patch.setattr(durable.os, call, fail)
            try:
                saved = store.commit(source, 2)
            except CheckpointError as error:
                problem = str(error)
        if not problem:
            break
        assert "no space left" in problem and "checkpoint.keep" in problem
        if store.find(2) is None:
            assert files_in(tmp_path / "store") == kept
            assert store.latest(lambda skipped: None) == before
        else:  # the flush after the commit failed
            assert call == "fsync"
        store.discard(2)
    assert survived >= 1 and store.latest(no_skips) == saved


def test_a_file_system_without_links_commits_all_the_same(
    store: CheckpointStore, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(source: str, target: str) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(durable.os, "link", no_links)
    first = store.commit(model, 1)
    model.write_bytes(b"other")
    assert store.commit(model, 1) == first == store.latest(no_skips)
    assert sorted(os.listdir(store.folder(1))) == ["manifest.json", first.path.parent.name]


@pytest.mark.parametrize("name", ["", ".", "..", "/etc/passwd", "a/../b", "a//b", "../x", "a/", "x\0y", "./a"])
def test_a_name_that_would_leave_the_folder_is_refused(name: str) -> None:
    assert not is_safe_name(name)
    manifest = Manifest(1, "parts-" + "0" * 16, (Part(name, 0, ()),), True, 0)
    with pytest.raises(InvalidManifest, match="leave"):
        decode(encode(manifest))


@pytest.mark.parametrize(
    "root", ["..", "parts-../../../../etc", "/etc", "parts-", "parts-" + "0" * 16 + "/..", "parts-" + "0" * 16 + "\n"]
)
def test_a_parts_folder_that_is_not_ours_is_refused(root: str) -> None:
    with pytest.raises(InvalidManifest, match="not one of ours"):
        decode(encode(Manifest(1, root, (Part("a", 0, ()),), True, 0)))


def test_a_part_behind_a_link_is_refused(store: CheckpointStore, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "nested").mkdir(parents=True)
    (source / "nested" / "a").write_bytes(b"x")
    saved = store.commit(source, 1)
    (saved.path / "nested").rename(tmp_path / "moved")
    (saved.path / "nested").symlink_to(tmp_path / "moved")
    with pytest.raises(CorruptCheckpoint, match="not a plain file"):
        store.verify(1)


def test_a_manifest_of_a_newer_format_says_so(store: CheckpointStore, model: Path) -> None:
    store.commit(model, 1)
    path = Path(store.folder(1)) / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 3}))
    with pytest.raises(CorruptCheckpoint, match="newer Crucible"):
        store.verify(1)


def test_retention_keeps_the_newest_valid_ones(store: CheckpointStore, model: Path) -> None:
    for step in range(1, 7):
        store.commit(model, step)
    assert retain(store, 3) == [3, 2, 1]
    assert [one.step for one in store.committed()] == [6, 5, 4]
    assert sorted(os.listdir(store.root)) == ["step-000000004", "step-000000005", "step-000000006"]


def test_retention_never_keeps_fewer_than_two(store: CheckpointStore, model: Path) -> None:
    for step in range(4):
        store.commit(model, step)
    retain(store, 0)
    assert [one.step for one in store.committed()] == [3, 2]


def test_retention_does_not_read_a_checkpoint_again_that_did_not_change(
    store: CheckpointStore, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_parts, "STAMP_S", -1.0)  # as if the files were old
    read: list[str] = []
    real = checkpoint_parts.file_pieces
    monkeypatch.setattr(checkpoint_parts, "file_pieces", lambda path, size: (read.append(path), real(path, size))[1])
    for step in range(4):
        saved = store.commit(model, step)
    os.link(saved.path, model.with_name("an agent's"))  # which uploads it
    retain(store, 3)
    assert read == []
    changed = store.committed()[0].path
    changed.write_bytes(b"WEIGHTS")
    assert not store.is_valid(3) and read == [os.path.realpath(changed)]


def test_the_sweep_removes_what_dead_savers_left_and_nothing_else(store: CheckpointStore, model: Path) -> None:
    kept = store.commit(model, 1)
    folder = Path(store.folder(1))
    for name in (".tmp-dead", "parts-0000000000000000", ".tmp-alive"):
        (folder / name / "deep").mkdir(parents=True)
        (folder / name / "deep" / "file").write_bytes(b"x")
    (folder / ".manifest-dead").write_bytes(b"{")
    (folder / "notes.txt").write_bytes(b"the user's own")
    torn = Path(store.folder(2))
    (torn / ".tmp-dead").mkdir(parents=True)
    for path in [*folder.rglob("*"), *torn.rglob("*"), torn]:
        os.utime(path, (1, 1), follow_symlinks=False)
    os.utime(folder / ".tmp-alive" / "deep" / "file")
    sweep(store)
    assert sorted(os.listdir(folder)) == [".tmp-alive", "manifest.json", "notes.txt", kept.path.parent.name]
    os.utime(torn, (1, 1))
    sweep(store)
    assert not torn.exists() and store.latest(no_skips) == kept


@pytest.mark.parametrize(
    ("location", "path"),
    [("file:///a/b%20c", "/a/b c"), ("file://localhost/x", "/x"), ("/x/../y", "/y"), ("FILE:///z", "/z")],
)
def test_a_location_is_a_path_or_a_file_uri(location: str, path: str) -> None:
    assert store_path(location) == path


@pytest.mark.parametrize("location", ["s3://bucket/x", "file://host/x", "file://x", "gs://b"])
def test_other_storage_is_refused_with_what_would_work(location: str) -> None:
    with pytest.raises(CheckpointError, match="file:///"):
        store_path(location)


def test_a_script_saves_lists_and_finds_its_checkpoints(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    monkeypatch.setenv("CRUCIBLE_RUN_DIR", str(run_dir))
    monkeypatch.setenv("CRUCIBLE_CHECKPOINTS", (tmp_path / "lineage").as_uri())
    monkeypatch.setenv("CRUCIBLE_CHECKPOINT_KEEP", "2")
    monkeypatch.setenv("CRUCIBLE_JOB_ID", "job-1")
    monkeypatch.setenv("CRUCIBLE_ATTEMPT", "3")
    assert train.latest_checkpoint() is None
    for step in (10, 20, 30):
        saved = train.save_checkpoint(str(model), step, {"loss": 1 / step})
    assert [one.step for one in train.checkpoints()] == [20, 30]
    assert train.checkpoint_at(20) is not None and train.checkpoint_at(10) is None
    assert (saved.origin.job_id, saved.origin.attempt) == ("job-1", 3)
    saved.path.write_bytes(b"torn")
    latest = train.latest_checkpoint()
    assert latest is not None and latest.step == 20
    assert "step 30 is not usable" in capsys.readouterr().err
    events = [json.loads(line) for line in (run_dir / "events.jsonl").read_text().splitlines()]
    assert [event["type"] for event in events] == ["checkpoint_began", "checkpoint"] * 3
    last = events[-1]
    assert (last["uri"], last["manifest_sha256"]) == (saved.uri, saved.manifest_sha256)
    assert last["metadata"] == {"loss": 1 / 30}


def test_a_save_that_fails_is_reported_and_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRUCIBLE_RUN_DIR", str(tmp_path))
    monkeypatch.setenv("CRUCIBLE_CHECKPOINTS", str(tmp_path / "store"))
    with pytest.raises(train.CheckpointError):
        train.save_checkpoint(tmp_path / "missing", 4)
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [event["type"] for event in events] == ["checkpoint_began", "checkpoint_failed"]


def test_outside_crucible_checkpoints_go_to_a_folder_beside_the_script(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CRUCIBLE_RUN_DIR", "CRUCIBLE_CHECKPOINTS", "CRUCIBLE_CHECKPOINT_KEEP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    train.save_checkpoint(model, 1)
    latest = train.latest_checkpoint()
    assert latest is not None and latest.path.is_relative_to(tmp_path / "checkpoints")
