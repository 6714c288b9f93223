"""Lists: a page of jobs, what belongs to a job, and what somebody must look at."""

import base64
import binascii
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Select,
    bindparam,
    case,
    func,
    or_,
    select,
    tuple_,
    union,
    union_all,
)

from crucible.model.attempt import Attempt, AttemptPhase
from crucible.model.errors import InvalidRequest
from crucible.model.ids import JobId, OrderId, TaskId, UserId
from crucible.model.job import Desired, JobStatus
from crucible.model.lease import Lease, LeasePhase, Order
from crucible.model.offer import Market
from crucible.model.quota import Holding
from crucible.model.shards import ShardState
from crucible.model.spec import SHARDED, Mode
from crucible.model.task import Task, TaskKind, TaskPhase
from crucible.ports.store import Due, JobPage, JobQuery, JobSummary
from crucible.store import tables as t
from crucible.store import workflows
from crucible.store.entities import ATTEMPTS, LEASES, ORDERS, TASKS, ranks_of, with_ranks
from crucible.store.health_tables import job_health
from crucible.store.mapping import micros, moment, moment_or_none
from crucible.store.record_tables import shards
from crucible.store.sql import Among, Row, Sql, Transaction, as_list, fixed, fixed_set
from crucible.store.trees import OPEN_LEASE, UNSETTLED

MAX_PAGE = 1000  # more than a person reads; a program follows the cursor
MAX_LISTS = 100  # in one statement; SQLite takes 500

# --- a page of jobs ---------------------------------------------------------------------------------------------

_J = t.jobs.c
_SUMMARY = (
    _J.id,
    _J.name,
    _J.status,
    _J.reason,
    _J.user_id,
    _J.job_type,
    _J.framework,
    _J.gpus,
    _J.selected_provider,
    _J.selected_region,
    _J.cost_running_microusd,
    _J.created_at,
    _J.started_at,
    _J.finished_at,
    t.progress.c.fraction,
    job_health.c.status,
    _J.desired,
    _J.team,
    _J.project,
)
# A single_cluster job has one task, so that its progress is the job's and the join adds no rows.
_PROGRESS = (t.progress.c.job_id == _J.id) & (_J.execution_mode == fixed(Mode.SINGLE_CLUSTER))

_HEALTH = job_health.c.job_id == _J.id


def jobs(tx: Transaction, query: JobQuery) -> JobPage:
    """Newest first."""
    if not 1 <= query.limit <= MAX_PAGE:
        raise InvalidRequest(f"limit is {query.limit}: ask for 1 to {MAX_PAGE} jobs at a time", field="limit")
    filters = {name: value for name in FILTERS if (value := getattr(query, name)) is not None}
    values: dict[str, Any] = {"limit": query.limit + 1, **filters}
    if query.cursor is not None:
        values["before_at"], values["before_id"] = _decode_cursor(query.cursor)
    shown = frozenset(values) | ({"steps"} if query.with_steps else set())
    statuses, scopes = tuple(sorted(query.status)), scopes_of(query)
    values |= {f"status_{n}": status.value for n, status in enumerate(statuses)} | dict(scopes)
    rows = tx.rows(_page(shown, len(statuses), tuple(name for name, _ in scopes)), **values)
    items = with_shards(tx, [_summary(row) for row in rows[: query.limit]])
    more = len(rows) > query.limit
    return JobPage(items, _encode_cursor(items[-1]) if more else None)


FILTERS = ("user_id", "team", "project", "name", "parent")
_MINE, _TEAM, _TEAMS = "mine", "my_team", "my_teams"


def scopes_of(query: JobQuery) -> Sequence[tuple[str, str]]:
    """The lists that together are what somebody sees, as parameters: their own jobs and those of each team. A filter
    may leave one of them, or say enough by itself. A project's jobs are one team's, and who is in very many teams sees
    so much that the newest are found soon: there one list is enough, of which they see their part."""
    sight = query.seen_by
    if sight is None or query.user_id == sight.user_id or query.team in sight.teams:
        return ()
    teams = [] if query.team is not None else sorted(sight.teams)
    if (query.project is not None and teams) or (1 + len(teams)) * max(1, len(query.status)) > MAX_LISTS:
        return ((_TEAMS, as_list(teams)), (_MINE, sight.user_id))
    return ((_MINE, sight.user_id), *((f"{_TEAM}_{n}", team) for n, team in enumerate(teams)))


