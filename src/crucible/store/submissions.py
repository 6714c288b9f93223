"""Submitting a job once, however often the request arrives."""

from collections.abc import Sequence

from sqlalchemy import bindparam, select
from sqlalchemy.dialects.postgresql import insert as upsert

from crucible.model.change import Change
from crucible.model.errors import Conflict, InvariantBroken
from crucible.model.ids import JobId, UserId
from crucible.model.job import Job
from crucible.model.record import Record
from crucible.model.retention import Source
from crucible.store import tables as t
from crucible.store.commits import commit
from crucible.store.datasets import check_there
from crucible.store.mapping import clean
from crucible.store.outputs import sources_of
from crucible.store.plans import save_plan_text
from crucible.store.sql import Sql, Transaction
from crucible.store.teams import check_account

_K = t.idempotency_keys.c
_REMEMBER = Sql(
    upsert(t.idempotency_keys)
    .values(user_id=bindparam("user_id"), key=bindparam("key"), job_id=bindparam("job_id"))
    .on_conflict_do_nothing(index_elements=["user_id", "key"])
)
_FIRST = Sql(
    select(t.jobs.c.id, t.jobs.c.spec_yaml, t.jobs.c.name)
    .join(t.idempotency_keys, _K.job_id == t.jobs.c.id)
    .where(_K.user_id == bindparam("user_id"), _K.key == bindparam("key"))
)


def submit(
    tx: Transaction,
    changes: Sequence[Change],
    key: str | None,
    user_id: UserId,
    plan: str | None,
    records: Sequence[Record],
) -> JobId:
    job = _job_in(changes)
    if key is not None and not _is_first(tx, job, key, user_id):
        return _first(tx, job, key, user_id)
    check_there(tx, job.dataset_uri)
    check_account(tx, job)
    given = [Source(source=source, job_id=job.id) for source in sources_of(tx, job)]
    commit(tx, changes, [*records, *given], lambda _: None)
    if plan is not None:
        save_plan_text(tx, job.id, plan, job.created_at)
    return job.id


def _job_in(changes: Sequence[Change]) -> Job:
    jobs = [change.after for change in changes if isinstance(change.after, Job) and change.before is None]
    if len(jobs) != 1:
        raise InvariantBroken(f"a submission makes one new job, not {len(jobs)}")
    return jobs[0]


def _is_first(tx: Transaction, job: Job, key: str, user_id: UserId) -> bool:
    """Whoever writes the key submits; another server that tries at the same moment waits here for our commit."""
    return tx.run(_REMEMBER, {"user_id": user_id, "key": key, "job_id": job.id}) == 1


def _first(tx: Transaction, job: Job, key: str, user_id: UserId) -> JobId:
    row = tx.row(_FIRST, user_id=user_id, key=key)
    if row is None:
        raise InvariantBroken(f"the idempotency key {key} names a job that does not exist")
    if (row[1], row[2]) != (clean(job.spec_yaml), clean(job.name)):
        raise Conflict(f"the idempotency key {key} was used for job {row[0]} with another spec: use a new key")
    return JobId(row[0])
