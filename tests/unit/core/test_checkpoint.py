"""Which checkpoints in storage count, in which order they are tried, and what may go."""

from datetime import timedelta

import pytest

from crucible.core import attempt as attempts
from crucible.core.checkpoint import (
    Removal,
    Shard,
    folder_of_manifest,
    is_carried,
    is_carried_uri,
    is_committed,
    is_given_up,
    manifest_key,
    newest,
    part_keys,
    removable,
    slot_of_manifest,
    wholes,
    without,
)
from crucible.model.attempt import AttemptEnded, AttemptPhase, Outcome
from crucible.model.change import changed
from making import NOW, an_attempt


def slot(attempt: int, rank: int, n: int) -> str:
    return f"{attempt:05d}-{rank:05d}-{n:016x}"


def shard(
    step: int, *, attempt: int = 0, number: int = 0, count: int = 1, n: int | None = None, refers: tuple[str, ...] = ()
) -> Shard:
    name = slot(attempt, number, step if n is None else n)
    return Shard(
        key=manifest_key(name),
        slot=name,
        step=step,
        job_id="j",
        attempt=attempt,
        number=number,
        count=count,
        size_bytes=10,
        objects=(*part_keys(name, 0, 2), *refers),
        sha256="0" * 64,
        stored_at=NOW + timedelta(seconds=(step if n is None else n) + 1000 * attempt),
    )


def objects(*shards: Shard) -> list[str]:
    return sorted({key for one in shards for key in one.objects})


def test_who_carries() -> None:
    assert is_carried("s3://bucket/x", shares_files=True, has_carried=False)
    assert not is_carried("/mnt/x", shares_files=False, has_carried=True)
    assert not is_carried("file:///mnt/x", shares_files=False, has_carried=True)
    assert is_carried(None, shares_files=False, has_carried=False)
    assert is_carried(None, shares_files=True, has_carried=True)
    assert not is_carried(None, shares_files=True, has_carried=False)


def test_a_checkpoint_is_there_when_all_shards_of_one_attempt_are() -> None:
    halves = [shard(5, number=0, count=2), shard(5, attempt=1, number=1, count=2)]
    assert wholes(halves) == ()
    (whole,) = wholes([*halves, shard(5, number=1, count=2)])
    assert [one.number for one in whole.shards] == [0, 1] and whole.size_bytes == 20
    assert {one.attempt for one in whole.shards} == {0}


def test_shards_of_two_jobs_that_share_a_place_never_mix() -> None:
    one, other = shard(5, number=0, count=2), shard(5, number=1, count=2)
    foreign = Shard(**{name: getattr(other, name) for name in Shard.__dataclass_fields__} | {"job_id": "k"})
    assert wholes([one, foreign]) == ()


def test_the_newest_step_comes_first_and_of_one_step_what_was_stored_last() -> None:
    found = wholes([shard(1), shard(9), shard(5), shard(9, attempt=2)])
    assert [(one.step, one.first.attempt) for one in found] == [(9, 2), (9, 0), (5, 0), (1, 0)]


def test_older_than_the_newest_few_goes_and_what_others_refer_to_stays() -> None:
    first = shard(1)
    shards = [first, shard(2, refers=first.objects[:1]), shard(3, refers=first.objects[:1])]
    gone = removable(shards, (), objects(*shards), keep=2, live=(), is_open=lambda _: False)
    assert gone == Removal((first.key,), first.objects[1:])


def test_never_fewer_than_two_are_kept() -> None:
    shards = [shard(1), shard(2), shard(3)]
    gone = removable(shards, (), objects(*shards), keep=1, live=(), is_open=lambda _: False)
    assert gone.manifests == (shards[0].key,)


def test_what_a_job_saves_after_it_had_to_go_back_does_not_give_way_to_what_it_could_not_use() -> None:
    old = [shard(100, n=1), shard(200, n=2), shard(300, n=3)]
    new = [shard(110, attempt=1, n=4), shard(120, attempt=1, n=5)]
    kept = {one.step for one in newest(wholes([*old, *new]), 2)}
    assert kept == {300, 200, 110, 120}


def test_nothing_goes_while_a_live_attempt_may_still_be_building_on_anything() -> None:
    shards = [shard(1), shard(2), shard(3), shard(4)]
    for live, manifests in (({("j", 1)}, 0), ({("j", 0)}, 2)):
        gone = removable(shards, (), objects(*shards), keep=2, live=live, is_open=lambda _: False)
        assert len(gone.manifests) == manifests


def test_what_a_live_attempt_began_with_stays_while_it_lives() -> None:
    shards = [shard(step) for step in (1, 2, 3)] + [shard(step, attempt=1) for step in (4, 5, 6, 7)]
    live = removable(shards, (), objects(*shards), keep=2, live={("j", 1)}, is_open=lambda _: False)
    over = removable(shards, (), objects(*shards), keep=2, live=(), is_open=lambda _: False)
    assert set(live.manifests) == {shards[0].key, shards[3].key, shards[4].key}
    assert set(over.manifests) == {one.key for one in shards[:5]}