def lists_of(scopes: tuple[str, ...]) -> tuple[str | None, ...]:
    """Parameters of `scopes_of` that are lists of their own; None: everybody's."""
    return (_TEAMS,) if _TEAMS in scopes else scopes or (None,)


@cache
def _page(given: frozenset[str], statuses: int, scopes: tuple[str, ...]) -> Sql:
    """One statement per combination of filters, so that each can use its index. Several statuses or teams are several
    lists, each in its order, of which the newest are taken: no long list is ever sorted."""
    rows = t.jobs.join(t.progress, _PROGRESS, isouter=True).join(job_health, _HEALTH, isouter=True)
    query: Select[Any] = select(*_SUMMARY).select_from(rows)
    wanted: list[str | None] = [f"status_{n}" for n in range(statuses)] or [None]
    seen = lists_of(scopes)
    lists = [matching(select(_J.id), given, status, scope) for status in wanted for scope in seen]
    if len(lists) > 1:
        found = [newest(one).subquery() for one in lists]
        query = query.where(_J.id.in_(union_all(*(select(one.c.id) for one in found))))
    else:
        query = matching(query, given, wanted[0], seen[0])
    return Sql(newest(query))


def newest(query: Select[Any]) -> Select[Any]:
    return query.order_by(_J.created_at.desc(), _J.id.desc()).limit(bindparam("limit"))


def matching(query: Select[Any], given: frozenset[str], status: str | None, scope: str | None) -> Select[Any]:
    query = query.where(_J.removed_at.is_(None))
    if status is not None:
        query = query.where(_J.status == bindparam(status))
    if scope is not None:
        query = query.where(within(scope))
    for name in FILTERS:
        if name in given:
            query = query.where(_J[name] == bindparam(name))
    if not {"parent", "steps"} & given:
        query = query.where(_J.parent.is_(None))
    if "before_at" in given:
        query = query.where(tuple_(_J.created_at, _J.id) < tuple_(bindparam("before_at"), bindparam("before_id")))
    return query


def within(scope: str) -> ColumnElement[bool]:
    if scope == _TEAMS:
        return or_(_J.user_id == bindparam(_MINE), Among(_J.team, _TEAMS))
    return (_J.user_id if scope == _MINE else _J.team) == bindparam(scope)


_SHARDS = Sql(
    select(shards.c.job_id, shards.c.state, func.count())
    .where(Among(shards.c.job_id, "job_ids"))
    .group_by(shards.c.job_id, shards.c.state)
)


def with_shards(tx: Transaction, items: Sequence[JobSummary]) -> tuple[JobSummary, ...]:
    """Jobs that work on items have come as far as their shards. One statement, which reads an index only."""
    sharded = [item.id for item in items if item.job_type in SHARDED]
    if not sharded:
        return tuple(items)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for job_id, state, count in tx.rows(_SHARDS, job_ids=as_list(sharded)):
        counts[job_id][state] += count
    shares = {job_id: states[ShardState.DONE] / states.total() for job_id, states in counts.items()}
    return tuple(item._replace(progress=shares[item.id]) if item.id in shares else item for item in items)


_STATUS = {status.value: status for status in JobStatus}
_DESIRED = {desired.value: desired for desired in Desired}


def _summary(row: Row) -> JobSummary:
    id_, name, status, reason, user_id, job_type, framework, gpus, provider, region, cost, *rest = row
    created_at, started_at, finished_at, fraction, health, desired, team, project = rest
    return JobSummary(
        id=JobId(id_),
        name=name,
        status=_STATUS[status],
        reason=reason,
        user_id=UserId(user_id),
        job_type=job_type,
        framework=framework,
        gpus=gpus,
        selected_provider=provider,
        selected_region=region,
        cost_running_microusd=cost,
        created_at=moment(created_at),
        started_at=moment_or_none(started_at),
        finished_at=moment_or_none(finished_at),
        progress=fraction,
        health=health,
        desired=_DESIRED[desired],
        team=team,
        project=project,
    )


def _encode_cursor(last: JobSummary) -> str:
    return base64.urlsafe_b64encode(f"{micros(last.created_at)} {last.id}".encode()).decode()


