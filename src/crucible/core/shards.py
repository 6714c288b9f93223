"""Work on many items: how they are cut into shards, which one a worker gets next, what a commit means, how far it is,
and what becomes of the job. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from statistics import median
from typing import Any

from crucible.model.attempt import Outcome
from crucible.model.errors import InvalidRequest
from crucible.model.ids import AttemptId, JobId
from crucible.model.job import JobStatus
from crucible.model.shards import Desk, Held, Shard, Shards, ShardState, ShardTally, Turn
from crucible.model.units import MicroUsd

# Rows of one job; more would be slow to count and say nothing more.
MOST_SHARDS = 100_000
# Of one list or file: names are kept in one object, and their places in memory while they are cut.
MOST_NAMED = 10_000_000
# So often each worker comes for a shard: the last of them then idle for a twentieth of the time.
COMES = 20
# Workers that are reckoned with where nobody says how many there may be.
USUAL_WORKERS = 32
# Programs that ended with a shard unfinished. After the last its items have failed: they would end every worker.
TRIES = 3
# Seconds of so few shards say what is usual.
LEAST_SAMPLES = 3
# A shard is not late before: a second worker needs a moment, too.
LEAST_LATE_S = 5.0
# A worker that waits for others asks again so soon, at the latest.
ASK_AGAIN_S = 5.0
LEAST_WAIT_S = 0.25
# Of one attempt; whoever holds more has lost its mind.
MOST_HELD = 64
# Of a shard, in its row: what a person looks at first. All of them are in storage.
ERRORS_SHOWN = 5
MAX_REASON = 500

# Ends that are the program's own doing, and may come of an item.
_OWN_ENDS = (Outcome.FAILED, Outcome.TIMED_OUT, Outcome.SUCCEEDED)


# --- cutting ----------------------------------------------------------------------------------------------------


def size_of(shards: Shards, items: int, workers: int | None) -> int:
    """Items of one shard. Raises InvalidRequest if that would make too many."""
    least = -(-items // MOST_SHARDS)
    if shards.size is not None:
        if shards.size < least:
            words = f"{items:,} items in shards of {shards.size} make more than {MOST_SHARDS:,}"
            raise InvalidRequest(f"{words}; give a size of {least} or more", field="job.shards.size")
        return shards.size
    if shards.count is not None:
        return max(1, least)
    return max(1, least, -(-items // (COMES * (shards.workers or workers or USUAL_WORKERS))))


def cut(job_id: JobId, items: int, size: int, ends: Sequence[int] = ()) -> Iterator[Shard]:
    """Every item in exactly one shard, in order. `ends`: the byte behind each item of a list; empty: there is none."""
    for number, (first, end) in enumerate(pairwise([*range(0, items, size), items])):
        start_byte = ends[first - 1] if ends and first else 0
        end_byte = ends[end - 1] if ends else 0
        yield Shard(job_id=job_id, number=number, first=first, items=end - first, start=start_byte, end=end_byte)


def taken_over(shard: Shard, job_id: JobId) -> Shard:
    """For a job that goes on: what is done stays so, unless an item of it failed."""
    if shard.state is ShardState.DONE and not shard.failed:
        return replace(shard, job_id=job_id)
    fresh = Shard(job_id=job_id, number=shard.number, first=shard.first, items=shard.items)
    return replace(fresh, start=shard.start, end=shard.end)


# --- what a worker gets next ------------------------------------------------------------------------------------


def next_shard(desk: Desk, shards: Shards, attempt_id: AttemptId, asked: str, now: datetime) -> Turn:
    """What waits first, then what nobody works on any more, then what takes too long."""
    if desk.again is not None:
        return Turn(given=desk.again)
    if desk.own >= MOST_HELD:
        raise InvalidRequest(f"this attempt holds {desk.own} shards; commit some before it asks for more")
    asker = Asker(attempt_id, asked, now, shards.lease)
    if desk.waiting is not None:
        return Turn(given=leased(desk.waiting, asker))
    lost = [counted(each) for each in desk.held if is_lost(each, now)]
    dropped = tuple(given_up(shard, reason, now) for shard, reason in lost if shard.tries >= TRIES)
    again = [shard for shard, _ in lost if shard.tries < TRIES]
    if again:
        return Turn(given=leased(again[0], asker), dropped=dropped)
    others = [each.shard for each in desk.held if not is_lost(each, now) and is_reissuable(each.shard, attempt_id)]
    late_s = late_after(shards, desk.recent)
    late = [shard for shard in others if late_s is not None and elapsed(shard, now) >= late_s]
    if late:
        longest = min(late, key=lambda shard: (shard.leased_at, shard.number))
        return Turn(given=leased(longest, asker, is_second=True), dropped=dropped)
    return Turn(wait_s=wait_for(others, late_s, now) if others else None, dropped=dropped)


@dataclass(frozen=True, slots=True)
class Asker:
    attempt_id: AttemptId
    asked: str
    now: datetime
    lease: timedelta


def leased(shard: Shard, asker: Asker, *, is_second: bool = False) -> Shard:
    return replace(
        shard,
        state=ShardState.LEASED,
        fence=shard.fence + 1,
        attempt_id=asker.attempt_id,
        asked=asker.asked,
        leased_at=asker.now,
        expires_at=asker.now + asker.lease,
        is_second=is_second,
    )


def is_lost(held: Held, now: datetime) -> bool:
    """Nobody works on it: the attempt is over, or has said nothing for too long."""
    return held.outcome is not None or (held.shard.expires_at is not None and held.shard.expires_at <= now)


def counted(held: Held) -> tuple[Shard, str]:
    """With one more try, if its program ended by itself. A lost machine is nobody's fault."""
    is_try = held.outcome in _OWN_ENDS
    reason = held.reason or "it ended without finishing it"
    return replace(held.shard, tries=held.shard.tries + is_try), reason


