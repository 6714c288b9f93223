"""Tasks by the page, and the trials of a search: what each was given, what it reports, what came of it."""

import base64
import binascii
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, case, func, literal_column, select, tuple_

from crucible.model.attempt import AttemptPhase
from crucible.model.errors import InvalidRequest
from crucible.model.ids import JobId, TaskId
from crucible.model.job import Desired
from crucible.model.offer import Target
from crucible.model.record import Checkpoint, Progress
from crucible.model.spec import JobType
from crucible.model.sweep import Goal, Tried
from crucible.model.task import Task, TaskKind, TaskPhase, Verdict
from crucible.ports.trials import (
    MOST_TASKS_OF_A_PAGE,
    JobProgress,
    LastAttempt,
    NewCurves,
    Place,
    RunTimes,
    TaskPage,
    TaskQuery,
    TaskRow,
    TrialCount,
    Tries,
)
from crucible.store import record_tables as r
from crucible.store import tables as t
from crucible.store.commits import CHECKPOINTS
from crucible.store.entities import TASKS
from crucible.store.mapping import micros, moment, moment_or_none
from crucible.store.records import BRIEF_PROGRESS, PROGRESS
from crucible.store.sql import Among, Row, Sql, Transaction, as_list, fixed, fixed_set

_T, _A, _J = t.tasks.c, t.attempts.c, t.jobs.c
_OF_JOB = _T.job_id == bindparam("job_id")
_NO_CREW = _T.kind != fixed(TaskKind.CREW)
MICROS = 1_000_000

# --- a page of tasks --------------------------------------------------------------------------------------------


def task_page(tx: Transaction, query: TaskQuery) -> TaskPage:
    if not 1 <= query.limit <= MOST_TASKS_OF_A_PAGE:
        said = f"limit is {query.limit}: ask for 1 to {MOST_TASKS_OF_A_PAGE} tasks at a time"
        raise InvalidRequest(said, field="limit")
    values: dict[str, Any] = {"job_id": query.job_id, "limit": query.limit + 1}
    values |= {f"phase_{n}": phase.value for n, phase in enumerate(sorted(query.phases))}
    if query.cursor is not None:
        values |= dict(zip(("after_class", "after_value", "after_index"), decoded(query.cursor), strict=True))
    found = tx.rows(_page(query.best_first, len(query.phases), query.cursor is not None), **values)
    tasks = [TASKS.unpack(row[:-2]) for row in found[: query.limit]]
    last = found[query.limit - 1] if len(found) > query.limit else None
    cursor = None if last is None else encoded(last[-2], float(last[-1]), tasks[-1].index)
    return TaskPage(tuple(_rows(tx, tasks)), cursor)


@cache
def _page(goal: Goal | None, phases: int, goes_on: bool) -> Sql:
    """One statement for each combination, so that a page by index is read along the index."""
    nowhere: tuple[ColumnElement[Any], ColumnElement[Any]] = (literal_column("0"), literal_column("0.0"))
    place, value = nowhere if goal is None else _standing(goal)
    order = (_T.index,) if goal is None else (place, value, _T.index)
    query: Select[Any] = select(*TASKS.columns, place, value).where(_OF_JOB, _NO_CREW)
    if phases:
        query = query.where(_T.phase.in_([bindparam(f"phase_{n}") for n in range(phases)]))
    if goes_on and goal is None:
        query = query.where(_T.index > bindparam("after_index"))
    elif goes_on:
        after = tuple_(bindparam("after_class"), bindparam("after_value"), bindparam("after_index"))
        query = query.where(tuple_(*order) > after)
    return Sql(query.order_by(*order).limit(bindparam("limit")))


def _standing(goal: Goal) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    """As `core.sweep.standing` says it."""
    has_value = and_(_T.phase == fixed(TaskPhase.SUCCEEDED), _T.value.is_not(None))
    is_pruned = and_(has_value, _T.verdict == fixed(Verdict.PRUNED))
    place = case((is_pruned, literal_column("1")), (has_value, literal_column("0")), else_=literal_column("2"))
    signed = _T.value if goal is Goal.MINIMIZE else -_T.value
    return place, case((has_value, signed), else_=literal_column("0.0"))


def encoded(place: int, value: float, index: int) -> str:
    return base64.urlsafe_b64encode(json.dumps([place, value, index]).encode()).decode()


def decoded(cursor: str) -> tuple[int, float, int]:
    try:
        place, value, index = json.loads(base64.b64decode(cursor.encode("ascii"), b"-_", validate=True))
        if type(place) is not int or type(index) is not int or not isinstance(value, (int, float)) or index >= 1 << 31:
            raise ValueError(cursor)
        return place, float(value), index
    except (ValueError, TypeError, binascii.Error) as error:
        raise InvalidRequest("the cursor is not one of ours: start again without it", field="cursor") from error


