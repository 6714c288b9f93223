"""Datasets by name, and copies of their trees in regions. A row of either is written when the tree is whole."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import bindparam, delete, insert, or_, select
from sqlalchemy.dialects.postgresql import insert as upsert

from crucible.model.audit import AuditEntry
from crucible.model.dataset import Dataset, DatasetCopy, pin_of, version_name
from crucible.model.errors import Conflict, StaleVersion, UnknownDataset
from crucible.model.ids import Digest, JobId
from crucible.store.audit import write_audit
from crucible.store.mapping import Rows
from crucible.store.record_tables import dataset_copies as copy_table
from crucible.store.record_tables import datasets as dataset_table
from crucible.store.sql import Sql, Transaction, UniqueViolated, fixed_set
from crucible.store.tables import FINISHED_JOBS
from crucible.store.tables import jobs as job_table

DATASETS = Rows(Dataset, dataset_table)
COPIES = Rows(DatasetCopy, copy_table)
# Named in a refusal; whoever is interested in more can list them.
NAMED_JOBS = 3

_D, _C, _J = dataset_table.c, copy_table.c, job_table.c
_DATASET = Sql(select(*DATASETS.columns).where(_D.name == bindparam("name")))
_DATASETS = Sql(select(*DATASETS.columns).order_by(_D.name))
_OTHERS = Sql(select(_D.name).where(_D.digest == bindparam("digest")).order_by(_D.name))
_HELD = Sql(select(_D.name).where(_D.digest == bindparam("digest")).with_for_update(read=True))
_NEW = upsert(dataset_table).values(DATASETS.parameters())
_SAVE = Sql(
    _NEW.on_conflict_do_update(
        index_elements=["name"],
        set_={column.name: _NEW.excluded[column.name] for column in DATASETS.columns if column.name != "name"},
    )
)
_REMOVE = Sql(delete(dataset_table).where(_D.name == bindparam("old_name")))
_JOBS = Sql(
    select(_J.id)
    .where(
        _J.status.not_in(fixed_set(FINISHED_JOBS)),
        or_(_J.dataset_uri.like(bindparam("pattern")), _J.inputs.like(bindparam("given"))),
    )
    .order_by(_J.created_at, _J.id)
)
_COPIES = Sql(select(*COPIES.columns).order_by(_C.digest, _C.place))
_COPIES_OF = Sql(select(*COPIES.columns).where(_C.digest == bindparam("digest")).order_by(_C.place))
_ADD_COPY = Sql(insert(copy_table).values(COPIES.parameters()))
_REMOVE_COPIES = Sql(delete(copy_table).where(_C.digest == bindparam("old_digest")))


def dataset(tx: Transaction, name: str) -> Dataset | None:
    row = tx.row(_DATASET, name=name)
    if row is None and "@" in name:  # it may be what the name means now
        plain, _, digest = name.partition("@")
        row = tx.row(_DATASET, name=plain)
        return DATASETS.unpack(row) if row is not None and DATASETS.unpack(row).digest == digest else None
    return None if row is None else DATASETS.unpack(row)


def datasets(tx: Transaction) -> Sequence[Dataset]:
    return DATASETS.unpack_all(tx.rows(_DATASETS))


def save(tx: Transaction, new: Dataset, audit: AuditEntry | None = None) -> None:
    row = tx.row(_DATASET, name=new.name)
    old = None if row is None else DATASETS.unpack(row)
    if old is not None and (old.digest, old.region) == (new.digest, new.region):
        return
    if old is not None and old.digest != new.digest:
        tx.run(_SAVE, DATASETS.pack(replace(old, name=version_name(old.name, old.digest))))
    tx.run(_REMOVE, {"old_name": version_name(new.name, new.digest)})  # it has its name again
    tx.run(_SAVE, DATASETS.pack(new))
    write_audit(tx, audit)


def remove(tx: Transaction, names: Sequence[str], audit: AuditEntry | None = None) -> None:
    """First removed, then asked whether a job needs it: who submits one does the same the other way round, so one of
    the two waits for the other and notices."""
    rows = [row for name in names if (row := tx.row(_DATASET, name=name)) is not None]
    for name in names:
        tx.run(_REMOVE, {"old_name": name})
    for row in rows:
        _check_unused(tx, DATASETS.unpack(row))
    write_audit(tx, audit)


def check_there(tx: Transaction, uri: str | None) -> None:
    """Of a new job, in its transaction: a dataset that was removed meanwhile cannot be given to it."""
    pin = pin_of(uri)
    if pin is not None and not tx.rows(_HELD, digest=pin.digest):
        raise UnknownDataset(f"the dataset {pin.name} was removed; add it again", field="job.data.dataset")


def _check_unused(tx: Transaction, one: Dataset) -> None:
    if tx.rows(_OTHERS, digest=one.digest):
        return
    needed_by = jobs_of(tx, one.digest)
    if needed_by:
        shown = ", ".join(needed_by[:NAMED_JOBS]) + (", …" if len(needed_by) > NAMED_JOBS else "")
        raise Conflict(f"{one.name} is needed by {shown}; cancel it or wait for its end", jobs=list(needed_by))


def jobs_of(tx: Transaction, digest: Digest) -> Sequence[JobId]:
    return tuple(JobId(id_) for (id_,) in tx.rows(_JOBS, pattern=f"dataset://%@{digest}?%", given=f"%{digest}%"))


def copies(tx: Transaction, digest: Digest | None) -> Sequence[DatasetCopy]:
    return COPIES.unpack_all(tx.rows(_COPIES) if digest is None else tx.rows(_COPIES_OF, digest=digest))


def add_copy(tx: Transaction, copy: DatasetCopy) -> None:
    try:
        tx.run(_ADD_COPY, COPIES.pack(copy))
    except UniqueViolated as error:
        raise StaleVersion(f"the tree {copy.digest[:12]} is in {copy.place} already: load again") from error


def remove_copies(tx: Transaction, digest: Digest) -> None:
    tx.run(_REMOVE_COPIES, {"old_digest": digest})