def given_up(shard: Shard, reason: str, now: datetime) -> Shard:
    words = f"{TRIES} programs ended with it; the last: {reason}"
    return all_failed(replace(shard, attempt_id=None), words, now)


def all_failed(shard: Shard, reason: str, now: datetime) -> Shard:
    """Done, without any output: every item has failed for this reason."""
    errors = ({"reason": reason[:MAX_REASON]},)
    return replace(shard, state=ShardState.DONE, failed=shard.items, errors=errors, done_at=now, expires_at=None)


def is_reissuable(shard: Shard, attempt_id: AttemptId) -> bool:
    """Two at a time are enough, and nobody races with itself."""
    return not shard.is_second and shard.attempt_id != attempt_id


def late_after(shards: Shards, recent: Sequence[float]) -> float | None:
    """Seconds after which a shard is late; None: nobody knows yet."""
    if len(recent) < LEAST_SAMPLES:
        return None
    return max(LEAST_LATE_S, shards.reissue_after * median(recent))


def elapsed(shard: Shard, now: datetime) -> float:
    return 0.0 if shard.leased_at is None else (now - shard.leased_at).total_seconds()


def wait_for(others: Sequence[Shard], late_s: float | None, now: datetime) -> float:
    """Until the first of them is late, but not for so long that a lost one would lie about."""
    if late_s is None:
        return ASK_AGAIN_S
    soonest = min(late_s - elapsed(shard, now) for shard in others)
    return min(max(soonest, LEAST_WAIT_S), ASK_AGAIN_S)


# --- what a commit means ----------------------------------------------------------------------------------------


