"""Shards: cutting, leasing, committing, progress and the fate of the job."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from crucible.core import shards as core
from crucible.core.shards import Asker, Result, Verdict
from crucible.model.attempt import Outcome
from crucible.model.errors import InvalidRequest
from crucible.model.ids import AttemptId, JobId
from crucible.model.job import JobStatus
from crucible.model.shards import Desk, Held, Shard, Shards, ShardState, ShardTally, Turn
from crucible.model.units import MicroUsd

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ANN, BOB = AttemptId("ann"), AttemptId("bob")
SPEC = Shards(count=100, lease=timedelta(minutes=10), reissue_after=2.0)
WAITING = Shard(job_id=JobId("j1"), number=3, first=30, items=10)
RESULT = Result(output="o", size_bytes=1, sha256="s", failed=0, errors=(), seconds=1.0)


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def held(by: AttemptId = ANN, number: int = 3, at: datetime = NOW, **fields: object) -> Shard:
    shard = core.leased(replace(WAITING, number=number), Asker(by, "q", at, SPEC.lease))
    return replace(shard, **fields)  # type: ignore[arg-type]


def turn(desk: Desk, spec: Shards = SPEC, now: datetime = NOW, by: AttemptId = BOB) -> Turn:
    return core.next_shard(desk, spec, by, "new", now)


# --- cutting ----------------------------------------------------------------------------------------------------


def test_numbers_are_taken_one_by_one_and_other_items_about_twenty_times_by_each_worker() -> None:
    assert core.size_of(Shards(count=10_000), 10_000, None) == 1
    assert core.size_of(Shards(glob="*", workers=10), 10_000, None) == 50
    assert core.size_of(Shards(glob="*"), 10_000, 5) == 100
    assert core.size_of(Shards(glob="*"), 10_000, None) == 16
    assert core.size_of(Shards(glob="*"), 3, None) == 1
    assert core.size_of(Shards(glob="*", size=7), 10_000, None) == 7


def test_more_shards_than_there_may_be_are_refused_if_somebody_chose_the_size() -> None:
    assert core.size_of(Shards(count=1_000_000), 1_000_000, None) == 10
    with pytest.raises(InvalidRequest, match="give a size of 10 or more") as refused:
        core.size_of(Shards(count=1_000_000, size=9), 1_000_000, None)
    assert refused.value.details["field"] == "job.shards.size"


def test_the_last_shard_is_shorter_and_each_knows_its_bytes() -> None:
    cut = list(core.cut(JobId("j1"), 5, 2, [10, 25, 26, 30, 99]))
    assert [(one.number, one.first, one.items, one.start, one.end) for one in cut] == [
        (0, 0, 2, 0, 25),
        (1, 2, 2, 25, 30),
        (2, 4, 1, 30, 99),
    ]


# --- what a worker gets next ------------------------------------------------------------------------------------


def test_what_waits_is_given_first() -> None:
    given = turn(Desk(waiting=WAITING)).given
    assert given is not None
    assert (given.state, given.fence, given.attempt_id, given.asked) == (ShardState.LEASED, 1, BOB, "new")
    assert (given.leased_at, given.expires_at, given.is_second) == (NOW, NOW + SPEC.lease, False)


def test_a_question_that_was_answered_before_gets_the_same_answer() -> None:
    assert turn(Desk(again=held(BOB))).given == held(BOB)


def test_who_holds_very_many_gets_no_more() -> None:
    with pytest.raises(InvalidRequest, match="holds 64 shards"):
        turn(Desk(waiting=WAITING, own=64))


@pytest.mark.parametrize("outcome", [Outcome.LOST, Outcome.FAILED, Outcome.SUCCEEDED, Outcome.HELD])
def test_what_an_attempt_left_is_given_again_at_once(outcome: Outcome) -> None:
    given = turn(Desk(held=(Held(held(), outcome, "gone"),))).given
    is_own = outcome in (Outcome.FAILED, Outcome.SUCCEEDED)
    assert given is not None and (given.fence, given.attempt_id, given.tries) == (2, BOB, int(is_own))
    assert not given.is_second


def test_a_worker_that_says_nothing_for_too_long_has_lost_its_shard() -> None:
    desk = Desk(held=(Held(held()),))
    assert turn(desk, now=NOW + seconds(599)).wait_s is not None
    given = turn(desk, now=NOW + seconds(600)).given
    assert given is not None and given.tries == 0


def test_items_that_end_every_program_have_failed() -> None:
    lost = Held(held(tries=2), Outcome.FAILED, "exit 139")
    other = Held(held(number=5), Outcome.LOST, None)
    ended = turn(Desk(held=(lost, other)))
    (dropped,) = ended.dropped
    assert (dropped.state, dropped.failed, dropped.output) == (ShardState.DONE, 10, None)
    assert dropped.errors == ({"reason": "3 programs ended with it; the last: exit 139"},)
    assert ended.given is not None and ended.given.number == 5
    assert turn(Desk(held=(lost,))).is_over


def test_a_lost_machine_never_counts_against_the_items() -> None:
    shard = held()
    for _ in range(50):
        given = turn(Desk(held=(Held(shard, Outcome.LOST, "taken back"),))).given
        assert given is not None and given.tries == 0
        shard = given


def test_a_shard_that_takes_too_long_is_given_to_a_second_worker_once() -> None:
    recent = (10.0, 12.0, 11.0)
    desk = Desk(held=(Held(held()), Held(held(number=4, at=NOW + seconds(1)))), recent=recent)
    early = turn(desk, now=NOW + seconds(20))
    assert early.given is None and early.wait_s == 2.0
    late = turn(desk, now=NOW + seconds(23))
    assert late.given is not None and (late.given.number, late.given.is_second, late.given.fence) == (3, True, 2)
    rest = (Held(held(AttemptId("eve"), is_second=True)), Held(held(number=4, is_second=True)))
    assert turn(Desk(held=rest, recent=recent), now=NOW + seconds(500)).is_over


def test_nobody_races_with_itself_or_before_anybody_knows_what_is_usual() -> None:
    own = Desk(held=(Held(held(BOB)),), recent=(1.0, 1.0, 1.0))
    assert turn(own, now=NOW + seconds(100)).is_over
    unknown = Desk(held=(Held(held()),), recent=(1.0, 1.0))
    assert turn(unknown, now=NOW + seconds(100)).wait_s == core.ASK_AGAIN_S


def test_a_quick_shard_is_not_late_within_a_few_seconds() -> None:
    desk = Desk(held=(Held(held()),), recent=(0.01,) * 5)
    waits = turn(desk, now=NOW + seconds(4))
    assert waits.given is None and waits.wait_s == 1.0
    assert turn(desk, now=NOW + seconds(5)).given is not None


def test_without_anything_left_a_worker_is_done() -> None:
    assert turn(Desk()).is_over


# --- what a commit means ----------------------------------------------------------------------------------------


def test_the_first_commit_counts_whoever_was_given_the_shard_last() -> None:
    shard = core.leased(held(ANN), Asker(BOB, "q2", NOW, SPEC.lease), is_second=True)
    assert core.judged(shard, ANN, 1) is Verdict.ACCEPTED and core.judged(shard, BOB, 2) is Verdict.ACCEPTED
    done = core.committed(shard, ANN, 1, RESULT, NOW)
    assert core.judged(done, ANN, 1) is Verdict.REPEATED
    assert core.judged(done, BOB, 2) is Verdict.LATE


def test_nobody_commits_what_it_was_not_given() -> None:
    shard = held(ANN)
    assert core.judged(shard, BOB, 1) is Verdict.FOREIGN
    assert core.judged(shard, ANN, 2) is Verdict.FOREIGN and core.judged(shard, ANN, 0) is Verdict.FOREIGN
    assert core.judged(WAITING, ANN, 1) is Verdict.FOREIGN


def test_a_row_keeps_the_first_few_errors() -> None:
    many = tuple({"index": n, "reason": "no"} for n in range(100))
    done = core.committed(held(), ANN, 1, replace(RESULT, failed=100, errors=many), NOW)
    assert (done.failed, len(done.errors)) == (100, core.ERRORS_SHOWN)


def test_only_the_newest_lease_can_be_renewed() -> None:
    later = NOW + seconds(300)
    assert core.renewed(held(), ANN, 1, SPEC.lease, later).expires_at == later + SPEC.lease
    overtaken = core.leased(held(ANN), Asker(BOB, "q2", NOW, SPEC.lease), is_second=True)
    assert core.renewed(overtaken, ANN, 1, SPEC.lease, later) == overtaken
    done = core.committed(held(), ANN, 1, RESULT, NOW)
    assert core.renewed(done, ANN, 1, SPEC.lease, later) == done


def test_outputs_of_two_leases_never_have_the_same_key() -> None:
    first, second = held(ANN), core.leased(held(ANN), Asker(BOB, "q2", NOW, SPEC.lease))
    keys = {core.output_key(one.job_id, one.number, one.fence, one.attempt_id or ANN) for one in (first, second)}
    assert keys == {"j1/outputs/00000003-00001-ann", "j1/outputs/00000003-00002-bob"}


# --- progress and fate ------------------------------------------------------------------------------------------

HALF = ShardTally(shards=10, waiting=3, leased=2, done=5, items=100, items_done=50, items_failed=4)
WHOLE = ShardTally(shards=10, done=10, items=100, items_done=100, items_failed=4, first_error="bad image")


def test_progress_is_told_in_items_and_dollars() -> None:
    found = core.progress(HALF, NOW, None, MicroUsd(1_000_000), NOW + seconds(100))
    assert (found.fraction, found.items_per_s, found.eta_s, found.cost_per_item) == (0.5, 0.5, 100.0, 20_000)
    over = core.progress(WHOLE, NOW, NOW + seconds(10), MicroUsd(1_000_000), NOW + seconds(100))
    assert (over.items_per_s, over.eta_s) == (10.0, None)
    begun = core.progress(replace(HALF, items_done=0), None, None, MicroUsd(5), NOW)
    assert (begun.items_per_s, begun.eta_s, begun.cost_per_item) == (None, None, None)


def test_no_shard_is_given_out_when_all_are_done_or_too_many_items_failed() -> None:
    assert core.drained(Shards(count=100), HALF) is None
    assert core.drained(Shards(count=100), WHOLE) == "every item is done"
    assert core.drained(Shards(count=100, max_errors=4), HALF) is None
    assert "4 items failed and max_errors is 3" in (core.drained(Shards(count=100, max_errors=3), HALF) or "")


def test_the_items_decide_what_becomes_of_the_job() -> None:
    assert core.fate(Shards(count=100), WHOLE) == (JobStatus.COMPLETED, None)
    assert core.fate(Shards(count=100, max_errors=4), WHOLE) == (JobStatus.COMPLETED, None)
    status, reason = core.fate(Shards(count=100, max_errors=3), WHOLE)
    assert status is JobStatus.FAILED and reason is not None and "bad image" in reason
    status, reason = core.fate(Shards(count=100), HALF)
    assert (status, reason) == (JobStatus.FAILED, "its workers ended and left 50 of 100 items undone")
    status, reason = core.fate(Shards(count=100), replace(WHOLE, items_failed=100))
    assert (status, reason) == (JobStatus.FAILED, "every item failed; the first: bad image")


def test_a_job_that_goes_on_takes_over_what_is_done_and_whole() -> None:
    again = JobId("j2")
    done = core.committed(held(), ANN, 1, RESULT, NOW)
    assert core.taken_over(done, again) == replace(done, job_id=again)
    fresh = replace(WAITING, job_id=again)
    assert core.taken_over(replace(done, failed=1), again) == fresh == core.taken_over(held(tries=2), again)
