"""Workflows: the jobs of their steps, their figures, the results of steps, and which of them somebody must look at."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import bindparam, case, func, or_, select
from sqlalchemy.dialects.postgresql import insert as upsert

from crucible.model.ids import Digest, JobId
from crucible.model.job import Job
from crucible.model.record import StepResult
from crucible.model.steps import PHASES
from crucible.model.task import TaskKind
from crucible.model.units import MicroUsd
from crucible.ports.workflows import Shape
from crucible.store import tables as t
from crucible.store.entities import JOBS
from crucible.store.mapping import Rows
from crucible.store.record_tables import step_results
from crucible.store.sql import Among, Sql, Transaction, as_list, fixed, fixed_set

RESULTS = Rows(StepResult, step_results)

_J, _T = t.jobs.c, t.tasks.c
_IS_STEP = _T.kind == fixed(TaskKind.STEP)
_IS_OPEN = _T.phase.not_in(fixed_set(t.FINISHED_TASKS))

# --- the jobs of steps --------------------------------------------------------------------------------------------

_CHILDREN = Sql(
    select(*JOBS.columns).where(_J.parent == bindparam("parent"), _J.removed_at.is_(None)).order_by(_J.step)
)
_BRIEF = Sql(
    select(_J.parent, _J.id, _J.cost_running_microusd).where(Among(_J.parent, "job_ids")).order_by(_J.parent, _J.step)
)
_ANY = Sql(select(_T.job_id).where(Among(_T.job_id, "job_ids"), _IS_STEP).limit(1))
_STEPS = Sql(
    select(_T.job_id, func.count(), func.sum(case((_IS_OPEN, 0), else_=1)))
    .where(Among(_T.job_id, "job_ids"), _IS_STEP)
    .group_by(_T.job_id)
)


def child_jobs(tx: Transaction, job_id: JobId) -> Sequence[Job]:
    return JOBS.unpack_all(tx.rows(_CHILDREN, parent=job_id))


def are_any(tx: Transaction, job_ids: Collection[JobId]) -> bool:
    """Most jobs are none, and need no more than this one look."""
    return bool(tx.rows(_ANY, job_ids=as_list(job_ids)))


def shapes(tx: Transaction, job_ids: Collection[JobId]) -> Mapping[JobId, Shape]:
    steps = tx.rows(_STEPS, job_ids=as_list(job_ids))
    children: dict[str, list[JobId]] = defaultdict(list)
    posted: dict[str, int] = defaultdict(int)
    for parent, child, cost in tx.rows(_BRIEF, job_ids=as_list(row[0] for row in steps)):
        children[parent].append(JobId(child))
        posted[parent] += cost
    return {
        JobId(id_): Shape(count, int(ended), tuple(children[id_]), MicroUsd(posted[id_])) for id_, count, ended in steps
    }


# --- results of steps ---------------------------------------------------------------------------------------------

_RESULT = Sql(select(*RESULTS.columns).where(step_results.c.cache_key == bindparam("cache_key")))
_NEW = upsert(step_results).values(RESULTS.parameters())
_SAVE = Sql(
    _NEW.on_conflict_do_update(
        index_elements=["cache_key"],
        set_={column.name: _NEW.excluded[column.name] for column in RESULTS.columns if column.name != "cache_key"},
    )
)


def step_result(tx: Transaction, cache_key: Digest) -> StepResult | None:
    row = tx.row(_RESULT, cache_key=cache_key)
    return None if row is None else RESULTS.unpack(row)


def save_result(tx: Transaction, result: StepResult) -> None:
    tx.run(_SAVE, RESULTS.pack(result))


# --- what somebody must look at -----------------------------------------------------------------------------------

_CHILD = t.jobs.alias("child")
_SHOWN = case(*((_CHILD.c.status == fixed(status), fixed(phase)) for status, phase in PHASES.items()))
# A step that does not say what its job says, or a job that was not told what is wanted of its workflow.
_DUE = Sql(
    select(_T.job_id)
    .join(_CHILD, (_CHILD.c.parent == _T.job_id) & (_CHILD.c.step == _T.index))
    .join(t.jobs, _J.id == _T.job_id)
    .where(_IS_STEP, _IS_OPEN, or_(_T.phase != _SHOWN, _CHILD.c.desired != _J.desired))
    .distinct()
    .limit(bindparam("limit"))
)


# A step whose turn has come, and nobody has begun it.
_LATE = Sql(
    select(_T.job_id).where(_IS_STEP, _IS_OPEN, _T.deadline_at <= bindparam("now")).distinct().limit(bindparam("limit"))
)


def due(tx: Transaction, now: int, limit: int) -> tuple[JobId, ...]:
    found = [*tx.rows(_DUE, limit=limit), *tx.rows(_LATE, now=now, limit=limit)]
    return tuple(dict.fromkeys(JobId(row[0]) for row in found))
