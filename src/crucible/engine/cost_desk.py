"""Costs of many jobs: what is closed is added up under one claim, and reports are made of the sums and of what is not
in them yet. What the figures mean is decided in `core.cost_parts` and `core.cost_reports`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo

from crucible.core import cost_reports
from crucible.core.cost_parts import parts_of
from crucible.core.cost_reports import LOOKED_BACK, Forecast
from crucible.engine.context import Context
from crucible.model.account import Principal
from crucible.model.costs import Charged, CostFacts, CostPart, CostQuery, CostRow, Dimension, Moved, Sums
from crucible.model.errors import InvalidRequest, StaleClaim
from crucible.model.ids import JobId, UserId
from crucible.model.units import MicroUsd

# Ends of ranks are told a little later than they happened: what is closed waits so long before it is added up, and what
# is told after that counts as idle. What was paid is the same either way.
SETTLED = timedelta(minutes=15)
ADD_UP_S = 60.0
# Of one transaction: a few milliseconds of the writer's time.
BATCH = 200
# More rows than anybody reads; whoever wants them should narrow the question.
MOST_ROWS = 100_000
MOST_DIMENSIONS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """No period: this month, by the clocks of the zone."""

    by: tuple[Dimension, ...] = ()
    from_at: datetime | None = None
    to_at: datetime | None = None
    zone: tzinfo = UTC
    where: Mapping[Dimension, str] = field(default_factory=dict)
    is_forecast: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    at: datetime
    from_at: datetime
    to_at: datetime
    by: tuple[Dimension, ...]
    rows: Sequence[CostRow]
    total: Sums
    per_hour: MicroUsd  # of what runs now
    names: Mapping[str, str]  # of the jobs in it
    forecast: Forecast | None = None


class CostDesk:
    def __init__(self, context: Context) -> None:
        self._context = context

    # --- adding up ------------------------------------------------------------------------------------

    async def run(self) -> None:
        while True:
            self._context.vitals.beat("costs", ADD_UP_S)
            try:
                await self.add_up()
            except StaleClaim:
                pass  # it took too long, and another server goes on
            await self._context.clock.sleep(ADD_UP_S)

    async def add_up(self) -> int:
        """Everything that has settled; how much that was. Nothing, while another server is at it."""
        context, done = self._context, 0
        claim = await context.store.claim("costs", context.server_id, context.claim_ttl)
        if claim is None:
            return 0
        try:
            while count := await context.store.add_up(self._cut, context.clock.now() - SETTLED, BATCH, claim=claim):
                done += count
                await context.store.renew(claim, context.claim_ttl)
                await context.clock.sleep(0)  # others want to write as well
        finally:
            await context.store.release(claim)
        return done

    def _cut(self, charged: Sequence[Charged], moved: Sequence[Moved]) -> Sequence[CostPart]:
        return tuple(parts_of(charged, moved, self._context.clock.now()))

    # --- reports --------------------------------------------------------------------------------------

    async def report(self, who: Principal, asked: Asked) -> Report:
        """Raises InvalidRequest for a period or a question that nobody can answer."""
        now = self._context.clock.now()
        cost_reports.offset_s(now, asked.zone)  # refuses zones whose hours are not ours
        first, end = month_of(now, asked.zone)
        from_at, to_at = asked.from_at or first, asked.to_at or end
        where = await self._ids(asked.where)
        query = CostQuery(
            by=checked(asked.by),
            windows=cost_reports.windows(from_at, to_at, asked.zone if Dimension.DAY in asked.by else UTC),
            where=where,
            scope=cost_reports.scope_of(who, asked.by, where),
        )
        facts = await self._context.store.costs(query)
        rows = self._rows(facts, query, now)
        total = cost_reports.whole(rows)
        rows, names = await self._named(query.by, rows)
        return Report(
            at=now,
            from_at=from_at,
            to_at=to_at,
            by=query.by,
            rows=rows,
            total=total,
            per_hour=cost_reports.rate_of(facts, query),
            names=names,
            forecast=await self._forecast(query, total, now, to_at) if asked.is_forecast else None,
        )

    def _rows(self, facts: CostFacts, query: CostQuery, now: datetime) -> Sequence[CostRow]:
        rows = cost_reports.rows_of(facts, query, now)
        if len(rows) > MOST_ROWS:
            raise InvalidRequest(
                f"that would be {len(rows)} rows, at most {MOST_ROWS} are told: choose a shorter period, or fewer"
                " dimensions",
                field="by",
            )
        return rows

    async def _forecast(self, query: CostQuery, total: Sums, now: datetime, end: datetime) -> Forecast | None:
        """As the last days went: from the first of them on which something was spent."""
        if not query.windows[0].from_at <= now < end:
            return None
        since = whole_hour(now - LOOKED_BACK)
        lately = replace(
            query, by=(Dimension.DAY,), windows=cost_reports.windows(since, whole_hour(now) + timedelta(hours=1))
        )
        days = self._rows(await self._context.store.costs(lately), lately, now)
        spent = [key[0] for key, sums in days if sums.cost]
        began = max(since, datetime.fromisoformat(min(spent)).replace(tzinfo=UTC)) if spent else since
        return cost_reports.forecast(total.cost, cost_reports.whole(days).cost, began, now, end)

    # --- names ----------------------------------------------------------------------------------------

    async def _ids(self, where: Mapping[Dimension, str]) -> Mapping[Dimension, str]:
        """People are asked for by their names."""
        named = where.get(Dimension.USER)
        if named is None:
            return where
        found = next((user.id for user in await self._context.store.users() if user.name == named), named)
        return {**where, Dimension.USER: found}

    async def _named(
        self, by: Sequence[Dimension], rows: Sequence[CostRow]
    ) -> tuple[Sequence[CostRow], Mapping[str, str]]:
        store, jobs = self._context.store, dict[str, str]()
        if Dimension.JOB in by:
            place = by.index(Dimension.JOB)
            found = await store.job_names([JobId(key[place]) for key, _ in rows])
            jobs = {str(job_id): name for job_id, name in found.items()}
        if Dimension.USER in by:
            place = by.index(Dimension.USER)
            users = await store.user_names({UserId(key[place]) for key, _ in rows})
            rows = [(_renamed(key, place, users), sums) for key, sums in rows]
        return rows, jobs


def _renamed(key: tuple[str, ...], place: int, names: Mapping[UserId, str]) -> tuple[str, ...]:
    return (*key[:place], names.get(UserId(key[place]), key[place]), *key[place + 1 :])


def checked(by: Sequence[Dimension]) -> tuple[Dimension, ...]:
    if len(by) > MOST_DIMENSIONS:
        raise InvalidRequest(f"costs are told apart by at most {MOST_DIMENSIONS} things at once", field="by")
    if len(set(by)) < len(by) or {Dimension.DAY, Dimension.HOUR} <= set(by):
        raise InvalidRequest("the things that costs are told apart by must be different ones", field="by")
    return tuple(by)


def month_of(now: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    first = now.astimezone(zone).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    following = (first + timedelta(days=32)).replace(day=1)
    return first.astimezone(UTC), following.astimezone(UTC)


def whole_hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)