def test_an_upload_under_way_is_left_alone_and_its_leftovers_go_when_nobody_can_commit_them() -> None:
    shards = [shard(1), shard(2)]
    loose = part_keys(slot(0, 0, 99), 0, 3)
    listed = [*objects(*shards), *loose]
    assert removable(shards, (), listed, keep=2, live=(), is_open=lambda name: name == slot(0, 0, 99)) == Removal()
    assert removable(shards, (), listed, keep=2, live=(), is_open=lambda _: False) == Removal((), tuple(loose))


def test_shards_that_may_still_become_whole_stay_and_those_that_never_will_go() -> None:
    done = [shard(1, number=n, count=2) for n in range(2)] + [shard(3, number=n, count=2) for n in range(2)]
    late, ahead = shard(2, number=0, count=2), shard(4, number=0, count=2)
    shards = [*done, late, ahead]
    live = removable(shards, (), objects(*shards), keep=2, live={("j", 0)}, is_open=lambda _: True)
    assert live == Removal((late.key,), late.objects)
    over = removable(shards, (), objects(*shards), keep=2, live=(), is_open=lambda _: False)
    assert set(over.manifests) == {late.key, ahead.key}


def test_the_last_of_each_rank_that_may_still_write_stays_because_its_next_refers_to_it() -> None:
    slow = shard(1, number=0, n=50)
    slow = Shard(**{name: getattr(slow, name) for name in Shard.__dataclass_fields__} | {"slot": slot(0, 7, 50)})
    shards = [slow, shard(2, n=60), shard(3, n=61), shard(4, n=62)]
    gone = removable(shards, (), objects(*shards), keep=2, live=(), is_open=lambda _: True)
    assert slow.key not in gone.manifests and shards[1].key in gone.manifests


def test_a_manifest_that_cannot_be_read_protects_its_objects_as_long_as_somebody_may_write_it() -> None:
    name = slot(0, 0, 5)
    parts = part_keys(name, 0, 2)
    assert removable([], (name,), parts, keep=2, live=(), is_open=lambda _: True) == Removal()
    gone = removable([], (name,), parts, keep=2, live=(), is_open=lambda _: False)
    assert gone == Removal((manifest_key(name),), tuple(parts))


def test_removing_one_leaves_what_the_others_need() -> None:
    first = shard(1)
    shards = [first, shard(2, refers=first.objects)]
    assert without(shards, 1) == Removal((first.key,), ())
    assert without(shards, 2) == Removal((shards[1].key,), shards[1].objects[:2])


def test_names_are_taken_apart_as_they_were_made() -> None:
    name = slot(1, 2, 3)
    assert slot_of_manifest(manifest_key(name)) == name
    for key in (f"manifests/x/{name}.json", f"manifests/{name}.jsonx", f"{name}.json", "manifests/a.json"):
        assert slot_of_manifest(key) is None
    assert is_carried_uri(f"s3://b/l/0/{manifest_key(name)}")
    for uri in ("file:///c/l/0/step-000000005", "s3://b/manifests/x.json", manifest_key(name).removeprefix("m")):
        assert not is_carried_uri(uri)
    assert folder_of_manifest("step-000000300/manifest.json") == ("step-000000300", 300)
    assert folder_of_manifest("step-000000300/manifest-00001-00000-of-00002.json") == ("step-000000300", 300)
    for key in ("step-3/manifest.json", "step-000000300/parts-0/manifest.json", "x/step-000000300/manifest.json"):
        assert folder_of_manifest(key) is None


@pytest.mark.parametrize(
    ("names", "is_there"),
    [
        (["manifest.json"], True),
        (["parts-0"], False),
        (["manifest-00001-00000-of-00002.json"], False),
        (["manifest-00001-00000-of-00002.json", "manifest-00002-00001-of-00002.json"], False),
        (["manifest-00001-00000-of-00002.json", "manifest-00001-00001-of-00002.json"], True),
    ],
)
def test_a_folder_holds_a_checkpoint_when_all_manifests_of_an_attempt_are_there(
    names: list[str], is_there: bool
) -> None:
    assert is_committed(names) is is_there


def test_an_attempt_is_given_up_when_it_was_at_work_and_is_now_taken_for_lost() -> None:
    running = an_attempt(1, phase=AttemptPhase.RUNNING)
    _, lost = changed(running, (AttemptEnded(NOW, Outcome.LOST, "gone"),), attempts.evolve)
    _, failed = changed(running, (AttemptEnded(NOW, Outcome.FAILED, "1"),), attempts.evolve)
    assert is_given_up(running, lost) and not is_given_up(running, failed) and not is_given_up(None, lost)
    assert not is_given_up(an_attempt(1, phase=AttemptPhase.STOPPING), lost)
