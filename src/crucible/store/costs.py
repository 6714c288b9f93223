"""Sums of costs: adding up what is closed, and reading the sums beside what is not in them yet. Everything that is
added up is taken from the list of what has to be, in the same transaction: nothing is missing and nothing counts
twice, wherever a server dies."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Table, bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert as upsert

from crucible.model.costs import SUM_NAMES, CostFacts, CostKey, CostPart, CostQuery
from crucible.model.errors import Busy
from crucible.model.ids import JobId, NodeId, UserId
from crucible.ports.costs import Cut
from crucible.store import charged
from crucible.store import cost_tables as c
from crucible.store import tables as t
from crucible.store.account_tables import users
from crucible.store.cost_rows import rows
from crucible.store.mapping import micros, moment
from crucible.store.sql import Among, Sql, Transaction, as_list

# Stretches that one report looks at beside the sums: more machines than anybody runs at once. Only a database that was
# just upgraded has more, for the minutes until they are added up.
MOST_UNSUMMED = 100_000
DAY_US = 86_400 * 1_000_000

# --- adding up --------------------------------------------------------------------------------------------------------

_K = c.cost_keys.c
_NEW_KEY = Sql(upsert(c.cost_keys).values({name: bindparam(name) for name in c.KEY_NAMES}).on_conflict_do_nothing())
_KEY = Sql(select(_K.id).where(*(_K[name] == bindparam(name) for name in c.KEY_NAMES)))


def _adding(table: Table, *key: str) -> Sql:
    new = upsert(table).values({name: bindparam(name) for name in (*key, *SUM_NAMES)})
    more = {name: table.c[name] + new.excluded[name] for name in SUM_NAMES}
    return Sql(new.on_conflict_do_update(index_elements=key, set_=more))


_ADDING = {
    table: _adding(table, *(column.name for column in table.primary_key))
    for table in (c.cost_hours, c.cost_days, c.cost_job_days, c.cost_day_totals)
}
_USAGE_DONE = Sql(delete(c.unsummed_usage).where(c.unsummed_usage.c.usage_id == bindparam("number")))
_POSTING_DONE = Sql(delete(c.unsummed_postings).where(c.unsummed_postings.c.posting_id == bindparam("name")))


def add_up(tx: Transaction, cut: Cut, before: datetime, limit: int) -> int:
    stretches, moved = charged.ended(tx, before, limit), charged.moved(tx, limit)
    _add(tx, cut(tuple(stretches.values()), tuple(moved.values())))
    tx.run_many(_USAGE_DONE, [{"number": number} for number in stretches])
    tx.run_many(_POSTING_DONE, [{"name": name} for name in moved])
    return len(stretches) + len(moved)


def _add(tx: Transaction, parts: Sequence[CostPart]) -> None:
    """In the order of their keys, so that two writers never wait for each other."""
    number = {key: _number(tx, key) for key in {part.key: None for part in parts}}
    found = {table: defaultdict[tuple[Any, ...], list[int]](lambda: [0] * len(SUM_NAMES)) for table in _ADDING}
    for part in parts:
        figures = [getattr(part.sums, name) for name in SUM_NAMES]
        for table, key in _rows_of(part, number[part.key]):
            sums = found[table][key]
            for place, figure in enumerate(figures):
                sums[place] += figure
    for table, counted in found.items():
        names = (*(column.name for column in table.primary_key), *SUM_NAMES)
        tx.run_many(
            _ADDING[table], [dict(zip(names, (*key, *sums), strict=True)) for key, sums in sorted(counted.items())]
        )


def _rows_of(part: CostPart, key_id: int) -> Iterator[tuple[Table, tuple[Any, ...]]]:
    """Where a part is counted."""
    at = micros(part.hour)
    day = at - at % DAY_US
    yield c.cost_hours, (at, key_id)
    yield c.cost_days, (key_id, day)
    yield c.cost_job_days, (day, part.job_id, key_id)
    for name in c.KEY_NAMES:
        yield c.cost_day_totals, (name, day, str(getattr(part.key, name)))


def _number(tx: Transaction, key: CostKey) -> int:
    named = {name: str(getattr(key, name)) for name in c.KEY_NAMES}
    found = tx.row(_KEY, **named)
    if found is None:
        tx.run(_NEW_KEY, named)
        found = tx.row(_KEY, **named)
    return int(found[0]) if found is not None else 0


# --- reading ----------------------------------------------------------------------------------------------------------


def costs(tx: Transaction, query: CostQuery) -> CostFacts:
    waiting = charged.unsummed(tx, MOST_UNSUMMED + 1)
    if len(waiting) > MOST_UNSUMMED:
        raise Busy("what was charged before the upgrade is being added up: ask again in a few minutes")
    return CostFacts(rows=rows(tx, query), charged=waiting, moved=tuple(charged.moved(tx, MOST_UNSUMMED).values()))


_JOB_NAMES = Sql(select(t.jobs.c.id, t.jobs.c.name).where(Among(t.jobs.c.id, "ids")))
_USER_NAMES = Sql(select(users.c.id, users.c.name).where(Among(users.c.id, "ids")))
_ENROLLED = Sql(
    select(t.nodes.c.id, t.nodes.c.enrolled_at)
    .join(t.leases, t.leases.c.id == t.nodes.c.lease_id)
    .where(t.leases.c.job_id == bindparam("job_id"))
)


def job_names(tx: Transaction, job_ids: Collection[JobId]) -> Mapping[JobId, str]:
    return {JobId(id_): name for id_, name in tx.rows(_JOB_NAMES, ids=as_list(job_ids))}


def user_names(tx: Transaction, user_ids: Collection[UserId]) -> Mapping[UserId, str]:
    return {UserId(id_): name for id_, name in tx.rows(_USER_NAMES, ids=as_list(user_ids))}


def enrolments(tx: Transaction, job_id: JobId) -> Mapping[NodeId, datetime]:
    return {NodeId(id_): moment(at) for id_, at in tx.rows(_ENROLLED, job_id=job_id)}
