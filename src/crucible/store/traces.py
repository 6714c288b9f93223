"""Jobs that have ended, by the log of their status."""

from collections.abc import Sequence

from sqlalchemy import bindparam, func, select

from crucible.model.ids import JobId
from crucible.model.job import JobStatus
from crucible.ports.traces import Ended
from crucible.store.mapping import moment
from crucible.store.sql import Sql, Transaction, fixed_set
from crucible.store.tables import job_events

_E = job_events.c
_ENDED = Sql(
    select(_E.id, _E.job_id, _E.at)
    .where(_E.id > bindparam("after"), _E.to_status.in_(fixed_set(s for s in JobStatus if s.is_terminal)))
    .order_by(_E.id)
    .limit(bindparam("limit"))
)
_NEWEST = Sql(select(func.coalesce(func.max(_E.id), 0)))


def ended_jobs(tx: Transaction, after: int, limit: int) -> Sequence[Ended]:
    return [Ended(seq, JobId(job_id), moment(at)) for seq, job_id, at in tx.rows(_ENDED, after=after, limit=limit)]


def newest_status(tx: Transaction) -> int:
    ((newest,),) = tx.rows(_NEWEST)
    return int(newest)