def _decode_cursor(cursor: str) -> tuple[int, str]:
    try:
        at, _, id_ = base64.b64decode(cursor.encode("ascii"), b"-_", validate=True).decode().partition(" ")
        if not id_ or abs(int(at)) >= 1 << 63:
            raise ValueError(cursor)
        return int(at), id_
    except (ValueError, binascii.Error) as error:
        raise InvalidRequest("the cursor is not one of ours: start again without it", field="cursor") from error


# --- what belongs to a job --------------------------------------------------------------------------------------

_TASKS = Sql(select(*TASKS.columns).where(t.tasks.c.job_id == bindparam("job_id")).order_by(t.tasks.c.index))
_ATTEMPTS_OF = (
    select(*ATTEMPTS.columns)
    .where(t.attempts.c.job_id == bindparam("job_id"))
    .order_by(t.attempts.c.created_at, t.attempts.c.task_id, t.attempts.c.number)
)
_ATTEMPTS = Sql(_ATTEMPTS_OF)
_THE_TASK = select(t.tasks.c.id).where(
    t.tasks.c.job_id == bindparam("job_id"), t.tasks.c.index == bindparam("task_index")
)
_ATTEMPTS_AT = (
    select(*ATTEMPTS.columns).where(t.attempts.c.task_id == _THE_TASK.scalar_subquery()).order_by(t.attempts.c.number)
)
_TASK_ATTEMPTS, _TASK_RANKS = Sql(_ATTEMPTS_AT), Sql(ranks_of(_ATTEMPTS_AT))
_RANKS = Sql(ranks_of(_ATTEMPTS_OF))
_LEASES = Sql(
    select(*LEASES.columns)
    .where(t.leases.c.job_id == bindparam("job_id"))
    .order_by(t.leases.c.created_at, t.leases.c.order_id, t.leases.c.index)
)
_ORDERS = Sql(
    select(*ORDERS.columns)
    .where(t.orders.c.job_id == bindparam("job_id"))
    .order_by(t.orders.c.created_at, t.orders.c.id)
)
_TASK_OPEN = t.tasks.c.phase.not_in(fixed_set(t.FINISHED_TASKS))
_UNFINISHED = Sql(
    select(t.tasks.c.id).where(t.tasks.c.job_id == bindparam("job_id"), _TASK_OPEN).order_by(t.tasks.c.index)
)


def job_tasks(tx: Transaction, job_id: JobId) -> Sequence[Task]:
    return TASKS.unpack_all(tx.rows(_TASKS, job_id=job_id))


def job_attempts(tx: Transaction, job_id: JobId) -> Sequence[Attempt]:
    return with_ranks(tx.rows(_ATTEMPTS, job_id=job_id), tx.rows(_RANKS, job_id=job_id))


def task_attempts(tx: Transaction, job_id: JobId, task_index: int) -> Sequence[Attempt]:
    of = {"job_id": job_id, "task_index": task_index}
    return with_ranks(tx.rows(_TASK_ATTEMPTS, **of), tx.rows(_TASK_RANKS, **of))


def job_leases(tx: Transaction, job_id: JobId) -> Sequence[Lease]:
    return LEASES.unpack_all(tx.rows(_LEASES, job_id=job_id))


def job_orders(tx: Transaction, job_id: JobId) -> Sequence[Order]:
    return ORDERS.unpack_all(tx.rows(_ORDERS, job_id=job_id))


def unfinished_tasks(tx: Transaction, job_id: JobId) -> Sequence[TaskId]:
    return [TaskId(row[0]) for row in tx.rows(_UNFINISHED, job_id=job_id)]


# --- what belongs to a provider -----------------------------------------------------------------------------------

_LEASES_OF = (
    select(*LEASES.columns)
    .where(t.leases.c.provider == bindparam("provider"), OPEN_LEASE)
    .order_by(t.leases.c.created_at, t.leases.c.id)
)
_ORDERS_OF = (
    select(*ORDERS.columns)
    .where(t.orders.c.provider == bindparam("provider"), UNSETTLED)
    .order_by(t.orders.c.created_at, t.orders.c.id)
)
_OPEN_LEASES, _LEASES_IN = Sql(_LEASES_OF), Sql(_LEASES_OF.where(t.leases.c.region == bindparam("region")))
_OPEN_ORDERS, _ORDERS_IN = Sql(_ORDERS_OF), Sql(_ORDERS_OF.where(t.orders.c.region == bindparam("region")))


