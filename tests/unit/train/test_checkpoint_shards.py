"""Checkpoints that every rank saves its part of: there when all shards of one attempt are, never before (R8)."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from crucible import train
from crucible.train import checkpoint_parts, stderr
from crucible.train.checkpoint_layout import Edition, editions, is_manifest, shard_name, step_of
from crucible.train.checkpoint_manifest import Origin
from crucible.train.checkpoint_request import CheckpointError, CorruptCheckpoint
from crucible.train.checkpoint_retention import retain, sweep
from crucible.train.checkpoint_store import CheckpointStore


class Gang:
    """The ranks of one attempt, each with a store of its own, as if they were processes."""

    def __init__(self, folder: Path, size: int = 3, attempt: int = 1) -> None:
        self.folder = folder
        self.attempt = attempt
        self.ranks = [
            CheckpointStore(str(folder / "store"), Origin(size, rank, "job-1", attempt)) for rank in range(size)
        ]

    def save(self, step: int, ranks: "list[int] | None" = None, text: str = "weights") -> list[train.Checkpoint]:
        saved = []
        for rank in range(len(self.ranks)) if ranks is None else ranks:
            source = self.folder / f"source-{rank}"
            source.mkdir(exist_ok=True)
            (source / "part").write_bytes(self.content(step, rank, text))
            saved.append(self.ranks[rank].commit(source, step, {"rank": rank}, is_sharded=True))
        return saved

    def content(self, step: int, rank: int, text: str = "weights") -> bytes:
        return f"{text} {step} {rank} {self.attempt}".encode()

    def latest(self, rank: int = 0) -> "train.Checkpoint | None":
        return self.ranks[rank].latest(lambda problem: None)


@pytest.fixture
def gang(tmp_path: Path) -> Gang:
    return Gang(tmp_path)


def test_the_shards_of_all_ranks_are_one_checkpoint(gang: Gang) -> None:
    saved = gang.save(10)
    for rank, store in enumerate(gang.ranks):
        found = store.verify(10)
        assert found.path == saved[rank].path and found.metadata == {"rank": rank}
        assert [(path / "part").read_bytes() for path in found.shards] == [gang.content(10, r) for r in range(3)]
        assert (found.shard, found.shard_count, found.size_bytes) == (rank, 3, sum(one.size_bytes for one in saved))
    assert {one.uri for one in saved} == {found.uri}
    names = sorted(name for name in os.listdir(gang.ranks[0].folder(10)) if is_manifest(name))
    assert names == [f"manifest-00001-0000{rank}-of-00003.json" for rank in range(3)]


def test_what_a_rank_saved_speaks_of_its_own_shard(gang: Gang) -> None:
    (saved,) = gang.save(10, [2])
    assert (saved.shard, saved.shard_count, saved.shards) == (2, 3, (saved.path,))
    assert saved.size_bytes == len(gang.content(10, 2)) and saved.origin == gang.ranks[2].origin


def test_a_checkpoint_that_lacks_a_shard_is_passed_over(gang: Gang) -> None:
    gang.save(10)
    gang.save(20, [0, 2])
    skipped: list[CorruptCheckpoint] = []
    found = gang.ranks[1].latest(skipped.append)
    assert found is not None and found.step == 10
    assert [problem.reason for problem in skipped] == ["of attempt 1, 2 of 3 shards are there"]
    assert [one.step for one in gang.ranks[0].committed()] == [10]
    gang.save(20, [1])
    found = gang.latest()
    assert found is not None and found.step == 20


def test_shards_of_two_attempts_are_never_mixed(gang: Gang, tmp_path: Path) -> None:
    gang.save(10, [0])
    later = Gang(tmp_path, attempt=2)
    later.save(10, [1, 2])
    assert gang.latest() is None
    later.save(10, [0])
    found = gang.latest()
    assert found is not None and {path.read_bytes()[-1:] for path in paths_of(found)} == {b"2"}


def test_the_newest_complete_attempt_wins_and_an_older_one_takes_its_place(gang: Gang, tmp_path: Path) -> None:
    (tmp_path / "race").mkdir()
    gang.save(10)
    later = Gang(tmp_path / "race", attempt=2)
    for one in later.save(10):  # at the same moment, so that none saw the others
        os.rename(one.path, Path(gang.ranks[0].folder(10)) / one.path.name)
    for manifest in Path(later.ranks[0].folder(10)).glob("manifest-*"):
        os.rename(manifest, Path(gang.ranks[0].folder(10)) / manifest.name)
    found = gang.latest()
    assert found is not None and found.origin.attempt == 2
    paths_of(found)[1].write_bytes(b"torn")
    found = gang.latest()
    assert found is not None and found.origin.attempt == 1


def test_a_step_that_an_older_attempt_completed_late_is_not_saved_again(gang: Gang, tmp_path: Path) -> None:
    later = Gang(tmp_path, attempt=2)
    gang.save(10, [0, 1])
    later.save(10, [0])
    gang.save(10, [2])
    assert [one.origin.attempt for one in later.save(10, [1, 2])] == [1, 1]
    found = later.latest()
    assert found is not None and found.origin.attempt == 1


def test_a_manifest_under_the_name_of_another_shard_is_refused(gang: Gang) -> None:
    gang.save(10)
    folder = Path(gang.ranks[0].folder(10))
    first, second = folder / shard_name(1, 0, 3), folder / shard_name(1, 1, 3)
    second.write_bytes(first.read_bytes())
    with pytest.raises(CorruptCheckpoint, match="is that of shard 0 of 3, attempt 1"):
        gang.ranks[0].verify(10)


def test_one_manifest_for_all_also_counts(gang: Gang, tmp_path: Path) -> None:
    gang.save(10, [0])
    (tmp_path / "model").write_bytes(b"whole")
    whole = gang.ranks[1].commit(tmp_path / "model", 10)
    found = gang.latest()
    assert found == whole and found.shards == (whole.path,) and found.path.read_bytes() == b"whole"
    assert gang.save(10, [2]) == [whole], "the step has a checkpoint already"


def test_another_number_of_ranks_gets_the_first_shard_and_all_of_them(gang: Gang, tmp_path: Path) -> None:
    saved = gang.save(10)
    for rank in (0, 1):
        found = Gang(tmp_path, size=2, attempt=2).latest(rank)
        assert found is not None and found.path == saved[0].path
        assert found.shards == tuple(one.path for one in saved)


def test_a_rank_that_saves_a_step_twice_writes_once(gang: Gang) -> None:
    first = gang.save(10, [1])
    assert gang.save(10, [1], "changed") == first
    assert gang.save(10, [0, 2])[0] != first[0]
    assert gang.save(10, [1], "changed") == first


def test_a_shard_left_by_an_earlier_process_of_the_same_attempt_is_saved_anew(gang: Gang, tmp_path: Path) -> None:
    gang.save(10, [0])
    restarted = Gang(tmp_path)
    restarted.save(10, [0, 1, 2], "other")
    found = gang.latest()
    assert found is not None
    assert [path.read_bytes() for path in paths_of(found)] == [gang.content(10, rank, "other") for rank in range(3)]


@pytest.mark.parametrize(("rank", "size"), [(2, 2), (-1, 2), (0, 0), (0, 70_000)])
def test_a_rank_that_cannot_be_is_refused_and_leaves_nothing(tmp_path: Path, rank: int, size: int) -> None:
    store = CheckpointStore(str(tmp_path / "store"), Origin(size, rank, "job-1", 1))
    (tmp_path / "model").write_bytes(b"x")
    with pytest.raises(CheckpointError, match="has no shard to save"):
        store.commit(tmp_path / "model", 1, is_sharded=True)
    assert not (tmp_path / "store").exists()


def test_retention_counts_whole_checkpoints_and_takes_a_step_whole(gang: Gang) -> None:
    for step in (10, 20, 30, 40):
        gang.save(step)
    gang.save(50, [0])
    assert retain(gang.ranks[0], 2) == [20, 10]
    assert sorted(os.listdir(gang.ranks[0].root)) == ["step-000000030", "step-000000040", "step-000000050"]


def test_where_the_other_shards_are_elsewhere_the_newest_steps_stay(gang: Gang) -> None:
    gang.save(10)  # brought here by an agent, with the shards of the other machines
    for step in (20, 30, 40, 50):
        gang.save(step, [0])
    assert retain(gang.ranks[0], 3) == [20]
    gang.save(60, [0])
    assert retain(gang.ranks[0], 3) == [30]
    found = gang.latest()
    assert found is not None and found.step == 10


def test_retention_does_not_read_what_other_ranks_of_the_attempt_saved(
    gang: Gang, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_parts, "STAMP_S", -1.0)  # as if the files were old
    for step in (10, 20, 30):
        gang.save(step)
    read: list[str] = []
    real = checkpoint_parts.file_pieces
    monkeypatch.setattr(checkpoint_parts, "file_pieces", lambda path, size: (read.append(path), real(path, size))[1])
    assert retain(gang.ranks[1], 2) == [10] and read == []
    later = Gang(tmp_path, attempt=2)
    assert retain(later.ranks[1], 2) == [] and len(read) == 6, "what an earlier attempt saved is read, once"
    assert retain(later.ranks[1], 2) == [] and len(read) == 6


def test_the_sweep_spares_what_any_shard_names(gang: Gang) -> None:
    gang.save(10, [0, 1])
    folder = Path(gang.ranks[0].folder(10))
    kept = sorted(os.listdir(folder))
    (folder / ".tmp-dead").mkdir()
    (folder / "parts-0000000000000000").mkdir()
    for path in [folder, *folder.rglob("*")]:
        os.utime(path, (1, 1))
    sweep(gang.ranks[0])
    assert sorted(os.listdir(folder)) == kept


def test_names_say_which_manifests_belong_together() -> None:
    names = [shard_name(12, 0, 2), shard_name(12, 1, 2), shard_name(3, 1, 2), shard_name(12, 0, 4), "manifest.json"]
    assert editions([*names, "parts-0", "manifest-00001-00002-of-00002.json", "manifest-1-0-of-1.json"]) == [
        Edition(12, 4, 1),
        Edition(12, 2, 2),
        Edition(3, 2, 1),
        Edition(None, 1, 1),
    ]
    assert Edition(12, 2, 2).names == names[:2] and shard_name(123_456, 0, 1) == "manifest-123456-00000-of-00001.json"
    assert editions([shard_name(123_456, 0, 1)]) == [Edition(123_456, 1, 1)]
    assert not is_manifest("manifest-000001-00000-of-00001.json"), "one name for each shard"
    assert step_of("step-000000007") == 7 and step_of("step-0000000007") is None and step_of("step-٠٠٠٠٠٠٠٠٧") is None


def test_the_agent_hears_of_every_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRUCIBLE_RUN_DIR", str(tmp_path))
    monkeypatch.setenv("CRUCIBLE_CHECKPOINTS", str(tmp_path / "store"))
    monkeypatch.setenv("CRUCIBLE_ATTEMPT", "4")
    monkeypatch.setenv("WORLD_SIZE", "2")
    (tmp_path / "model").write_bytes(b"weights")
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        train.save_checkpoint(tmp_path / "model", 7, {"by": rank}, sharded=True)
    monkeypatch.setenv("WORLD_SIZE", "1")
    train.save_checkpoint(tmp_path / "model", 8)
    said = [event for event in events_in(tmp_path) if event["type"] == "checkpoint"]
    assert [(e["step"], e["shard"], e["shards"], e["size_bytes"]) for e in said] == [
        (7, 0, 2, 7),
        (7, 1, 2, 7),
        (8, 0, 1, 7),
    ]
    assert said[0]["manifest_sha256"] != said[1]["manifest_sha256"] and said[1]["metadata"] == {"by": "1"}


def test_where_nobody_counts_attempts_the_script_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stderr, "_said", set())
    monkeypatch.setenv("CRUCIBLE_CHECKPOINTS", str(tmp_path / "store"))
    monkeypatch.delenv("CRUCIBLE_ATTEMPT", raising=False)
    (tmp_path / "model").write_bytes(b"weights")
    train.save_checkpoint(tmp_path / "model", 1, sharded=True)
    assert capsys.readouterr().err == "", "one rank alone mixes nothing"
    monkeypatch.setenv("WORLD_SIZE", "2")
    for step in (2, 3):
        train.save_checkpoint(tmp_path / "model", step, sharded=True)
    assert capsys.readouterr().err.count("set CRUCIBLE_ATTEMPT") == 1


def paths_of(checkpoint: train.Checkpoint) -> list[Path]:
    return [path / "part" for path in checkpoint.shards]


def events_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
