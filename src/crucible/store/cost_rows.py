"""Sums of hours and days as the rows of a report. Whole days are read as days, the hours before and after them as
hours, and rows by job from their own table. What is told apart by one thing alone has its totals ready."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, bindparam, func, literal, or_, select
from sqlalchemy.sql.expression import FromClause

from crucible.model.costs import SUM_NAMES, CostQuery, CostRow, Dimension, Window, day_name, hour_name, sums_of
from crucible.model.errors import InvalidRequest
from crucible.store import cost_tables as c
from crucible.store.mapping import micros, moment
from crucible.store.sql import Among, Sql, Transaction, as_list

# Hours are many: longer periods are told by days, and those in UTC.
MOST_HOURS = timedelta(days=93)
_DAY = timedelta(days=1)
_DAY_US = _DAY // timedelta(microseconds=1)
_OF_JOB_OR_TIME = (Dimension.JOB, Dimension.DAY, Dimension.HOUR)


def rows(tx: Transaction, query: CostQuery) -> tuple[CostRow, ...]:
    found: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0] * len(SUM_NAMES))
    for table, window in _pieces(query):
        for row in _read(tx, query, table, window):
            sums = found[tuple(_names(query.by, row))]
            for place, figure in enumerate(row[len(query.by) :]):
                sums[place] += int(figure)
    return tuple((key, sums_of(sums)) for key, sums in found.items())


# --- which table ------------------------------------------------------------------------------------------------------


def _pieces(query: CostQuery) -> Iterator[tuple[Table, Window]]:
    """Which table is read for which part of the time."""
    asked = {*query.by, *query.where}
    days = c.cost_day_totals if query.scope is None and len(asked - {Dimension.DAY}) <= 1 else c.cost_days
    for window in query.windows:
        if Dimension.JOB in asked:
            yield c.cost_job_days, _whole_days(window, asked)
        elif Dimension.HOUR in asked or window.offset_s:
            yield c.cost_hours, _not_long(query, window)
        else:
            yield from _days_and_rest(window, days)


def _days_and_rest(window: Window, days: Table) -> Iterator[tuple[Table, Window]]:
    first, last = _midnight(window.from_at + _DAY - timedelta(microseconds=1)), _midnight(window.to_at)
    if first >= last:
        yield c.cost_hours, window
        return
    yield days, Window(first, last)
    for start, end in ((window.from_at, first), (last, window.to_at)):
        if start < end:
            yield c.cost_hours, Window(start, end)


def _whole_days(window: Window, asked: set[Dimension]) -> Window:
    is_whole = all(at == _midnight(at) for at in (window.from_at, window.to_at))
    if not is_whole or window.offset_s or Dimension.HOUR in asked:
        raise InvalidRequest("costs of single jobs are kept by whole days in UTC: choose such a period", field="by")
    return window


def _not_long(query: CostQuery, window: Window) -> Window:
    if query.windows[-1].to_at - query.windows[0].from_at > MOST_HOURS:
        raise InvalidRequest(
            f"hours, and days of other zones than UTC, are told of at most {MOST_HOURS.days} days: choose a shorter"
            " period, or days in UTC",
            field="by",
        )
    return window


def _midnight(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


# --- what is asked of it ----------------------------------------------------------------------------------------------


def _read(tx: Transaction, query: CostQuery, table: Table, window: Window) -> Sequence[Sequence[Any]]:
    given: dict[str, Any] = {"from_at": micros(window.from_at), "to_at": micros(window.to_at)}
    if Dimension.DAY in query.by:
        given["offset_us"] = window.offset_s * 1_000_000
    if query.scope is not None:
        given |= {"of_user": query.scope.user_id, "of_teams": as_list(query.scope.teams)}
    given |= {f"only_{one}": value for one, value in query.where.items()}
    if table is c.cost_day_totals:
        return tx.rows(_totals(query.by, frozenset(query.where)), **given)
    return tx.rows(_grouped(table, query.by, frozenset(query.where), query.scope is not None), **given)


@cache
def _totals(by: tuple[Dimension, ...], where: frozenset[Dimension]) -> Sql:
    totals = c.cost_day_totals
    dimension = next((one for one in (*by, *where) if one is not Dimension.DAY), Dimension.KIND)
    cells = [_day(totals.c.at) if one is Dimension.DAY else totals.c.value for one in by]
    query = _summed(totals, cells).where(totals.c.dimension == literal(dimension.value), *_within(totals))
    if where:
        query = query.where(totals.c.value == bindparam(f"only_{dimension}"))
    return Sql(query.group_by(*cells))


@cache
def _grouped(table: Table, by: tuple[Dimension, ...], where: frozenset[Dimension], is_scoped: bool) -> Sql:
    """Rows of one key are added up before anybody asks whose they are, where no time is told apart."""
    keys, source = c.cost_keys.c, _by_key(table) if table is c.cost_days and Dimension.DAY not in by else table
    cells = [_cell(source, one) for one in by]
    query = _summed(source, cells)
    if source is table:
        query = query.where(*_within(table))
    if is_scoped or {*by, *where}.difference(_OF_JOB_OR_TIME):
        query = query.join(c.cost_keys, keys.id == source.c.key_id)
    if is_scoped:
        query = query.where(or_(keys.user == bindparam("of_user"), Among(keys.team, "of_teams")))
    for one in sorted(where):
        query = query.where(_cell(source, one) == bindparam(f"only_{one}"))
    return Sql(query.group_by(*cells))


def _by_key(table: Table) -> FromClause:
    sums = (func.sum(table.c[name]).label(name) for name in SUM_NAMES)
    return select(table.c.key_id, *sums).where(*_within(table)).group_by(table.c.key_id).subquery()


def _summed(source: FromClause, cells: Sequence[ColumnElement[Any]]) -> Select[Any]:
    return select(*cells, *(func.coalesce(func.sum(source.c[name]), 0) for name in SUM_NAMES)).select_from(source)


def _within(table: Table) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return table.c.at >= bindparam("from_at"), table.c.at < bindparam("to_at")


def _cell(source: FromClause, dimension: Dimension) -> ColumnElement[Any]:
    if dimension is Dimension.DAY:
        return _day(source.c.at)
    if dimension is Dimension.HOUR:
        return source.c.at
    return source.c.job_id if dimension is Dimension.JOB else c.cost_keys.c[dimension.value]


def _day(at: ColumnElement[Any]) -> ColumnElement[Any]:
    local = at + bindparam("offset_us")
    return local - local % literal(_DAY_US)


def _names(by: Sequence[Dimension], row: Sequence[Any]) -> Iterator[str]:
    for dimension, cell in zip(by, row, strict=False):
        yield _time_name(int(cell), dimension) if dimension.is_time else str(cell)


@lru_cache(maxsize=10_000)
def _time_name(at: int, dimension: Dimension) -> str:
    return day_name(moment(at)) if dimension is Dimension.DAY else hour_name(moment(at))