_PLACES = Sql(
    union(
        select(t.leases.c.provider, t.leases.c.region).where(OPEN_LEASE),
        select(t.orders.c.provider, t.orders.c.region).where(UNSETTLED),
    )
)


def open_places(tx: Transaction) -> Sequence[tuple[str, str]]:
    return sorted((provider, region) for provider, region in tx.rows(_PLACES))


def open_leases(tx: Transaction, provider: str, region: str | None) -> Sequence[Lease]:
    """`region`: None for all of them."""
    if region is None:
        return LEASES.unpack_all(tx.rows(_OPEN_LEASES, provider=provider))
    return LEASES.unpack_all(tx.rows(_LEASES_IN, provider=provider, region=region))


_HOLDINGS = Sql(
    select(t.orders.c.region, t.orders.c.instance_type, t.orders.c.is_spot, func.count())
    .join(t.leases, t.leases.c.order_id == t.orders.c.id)
    .where(t.leases.c.provider == bindparam("provider"), OPEN_LEASE)
    .group_by(t.orders.c.region, t.orders.c.instance_type, t.orders.c.is_spot)
    .order_by(t.orders.c.region, t.orders.c.instance_type, t.orders.c.is_spot)
)


def holdings(tx: Transaction, provider: str) -> Sequence[Holding]:
    return tuple(
        Holding(provider, region, name, Market.SPOT if is_spot else Market.ON_DEMAND, machines)
        for region, name, is_spot, machines in tx.rows(_HOLDINGS, provider=provider)
    )


def open_orders(tx: Transaction, provider: str, region: str | None) -> Sequence[Order]:
    if region is None:
        return ORDERS.unpack_all(tx.rows(_OPEN_ORDERS, provider=provider))
    return ORDERS.unpack_all(tx.rows(_ORDERS_IN, provider=provider, region=region))


# --- what somebody must look at -------------------------------------------------------------------------------------

