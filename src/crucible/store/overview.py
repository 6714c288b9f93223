"""How the jobs that somebody sees stand, in a few numbers. Each state is counted by an index and only so far; what is
held is as much to read as is held, however much has been before."""

from dataclasses import replace
from functools import cache
from typing import Any

from sqlalchemy import Select, bindparam, case, func, literal, or_, select, union

from crucible.model.figures import Overview
from crucible.model.job import JobStatus
from crucible.model.lease import LeasePhase
from crucible.model.units import MicroUsd
from crucible.ports.figures import MOST_COUNTED
from crucible.ports.store import JobQuery
from crucible.store import money_tables as m
from crucible.store import tables as t
from crucible.store.figures import HOUR_S, RATE, RUNS
from crucible.store.lists import FILTERS, lists_of, matching, newest, scopes_of, within
from crucible.store.sql import Sql, Transaction, fixed

_J, _L, _U = t.jobs.c, t.leases.c, m.usage.c
_BUSY = func.coalesce(func.sum(case((RUNS, _L.gpus), else_=0)), 0)
_HELD = (
    select(func.count(), func.coalesce(func.sum(_L.gpus), 0), _BUSY)
    .select_from(t.leases.join(t.tasks, t.tasks.c.id == _L.task_id).join(t.jobs, _J.id == _L.job_id))
    .where(_L.phase != fixed(LeasePhase.CLOSED))
)
_RATES = (
    select(func.coalesce(func.sum(RATE * HOUR_S), 0.0))
    .select_from(m.usage.join(t.jobs, _J.id == _U.job_id))
    .where(_U.to_at.is_(None))
)


def overview(tx: Transaction, query: JobQuery) -> Overview:
    """Of a query, whose jobs it is about."""
    filters = {name: value for name in FILTERS if (value := getattr(query, name)) is not None}
    scopes = dict(scopes_of(replace(query, status=frozenset(JobStatus))))
    given, lists, values = frozenset(filters), lists_of(tuple(scopes)), filters | scopes
    ((machines, gpus, busy),) = tx.rows(_about(_HELD, given, lists), **values)
    ((rate,),) = tx.rows(_about(_RATES, given, lists), **values)
    counts = tx.rows(_counts(given, lists), limit=MOST_COUNTED, **_STATUSES, **values)
    return Overview(
        jobs={JobStatus(status): count for status, count in counts if count},
        machines=machines,
        gpus=gpus,
        busy_gpus=busy,
        per_hour=MicroUsd(round(rate)),
    )


_STATUSES = {f"status_{status.value}": status.value for status in JobStatus}


@cache
def _counts(given: frozenset[str], lists: tuple[str | None, ...]) -> Sql:
    """A row for each state. What several lists have counts once."""
    return Sql(union(*(_count(given, status, lists) for status in JobStatus)))


def _count(given: frozenset[str], status: JobStatus, lists: tuple[str | None, ...]) -> Select[str, int]:
    found = [newest(matching(select(_J.id), given, f"status_{status.value}", scope)).subquery() for scope in lists]
    ids = union(*(select(one.c.id) for one in found)).limit(bindparam("limit")).subquery()
    return select(literal(status.value), func.count()).select_from(ids)


@cache
def _about(query: Select[Any], given: frozenset[str], lists: tuple[str | None, ...]) -> Sql:
    """Jobs of steps too: they are what runs for a workflow."""
    seen = [within(scope) for scope in lists if scope is not None]
    query = query.where(or_(*seen)) if seen else query
    return Sql(query.where(*(_J[name] == bindparam(name) for name in FILTERS if name in given)))
