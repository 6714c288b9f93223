"""What is charged and what follows from it. Writing the same again is writing it once; writing something else in its
place means that another worker was faster, and is refused."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from crucible.model.errors import InvariantBroken, StaleVersion
from crucible.model.ids import JobId, MachineId
from crucible.model.ledger import ChargeKind, Cooldown, Entry, Posting, Rate, Usage
from crucible.model.units import MicroUsd
from crucible.store import money_tables as m
from crucible.store.mapping import Rows, micros
from crucible.store.sql import Among, Row, Sql, Transaction, UniqueViolated, as_list
from crucible.store.tables import jobs
from crucible.store.unsummed import note_closed, note_posting

USAGES = Rows(Usage, m.usage, apart=("rate",))
POSTINGS = Rows(Posting, m.postings, apart=("entries",))
ENTRIES = Rows(Entry, m.ledger)
COOLDOWNS = Rows(Cooldown, m.cooldowns)

JOB_ACCOUNT = "job:"

_U = m.usage.c
_RATE = (_U.kind, _U.rate_microusd, _U.per_s)
STRETCHES = select(*_RATE, *USAGES.columns)
_OLDEST_FIRST = (_U.from_at, _U.machine_id, _U.kind)
_OPEN = _U.to_at.is_(None)


def stretches(rows: Iterable[Row]) -> tuple[Usage, ...]:
    """Of rows that were selected as STRETCHES."""
    return tuple(
        USAGES.unpack(row, rate=Rate(ChargeKind(kind), MicroUsd(amount), per_s)) for kind, amount, per_s, *row in rows
    )


def _packed(usage: Usage) -> dict[str, Any]:
    rate = usage.rate
    return {**USAGES.pack(usage), "kind": rate.kind.value, "rate_microusd": int(rate.amount), "per_s": rate.per_s}


# --- usage ------------------------------------------------------------------------------------------------------

_OF_METER = (
    _U.provider == bindparam("provider"),
    _U.machine_id == bindparam("machine_id"),
    _U.kind == bindparam("kind"),
)
_SAME = Sql(STRETCHES.where(*_OF_METER, _U.from_at == bindparam("since")))
_NEWEST = Sql(STRETCHES.where(*_OF_METER).order_by(_U.from_at.desc()).limit(1))
_START = Sql(
    insert(m.usage).values(USAGES.parameters() | {name: bindparam(name) for name in ("kind", "rate_microusd", "per_s")})
)
_CLOSING = ("to_at", "amount_microusd", "is_estimate")
_CLOSE = Sql(
    update(m.usage)
    .where(*_OF_METER, _U.from_at == bindparam("since"), _OPEN)
    .values({name: bindparam(name) for name in _CLOSING})
)


def write_usage(tx: Transaction, usage: Usage) -> None:
    """Stretches of a machine follow one another: the next begins where the last one ended."""
    meter = {"provider": usage.provider, "machine_id": usage.machine_id, "kind": usage.rate.kind.value}
    found = next(iter(stretches(tx.rows(_SAME, **meter, since=micros(usage.from_at)))), None)
    if found == usage:
        return
    if found is None:
        _start(tx, usage, meter)
    elif found == replace(usage, to_at=None, amount=None, is_estimate=False):
        packed = _packed(usage)
        tx.run(_CLOSE, {**meter, "since": packed["from_at"], **{name: packed[name] for name in _CLOSING}})
        note_closed(tx, meter, usage.from_at)
    else:
        raise _other(usage)


def _start(tx: Transaction, usage: Usage, meter: Mapping[str, str]) -> None:
    last = next(iter(stretches(tx.rows(_NEWEST, **meter))), None)
    if last is not None and last.to_at != usage.from_at:
        raise _other(usage)
    try:
        tx.run(_START, _packed(usage))
    except UniqueViolated as error:
        raise _other(usage) from error
    if usage.to_at is not None:
        note_closed(tx, meter, usage.from_at)


def _other(usage: Usage) -> StaleVersion:
    return StaleVersion(f"{usage.rate.kind} of machine {usage.machine_id} is accounted for otherwise: load it again")


_OF_MACHINES = Sql(
    STRETCHES.where(_U.provider == bindparam("provider"), Among(_U.machine_id, "machines")).order_by(
        _U.from_at, _U.kind
    )
)
_OPEN_IN_REGION = Sql(
    STRETCHES.where(_U.provider == bindparam("provider"), _U.region == bindparam("region"), _OPEN).order_by(
        *_OLDEST_FIRST
    )
)
_OF_JOB = Sql(STRETCHES.where(_U.job_id == bindparam("job_id")).order_by(*_OLDEST_FIRST))
_OPEN_OF_JOBS = Sql(STRETCHES.where(Among(_U.job_id, "job_ids"), _OPEN).order_by(*_OLDEST_FIRST))


def usages(tx: Transaction, provider: str, machines: Collection[MachineId]) -> Mapping[MachineId, Sequence[Usage]]:
    found: dict[MachineId, list[Usage]] = defaultdict(list)
    for usage in stretches(tx.rows(_OF_MACHINES, provider=provider, machines=as_list(machines))):
        found[usage.machine_id].append(usage)
    return {machine: tuple(stretches) for machine, stretches in found.items()}


def open_usages(tx: Transaction, provider: str, region: str) -> Sequence[Usage]:
    return stretches(tx.rows(_OPEN_IN_REGION, provider=provider, region=region))


def job_usages(tx: Transaction, job_id: JobId) -> Sequence[Usage]:
    return stretches(tx.rows(_OF_JOB, job_id=job_id))


def open_usages_of(tx: Transaction, job_ids: Collection[JobId]) -> Sequence[Usage]:
    return stretches(tx.rows(_OPEN_OF_JOBS, job_ids=as_list(job_ids)))


# --- the ledger -------------------------------------------------------------------------------------------------

_P, _L = m.postings.c, m.ledger.c
_WITH_ENTRIES = (
    select(*POSTINGS.columns, *ENTRIES.columns).join(m.ledger, _L.posting_id == _P.id).order_by(_P.at, _P.id, _L.number)
)
_POSTING = Sql(_WITH_ENTRIES.where(_P.id == bindparam("id")))
_POSTINGS_OF_JOB = Sql(_WITH_ENTRIES.where(_P.job_id == bindparam("job_id")))
_POST = Sql(insert(m.postings).values(POSTINGS.parameters()))
# What has been posted to a job stands in its row too: a list of fifty must not add up fifty histories.
_COUNT = Sql(
    update(jobs)
    .where(jobs.c.id == bindparam("of_job"))
    .values(cost_running_microusd=jobs.c.cost_running_microusd + bindparam("more"))
)
_ENTER = Sql(
    insert(m.ledger).values(ENTRIES.parameters() | {name: bindparam(name) for name in ("posting_id", "number")})
)


def write_posting(tx: Transaction, posting: Posting) -> None:
    if not posting.entries or sum(entry.amount for entry in posting.entries) != 0:
        raise InvariantBroken(f"posting {posting.id} does not add up to nothing")
    there = _postings(tx.rows(_POSTING, id=posting.id))
    if there == (posting,):
        return
    if there:
        raise StaleVersion(f"posting {posting.id} was made otherwise: load again")
    try:
        tx.run(_POST, POSTINGS.pack(posting))
    except UniqueViolated as error:
        raise StaleVersion(f"posting {posting.id} was made by another worker: load again") from error
    key = {"posting_id": posting.id}
    tx.run_many(_ENTER, [{**key, "number": n, **ENTRIES.pack(entry)} for n, entry in enumerate(posting.entries)])
    of_job = sum(entry.amount for entry in posting.entries if entry.account == f"{JOB_ACCOUNT}{posting.job_id}")
    tx.run(_COUNT, {"of_job": posting.job_id, "more": of_job})
    note_posting(tx, posting.id)


def _postings(rows: Iterable[Row]) -> tuple[Posting, ...]:
    heads: dict[str, Row] = {}
    entries: dict[str, list[Entry]] = defaultdict(list)
    for row in rows:
        heads[row[0]] = row[: len(POSTINGS)]
        entries[row[0]].append(ENTRIES.unpack(row[len(POSTINGS) :]))
    return tuple(POSTINGS.unpack(head, entries=tuple(entries[id_])) for id_, head in heads.items())


_TOTAL = func.sum(_L.amount_microusd)
_SUMS = select(_L.account, _TOTAL).group_by(_L.account)
_SOME_SUMS = Sql(_SUMS.where(Among(_L.account, "accounts")))
_ALL_SUMS = Sql(_SUMS.order_by(_L.account))


def job_postings(tx: Transaction, job_id: JobId) -> Sequence[Posting]:
    return _postings(tx.rows(_POSTINGS_OF_JOB, job_id=job_id))


def job_costs(tx: Transaction, job_ids: Collection[JobId]) -> Mapping[JobId, MicroUsd]:
    accounts = as_list(f"{JOB_ACCOUNT}{job_id}" for job_id in job_ids)
    found = {
        JobId(account.removeprefix(JOB_ACCOUNT)): MicroUsd(int(total))
        for account, total in tx.rows(_SOME_SUMS, accounts=accounts)
    }
    return {job_id: found.get(job_id, MicroUsd(0)) for job_id in job_ids}


def balances(tx: Transaction) -> Mapping[str, MicroUsd]:
    return {account: MicroUsd(int(total)) for account, total in tx.rows(_ALL_SUMS)}


# --- cooldowns --------------------------------------------------------------------------------------------------

_COOL = upsert(m.cooldowns).values(COOLDOWNS.parameters())
_LATER_WINS = Sql(
    _COOL.on_conflict_do_update(
        index_elements=["provider", "region", "zone", "instance_type", "market"],
        set_={"until": _COOL.excluded.until, "reason": _COOL.excluded.reason},
        where=m.cooldowns.c.until < _COOL.excluded.until,
    )
)
_STILL = Sql(
    select(*COOLDOWNS.columns)
    .where(m.cooldowns.c.until > bindparam("now"))
    .order_by(*(m.cooldowns.c[name] for name in ("provider", "region", "zone", "instance_type", "market")))
)


def write_cooldown(tx: Transaction, cooldown: Cooldown) -> None:
    tx.run(_LATER_WINS, COOLDOWNS.pack(cooldown))


def cooldowns(tx: Transaction, now: datetime) -> Sequence[Cooldown]:
    return COOLDOWNS.unpack_all(tx.rows(_STILL, now=micros(now)))
