"""Whatever was saved, torn or lost before, retention never takes the last two valid checkpoints (R8)."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.train.checkpoint_manifest import Origin
from crucible.train.checkpoint_retention import retain, sweep
from crucible.train.checkpoint_store import CheckpointStore

DAMAGES = ("truncate", "flip", "lose a part", "lose the manifest", "swap the manifest")

operations = st.lists(
    st.one_of(
        st.tuples(st.just("save"), st.integers(0, 9)),
        st.tuples(st.just("save all shards"), st.integers(0, 9)),
        st.tuples(st.just("save a shard"), st.integers(0, 9)),
        st.tuples(st.sampled_from(DAMAGES), st.integers(0, 9)),
        st.tuples(st.just("retain"), st.integers(-1, 5)),
        st.tuples(st.just("sweep"), st.just(0)),
    ),
    min_size=4,
    max_size=24,
)


def valid_steps(store: CheckpointStore) -> list[int]:
    """By a store without memory."""
    fresh = CheckpointStore(store.root)
    return [step for step in fresh.steps() if fresh.find(step) is not None]


def damage(store: CheckpointStore, how: str, step: int) -> None:
    checkpoint = store.find(step)
    if checkpoint is None:
        return
    manifest = next(path for path in Path(store.folder(step)).glob("manifest*.json"))
    match how:
        case "truncate":
            checkpoint.path.write_bytes(b"")
        case "flip":
            checkpoint.path.write_bytes(b"W" + checkpoint.path.read_bytes()[1:])
        case "lose a part":
            checkpoint.path.unlink()
        case "lose the manifest":
            manifest.unlink()
        case "swap the manifest":
            others = [s for s in valid_steps(store) if s != step]
            if others:
                other = next(path for path in Path(store.folder(others[0])).glob("manifest*.json"))
                manifest.write_bytes(other.read_bytes())


@settings(max_examples=80, deadline=None)
@given(operations=operations)
def test_the_last_two_valid_checkpoints_are_never_removed(
    operations: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("retention")
    store = CheckpointStore(str(folder / "store"))
    gang = [CheckpointStore(store.root, Origin(2, rank, "job-1", 1)) for rank in range(2)]
    (folder / "model").write_bytes(b"weights")
    for operation, number in operations:
        before = valid_steps(store)
        match operation:
            case "save":
                store.commit(folder / "model", number)
                assert number in valid_steps(store)
            case "save all shards":
                for rank in gang:
                    rank.commit(folder / "model", number, is_sharded=True)
                assert number in valid_steps(store)
            case "save a shard":
                gang[0].commit(folder / "model", number, is_sharded=True)
                assert set(before) <= set(valid_steps(store))
            case "retain":
                retain(store, number)
                kept = max(number, 2)
                assert valid_steps(store) == before[:kept]
            case "sweep":
                sweep(store, stale_s=0)
                assert valid_steps(store) == before
            case _:
                damage(store, operation, number)
