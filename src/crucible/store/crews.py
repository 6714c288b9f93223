"""Tasks that share machines of their job: who waits for a seat, which machines there are, and who runs on them."""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import bindparam, case, func, or_, select

from crucible.model.attempt import Attempt, AttemptPhase, RankState
from crucible.model.errors import NotFound
from crucible.model.ids import JobId, NodeId, TaskId
from crucible.model.job import Desired
from crucible.model.lease import LeasePhase
from crucible.model.task import Task, TaskKind, TaskPhase
from crucible.model.tree import Crewed, Crews, NodeGlance, NodeWork, PlacedRank
from crucible.store import tables as t
from crucible.store.entities import ATTEMPTS, JOBS, LEASES, NODES, TASKS, ranks_of, with_ranks
from crucible.store.mapping import micros
from crucible.store.sql import Among, Sql, Transaction, as_list, fixed, fixed_set
from crucible.store.trees import BELOW_SOME, HEAD, grow, heads_of

_T = t.tasks.c
_IS_LIVE = t.attempts.c.phase != fixed(AttemptPhase.ENDED)
_WAITS = _T.phase == fixed(TaskPhase.WAITING)
_IS_SEATED = _T.kind == fixed(TaskKind.SEATED)
_IS_CREW = _T.kind == fixed(TaskKind.CREW)
_IS_STEP = _T.kind == fixed(TaskKind.STEP)  # what it waits for is its workflow's to say
_TIME_HAS_COME = or_(_T.not_before.is_(None), _T.not_before <= bindparam("now"))
_IS_OPEN = _T.phase.not_in(fixed_set(t.FINISHED_TASKS))

# --- jobs whose tasks share machines ----------------------------------------------------------------------------

_COUNTS = (
    select(
        _T.job_id.label("job_id"),
        func.sum(case((_TIME_HAS_COME, 1), else_=0)).label("ready"),
        func.count().label("waiting"),
    )
    .where(_WAITS, _IS_SEATED)
    .group_by(_T.job_id)
    .subquery("waiting")
)
_HOLDING = select(_T.job_id).where(_IS_CREW, _IS_OPEN)
_LAST_CREW = select(func.min(_T.index)).where(_T.job_id == t.jobs.c.id).scalar_subquery()
_CREWED = Sql(
    select(*JOBS.columns, _COUNTS.c.ready, _COUNTS.c.waiting, _LAST_CREW)
    .join(_COUNTS, _COUNTS.c.job_id == t.jobs.c.id, isouter=True)
    .where(
        t.jobs.c.status.not_in(fixed_set(t.FINISHED_JOBS)),
        t.jobs.c.desired == fixed(Desired.RUN),
        or_(_COUNTS.c.waiting.is_not(None), t.jobs.c.id.in_(_HOLDING)),
    )
    .order_by(t.jobs.c.priority.desc(), t.jobs.c.created_at, t.jobs.c.id)
)
_SEATED = Sql(
    select(*TASKS.columns)
    .where(_T.job_id == bindparam("job_id"), _WAITS, _IS_SEATED, _TIME_HAS_COME, ~Among(_T.id, "without"))
    .order_by(_T.index)
    .limit(bindparam("limit"))
)
_WAITING = Sql(
    select(*TASKS.columns)
    .where(_T.job_id == bindparam("job_id"), _WAITS, ~_IS_CREW, ~_IS_STEP)
    .order_by(_T.index)
    .limit(bindparam("limit"))
)
_AT_WORK = Sql(
    select(_T.id)
    .where(_T.job_id == bindparam("job_id"), _IS_OPEN, or_(_T.attempt_id.is_not(None), ~_IS_SEATED))
    .order_by(_T.index)
)


def crewed(tx: Transaction, now: datetime) -> Sequence[Crewed]:
    found = []
    for row in tx.rows(_CREWED, now=micros(now)):
        ready, waiting, lowest = (value or 0 for value in row[len(JOBS) :])
        found.append(Crewed(JOBS.unpack(row[: len(JOBS)]), int(ready), int(waiting) - int(ready), min(lowest, 0)))
    return found


def seated(tx: Transaction, job_id: JobId, now: datetime, limit: int, without: Collection[TaskId]) -> Sequence[Task]:
    promised = as_list(without)
    return TASKS.unpack_all(tx.rows(_SEATED, job_id=job_id, now=micros(now), limit=limit, without=promised))


