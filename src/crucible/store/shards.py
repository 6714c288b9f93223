"""Shards of a job's items. A lease and a commit are one transaction each, decided by whoever calls while the rows are
held: two workers never get the same shard by accident, and a shard is done once."""

import json
from collections.abc import Callable, Sequence

from sqlalchemy import bindparam, func, insert, select, update

from crucible.model.attempt import AttemptPhase, Outcome
from crucible.model.errors import NotFound
from crucible.model.ids import AttemptId, JobId
from crucible.model.shards import Desk, Held, Shard, ShardState, ShardTally, Turn
from crucible.store import tables as t
from crucible.store.mapping import Rows
from crucible.store.record_tables import shards as table
from crucible.store.sql import Sql, Transaction, TryAgain, fixed

SHARDS = Rows(Shard, table, columns={"start": "start_byte", "end": "end_byte"})
# By their seconds it is told which of the others are late.
RECENT = 201

_S, _A = table.c, t.attempts.c
_OF_JOB = _S.job_id == bindparam("job_id")
_ALL = select(*SHARDS.columns).where(_OF_JOB)
_ONE = Sql(_ALL.where(_S.number == bindparam("number")))
_ONE_HELD = Sql(_ALL.where(_S.number == bindparam("number")).with_for_update())
_PAGE = _ALL.where(_S.number > bindparam("after")).order_by(_S.number).limit(bindparam("limit"))
_LISTED = Sql(_PAGE)
_LISTED_IN = Sql(_PAGE.where(_S.state == bindparam("state")))
_ADD = Sql(insert(table).values(SHARDS.parameters()))
_FIRST_ERROR = Sql(
    select(_S.errors).where(_OF_JOB, _S.state == fixed(ShardState.DONE), _S.failed > 0).order_by(_S.number).limit(1)
)
_TALLY = Sql(
    select(
        _S.state,
        func.count(),
        func.sum(_S["items"]),
        func.sum(_S.failed),
        func.sum(_S.size_bytes),
        func.sum(_S.seconds),
    )
    .where(_OF_JOB)
    .group_by(_S.state)
)

_ALIVE = Sql(select(_A.id).where(_A.id == bindparam("id"), _A.phase != fixed(AttemptPhase.ENDED)))
_MINE = Sql(
    select(*SHARDS.columns).where(
        _OF_JOB, _S.state == fixed(ShardState.LEASED), _S.attempt_id == bindparam("attempt_id")
    )
)
_WAITING = Sql(
    _ALL.where(_S.state == fixed(ShardState.WAITING)).order_by(_S.number).limit(1).with_for_update(skip_locked=True)
)
_LEASED = Sql(
    select(*SHARDS.columns, _A.outcome, _A.reason)
    .join(t.attempts, _A.id == _S.attempt_id)
    .where(_OF_JOB, _S.state == fixed(ShardState.LEASED))
    .order_by(_S.number)
)
_ANY_WAITING = Sql(select(_S.number).where(_OF_JOB, _S.state == fixed(ShardState.WAITING)).limit(1))
_RECENT = Sql(
    select(_S.seconds)
    .where(_OF_JOB, _S.state == fixed(ShardState.DONE), _S.seconds > 0)
    .order_by(_S.number.desc())
    .limit(RECENT)
)
_CHANGING = [column.name for column in SHARDS.columns if column.name not in ("job_id", "number", "first", "items")]
_CHANGE = Sql(
    update(table)
    .where(
        _S.job_id == bindparam("of_job"),
        _S.number == bindparam("of_number"),
        _S.fence == bindparam("seen_fence"),
        _S.state != fixed(ShardState.DONE),
    )
    .values({name: bindparam(name) for name in _CHANGING})
)


def add_shards(tx: Transaction, new: Sequence[Shard]) -> None:
    tx.run_many(_ADD, [SHARDS.pack(shard) for shard in new])


def listed(tx: Transaction, job_id: JobId, after: int, limit: int, state: ShardState | None) -> Sequence[Shard]:
    if state is None:
        return SHARDS.unpack_all(tx.rows(_LISTED, job_id=job_id, after=after, limit=limit))
    return SHARDS.unpack_all(tx.rows(_LISTED_IN, job_id=job_id, after=after, limit=limit, state=state.value))


