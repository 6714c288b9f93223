"""The log of who changed what. A line is written by the transaction of the change; each seals those before it, so that
a line that was removed or altered by hand is found."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from sqlalchemy import bindparam, func, insert, select

from crucible.model.audit import AuditEntry
from crucible.model.retention import Kept
from crucible.ports.accounts import AuditQuery, Seal
from crucible.store.account_tables import audit as table
from crucible.store.mapping import Rows, to_json
from crucible.store.retention_tables import retention
from crucible.store.sql import Sql, Transaction

AUDIT = Rows(AuditEntry, table)

# One writer at a time, or two lines would seal the same one; the number is "audit" in ASCII.
_SERIALISE = Sql(select(func.pg_advisory_xact_lock(418564172148)))
_LAST = Sql(select(table.c.digest).order_by(table.c.seq.desc()).limit(1))
_WRITE = Sql(insert(table).values(AUDIT.parameters() | {"digest": bindparam("digest")}))
_ALL = Sql(
    select(table.c.seq, table.c.digest, *AUDIT.columns)
    .where(table.c.seq > bindparam("after"))
    .order_by(table.c.seq)
    .limit(bindparam("limit"))
)
_ENDLESS = (1 << 63) - 1
# Of lines that were removed for their age, what the last of them was sealed with.
_ANCHOR = Sql(select(retention.c.anchor).where(retention.c.what == Kept.AUDIT.value, retention.c.anchor.is_not(None)))


def write_audit(tx: Transaction, entry: AuditEntry | None) -> None:
    """None: nobody asked for the change, the server makes it by itself."""
    if entry is None:
        return
    if tx.is_shared:
        tx.rows(_SERIALISE)
    last = tx.row(_LAST) or tx.row(_ANCHOR)
    tx.run(_WRITE, {**AUDIT.pack(entry), "digest": sealed("" if last is None else last[0], entry)})


def sealed(before: str, entry: AuditEntry) -> str:
    return hashlib.sha256(f"{before}\n{to_json(entry)}".encode()).hexdigest()


def lines(tx: Transaction, query: AuditQuery) -> Sequence[tuple[int, AuditEntry]]:
    """Of several teams each has its list, in its order, of which the newest are taken."""
    names = ("user_id", "subject")
    values: dict[str, Any] = {name: value for name in names if (value := getattr(query, name)) is not None}
    values |= {"before": _ENDLESS if query.before is None else query.before, "limit": query.limit}
    if query.teams is None:
        rows = tx.rows(_newest(frozenset(values)), **values)
    else:
        sql = _newest(frozenset(values) | {"team"})
        rows = [row for team in sorted(query.teams) for row in tx.rows(sql, team=team, **values)]
        rows.sort(key=lambda row: row[0], reverse=True)
    return [(row[0], AUDIT.unpack(row[1:])) for row in rows[: query.limit]]


@cache
def _newest(given: frozenset[str]) -> Sql:
    query = select(table.c.seq, *AUDIT.columns).where(table.c.seq < bindparam("before"))
    for name in sorted(given & {"team", "user_id", "subject"}):
        query = query.where(table.c[name] == bindparam(name))
    return Sql(query.order_by(table.c.seq.desc()).limit(bindparam("limit")))


def check(tx: Transaction, seal: Seal, limit: int) -> Seal:
    anchor = tx.row(_ANCHOR) if not seal.seq else None
    if anchor is not None:
        seal = replace(seal, digest=anchor[0])
    for seq, digest, *row in tx.rows(_ALL, after=seal.seq, limit=limit):
        if sealed(seal.digest, AUDIT.unpack(row)) != digest:
            return replace(seal, broken=int(seq))
        seal = Seal(int(seq), digest)
    return seal