class Verdict(StrEnum):
    ACCEPTED = "accepted"
    REPEATED = "repeated"  # it was accepted before, and the answer was lost
    LATE = "late"  # another one was first: what this one wrote is dropped
    FOREIGN = "foreign"  # it was never given this lease


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a worker says of a shard that it has finished."""

    output: str | None  # its key
    size_bytes: int
    sha256: str | None
    failed: int
    errors: tuple[Mapping[str, Any], ...]
    seconds: float


def judged(shard: Shard, attempt_id: AttemptId, fence: int) -> Verdict:
    """The first commit counts, whoever holds the newest lease by then."""
    if shard.state is ShardState.DONE:
        is_same = (shard.fence, shard.attempt_id) == (fence, attempt_id)
        return Verdict.REPEATED if is_same else Verdict.LATE
    is_given = 1 <= fence <= shard.fence and (fence < shard.fence or attempt_id == shard.attempt_id)
    return Verdict.ACCEPTED if is_given else Verdict.FOREIGN


def committed(shard: Shard, attempt_id: AttemptId, fence: int, result: Result, now: datetime) -> Shard:
    return replace(
        shard,
        state=ShardState.DONE,
        fence=fence,
        attempt_id=attempt_id,
        expires_at=None,
        output=result.output,
        size_bytes=result.size_bytes,
        sha256=result.sha256,
        failed=result.failed,
        errors=result.errors[:ERRORS_SHOWN],
        seconds=result.seconds,
        done_at=now,
    )


def renewed(shard: Shard, attempt_id: AttemptId, fence: int, lease: timedelta, now: datetime) -> Shard:
    """Who was overtaken may go on; there is nothing of it to renew."""
    is_newest = (shard.fence, shard.attempt_id) == (fence, attempt_id)
    if shard.state is not ShardState.LEASED or not is_newest:
        return shard
    return replace(shard, expires_at=now + lease)


# --- where things are -------------------------------------------------------------------------------------------

FOLDER = "shards"
LIST = "items"


def list_key(lineage: JobId) -> str:
    """A job that goes on works on the same items."""
    return f"{lineage}/{LIST}"


def output_folder(job_id: JobId) -> str:
    return f"{job_id}/outputs/"


def output_key(job_id: JobId, number: int, fence: int, attempt_id: AttemptId) -> str:
    """Of one lease alone: who comes too late has written beside it, not over it."""
    return f"{output_folder(job_id)}{number:08d}-{fence:05d}-{attempt_id}"


def part_key(output: str, part: int) -> str:
    return f"{output}/{part:05d}"


def errors_key(output: str) -> str:
    return f"{output}/errors"


# --- how far it is, and what becomes of the job -----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardProgress:
    tally: ShardTally
    fraction: float
    items_per_s: float | None
    eta_s: float | None
    cost_per_item: MicroUsd | None  # of those that are done, failed ones too


def progress(
    tally: ShardTally, started_at: datetime | None, ended_at: datetime | None, cost: MicroUsd, now: datetime
) -> ShardProgress:
    """By the time since the job began to run: pauses count, as they do for whoever waits."""
    spent = None if started_at is None else ((ended_at or now) - started_at).total_seconds()
    rate = tally.items_done / spent if spent and tally.items_done else None
    left = tally.items - tally.items_done
    return ShardProgress(
        tally=tally,
        fraction=tally.items_done / tally.items if tally.items else 0.0,
        items_per_s=rate,
        eta_s=left / rate if rate and ended_at is None else None,
        cost_per_item=MicroUsd(round(cost / tally.items_done)) if tally.items_done else None,
    )


def drained(shards: Shards, tally: ShardTally) -> str | None:
    """Why no further shard is given out; None: there is work left."""
    if shards.max_errors is not None and tally.items_failed > shards.max_errors:
        return too_many(shards.max_errors, tally)
    return "every item is done" if tally.done == tally.shards else None


def fate(shards: Shards, tally: ShardTally) -> tuple[JobStatus, str | None]:
    """Of a job whose workers have all ended: its items decide, not its workers."""
    if shards.max_errors is not None and tally.items_failed > shards.max_errors:
        return JobStatus.FAILED, too_many(shards.max_errors, tally)
    if tally.done < tally.shards:
        left = tally.items - tally.items_done
        return JobStatus.FAILED, f"its workers ended and left {left:,} of {tally.items:,} items undone"
    if tally.items_failed == tally.items:
        return JobStatus.FAILED, f"every item failed; the first: {tally.first_error or 'no reason given'}"
    return JobStatus.COMPLETED, None


def too_many(most: int, tally: ShardTally) -> str:
    return f"{tally.items_failed:,} items failed and max_errors is {most:,}; the first: {tally.first_error}"
