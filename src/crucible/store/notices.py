"""What people should hear of. A notice whose key is known already is not written again."""

from collections.abc import Sequence
from functools import cache

from sqlalchemy import bindparam, or_, select
from sqlalchemy.dialects.postgresql import insert as upsert

from crucible.model.errors import NotFound
from crucible.model.notice import Notice
from crucible.ports.alerts import NoticeQuery
from crucible.store.account_tables import notices as table
from crucible.store.mapping import Rows
from crucible.store.sql import Among, Sql, Transaction, as_list

NOTICES = Rows(Notice, table)

_WRITE = Sql(upsert(table).values(NOTICES.parameters()).on_conflict_do_nothing(index_elements=["key"]))
_ONE = Sql(select(*NOTICES.columns).where(table.c.seq == bindparam("seq")))


def write_notice(tx: Transaction, notice: Notice) -> None:
    tx.run(_WRITE, NOTICES.pack(notice))


def notice(tx: Transaction, seq: int) -> Notice:
    row = tx.row(_ONE, seq=seq)
    if row is None:
        raise NotFound(f"there is no notice {seq}; `crucible alert history` lists them")
    return NOTICES.unpack(row)


def notices(tx: Transaction, query: NoticeQuery) -> Sequence[tuple[int, Notice]]:
    given = {
        "kinds": as_list(query.kinds) if query.kinds else None,
        "severities": as_list(query.severities) if query.severities else None,
        "job_id": query.job_id,
        "before": query.before,
        "user_id": query.user_id,
        "teams": as_list(query.teams) if query.user_id is not None else None,
    }
    values = {name: value for name, value in given.items() if value is not None}
    rows = tx.rows(_listing(frozenset(values)), limit=query.limit, **values)
    return [(int(row[0]), NOTICES.unpack(row[1:])) for row in rows]


@cache
def _listing(given: frozenset[str]) -> Sql:
    rules = {
        "kinds": Among(table.c.kind, "kinds"),
        "severities": Among(table.c.severity, "severities"),
        "job_id": table.c.job_id == bindparam("job_id"),
        "before": table.c.seq < bindparam("before"),
        "user_id": or_(table.c.user_id == bindparam("user_id"), Among(table.c.team, "teams")),
    }
    asked = [rule for name, rule in rules.items() if name in given]
    listed = select(table.c.seq, *NOTICES.columns).where(*asked).order_by(table.c.seq.desc())
    return Sql(listed.limit(bindparam("limit")))
