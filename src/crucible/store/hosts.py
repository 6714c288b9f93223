"""Own hosts, as operators registered them and as they were last seen."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import bindparam, delete, insert, select, update

from crucible.model.audit import AuditEntry
from crucible.model.errors import Conflict, StaleVersion
from crucible.model.host import Host
from crucible.store.audit import write_audit
from crucible.store.mapping import Rows
from crucible.store.record_tables import hosts as table
from crucible.store.sql import Sql, Transaction, UniqueViolated

HOSTS = Rows(Host, table)

_ALL = Sql(select(*HOSTS.columns).order_by(table.c.name))
_ADD = Sql(insert(table).values(HOSTS.parameters()))
_SAVE = Sql(
    update(table)
    .where(table.c.name == bindparam("name"), table.c.version == bindparam("seen"))
    .values({column.name: bindparam(column.name) for column in HOSTS.columns if column.name != "name"})
)
_REMOVE = Sql(delete(table).where(table.c.name == bindparam("name"), table.c.version == bindparam("seen")))
_ONE = Sql(select(table.c.version).where(table.c.name == bindparam("name")))


def hosts(tx: Transaction) -> Sequence[Host]:
    return HOSTS.unpack_all(tx.rows(_ALL))


def add(tx: Transaction, new: Sequence[Host], audit: AuditEntry | None) -> None:
    for host in new:
        try:
            tx.run(_ADD, HOSTS.pack(host))
        except UniqueViolated as error:
            raise Conflict(f"there is a host {host.name} already: remove it first, or choose another name") from error
    write_audit(tx, audit)


def save(tx: Transaction, host: Host, audit: AuditEntry | None) -> Host:
    after = replace(host, version=host.version + 1)
    if not tx.run(_SAVE, {**HOSTS.pack(after), "seen": host.version}):
        raise StaleVersion(f"host {host.name} was changed meanwhile")
    write_audit(tx, audit)
    return after


def remove(tx: Transaction, host: Host, audit: AuditEntry | None) -> None:
    if tx.run(_REMOVE, {"name": host.name, "seen": host.version}):
        write_audit(tx, audit)
    elif tx.row(_ONE, name=host.name) is not None:
        raise StaleVersion(f"host {host.name} was changed meanwhile")