_NEWER = t.attempts.alias("newer")
_NEWEST = select(func.max(_NEWER.c.number)).where(_NEWER.c.task_id == _A.task_id).scalar_subquery()
_LAST = Sql(
    select(_A.task_id, _A.number, _A.phase, _A.started_at, _A.ended_at, _A.leases).where(
        Among(_A.task_id, "task_ids"), _A.number == _NEWEST
    )
)
_L, _O = t.leases.c, t.orders.c
_PLACES = Sql(
    select(_L.id, _O.provider, _O.region, _O.backend, _O.instance_type, _O.is_spot)
    .join(t.orders, _O.id == _L.order_id)
    .where(Among(_L.id, "lease_ids"))
)
_SAID = Sql(select(*PROGRESS.columns).where(Among(t.progress.c.task_id, "task_ids")))


def _rows(tx: Transaction, tasks: Sequence[Task]) -> Iterable[TaskRow]:
    if not tasks:
        return []
    ids = as_list(task.id for task in tasks)
    said: dict[TaskId, Progress] = {one.task_id: one for one in PROGRESS.unpack_all(tx.rows(_SAID, task_ids=ids))}
    last = {row[0]: row for row in tx.rows(_LAST, task_ids=ids)}
    places = _places(tx, {lease for row in last.values() for lease in json.loads(row[-1])[:1]})
    return [TaskRow(task, said.get(task.id), _last(last.get(task.id), places)) for task in tasks]


def _places(tx: Transaction, leases: Collection[str]) -> dict[str, Place]:
    rows = tx.rows(_PLACES, lease_ids=as_list(leases)) if leases else []
    return {row[0]: Place(Target(row[1], row[2], row[3]), row[4], bool(row[5])) for row in rows}


def _last(row: Row | None, places: Mapping[str, Place]) -> LastAttempt | None:
    if row is None:
        return None
    _, number, phase, started_at, ended_at, leases = row
    place = next((places[lease] for lease in json.loads(leases)[:1] if lease in places), None)
    return LastAttempt(number, AttemptPhase(phase), moment_or_none(started_at), moment_or_none(ended_at), place)


_BETWEEN = Sql(
    select(*TASKS.columns)
    .where(_OF_JOB, _T.index >= bindparam("first"), _T.index < bindparam("end"))
    .order_by(_T.index)
)


def tasks_between(tx: Transaction, job_id: JobId, first: int, end: int) -> Sequence[Task]:
    return TASKS.unpack_all(tx.rows(_BETWEEN, job_id=job_id, first=first, end=end))


# --- counts -----------------------------------------------------------------------------------------------------

_HAS_VALUE = _T.value.is_not(None)
_COUNTS = Sql(
    select(_T.phase, _T.verdict, _HAS_VALUE, func.count())
    .where(_OF_JOB, _NO_CREW)
    .group_by(_T.phase, _T.verdict, _HAS_VALUE)
)


def trial_counts(tx: Transaction, job_id: JobId) -> Sequence[TrialCount]:
    return [
        TrialCount(TaskPhase(phase), None if verdict is None else Verdict(verdict), bool(has_value), count)
        for phase, verdict, has_value, count in tx.rows(_COUNTS, job_id=job_id)
    ]


_SWEEPING = Sql(
    select(_J.id)
    .where(
        _J.status.not_in(fixed_set(t.FINISHED_JOBS)),
        _J.job_type.in_(fixed_set((JobType.HPO, JobType.EVAL))),
        _J.desired == fixed(Desired.RUN),
    )
    .order_by(_J.created_at, _J.id)
)


def sweeping(tx: Transaction) -> Sequence[JobId]:
    return [JobId(row[0]) for row in tx.rows(_SWEEPING)]


# --- what was tried -----------------------------------------------------------------------------------------------

_GIVEN = select(_T.index, _T.params, _T.value).where(_OF_JOB, _T.params.is_not(None))
_LIVE = Sql(_GIVEN.where(_T.phase.not_in(fixed_set(t.FINISHED_TASKS))).order_by(_T.index))
# What was cancelled or skipped has found nothing out.
_ENDED = _GIVEN.where(_T.phase.in_(fixed_set((TaskPhase.SUCCEEDED, TaskPhase.FAILED))))
_BY_VALUE = {
    Goal.MINIMIZE: Sql(_ENDED.order_by(_T.value.is_(None), _T.value, _T.index).limit(bindparam("limit"))),
    Goal.MAXIMIZE: Sql(_ENDED.order_by(_T.value.is_(None), _T.value.desc(), _T.index).limit(bindparam("limit"))),
}


