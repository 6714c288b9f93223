"""Shards of a job's items: leased one at a time, done once. A part of StoreContract."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from crucible.core import shards as core
from crucible.core.attempt import evolve
from crucible.model.attempt import Attempt, AttemptCreated, AttemptEnded, Outcome
from crucible.model.change import born, changed
from crucible.model.errors import NotFound
from crucible.model.ids import AttemptId, JobId
from crucible.model.job import JobSubmitted
from crucible.model.shards import Desk, Shard, Shards, ShardState, ShardTally, Turn
from crucible.model.spec import JobType
from crucible.model.task import TaskCreated
from crucible.ports.store import JobQuery, Store
from crucible.testing.specimens import LATER, NOW, a_job, a_task, an_attempt

JOB = JobId("j1")
SPEC = Shards(count=100, lease=timedelta(minutes=10))
RESULT = core.Result(output="o", size_bytes=7, sha256="ab", failed=1, errors=({"reason": "no"},), seconds=2.0)


async def submitted(store: Store, items: int = 100, size: int = 10, workers: int = 2) -> list[Attempt]:
    """A job with its shards, and an attempt of each worker."""
    job = a_job(job_type=JobType.INFERENCE)
    tasks = [a_task(job, index) for index in range(workers)]
    cut = tuple(core.cut(JOB, items, size, [7 * n + 7 for n in range(items)]))
    changes = [born(job, JobSubmitted(NOW)), *(born(task, TaskCreated(NOW)) for task in tasks)]
    await store.submit(changes, idempotency_key=None, user_id=job.user_id, records=cut)
    attempts = [an_attempt(task) for task in tasks]
    await store.commit([born(each, AttemptCreated(NOW)) for each in attempts], label="test")
    return attempts


async def ended(store: Store, attempt: Attempt, outcome: Outcome) -> None:
    _, changes = changed(attempt, (AttemptEnded(NOW, outcome, "segmentation fault"),), evolve)
    await store.commit(changes, label="test")


def asking(attempt: Attempt, asked: str, spec: Shards = SPEC) -> Callable[[Desk], Turn]:
    return lambda desk: core.next_shard(desk, spec, attempt.id, asked, NOW)


async def lease(store: Store, attempt: Attempt, asked: str) -> Turn:
    return await store.lease_shard(JOB, attempt.id, asked, asking(attempt, asked))


async def commit(store: Store, attempt: Attempt, given: Shard, result: core.Result = RESULT) -> core.Verdict:
    def change(shard: Shard) -> Shard:
        is_first = core.judged(shard, attempt.id, given.fence) is core.Verdict.ACCEPTED
        return core.committed(shard, attempt.id, given.fence, result, LATER) if is_first else shard

    before, _ = await store.change_shard(JOB, given.number, attempt.id, change, label="shard.commit")
    return core.judged(before, attempt.id, given.fence)


class ShardContract:
    async def test_shards_come_with_their_job_and_are_read_in_pages(self, store: Store) -> None:
        await submitted(store)
        first = await store.shards(JOB, limit=3)
        assert [(one.number, one.first, one.items) for one in first] == [(0, 0, 10), (1, 10, 10), (2, 20, 10)]
        assert (first[1].start, first[1].end) == (70, 140)
        assert [one.number for one in await store.shards(JOB, after=7)] == [8, 9]
        assert await store.shards(JOB, state=ShardState.DONE) == ()
        assert await store.shard(JOB, 2) == first[2]
        assert await store.shard_tally(JOB) == ShardTally(shards=10, waiting=10, items=100)
        with pytest.raises(NotFound):
            await store.shard(JOB, 10)

    async def test_a_row_of_the_list_says_what_share_of_the_shards_is_done(self, store: Store) -> None:
        ann, _ = await submitted(store)
        assert [one.progress for one in (await store.jobs(JobQuery())).items] == [0.0]
        for number in range(3):
            given = (await lease(store, ann, f"q{number}")).given
            assert given is not None
            await commit(store, ann, given)
        assert [one.progress for one in (await store.jobs(JobQuery())).items] == [0.3]

    async def test_a_lease_is_written_with_whom_it_was_given_to(self, store: Store) -> None:
        ann, bob = await submitted(store)
        given = (await lease(store, ann, "q1")).given
        assert given is not None and given == await store.shard(JOB, 0)
        assert (given.state, given.fence, given.attempt_id) == (ShardState.LEASED, 1, ann.id)
        other = (await lease(store, bob, "q1")).given
        assert other is not None and other.number == 1

    async def test_the_same_question_again_gets_the_same_shard(self, store: Store) -> None:
        ann, _ = await submitted(store)
        first = await lease(store, ann, "q1")
        assert (await lease(store, ann, "q1")).given == first.given
        assert (await store.shard_tally(JOB)).leased == 1

    async def test_whoever_asks_at_the_same_time_gets_different_shards(self, store: Store) -> None:
        attempts = await submitted(store, items=40, size=1, workers=8)
        turns = await asyncio.gather(
            *(lease(store, attempt, f"q{n}") for attempt in attempts for n in range(5)), return_exceptions=True
        )
        given = [turn.given.number for turn in turns if isinstance(turn, Turn) and turn.given is not None]
        assert len(given) == len(set(given)) >= 30, turns

    async def test_of_commits_at_the_same_time_one_counts(self, store: Store) -> None:
        ann, bob = await submitted(store, items=10, size=10)
        first = (await lease(store, ann, "q1")).given
        assert first is not None
        second = replace(core.leased(first, core.Asker(bob.id, "q2", NOW, SPEC.lease)), is_second=True)
        await store.change_shard(JOB, 0, bob.id, lambda _: second, label="test")
        results = [replace(RESULT, output=f"o{n}") for n in range(2)]
        said = await asyncio.gather(
            *(
                commit(store, who, what, results[n % 2])
                for n, (who, what) in enumerate([(ann, first), (bob, second)] * 5)
            )
        )
        assert sorted(said).count(core.Verdict.ACCEPTED) == 1
        assert core.Verdict.FOREIGN not in said
        row = await store.shard(JOB, 0)
        assert (row.state, row.output) == (ShardState.DONE, "o0" if row.attempt_id == ann.id else "o1")

    async def test_what_is_done_stays_so_whatever_is_decided(self, store: Store) -> None:
        ann, bob = await submitted(store)
        given = (await lease(store, ann, "q1")).given
        assert given is not None
        assert await commit(store, ann, given) is core.Verdict.ACCEPTED
        done = await store.shard(JOB, 0)
        assert (done.sha256, done.failed, done.errors, done.done_at) == ("ab", 1, ({"reason": "no"},), LATER)
        assert await commit(store, ann, given) is core.Verdict.REPEATED
        assert await commit(store, bob, given) is core.Verdict.LATE
        assert await store.shard(JOB, 0) == done
        tally = await store.shard_tally(JOB)
        assert (tally.done, tally.items_done, tally.items_failed, tally.first_error) == (1, 10, 1, "no")
        assert (tally.output_bytes, tally.seconds) == (7, 2.0)

    async def test_an_attempt_that_is_over_gets_and_commits_nothing(self, store: Store) -> None:
        ann, bob = await submitted(store)
        given = (await lease(store, ann, "q1")).given
        assert given is not None
        await ended(store, ann, Outcome.LOST)
        with pytest.raises(NotFound, match="over"):
            await lease(store, ann, "q2")
        with pytest.raises(NotFound, match="over"):
            await commit(store, ann, given)
        assert (await store.shard(JOB, 0)).state is ShardState.LEASED
        assert (await store.shard(JOB, 1)).state is ShardState.WAITING
        assert (await lease(store, bob, "q1")).given is not None

    async def test_what_an_attempt_that_is_over_held_is_given_out_again(self, store: Store) -> None:
        ann, bob = await submitted(store, items=20, size=10)
        first, second = (await lease(store, ann, "q1")).given, (await lease(store, bob, "q1")).given
        assert first is not None and second is not None
        assert await commit(store, bob, second) is core.Verdict.ACCEPTED
        await ended(store, ann, Outcome.FAILED)
        again = (await lease(store, bob, "q2")).given
        assert again is not None and (again.number, again.fence, again.tries) == (0, 2, 1)
        assert await store.shard(JOB, 0) == again

    async def test_what_ends_every_program_is_dropped(self, store: Store) -> None:
        attempts = await submitted(store, items=10, size=10, workers=5)
        for attempt in attempts[:3]:
            assert (await lease(store, attempt, "q")).given is not None
            await ended(store, attempt, Outcome.FAILED)
        turn = await lease(store, attempts[3], "q")
        assert turn.is_over and len(turn.dropped) == 1
        row = await store.shard(JOB, 0)
        assert (row.state, row.failed, row.output) == (ShardState.DONE, 10, None)
        assert "segmentation fault" in str(row.errors[0]["reason"])

    async def test_a_renewal_moves_the_end_of_the_lease(self, store: Store) -> None:
        ann, _ = await submitted(store)
        given = (await lease(store, ann, "q1")).given
        assert given is not None

        def renew(shard: Shard) -> Shard:
            return core.renewed(shard, ann.id, 1, SPEC.lease, LATER)

        _, after = await store.change_shard(JOB, 0, ann.id, renew, label="test", durable=False)
        assert after.expires_at == LATER + SPEC.lease and after == await store.shard(JOB, 0)
        with pytest.raises(NotFound):
            await store.change_shard(JOB, 0, AttemptId("unknown"), renew, label="test")
