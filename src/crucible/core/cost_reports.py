"""Reports of what was spent: who may see what of it, which hours make up a period, and how sums that are stored and
what is still running become one list of rows. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache

from crucible.core.cost_parts import cells, hour_at, hour_of, transferred
from crucible.core.costs import per_hour
from crucible.core.rights import is_admin, manages
from crucible.model.account import Principal, Sight
from crucible.model.costs import (
    CostFacts,
    CostKey,
    CostQuery,
    CostRow,
    Dimension,
    Sums,
    Window,
    day_name,
    hour_name,
    total,
)
from crucible.model.errors import InvalidRequest
from crucible.model.ids import JobId
from crucible.model.units import MICRO, MicroUsd

_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
# A forecast goes on as the last days went.
LOOKED_BACK = timedelta(days=7)


# --- who may see what -----------------------------------------------------------------------------------------------


def scope_of(who: Principal, by: Iterable[Dimension], where: Mapping[Dimension, str]) -> Sight | None:
    """Their own, and what their teams spent together; what single people spent, of the teams that they manage."""
    if is_admin(who):
        return None
    is_personal = any(one.names_people for one in (*by, *where))
    teams = [team for team in who.teams if not is_personal or manages(who, team)]
    return Sight(who.user_id, frozenset(teams))


# --- periods --------------------------------------------------------------------------------------------------------


def windows(from_at: datetime, to_at: datetime, zone: tzinfo = UTC) -> tuple[Window, ...]:
    """The period, cut where the zone's clocks are changed. Raises InvalidRequest for what is no whole number of
    hours."""
    if from_at >= to_at:
        raise InvalidRequest("the period is empty: `from` must come before `to`", field="from")
    for name, at in (("from", from_at), ("to", to_at)):
        if at.astimezone(UTC) != _whole_hour(at):
            raise InvalidRequest(f"`{name}` must be a whole hour: costs are kept by the hour", field=name)
    found: list[Window] = []
    at = from_at.astimezone(UTC)
    while at < to_at:
        offset, until = offset_s(at, zone), min(at + _HOUR, to_at)
        while until < to_at and offset_s(until, zone) == offset:
            until = _next_look(until, to_at, offset, zone)
        found.append(Window(at, until.astimezone(UTC), offset))
        at = until
    return tuple(found)


def _next_look(at: datetime, to_at: datetime, offset: int, zone: tzinfo) -> datetime:
    """A day further, if the clocks are not changed meanwhile, else an hour."""
    day = min(at + _DAY, to_at)
    return day if offset_s(day, zone) == offset else min(at + _HOUR, to_at)


def offset_s(at: datetime, zone: tzinfo) -> int:
    """How far its clocks are ahead of UTC. Raises InvalidRequest if by no whole hours."""
    offset = at.astimezone(zone).utcoffset() or timedelta(0)
    if offset % _HOUR:
        raise InvalidRequest(f"the clocks of {zone} are not whole hours ahead of UTC; use UTC", field="tz")
    return int(offset.total_seconds())


def _whole_hour(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


# --- rows -----------------------------------------------------------------------------------------------------------


def rows_of(facts: CostFacts, query: CostQuery, now: datetime) -> tuple[CostRow, ...]:
    """What is stored and what is not in it yet. By time where that was asked for, else the dearest first; the names
    break ties."""
    found, put = dict(facts.rows), _putting(query)
    for one in facts.charged:
        if _is_asked_for(one.key, one.usage.job_id, query):
            for time, sums in cells(one, now, put):
                _count(found, _key(one.key, one.usage.job_id, time, query.by), sums)
    for transfer in facts.moved:
        at = put(hour_of(transfer.at))
        if at is not None and _is_asked_for(transfer.key, transfer.job_id, query):
            _count(found, _key(transfer.key, transfer.job_id, at, query.by), transferred(transfer))
    return tuple(sorted(found.items(), key=_order(query.by)))


def rate_of(facts: CostFacts, query: CostQuery) -> MicroUsd:
    """What runs now costs in an hour, whatever the period."""
    return per_hour(one.usage for one in facts.charged if _is_asked_for(one.key, one.usage.job_id, query))


def _count(found: dict[tuple[str, ...], Sums], key: tuple[str, ...], more: Sums) -> None:
    found[key] = found[key] + more if key in found else more


def _putting(query: CostQuery) -> Callable[[int], str | None]:
    """The name of the time that an hour belongs to, "" if none is asked for; None outside of the period."""

    @cache
    def put(hour: int) -> str | None:
        at = hour_at(hour)
        window = next((one for one in query.windows if one.from_at <= at < one.to_at), None)
        if window is None:
            return None
        if Dimension.DAY in query.by:
            return day_name(at + timedelta(seconds=window.offset_s))
        return hour_name(at) if Dimension.HOUR in query.by else ""

    return put


def _is_asked_for(key: CostKey, job_id: JobId, query: CostQuery) -> bool:
    scope = query.scope
    is_seen = scope is None or key.user == scope.user_id or key.team in scope.teams
    return is_seen and all(value_of(key, job_id, one) == value for one, value in query.where.items())


def _key(key: CostKey, job_id: JobId, time: str, by: Sequence[Dimension]) -> tuple[str, ...]:
    return tuple(time if one.is_time else value_of(key, job_id, one) for one in by)


def value_of(key: CostKey, job_id: JobId, dimension: Dimension) -> str:
    return job_id if dimension is Dimension.JOB else str(getattr(key, dimension))


def _order(by: Sequence[Dimension]) -> Callable[[CostRow], tuple[list[str], int, tuple[str, ...]]]:
    times = [place for place, one in enumerate(by) if one.is_time]
    return lambda row: ([row[0][place] for place in times], -row[1].cost, row[0])


# --- what is to come ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Forecast:
    """Of the whole period, if it goes on as in the last days."""

    total: MicroUsd
    per_day: MicroUsd
    from_days: float  # that it rests on


def forecast(spent: MicroUsd, lately: MicroUsd, since: datetime, now: datetime, end: datetime) -> Forecast | None:
    """`lately` was spent from `since` until now. None for a period that is over, or without an hour to go by."""
    looked_at = now - since
    if now >= end or looked_at < _HOUR:
        return None
    per_day = MicroUsd(round(lately * (_DAY / looked_at)))
    return Forecast(MicroUsd(spent + round(per_day * ((end - now) / _DAY))), per_day, looked_at / _DAY)


def whole(rows: Iterable[CostRow]) -> Sums:
    return total(sums for _, sums in rows)


def usd_per_gpu_hour(sums: Sums) -> float | None:
    return sums.cost / MICRO / (sums.gpu_s / 3600) if sums.gpu_s else None