def tried(tx: Transaction, job_id: JobId, goal: Goal, limit: int) -> Sequence[Tried]:
    live = [Tried(n, json.loads(params), is_live=True) for n, params, _ in tx.rows(_LIVE, job_id=job_id)]
    ended = tx.rows(_BY_VALUE[goal], job_id=job_id, limit=limit)
    return [*live, *(Tried(n, json.loads(params), value) for n, params, value in ended)]


# --- what they report ---------------------------------------------------------------------------------------------

_P = t.progress.c
_CURVES = Sql(
    select(*PROGRESS.columns).where(
        _P.job_id == bindparam("job_id"), _P.at >= bindparam("since"), _P.curve.is_not(None)
    )
)
_RUNNING = Sql(
    select(_T.id)
    .where(
        _OF_JOB,
        _T.phase.in_(fixed_set((TaskPhase.RUNNING, TaskPhase.CHECKPOINTING))),
        _NO_CREW,
        _T.verdict.is_(None),
    )
    .order_by(_T.index)
)


def curves(tx: Transaction, job_id: JobId, since: datetime | None) -> NewCurves:
    rows = tx.rows(_CURVES, job_id=job_id, since=0 if since is None else micros(since))
    found = PROGRESS.unpack_all(rows)
    until = max((one.at for one in found), default=since)
    return NewCurves({one.task_id: one.curve for one in found if one.curve is not None}, until)


def running_trials(tx: Transaction, job_id: JobId) -> Collection[TaskId]:
    return [TaskId(row[0]) for row in tx.rows(_RUNNING, job_id=job_id)]


# --- all of them together -------------------------------------------------------------------------------------------

_NEWEST_SAID = Sql(
    select(*BRIEF_PROGRESS.columns)
    .where(_P.job_id == bindparam("job_id"))
    .order_by(_P.at.desc(), _P.task_id)
    .limit(bindparam("limit"))
)
# Who has succeeded is done, whatever was said of it.
_SHARE = case((_T.phase == fixed(TaskPhase.SUCCEEDED), 1.0), else_=func.coalesce(_P.fraction, 0.0))
_DONE = Sql(
    select(func.sum(_SHARE)).select_from(t.tasks.outerjoin(t.progress, _P.task_id == _T.id)).where(_OF_JOB, _NO_CREW)
)
_TRIES = Sql(
    select(func.count(), func.sum(_T.attempts), func.sum(_T.failures), func.sum(_T.losses)).where(_OF_JOB, _NO_CREW)
)


def job_progress(tx: Transaction, job_id: JobId) -> JobProgress | None:
    row = tx.row(_NEWEST_SAID, job_id=job_id, limit=1)
    if row is None:
        return None
    ((done,),) = tx.rows(_DONE, job_id=job_id)
    ((tasks, *_),) = tx.rows(_TRIES, job_id=job_id)
    return JobProgress(tasks, float(done or 0), BRIEF_PROGRESS.unpack(row))


def tries(tx: Transaction, job_id: JobId) -> Tries:
    ((_, *counts),) = tx.rows(_TRIES, job_id=job_id)
    return Tries(*(int(count or 0) for count in counts))


# --- how long they take, and what they leave ------------------------------------------------------------------------

_ATTEMPTS = _A.job_id == bindparam("job_id")
_RAN = Sql(
    select(func.count(), func.sum(_A.ended_at - _A.started_at)).where(
        _ATTEMPTS, _A.phase == fixed(AttemptPhase.ENDED), _A.started_at.is_not(None), _A.ended_at.is_not(None)
    )
)
_SINCE = Sql(select(_A.started_at).where(_ATTEMPTS, _A.phase != fixed(AttemptPhase.ENDED), _A.started_at.is_not(None)))
_CHECKPOINT = Sql(
    select(*CHECKPOINTS.columns)
    .where(r.checkpoints.c.lineage == bindparam("lineage"), r.checkpoints.c.task_index == bindparam("task_index"))
    .order_by(r.checkpoints.c.step.desc(), r.checkpoints.c.id.desc())
    .limit(bindparam("limit"))
)


def run_times(tx: Transaction, job_id: JobId) -> RunTimes:
    ((ended, took),) = tx.rows(_RAN, job_id=job_id)
    since = tuple(moment(row[0]) for row in tx.rows(_SINCE, job_id=job_id))
    return RunTimes(ended, float(took or 0) / MICROS, since)


def newest_checkpoint(tx: Transaction, lineage: JobId, task_index: int) -> Checkpoint | None:
    row = tx.row(_CHECKPOINT, lineage=lineage, task_index=task_index, limit=1)
    return None if row is None else CHECKPOINTS.unpack(row)
