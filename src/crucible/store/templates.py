"""Job templates that people stored. Whose one is, is looked at in the transaction that changes it."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import bindparam, delete, insert, select, update

from crucible.model.audit import AuditEntry
from crucible.model.errors import Forbidden, StaleVersion
from crucible.model.ids import UserId
from crucible.model.template import StoredTemplate
from crucible.store.audit import write_audit
from crucible.store.mapping import Rows
from crucible.store.record_tables import templates as table
from crucible.store.sql import Sql, Transaction, UniqueViolated

TEMPLATES = Rows(StoredTemplate, table)

_ALL = Sql(select(*TEMPLATES.columns).order_by(table.c.name))
_ONE = Sql(select(*TEMPLATES.columns).where(table.c.name == bindparam("name")))
_ADD = Sql(insert(table).values(TEMPLATES.parameters()))
_SAVE = Sql(
    update(table)
    .where(table.c.name == bindparam("name"), table.c.user_id == bindparam("user_id"))
    .values(body=bindparam("body"), created_at=bindparam("created_at"))
)
_REMOVE = Sql(delete(table).where(table.c.name == bindparam("name"), table.c.user_id == bindparam("user_id")))


def templates(tx: Transaction) -> Sequence[StoredTemplate]:
    return TEMPLATES.unpack_all(tx.rows(_ALL))


def template(tx: Transaction, name: str) -> StoredTemplate | None:
    row = tx.row(_ONE, name=name)
    return None if row is None else TEMPLATES.unpack(row)


def save(tx: Transaction, new: StoredTemplate, by: UserId | None, audit: AuditEntry | None) -> StoredTemplate:
    after = _saved(tx, new, by)
    write_audit(tx, audit)
    return after


def _saved(tx: Transaction, new: StoredTemplate, by: UserId | None) -> StoredTemplate:
    old = template(tx, new.name)
    if old is None:
        try:
            tx.run(_ADD, TEMPLATES.pack(new))
        except UniqueViolated as error:
            raise _changed(new.name) from error
        return new
    _check_owner(old, by)
    after = replace(new, user_id=old.user_id)
    if not tx.run(_SAVE, TEMPLATES.pack(after)):
        raise _changed(new.name)
    return after


def remove(tx: Transaction, name: str, by: UserId | None, audit: AuditEntry | None) -> bool:
    old = template(tx, name)
    if old is None:
        return False
    _check_owner(old, by)
    write_audit(tx, audit)
    return bool(tx.run(_REMOVE, {"name": name, "user_id": old.user_id}))


def _check_owner(old: StoredTemplate, by: UserId | None) -> None:
    if by is not None and old.user_id != by:
        raise Forbidden(f"the template {old.name} belongs to {old.user_id}; choose another name")


def _changed(name: str) -> StaleVersion:
    return StaleVersion(f"the template {name} was changed meanwhile; ask again")