def waiting_tasks(tx: Transaction, job_id: JobId, limit: int) -> Sequence[Task]:
    return TASKS.unpack_all(tx.rows(_WAITING, job_id=job_id, limit=limit))


def tasks_at_work(tx: Transaction, job_id: JobId) -> Sequence[TaskId]:
    return [TaskId(row[0]) for row in tx.rows(_AT_WORK, job_id=job_id)]


# --- machines, and who runs on them -----------------------------------------------------------------------------

_CREW_HEADS = Sql(HEAD.where(_T.job_id == bindparam("job_id"), _IS_CREW, _IS_OPEN).order_by(_T.index.desc()))
_LIVE_OF = select(*ATTEMPTS.columns).where(t.attempts.c.job_id == bindparam("job_id"), _IS_LIVE)
_LIVE, _LIVE_RANKS = Sql(_LIVE_OF), Sql(ranks_of(_LIVE_OF))


def crews(tx: Transaction, job_id: JobId) -> Crews:
    heads = heads_of(tx.rows(_CREW_HEADS, job_id=job_id))
    trees = grow(tx, heads, BELOW_SOME, task_ids=as_list(task.id for _, task in heads)) if heads else []
    return Crews(tuple(trees), tuple(_at_work(tx, job_id)))


def _at_work(tx: Transaction, job_id: JobId) -> list[Attempt]:
    return with_ranks(tx.rows(_LIVE, job_id=job_id), tx.rows(_LIVE_RANKS, job_id=job_id))


# --- what one node works on -------------------------------------------------------------------------------------

_NODE = Sql(
    select(*NODES.columns, *LEASES.columns, *JOBS.columns)
    .join(t.leases, t.leases.c.id == t.nodes.c.lease_id)
    .join(t.jobs, t.jobs.c.id == t.leases.c.job_id)
    .where(t.nodes.c.id == bindparam("node_id"))
)
_MINE = t.ranks.alias("mine")
_HAS_RANK = (
    select(_MINE.c.rank)
    .where(
        _MINE.c.attempt_id == t.attempts.c.id,
        _MINE.c.generation == t.attempts.c.generation,
        _MINE.c.node_id == bindparam("node_id"),
    )
    .exists()
)
_HERE_OF = _LIVE_OF.where(_HAS_RANK)
_HERE, _HERE_RANKS = Sql(_HERE_OF), Sql(ranks_of(_HERE_OF))
_TASKS_BY_ID = Sql(select(*TASKS.columns).where(Among(_T.id, "task_ids")))


_PHASE = Sql(
    select(t.leases.c.phase)
    .join(t.nodes, t.nodes.c.lease_id == t.leases.c.id)
    .where(t.nodes.c.id == bindparam("node_id"))
)
_PLACED = Sql(
    select(t.attempts.c.phase, t.attempts.c.id, t.attempts.c.generation, t.ranks.c.rank)
    .join(t.ranks, (t.ranks.c.attempt_id == t.attempts.c.id) & (t.ranks.c.generation == t.attempts.c.generation))
    .where(t.ranks.c.node_id == bindparam("node_id"), t.ranks.c.state != fixed(RankState.EXITED), _IS_LIVE)
)


def node_glance(tx: Transaction, node_id: NodeId) -> NodeGlance:
    row = tx.row(_PHASE, node_id=node_id)
    if row is None:
        raise NotFound(f"there is no node {node_id}")
    placed = [PlacedRank(AttemptPhase(phase), *rest) for phase, *rest in tx.rows(_PLACED, node_id=node_id)]
    return NodeGlance(LeasePhase(row[0]), tuple(sorted(placed, key=lambda one: (one.attempt_id, one.rank))))


def node_work(tx: Transaction, node_id: NodeId) -> NodeWork:
    row = tx.row(_NODE, node_id=node_id)
    if row is None:
        raise NotFound(f"there is no node {node_id}")
    a, b = len(NODES), len(NODES) + len(LEASES)
    job = JOBS.unpack(row[b:])
    of = {"job_id": job.id, "node_id": node_id}
    here = with_ranks(tx.rows(_HERE, **of), tx.rows(_HERE_RANKS, **of))
    wanted = as_list(attempt.task_id for attempt in here)
    tasks = {task.id: task for task in TASKS.unpack_all(tx.rows(_TASKS_BY_ID, task_ids=wanted))} if here else {}
    at_work = tuple((tasks[one.task_id], one) for one in sorted(here, key=lambda one: one.id))
    return NodeWork(NODES.unpack(row[:a]), LEASES.unpack(row[a:b]), job, at_work)