def shard(tx: Transaction, job_id: JobId, number: int) -> Shard:
    return _found(tx, _ONE, job_id, number)


def tally(tx: Transaction, job_id: JobId) -> ShardTally:
    rows = {state: tuple(sums) for state, *sums in tx.rows(_TALLY, job_id=job_id)}
    counts = {state: rows.get(state, (0,))[0] for state in ShardState}
    _, items_done, failed, size_bytes, seconds = rows.get(ShardState.DONE, (0, 0, 0, 0, 0.0))
    return ShardTally(
        shards=sum(counts.values()),
        waiting=counts[ShardState.WAITING],
        leased=counts[ShardState.LEASED],
        done=counts[ShardState.DONE],
        items=sum(int(sums[1]) for sums in rows.values()),
        items_done=int(items_done),
        items_failed=int(failed),
        output_bytes=int(size_bytes),
        seconds=float(seconds),
        first_error=_first_error(tx, job_id) if failed else None,
    )


def _first_error(tx: Transaction, job_id: JobId) -> str | None:
    found = tx.row(_FIRST_ERROR, job_id=job_id)
    errors = [] if found is None else json.loads(found[0])
    return str(errors[0].get("reason")) if errors else None


def lease(tx: Transaction, job_id: JobId, attempt_id: AttemptId, asked: str, decide: Callable[[Desk], Turn]) -> Turn:
    _check_alive(tx, attempt_id)
    desk = _desk(tx, job_id, attempt_id, asked)
    turn = decide(desk)
    seen = {each.number: each for each in (desk.waiting, *(held.shard for held in desk.held)) if each is not None}
    for after in (*turn.dropped, *([turn.given] if turn.given is not None else [])):
        if after.number in seen:
            _write(tx, seen[after.number], after)
    return turn


def _desk(tx: Transaction, job_id: JobId, attempt_id: AttemptId, asked: str) -> Desk:
    mine = SHARDS.unpack_all(tx.rows(_MINE, job_id=job_id, attempt_id=attempt_id))
    again = next((each for each in mine if each.asked == asked), None)
    if again is not None:
        return Desk(again=again)
    row = tx.row(_WAITING, job_id=job_id)
    if row is not None:
        return Desk(waiting=SHARDS.unpack(row), own=len(mine))
    if tx.is_shared and tx.row(_ANY_WAITING, job_id=job_id) is not None:
        raise TryAgain("others are taking the last shards just now")
    held = tuple(
        Held(SHARDS.unpack(row[:-2]), None if row[-2] is None else Outcome(row[-2]), row[-1])
        for row in tx.rows(_LEASED, job_id=job_id)
    )
    recent = tuple(float(seconds) for (seconds,) in tx.rows(_RECENT, job_id=job_id))
    return Desk(held=held, recent=recent, own=len(mine))


def change(
    tx: Transaction, job_id: JobId, number: int, attempt_id: AttemptId, how: Callable[[Shard], Shard]
) -> tuple[Shard, Shard]:
    _check_alive(tx, attempt_id)
    before = _found(tx, _ONE_HELD, job_id, number)
    after = how(before)
    if after != before:
        _write(tx, before, after)
    return before, after


def _check_alive(tx: Transaction, attempt_id: AttemptId) -> None:
    if tx.row(_ALIVE, id=attempt_id) is None:
        raise NotFound("the attempt is over")


def _found(tx: Transaction, sql: Sql, job_id: JobId, number: int) -> Shard:
    row = tx.row(sql, job_id=job_id, number=number)
    if row is None:
        raise NotFound(f"job {job_id} has no shard {number}")
    return SHARDS.unpack(row)


def _write(tx: Transaction, before: Shard, after: Shard) -> None:
    """What is done stays so, whatever anybody decides."""
    packed = SHARDS.pack(after)
    values = {name: packed[name] for name in _CHANGING}
    seen = {"of_job": before.job_id, "of_number": before.number, "seen_fence": before.fence}
    if tx.run(_CHANGE, {**values, **seen}) == 0:
        raise TryAgain(f"shard {before.number} of {before.job_id} was changed meanwhile")
