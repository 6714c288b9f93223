"""What is written beside the state: the log to read, artifacts, checkpoints, beats, progress, segments of streams."""

import json
from collections.abc import Sequence

from sqlalchemy import bindparam, func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from crucible.model.ids import JobId, TaskId
from crucible.model.job import JobStatus
from crucible.model.record import Artifact, Beat, Checkpoint, Progress
from crucible.ports.store import LoggedEvent, Segment
from crucible.store import record_tables as r
from crucible.store import tables as t
from crucible.store.commits import ARTIFACTS, CHECKPOINTS
from crucible.store.mapping import Rows, moment
from crucible.store.sql import Row, Sql, Transaction

BEATS = Rows(Beat, t.heartbeats)
PROGRESS = Rows(Progress, t.progress)
BRIEF_PROGRESS = Rows(Progress, t.progress, apart=("curve",))  # nobody compares trials by it
SEGMENTS = Rows(Segment, r.stream_segments)

# --- the log ------------------------------------------------------------------------------------------------------

_LOGGED = select(
    t.events.c.seq,
    t.events.c.job_id,
    t.events.c.kind,
    t.events.c.entity_id,
    t.events.c.version,
    t.events.c.at,
    t.events.c.type,
    t.events.c.body,
    t.job_events.c.from_status,
    t.job_events.c.to_status,
    t.job_events.c.reason,
)
_SAME = t.job_events.c.id == t.events.c.seq
_EVENTS = Sql(
    _LOGGED.join(t.job_events, _SAME, isouter=True)
    .where(t.events.c.job_id == bindparam("job_id"), t.events.c.seq > bindparam("after"))
    .order_by(t.events.c.seq)
    .limit(bindparam("limit"))
)
# By the short table: a job of ten thousand tasks has ten changes of status, and a hundred thousand events.
_STATUSES = Sql(
    _LOGGED.select_from(t.job_events.join(t.events, _SAME))
    .where(t.job_events.c.job_id == bindparam("job_id"), t.job_events.c.id > bindparam("after"))
    .order_by(t.job_events.c.id)
    .limit(bindparam("limit"))
)


def events(tx: Transaction, job_id: JobId, after: int, limit: int) -> Sequence[LoggedEvent]:
    return [_logged(row) for row in tx.rows(_EVENTS, job_id=job_id, after=after, limit=limit)]


def statuses(tx: Transaction, job_id: JobId, after: int, limit: int) -> Sequence[LoggedEvent]:
    return [_logged(row) for row in tx.rows(_STATUSES, job_id=job_id, after=after, limit=limit)]


def _logged(row: Row) -> LoggedEvent:
    seq, job_id, kind, entity_id, version, at, type_, body, from_status, to_status, reason = row
    return LoggedEvent(
        seq=seq,
        job_id=JobId(job_id),
        kind=kind,
        entity_id=entity_id,
        version=version,
        at=moment(at),
        type=type_,
        body=json.loads(body),
        from_status=None if from_status is None else JobStatus(from_status),
        to_status=None if to_status is None else JobStatus(to_status),
        reason=reason,
    )


# --- artifacts and checkpoints --------------------------------------------------------------------------------------

_ARTIFACTS = Sql(
    select(*ARTIFACTS.columns)
    .where(r.job_artifacts.c.job_id == bindparam("job_id"))
    .order_by(r.job_artifacts.c.created_at, r.job_artifacts.c.id)
)
_CHECKPOINTS = Sql(
    select(*CHECKPOINTS.columns)
    .where(r.checkpoints.c.lineage == bindparam("lineage"))
    .order_by(r.checkpoints.c.step, r.checkpoints.c.id)
)
_NEWEST_STEP = Sql(
    select(func.max(r.checkpoints.c.step)).where(
        r.checkpoints.c.lineage == bindparam("lineage"), r.checkpoints.c.task_index == bindparam("task_index")
    )
)


def artifacts(tx: Transaction, job_id: JobId) -> Sequence[Artifact]:
    return ARTIFACTS.unpack_all(tx.rows(_ARTIFACTS, job_id=job_id))


def checkpoints(tx: Transaction, lineage: JobId) -> Sequence[Checkpoint]:
    """By step; the same step saved again comes after."""
    return CHECKPOINTS.unpack_all(tx.rows(_CHECKPOINTS, lineage=lineage))


def newest_step(tx: Transaction, lineage: JobId, task_index: int) -> int | None:
    row = tx.row(_NEWEST_STEP, lineage=lineage, task_index=task_index)
    return None if row is None else row[0]


# --- beats and progress: the newest wins --------------------------------------------------------------------------


def _newest_wins(rows: Rows[Beat] | Rows[Progress], key: str) -> Sql:
    new = upsert(rows.table).values(rows.parameters())
    return Sql(
        new.on_conflict_do_update(
            index_elements=[key],
            set_={column.name: new.excluded[column.name] for column in rows.columns if column.name != key},
            where=rows.table.c.at <= new.excluded.at,
        )
    )


_BEAT = _newest_wins(BEATS, "node_id")
_ADVANCE = _newest_wins(PROGRESS, "task_id")
_PROGRESS = Sql(
    select(*BRIEF_PROGRESS.columns).where(t.progress.c.job_id == bindparam("job_id")).order_by(t.progress.c.task_id)
)
_TASK_PROGRESS = Sql(select(*PROGRESS.columns).where(t.progress.c.task_id == bindparam("task_id")))
_USAGE = Sql(
    select(*BEATS.columns)
    .join(t.nodes, t.nodes.c.id == t.heartbeats.c.node_id)
    .join(t.tasks, t.tasks.c.id == t.nodes.c.task_id)
    .where(t.tasks.c.job_id == bindparam("job_id"))
    .order_by(t.nodes.c.enrolled_at, t.nodes.c.id)
)


def heard(tx: Transaction, beats: Sequence[Beat], progress: Sequence[Progress]) -> None:
    # In the order of their keys: two servers that write the same rows must not wait for each other.
    tx.run_many(_BEAT, [BEATS.pack(beat) for beat in sorted(beats, key=lambda b: (b.node_id, b.at))])
    tx.run_many(_ADVANCE, [PROGRESS.pack(one) for one in sorted(progress, key=lambda p: (p.task_id, p.at))])


def progress(tx: Transaction, job_id: JobId) -> Sequence[Progress]:
    return BRIEF_PROGRESS.unpack_all(tx.rows(_PROGRESS, job_id=job_id))


def task_progress(tx: Transaction, task_id: TaskId) -> Progress | None:
    row = tx.row(_TASK_PROGRESS, task_id=task_id)
    return None if row is None else PROGRESS.unpack(row)


def usage(tx: Transaction, job_id: JobId) -> Sequence[Beat]:
    return BEATS.unpack_all(tx.rows(_USAGE, job_id=job_id))


# --- segments of streams --------------------------------------------------------------------------------------------

_SEGMENT = Sql(
    upsert(r.stream_segments).values(SEGMENTS.parameters()).on_conflict_do_nothing(index_elements=["stream", "number"])
)
_SEGMENTS = Sql(
    select(*SEGMENTS.columns)
    .where(r.stream_segments.c.stream == bindparam("stream"))
    .order_by(r.stream_segments.c.number)
)


def add_segment(tx: Transaction, segment: Segment) -> None:
    """A sealed segment never changes: adding it again is adding it once."""
    tx.run(_SEGMENT, SEGMENTS.pack(segment))


def segments(tx: Transaction, stream: str) -> Sequence[Segment]:
    return SEGMENTS.unpack_all(tx.rows(_SEGMENTS, stream=stream))
