"""Whatever was stored, by whomever, and whoever may still write: retention never tears a checkpoint (R8)."""

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.core.checkpoint import Shard, manifest_key, part_keys, removable, wholes, without
from making import NOW

ATTEMPTS, RANKS = 3, 2


@st.composite
def stored(draw: st.DrawFn) -> list[Shard]:
    """In the order in which they were stored; each may refer to objects of earlier ones."""
    shards: list[Shard] = []
    for n in range(draw(st.integers(0, 14))):
        count = draw(st.integers(1, RANKS))
        rank, attempt = draw(st.integers(0, RANKS - 1)), draw(st.integers(0, ATTEMPTS - 1))
        slot = f"{attempt:05d}-{rank:05d}-{n:016x}"
        older = [key for one in shards for key in one.objects]
        refers = draw(st.lists(st.sampled_from(older), unique=True, max_size=3)) if older else []
        shards.append(
            Shard(
                key=manifest_key(slot),
                slot=slot,
                step=draw(st.integers(0, 5)),
                job_id=draw(st.sampled_from(["a", "b"])),
                attempt=attempt,
                number=draw(st.integers(0, count - 1)),
                count=count,
                size_bytes=1,
                objects=(*part_keys(slot, 0, draw(st.integers(0, 2))), *refers),
                sha256="0" * 64,
                stored_at=NOW + timedelta(seconds=n),
            )
        )
    return shards


loose = st.lists(st.builds(lambda a, n: f"parts/{a:05d}-00000-{n:016x}/00000", st.integers(0, 2), st.integers(50, 55)))
open_attempts = st.frozensets(st.integers(0, ATTEMPTS - 1))
live_attempts = st.frozensets(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, ATTEMPTS - 1)), max_size=1)


@settings(max_examples=150, deadline=None)
@given(shards=stored(), more=loose, opened=open_attempts, live=live_attempts, keep=st.integers(0, 4))
def test_nothing_kept_refers_to_something_removed_and_the_last_two_stay(
    shards: list[Shard], more: list[str], opened: frozenset[int], live: frozenset[tuple[str, int]], keep: int
) -> None:
    def is_open(slot: str) -> bool:
        return int(slot[:5]) in opened

    listed = {key for one in shards for key in one.objects} | set(more)
    gone = removable(shards, (), listed, keep=keep, live=live, is_open=is_open)
    kept = [one for one in shards if one.key not in gone.manifests]
    assert not {key for one in kept for key in one.objects} & set(gone.objects)
    before, after = wholes(shards), wholes(kept)
    wanted = sorted({one.step for one in before}, reverse=True)[: max(keep, 2)]
    assert sorted({one.step for one in after}, reverse=True)[: len(wanted)] == wanted
    for key in gone.objects:
        committed = {one.slot for one in shards}
        assert key.split("/")[1] in committed or not is_open(key.split("/")[1])


@settings(max_examples=150, deadline=None)
@given(shards=stored())
def test_what_counts_as_whole_was_saved_by_one_attempt_and_lacks_nothing(shards: list[Shard]) -> None:
    for whole in wholes(shards):
        assert len({(one.job_id, one.attempt, one.step, one.count) for one in whole.shards}) == 1
        assert [one.number for one in whole.shards] == list(range(whole.first.count))


@settings(max_examples=100, deadline=None)
@given(shards=stored(), step=st.integers(0, 5))
def test_removing_a_step_takes_all_of_it_and_nothing_that_another_needs(shards: list[Shard], step: int) -> None:
    gone = without(shards, step)
    kept = [one for one in shards if one.key not in gone.manifests]
    assert not {key for one in kept for key in one.objects} & set(gone.objects)
    assert all(one.step != step for one in kept)


@settings(max_examples=100, deadline=None)
@given(shards=stored(), opened=open_attempts)
def test_a_second_pass_finds_nothing_more_to_do(shards: list[Shard], opened: frozenset[int]) -> None:
    def is_open(slot: str) -> bool:
        return int(slot[:5]) in opened

    listed = {key for one in shards for key in one.objects}
    gone = removable(shards, (), listed, keep=2, live=(), is_open=is_open)
    kept = [one for one in shards if one.key not in gone.manifests]
    again = removable(kept, (), listed - set(gone.objects), keep=2, live=(), is_open=is_open)
    assert again.manifests == () and again.objects == ()
