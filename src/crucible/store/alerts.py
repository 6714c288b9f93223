"""Rules and channels of alerts. A change and its line in the log of who changed what are one transaction."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Table, bindparam, delete, func, insert, select, update

from crucible.model.alert import AlertChannel, AlertRule, PriceSeen
from crucible.model.audit import AuditEntry
from crucible.model.errors import Conflict, NotFound, StaleVersion
from crucible.model.ids import AlertChannelId, AlertRuleId
from crucible.model.notice import Notice
from crucible.store.alert_tables import alert_channels, alert_rules
from crucible.store.audit import write_audit
from crucible.store.mapping import Rows, to_json
from crucible.store.notices import write_notice
from crucible.store.secrets import CHANNELS, begin_with, held_key
from crucible.store.sql import Sql, Transaction, UniqueViolated

RULES = Rows(AlertRule, alert_rules)


def _all(rows: Rows[Any]) -> Sql:
    return Sql(select(*rows.columns).order_by(rows.table.c.name, rows.table.c.id))


def _one(rows: Rows[Any]) -> Sql:
    return Sql(select(*rows.columns).where(rows.table.c.id == bindparam("id")))


def _saving(rows: Rows[Any]) -> Sql:
    changed: dict[str, Any] = {column.name: bindparam(column.name) for column in rows.columns if column.name != "id"}
    return Sql(update(rows.table).where(_mine(rows.table)).values(changed))


def _mine(table: Table) -> Any:
    return (table.c.id == bindparam("row_id")) & (table.c.version == bindparam("seen"))


_RULES, _RULE, _SAVE_RULE = _all(RULES), _one(RULES), _saving(RULES)
_ADD_RULE = Sql(insert(alert_rules).values(RULES.parameters()))
_REMOVE_RULE = Sql(delete(alert_rules).where(_mine(alert_rules)))
_SAW = Sql(
    update(alert_rules)
    .where(
        alert_rules.c.id == bindparam("row_id"),
        alert_rules.c.version == bindparam("seen"),
        func.coalesce(alert_rules.c.price_seen, "") == bindparam("before"),
    )
    .values(price_seen=bindparam("after"))
)
_CHANNELS, _CHANNEL, _SAVE_CHANNEL = _all(CHANNELS), _one(CHANNELS), _saving(CHANNELS)
_ADD_CHANNEL = Sql(insert(alert_channels).values(CHANNELS.parameters()))
_REMOVE_CHANNEL = Sql(delete(alert_channels).where(_mine(alert_channels)))


# --- rules ----------------------------------------------------------------------------------------------------------


def rules(tx: Transaction) -> Sequence[AlertRule]:
    return RULES.unpack_all(tx.rows(_RULES))


def rule(tx: Transaction, rule_id: AlertRuleId) -> AlertRule:
    row = tx.row(_RULE, id=rule_id)
    if row is None:
        raise NotFound(f"there is no rule {rule_id}; `crucible alert ls` lists them")
    return RULES.unpack(row)


def add_rule(tx: Transaction, new: AlertRule, entry: AuditEntry) -> None:
    tx.run(_ADD_RULE, RULES.pack(new))
    write_audit(tx, entry)


def save_rule(tx: Transaction, changed: AlertRule, entry: AuditEntry) -> AlertRule:
    old = rule(tx, changed.id)
    seen = old.price_seen if old.price == changed.price else None
    after = replace(changed, version=changed.version + 1, price_seen=seen)
    if not tx.run(_SAVE_RULE, {**RULES.pack(after), "row_id": after.id, "seen": changed.version}):
        raise StaleVersion(f"the rule {changed.name} was changed meanwhile; look at it and ask again")
    write_audit(tx, entry)
    return after


def remove_rule(tx: Transaction, old: AlertRule, entry: AuditEntry) -> None:
    if not tx.run(_REMOVE_RULE, {"row_id": old.id, "seen": old.version}):
        raise StaleVersion(f"the rule {old.name} was changed meanwhile; look at it and ask again")
    write_audit(tx, entry)


def saw_price(tx: Transaction, old: AlertRule, seen: PriceSeen, notices: Sequence[Notice]) -> bool:
    before = "" if old.price_seen is None else to_json(old.price_seen)
    values = {"row_id": old.id, "seen": old.version, "before": before, "after": to_json(seen)}
    if not tx.run(_SAW, values):
        return False
    for notice in notices:
        write_notice(tx, notice)
    return True


# --- channels -------------------------------------------------------------------------------------------------------


def channels(tx: Transaction) -> Sequence[AlertChannel]:
    return CHANNELS.unpack_all(tx.rows(_CHANNELS))


def channel(tx: Transaction, channel_id: AlertChannelId) -> AlertChannel:
    row = tx.row(_CHANNEL, id=channel_id)
    if row is None:
        raise NotFound(f"there is no channel {channel_id}; `crucible alert channel ls` lists them")
    return CHANNELS.unpack(row)


def save_channel(tx: Transaction, make: Callable[[str | None], AlertChannel], entry: AuditEntry) -> AlertChannel:
    """A new one has version 0."""
    held = held_key(tx)
    made = make(held)
    try:
        if held is None:
            begin_with(tx, made.key_id, entry.at)
        if made.version == 0:
            tx.run(_ADD_CHANNEL, CHANNELS.pack(made))
        elif not tx.run(_SAVE_CHANNEL, {**CHANNELS.pack(made), "row_id": made.id, "seen": made.version - 1}):
            raise _changed(made)
    except UniqueViolated as error:
        raise _changed(made) from error
    write_audit(tx, entry)
    return made


_CHANNELS_OF_RULES = Sql(select(alert_rules.c.name, alert_rules.c.channels))


def remove_channel(tx: Transaction, old: AlertChannel, entry: AuditEntry) -> None:
    users = sorted(name for name, listed in tx.rows(_CHANNELS_OF_RULES) if old.id in json.loads(listed))
    if users:
        raise Conflict(f"rules send to the channel {old.name}: {', '.join(users[:5])}; change or remove them first")
    if not tx.run(_REMOVE_CHANNEL, {"row_id": old.id, "seen": old.version}):
        raise _changed(old)
    write_audit(tx, entry)


def _changed(channel: AlertChannel) -> StaleVersion:
    return StaleVersion(f"the channel {channel.name} was changed meanwhile; look at it and ask again")
