"""What tasks left behind. A row is written with the exit of the rank that left it; it counts if its task names its tree
in the end, so everybody reads it through the task."""

from collections.abc import Collection, Sequence

from sqlalchemy import bindparam, func, literal, or_, select
from sqlalchemy.dialects.postgresql import insert as upsert

from crucible.model.account import Sight
from crucible.model.errors import StaleVersion, UnknownInput
from crucible.model.ids import Digest, JobId
from crucible.model.job import Job
from crucible.model.outputs import Output, OutputTotals
from crucible.model.retention import Source
from crucible.store.mapping import Rows
from crucible.store.record_tables import datasets as dataset_table
from crucible.store.record_tables import outputs as output_table
from crucible.store.retention_tables import job_sources
from crucible.store.sql import Among, Sql, Transaction, as_list
from crucible.store.tables import jobs as job_table
from crucible.store.tables import tasks as task_table

OUTPUTS = Rows(Output, output_table)
SOURCES = Rows(Source, job_sources)

_O, _T, _J = output_table.c, task_table.c, job_table.c
_NEW = upsert(output_table).values(OUTPUTS.parameters())
_KEY = ("job_id", "task_index")
_ADD = Sql(
    _NEW.on_conflict_do_update(
        index_elements=_KEY,
        set_={column.name: _NEW.excluded[column.name] for column in OUTPUTS.columns if column.name not in _KEY},
    )
)
_COUNTS = (_T.job_id == _O.job_id) & (_T.index == _O.task_index) & (_T.outputs == _O.digest)
_COUNTING = select(*OUTPUTS.columns).join(task_table, _COUNTS)
_OF_JOB = _O.job_id == bindparam("job_id")
_PAGE = Sql(
    _COUNTING.where(_OF_JOB, _O.task_index > bindparam("after")).order_by(_O.task_index).limit(bindparam("limit"))
)
_ONE = Sql(_COUNTING.where(_OF_JOB, _O.task_index == bindparam("task_index")))
_TOTALS = Sql(
    select(func.count(), func.coalesce(func.sum(_O.files), 0), func.coalesce(func.sum(_O.size_bytes), 0))
    .select_from(output_table)
    .join(task_table, _COUNTS)
    .where(_OF_JOB)
)
_NEWEST = (
    _COUNTING.join(job_table, _J.id == _O.job_id)
    .where(_O.digest == bindparam("digest"), _J.removed_at.is_(None))
    .order_by(_O.created_at.desc(), _O.job_id)
    .limit(1)
)
_OF_TREE = Sql(_NEWEST)
_SEEN_OF_TREE = Sql(_NEWEST.where(or_(_J.user_id == bindparam("user_id"), Among(_J.team, "teams"))))
_KEPT = Sql(select(_O.digest).where(Among(_O.digest, "digests"), _O.uri == bindparam("uri")).distinct())
# Whoever removes the job waits for us, or we for them.
_SOURCE = Sql(
    select(_J.id)
    .join(output_table, _O.job_id == _J.id)
    .where(_O.digest == bindparam("digest"), _O.uri == bindparam("uri"), _J.removed_at.is_(None))
    .with_for_update(read=True, of=job_table)
    .limit(1)
)
_IS_THERE = Sql(select(_J.id).where(_J.id == bindparam("source"), _J.removed_at.is_(None)).with_for_update(read=True))
_HAS_ITS = Sql(upsert(job_sources).values(SOURCES.parameters()).on_conflict_do_nothing())
_IN_DATASETS = Sql(
    select(literal(1)).where(dataset_table.c.digest == bindparam("digest")).with_for_update(read=True).limit(1)
)


def add(tx: Transaction, output: Output) -> None:
    """The last attempt's is the one that counts."""
    tx.run(_ADD, OUTPUTS.pack(output))


def page(tx: Transaction, job_id: JobId, after: int, limit: int) -> Sequence[Output]:
    return OUTPUTS.unpack_all(tx.rows(_PAGE, job_id=job_id, after=after, limit=limit))


def of_task(tx: Transaction, job_id: JobId, task_index: int) -> Output | None:
    row = tx.row(_ONE, job_id=job_id, task_index=task_index)
    return None if row is None else OUTPUTS.unpack(row)


def totals(tx: Transaction, job_id: JobId) -> OutputTotals:
    ((tasks, files, size),) = tx.rows(_TOTALS, job_id=job_id)
    return OutputTotals(tasks=tasks, files=int(files), size_bytes=int(size))


def of_tree(tx: Transaction, digest: Digest, seen_by: Sight | None) -> Output | None:
    if seen_by is None:
        row = tx.row(_OF_TREE, digest=digest)
    else:
        row = tx.row(_SEEN_OF_TREE, digest=digest, user_id=seen_by.user_id, teams=as_list(seen_by.teams))
    return None if row is None else OUTPUTS.unpack(row)


def kept(tx: Transaction, uri: str, digests: Collection[Digest]) -> frozenset[Digest]:
    return frozenset(Digest(digest) for (digest,) in tx.rows(_KEPT, uri=uri, digests=as_list(digests)))


def sources_of(tx: Transaction, job: Job) -> Sequence[JobId]:
    """Of a new job, in its transaction: the jobs that left what it was given. A tree that was removed meanwhile cannot
    be given to it: raises UnknownInput."""
    found: dict[JobId, None] = {}
    for one in job.inputs:
        row = tx.row(_SOURCE, digest=one.digest, uri=one.uri)
        if row is not None:
            found[JobId(row[0])] = None
        elif not tx.rows(_IN_DATASETS, digest=one.digest):
            raise UnknownInput(f"the input {one.name} was removed meanwhile", field=f"job.inputs.{one.name}")
    return tuple(found)


def add_source(tx: Transaction, source: Source) -> None:
    if tx.row(_IS_THERE, source=source.source) is None:
        raise StaleVersion(f"job {source.source} was removed: load again")
    tx.run(_HAS_ITS, SOURCES.pack(source))