_LATE: BindParameter[int] = bindparam("now")
_IS_WAITING = t.tasks.c.phase == fixed(TaskPhase.WAITING)
_LATE_TASK = select(t.tasks.c.id, t.tasks.c.deadline_at).where(t.tasks.c.deadline_at <= _LATE, _TASK_OPEN)
_LATE_ATTEMPT = select(t.attempts.c.task_id, t.attempts.c.deadline_at).where(
    t.attempts.c.deadline_at <= _LATE, t.attempts.c.phase != fixed(AttemptPhase.ENDED)
)
_LATE_AT_WORK = union(_LATE_TASK.where(~_IS_WAITING), _LATE_ATTEMPT).subquery("late")
_DUE_AT_WORK = Sql(
    select(_LATE_AT_WORK.c.id).order_by(_LATE_AT_WORK.c.deadline_at, _LATE_AT_WORK.c.id).limit(bindparam("limit"))
)
_DUE_WAITING = Sql(
    _LATE_TASK.where(_IS_WAITING, t.tasks.c.kind == fixed(TaskKind.ALONE))
    .order_by(t.tasks.c.deadline_at, t.tasks.c.id)
    .limit(bindparam("limit"))
)
_UNWANTED = select(_J.id).where(_J.status.not_in(fixed_set(t.FINISHED_JOBS)), _J.desired == fixed(Desired.CANCEL))
# Those that share machines are many, and ended together by their job.
_IS_SEATED = t.tasks.c.kind == fixed(TaskKind.SEATED)
_DUE_UNWANTED = Sql(
    select(t.tasks.c.id).where(_IS_WAITING, ~_IS_SEATED, t.tasks.c.job_id.in_(_UNWANTED)).limit(bindparam("limit"))
)
_UNSETTLED_ORDER = select(t.orders.c.id).where(UNSETTLED)
# Nobody puts a delete off for so long: the clock was set back since.
_FAR_AHEAD = 600 * 1_000_000
_CLOSING = (t.leases.c.phase == fixed(LeasePhase.CLOSING)) & or_(
    t.leases.c.deadline_at.is_(None),
    t.leases.c.deadline_at <= _LATE,
    t.leases.c.deadline_at > _LATE + _FAR_AHEAD,
)
_MOVING_LEASE = select(t.leases.c.order_id).where(
    t.leases.c.phase.in_(fixed_set((LeasePhase.REQUESTED, LeasePhase.CLOSING))),
    or_(t.leases.c.phase == fixed(LeasePhase.REQUESTED), _CLOSING),
)
_ORDERS_DUE = union(_UNSETTLED_ORDER, _MOVING_LEASE).subquery("due")
_DUE_ORDERS = Sql(select(_ORDERS_DUE.c.id).order_by(_ORDERS_DUE.c.id).limit(bindparam("limit")))
# A task in the phase that its job's status tells of; a job that none of its tasks shows was not looked at since.
_SHOWN_IN = {
    JobStatus.PENDING: TaskPhase.WAITING,
    JobStatus.SCHEDULED: TaskPhase.SCHEDULED,
    JobStatus.PROVISIONING: TaskPhase.PROVISIONING,
    JobStatus.RUNNING: TaskPhase.RUNNING,
    JobStatus.CHECKPOINTING: TaskPhase.CHECKPOINTING,
}
_SHOWN = case(*((_J.status == fixed(status), fixed(phase)) for status, phase in _SHOWN_IN.items()))
_WAITS_AGAIN = (_J.status == fixed(JobStatus.SCHEDULED)) & _IS_WAITING
_IS_SHOWN = select(t.tasks.c.id).where(t.tasks.c.job_id == _J.id, or_(t.tasks.c.phase == _SHOWN, _WAITS_AGAIN)).exists()
_IS_WANTED = (_J.desired == fixed(Desired.RUN)) & _J.drained.is_(None)
_DUE_JOBS = Sql(
    select(_J.id)
    .where(_J.status.not_in(fixed_set(t.FINISHED_JOBS)), or_(~_IS_WANTED, ~_IS_SHOWN))
    .order_by(_J.created_at)
    .limit(bindparam("limit"))
)
# The end of a machine is noted before its task is told: whoever should have told it may have died in between.
_AT_WORK = t.tasks.c.attempt_id.is_not(None) & _TASK_OPEN
_HAS_LEASE = (
    select(t.leases.c.id)
    .where(t.leases.c.task_id == t.tasks.c.id, t.leases.c.phase != fixed(LeasePhase.CLOSED))
    .exists()
)
_IS_ALONE = t.tasks.c.kind == fixed(TaskKind.ALONE)
_STRANDED = Sql(
    select(t.tasks.c.id)
    .where(_AT_WORK, _IS_ALONE, ~_HAS_LEASE)
    .order_by(t.tasks.c.job_id, t.tasks.c.id)  # in the order of the index of those that have not ended
    .limit(bindparam("limit"))
)
_SITS = select(t.tasks.c.id).where(t.tasks.c.id == t.attempts.c.task_id, _IS_SEATED).exists()
_LOST_SEAT = (
    select(t.leases.c.id)
    .join(t.nodes, t.nodes.c.lease_id == t.leases.c.id)
    .join(t.ranks, t.ranks.c.node_id == t.nodes.c.id)
    .where(
        t.ranks.c.attempt_id == t.attempts.c.id,
        t.ranks.c.generation == t.attempts.c.generation,
        t.leases.c.phase == fixed(LeasePhase.CLOSED),
    )
    .exists()
)
_OFF_SEAT = Sql(
    select(t.attempts.c.task_id)
    .where(t.attempts.c.phase != fixed(AttemptPhase.ENDED), _SITS, _LOST_SEAT)
    .limit(bindparam("limit"))
)


def stranded(tx: Transaction, limit: int) -> Sequence[TaskId]:
    found = [*tx.rows(_STRANDED, limit=limit), *tx.rows(_OFF_SEAT, limit=limit)]
    return tuple(TaskId(row[0]) for row in found)


def due(tx: Transaction, now: datetime, limit: int) -> Due:
    """A waiting task stays late until it is placed, so those come after everything that is at work."""
    at = micros(now)
    late = [TaskId(row[0]) for row in tx.rows(_DUE_AT_WORK, now=at, limit=limit)]
    late += [TaskId(row[0]) for row in tx.rows(_DUE_UNWANTED, limit=limit)]
    if len(late) < limit:
        late += [TaskId(row[0]) for row in tx.rows(_DUE_WAITING, now=at, limit=limit - len(late))]
    return Due(
        tasks=tuple(dict.fromkeys(late)),
        orders=tuple(OrderId(row[0]) for row in tx.rows(_DUE_ORDERS, now=at, limit=limit)),
        jobs=tuple(JobId(row[0]) for row in tx.rows(_DUE_JOBS, limit=limit)),
        workflows=workflows.due(tx, at, limit),
    )
