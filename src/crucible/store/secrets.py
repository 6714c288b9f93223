"""Sealed secrets, and which key seals. A row is written under the key that counts in the same transaction: once another
one counts, nothing new is sealed with the old one."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from sqlalchemy import and_, bindparam, delete, func, insert, or_, select, update

from crucible.model.account import Role, Standing
from crucible.model.alert import CHANNEL_LABEL, AlertChannel
from crucible.model.audit import AuditEntry
from crucible.model.errors import Conflict, NotFound, StaleVersion
from crucible.model.ids import UserId
from crucible.model.secret import MOST_SECRETS, OwnerKind, SealedValue, SecretFacts, SecretOwner, StoredSecret
from crucible.store.account_tables import memberships, projects, teams, users
from crucible.store.alert_tables import alert_channels
from crucible.store.audit import write_audit
from crucible.store.mapping import Rows, micros
from crucible.store.secret_tables import secret_keys, secrets
from crucible.store.sql import Sql, Transaction, UniqueViolated

SECRETS, FACTS = Rows(StoredSecret, secrets), Rows(SecretFacts, secrets)
CHANNELS = Rows(AlertChannel, alert_channels)
CURRENT = "current"
# A list of everybody's: more owners than that are asked for by name.
_MOST_LISTED = 10_000

_C = secrets.c
_IS = and_(_C.owner_kind == bindparam("owner_kind"), _C.owner == bindparam("owner"), _C.name == bindparam("name"))
_LISTED = select(*FACTS.columns).order_by(_C.owner_kind, _C.owner, _C.name).limit(_MOST_LISTED)
_ALL = Sql(_LISTED)
_OF = Sql(_LISTED.where(_C.owner_kind == bindparam("owner_kind"), _C.owner == bindparam("owner")))
_ONE = Sql(select(*SECRETS.columns).where(_IS))
_COUNT = Sql(select(func.count()).where(_C.owner_kind == bindparam("owner_kind"), _C.owner == bindparam("owner")))
_ADD = Sql(insert(secrets).values(SECRETS.parameters()))
_CHANGE = Sql(
    update(secrets)
    .where(_IS, _C.version == bindparam("before"))
    .values({name: bindparam(name) for name in ("version", "key_id", "wrapped", "sealed", "set_by", "set_at")})
)
_REMOVE = Sql(delete(secrets).where(_IS))
_USED = Sql(
    update(secrets)
    .where(_IS, or_(_C.used_at.is_(None), _C.used_at < bindparam("now")))
    .values(used_at=bindparam("now"))
)

_KEY = select(secret_keys.c.key_id).where(secret_keys.c.what == CURRENT)
_CURRENT = Sql(_KEY)
# Whoever seals holds it until the end: another key cannot come to count meanwhile.
_HELD = Sql(_KEY.with_for_update(read=True))
_FIRST = Sql(insert(secret_keys).values(what=CURRENT, key_id=bindparam("key_id"), since=bindparam("since")))
_NEXT = Sql(
    update(secret_keys)
    .where(secret_keys.c.what == CURRENT)
    .values(key_id=bindparam("key_id"), since=bindparam("since"))
)
# Channels of alerts hold what they seal in their own rows.
_A = alert_channels.c
_KEYS = Sql(select(_C.key_id).union(select(_A.key_id), _KEY))
_OTHERWISE = Sql(
    select(*SECRETS.columns)
    .where(_C.key_id != bindparam("key_id"))
    .order_by(_C.owner_kind, _C.owner, _C.name)
    .limit(bindparam("limit"))
)
_CHANNELS_OTHERWISE = Sql(
    select(*CHANNELS.columns).where(_A.key_id != bindparam("key_id")).order_by(_A.id).limit(bindparam("limit"))
)
_REWRAP_CHANNEL = Sql(
    update(alert_channels)
    .where(_A.id == bindparam("row_id"), _A.version == bindparam("seen"), _A.wrapped == bindparam("before"))
    .values(key_id=bindparam("key_id"), wrapped=bindparam("wrapped"))
)
_REWRAP = Sql(
    update(secrets)
    .where(_IS, _C.version == bindparam("version"), _C.wrapped == bindparam("before"))
    .values(key_id=bindparam("key_id"), wrapped=bindparam("wrapped"))
)

_ROLE = Sql(select(users.c.role).where(users.c.id == bindparam("user_id"), users.c.disabled_at.is_(None)))
_TEAMS = Sql(select(memberships.c.team, memberships.c.role).where(memberships.c.user_id == bindparam("user_id")))
_TEAM = Sql(select(projects.c.team).where(projects.c.name == bindparam("name")))
_OWNERS = {
    OwnerKind.TEAM: Sql(select(teams.c.name).where(teams.c.name == bindparam("name"))),
    OwnerKind.PROJECT: _TEAM,
    OwnerKind.USER: Sql(select(users.c.id).where(users.c.id == bindparam("name"))),
}


def listed(tx: Transaction, owners: Collection[SecretOwner] | None) -> Sequence[SecretFacts]:
    """Without what is sealed: nobody needs it for a list."""
    if owners is None:
        return FACTS.unpack_all(tx.rows(_ALL))
    rows = [row for one in sorted(owners, key=str) for row in tx.rows(_OF, **_owner(one))]
    return FACTS.unpack_all(rows)


def secret(tx: Transaction, owner: SecretOwner, name: str) -> StoredSecret | None:
    row = tx.row(_ONE, **_named(owner, name))
    return None if row is None else SECRETS.unpack(row)


def save(
    tx: Transaction, owner: SecretOwner, name: str, make: Callable[[int, str | None], StoredSecret], entry: AuditEntry
) -> StoredSecret:
    if tx.row(_OWNERS[owner.kind], name=owner.name) is None:
        raise NotFound(f"there is no {owner.kind} {owner.name}")
    held, old = tx.row(_HELD), secret(tx, owner, name)
    new = make(1 if old is None else old.version + 1, None if held is None else held[0])
    try:
        if held is None:
            tx.run(_FIRST, {"key_id": new.key_id, "since": micros(new.set_at)})
        if old is None:
            _check_room(tx, owner)
            tx.run(_ADD, SECRETS.pack(new))
        elif not tx.run(_CHANGE, {**SECRETS.pack(new), "before": old.version}):
            raise _changed(name)
    except UniqueViolated as error:
        raise _changed(name) from error
    write_audit(tx, entry)
    return new


def remove(tx: Transaction, owner: SecretOwner, name: str, entry: AuditEntry) -> bool:
    if not tx.run(_REMOVE, _named(owner, name)):
        return False
    write_audit(tx, entry)
    return True


def used(tx: Transaction, some: Collection[tuple[SecretOwner, str]], now: datetime) -> None:
    """In one order, so that two servers never wait for each other."""
    ordered = sorted(some, key=lambda each: (str(each[0]), each[1]))
    tx.run_many(_USED, [{**_named(owner, name), "now": micros(now)} for owner, name in ordered])


# --- keys -----------------------------------------------------------------------------------------------------------


def current_key(tx: Transaction) -> str | None:
    row = tx.row(_CURRENT)
    return None if row is None else str(row[0])


def held_key(tx: Transaction) -> str | None:
    """The key that counts, until the end of the transaction; None: whatever seals now is the first."""
    row = tx.row(_HELD)
    return None if row is None else str(row[0])


def begin_with(tx: Transaction, key_id: str, now: datetime) -> None:
    """The first key of all. Raises UniqueViolated."""
    tx.run(_FIRST, {"key_id": key_id, "since": micros(now)})


def keys(tx: Transaction) -> frozenset[str]:
    return frozenset(str(row[0]) for row in tx.rows(_KEYS))


def seal_with(tx: Transaction, key_id: str, entry: AuditEntry) -> None:
    values = {"key_id": key_id, "since": micros(entry.at)}
    try:
        if not tx.run(_NEXT, values):
            tx.run(_FIRST, values)
    except UniqueViolated as error:
        raise StaleVersion("the first secret was set at this moment; ask again") from error
    write_audit(tx, entry)


def sealed_otherwise(tx: Transaction, key_id: str, limit: int) -> Sequence[StoredSecret]:
    found = SECRETS.unpack_all(tx.rows(_OTHERWISE, key_id=key_id, limit=limit))
    channels = CHANNELS.unpack_all(tx.rows(_CHANNELS_OTHERWISE, key_id=key_id, limit=limit))
    return [*found, *(_as_secret(one) for one in channels)][:limit]


def _as_secret(channel: AlertChannel) -> StoredSecret:
    label = channel.label
    return StoredSecret(
        owner_kind=label.owner.kind,
        owner=label.owner.name,
        name=label.name,
        version=label.version,
        key_id=channel.key_id,
        wrapped=channel.wrapped,
        sealed=channel.sealed,
        set_by=channel.user_id,
        set_at=channel.created_at,
    )


def rewrap(tx: Transaction, before: StoredSecret, after: SealedValue) -> bool:
    if before.name.startswith(CHANNEL_LABEL):
        row = {"row_id": before.name.removeprefix(CHANNEL_LABEL), "seen": before.version, "before": before.wrapped}
        return bool(tx.run(_REWRAP_CHANNEL, {**row, "key_id": after.key_id, "wrapped": after.wrapped}))
    seen = {**_named(before.whose, before.name), "version": before.version, "before": before.wrapped}
    return bool(tx.run(_REWRAP, {**seen, "key_id": after.key_id, "wrapped": after.wrapped}))


# --- whose jobs may use what ----------------------------------------------------------------------------------------


def standing(tx: Transaction, user_id: UserId) -> Standing | None:
    row = tx.row(_ROLE, user_id=user_id)
    if row is None:
        return None
    return Standing(Role(row[0]), {team: Role(role) for team, role in tx.rows(_TEAMS, user_id=user_id)})


def team_of_project(tx: Transaction, project: str) -> str | None:
    row = tx.row(_TEAM, name=project)
    return None if row is None else str(row[0])


def _check_room(tx: Transaction, owner: SecretOwner) -> None:
    row = tx.row(_COUNT, **_owner(owner))
    if row is not None and row[0] >= MOST_SECRETS:
        raise Conflict(f"{owner} has {MOST_SECRETS} secrets, and no more may be: remove some with `crucible secret rm`")


def _owner(owner: SecretOwner) -> dict[str, str]:
    return {"owner_kind": owner.kind.value, "owner": owner.name}


def _named(owner: SecretOwner, name: str) -> dict[str, str]:
    return {**_owner(owner), "name": name}


def _changed(name: str) -> StaleVersion:
    return StaleVersion(f"the secret {name} was changed meanwhile; ask again")
