"""All that is stored about one person, a bounded piece at a time: where the last one ended is in the cursor, so that
nothing is held open between two."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, Column, Table, bindparam, select, true, tuple_

from crucible.model.ids import UserId
from crucible.ports.retention import Chapter
from crucible.store import account_tables as a
from crucible.store import tables as t
from crucible.store.mapping import moment
from crucible.store.personal import HIDDEN, OF_PEOPLE, ONLY, TOLD_OF_JOBS
from crucible.store.sql import Among, Sql, Transaction, as_list

ROWS = 500
JOBS = 20
_J = t.jobs.c


def _own() -> Iterator[Column[Any]]:
    yield a.users.c.id
    yield from (column for column in OF_PEOPLE if column.table is not t.jobs)


_OWN = tuple(_own())


def about(tx: Transaction, user_id: UserId, cursor: str | None) -> tuple[Sequence[Chapter], str | None]:
    """First what names the person, table by table; then their jobs, some at a time, each with what hangs on it."""
    stage, *after = json.loads(cursor) if cursor else (0,)
    if stage < len(_OWN):
        return _own_rows(tx, user_id, stage, after)
    return _job_rows(tx, user_id, after)


# --- rows that name them ---------------------------------------------------------------------------------------------


def _own_rows(tx: Transaction, user_id: UserId, stage: int, after: list[Any]) -> tuple[Sequence[Chapter], str | None]:
    column = _OWN[stage]
    key = tuple(column.table.primary_key.columns)
    values = {f"after_{n}": value for n, value in enumerate(after)}
    rows = tx.rows(_page(column, bool(after)), of=user_id, limit=ROWS, **values)
    chapter = _chapter(column.table, rows)
    if len(rows) < ROWS:
        return [chapter] if rows else [], json.dumps([stage + 1])
    last = dict(zip(column.table.c.keys(), rows[-1], strict=True))
    return [chapter], json.dumps([stage, *(last[one.name] for one in key)])


@cache
def _page(column: Column[Any], is_next: bool) -> Sql:
    table, key = column.table, tuple(column.table.primary_key.columns)
    query = (
        select(*table.c)
        .where(column == bindparam("of"), ONLY.get(column, true()))
        .order_by(*key)
        .limit(bindparam("limit"))
    )
    if is_next:
        query = query.where(tuple_(*key) > tuple_(*(bindparam(f"after_{n}") for n in range(len(key)))))
    return Sql(query)


# --- their jobs ------------------------------------------------------------------------------------------------------

_THEIRS = (
    select(*t.jobs.c)
    .where(_J.user_id == bindparam("of"), _J.removed_at.is_(None))
    .order_by(_J.created_at, _J.id)
    .limit(bindparam("limit"))
)
_FIRST_JOBS = Sql(_THEIRS)
_MORE_JOBS = Sql(_THEIRS.where(tuple_(_J.created_at, _J.id) > tuple_(bindparam("at"), bindparam("id"))))
_PARTS = tuple(TOLD_OF_JOBS)


def _job_rows(tx: Transaction, user_id: UserId, after: list[Any]) -> tuple[Sequence[Chapter], str | None]:
    """`after`: the last job that was told, with the table and the row of its page that come next."""
    if len(after) < 4:
        at = {"at": after[0], "id": after[1]} if after else {}
        rows = tx.rows(_MORE_JOBS if after else _FIRST_JOBS, of=user_id, limit=JOBS, **at)
        if not rows:
            return [], None
        return [_chapter(t.jobs, rows)], _cursor(rows, 0, [])
    created_at, last_id, ids, part, *row = after
    table = _PARTS[part]
    found = tx.rows(
        _part(table, bool(row)), ids=as_list(ids), limit=ROWS, **{f"after_{n}": v for n, v in enumerate(row)}
    )
    chapters = [_chapter(table, found)] if found else []
    position: list[Any] = [part + 1] if len(found) < ROWS else [part, *_position(table, found[-1])]
    if position == [len(_PARTS)]:
        return chapters, json.dumps([len(_OWN), created_at, last_id])
    return chapters, json.dumps([len(_OWN), created_at, last_id, ids, *position])


def _cursor(jobs: Sequence[Sequence[Any]], part: int, row: list[Any]) -> str:
    names = t.jobs.c.keys()
    last = dict(zip(names, jobs[-1], strict=True))
    ids = [dict(zip(names, job, strict=True))["id"] for job in jobs]
    return json.dumps([len(_OWN), last["created_at"], last["id"], ids, part, *row])


def _position(table: Table, row: Sequence[Any]) -> list[Any]:
    values = dict(zip(table.c.keys(), row, strict=True))
    return [values[name] for name in ("job_id", *TOLD_OF_JOBS[table])]


@cache
def _part(table: Table, is_next: bool) -> Sql:
    key = [table.c[name] for name in ("job_id", *TOLD_OF_JOBS[table])]
    query = select(*table.c).where(Among(table.c.job_id, "ids")).order_by(*key).limit(bindparam("limit"))
    if is_next:
        query = query.where(tuple_(*key) > tuple_(*(bindparam(f"after_{n}") for n in range(len(key)))))
    return Sql(query)


# --- as people read it -----------------------------------------------------------------------------------------------


def _chapter(table: Table, rows: Sequence[Sequence[Any]]) -> Chapter:
    return Chapter(table.name, [_told(table, row) for row in rows])


def _told(table: Table, row: Sequence[Any]) -> Mapping[str, Any]:
    return {
        column.name: _readable(column, value)
        for column, value in zip(table.c, row, strict=True)
        if column not in HIDDEN and column.computed is None  # those repeat others in dollars
    }


def _readable(column: Column[Any], value: Any) -> Any:
    is_moment = isinstance(column.type, BigInteger) and (column.name == "at" or column.name.endswith("_at"))
    return moment(value).isoformat() if is_moment and value is not None else value
