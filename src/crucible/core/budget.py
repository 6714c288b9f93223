"""Where a budget stands, and what follows. Pure.

As long as what is spent and what the machines keep back (`core.billables`) stay within the limit, so does the bill.
When they no longer do, jobs are stopped, and what was kept back pays for that."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from crucible.core.billables import Billable, Price, kept_back, owed, priced, stop_time
from crucible.core.ledger import HOUR_S
from crucible.model.budget import Budget, Payer, Period, Scope, Spender, budget_id
from crucible.model.ids import JobId, UserId
from crucible.model.policy import Policy
from crucible.model.spec import WhenSpent
from crucible.model.units import NOTHING, MicroUsd

_SECOND = timedelta(seconds=1)
_AGES_S = 100 * 366 * 86400  # further ahead than anybody asks


# --- what counts ----------------------------------------------------------------------------------------------


def starts_at(budget: Budget, now: datetime) -> datetime | None:
    """From when on what is spent counts; None: all of it."""
    if budget.period is Period.ONCE:
        return budget.starts_at
    return max(_month(now), budget.starts_at or _month(now))


def ends_at(budget: Budget, now: datetime) -> datetime | None:
    """When it counts from nothing again."""
    return None if budget.period is Period.ONCE else (_month(now) + timedelta(days=32)).replace(day=1)


def term(budget: Budget, now: datetime) -> str:
    """A word for the present period, the same all the time that it lasts."""
    return f"{now.astimezone(UTC):%Y-%m}" if budget.period is Period.MONTH else str(budget.period)


def _month(now: datetime) -> datetime:
    return now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def covers(budget: Budget, payer: Payer, job_ids: Collection[JobId] = ()) -> bool:
    """`job_ids`: the job and the workflow that it works for; nothing: it is not submitted yet."""
    match budget.scope:
        case Scope.JOB:
            return budget.name in job_ids
        case Scope.PROJECT:
            return payer.project == budget.name
        case Scope.TEAM:
            return payer.team == budget.name
        case Scope.USER:
            return payer.user_id == budget.name
        case Scope.SERVER:
            return True


def own(job_id: JobId, limit: MicroUsd, when_spent: WhenSpent, created_by: UserId, created_at: datetime) -> Budget:
    """What a job's spec says, as a budget. One that people have set for the job stands in its place."""
    return Budget(
        id=budget_id(Scope.JOB, job_id, Period.ONCE),
        scope=Scope.JOB,
        name=job_id,
        period=Period.ONCE,
        limit=limit,
        when_spent=when_spent,
        created_by=created_by,
        created_at=created_at,
    )


# --- where it stands ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Stake:
    """What one job, with all that works for it, has to do with a budget."""

    job_id: JobId
    priority: int
    created_at: datetime
    owed: MicroUsd  # not posted yet
    per_hour: MicroUsd
    kept_back: MicroUsd
    if_stopped: MicroUsd  # what would be kept back if it were told to stop now
    is_running: bool  # it can be told to
    is_overdue: bool  # it was, so long ago that it has had its time to save


@dataclass(frozen=True, slots=True)
class Position:
    """Of a budget, at one moment."""

    posted: MicroUsd
    stakes: tuple[Stake, ...] = ()
    promised: MicroUsd = NOTHING  # to purchases that are being made

    @property
    def spent(self) -> MicroUsd:
        return MicroUsd(self.posted + sum(stake.owed for stake in self.stakes))

    @property
    def kept_back(self) -> MicroUsd:
        return MicroUsd(self.promised + sum(stake.kept_back for stake in self.stakes))

    @property
    def per_hour(self) -> MicroUsd:
        return MicroUsd(sum(stake.per_hour for stake in self.stakes))


def position(budget: Budget, posted: MicroUsd, machines: Sequence[Billable], now: datetime, policy: Policy) -> Position:
    """`posted` since its period began; of `machines` those that it covers count. Steps are stopped with the whole of
    their workflow, unless the budget is a step's own."""
    by_job: dict[JobId, list[Billable]] = {}
    for machine in machines:
        spender = machine.spender
        if covers(budget, spender.payer, (spender.id, spender.root)):
            unit = JobId(budget.name) if budget.scope is Scope.JOB else spender.root
            by_job.setdefault(unit, []).append(machine)
    since = starts_at(budget, now)
    return Position(posted, tuple(_stake(job_id, mine, since, now, policy) for job_id, mine in by_job.items()))


def _stake(job_id: JobId, mine: Sequence[Billable], since: datetime | None, now: datetime, policy: Policy) -> Stake:
    spenders = [machine.spender for machine in mine]
    return Stake(
        job_id=job_id,
        priority=max(spender.priority for spender in spenders),
        created_at=min(spender.created_at for spender in spenders),
        owed=MicroUsd(sum(owed(machine, now, since) for machine in mine)),
        per_hour=MicroUsd(sum(machine.per_hour for machine in mine)),
        kept_back=MicroUsd(sum(kept_back(one, now, policy, _told_at(one.spender, now)) for one in mine)),
        if_stopped=MicroUsd(sum(kept_back(one, now, policy, _told_at(one.spender, now) or now) for one in mine)),
        is_running=any(spender.runs for spender in spenders),
        is_overdue=any(_is_overdue(machine, now, policy) for machine in mine),
    )


def _told_at(spender: Spender, now: datetime) -> datetime | None:
    return None if spender.runs else spender.desired_at or now


def _is_overdue(machine: Billable, now: datetime, policy: Policy) -> bool:
    told_at = _told_at(machine.spender, now)
    return told_at is not None and not machine.is_leaving and now - told_at >= stop_time(policy)


# --- what follows ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be done now."""

    stop: tuple[JobId, ...] = ()  # these jobs save and stop
    cut: tuple[JobId, ...] = ()  # these have had their time: their machines end now
    reached: float | None = None  # the highest threshold; whoever tells it knows whether it was told


def decide(standing: "Standing") -> Verdict:
    """As few jobs are stopped as must be: those of the lowest priority first, of these the youngest."""
    budget, at = standing.budget, standing.at
    short, stop = -standing.left, list[JobId]()
    cut = tuple(stake.job_id for stake in at.stakes if stake.is_overdue) if short > 0 else ()
    for stake in sorted(at.stakes, key=_turn):
        if short > 0 and stake.is_running and stake.kept_back > 0:
            stop.append(stake.job_id)
            short -= stake.kept_back - stake.if_stopped
    reached = [share for share in budget.thresholds if at.spent >= max(share * budget.limit, 1)]  # nothing is no share
    return Verdict(tuple(stop), cut, max(reached, default=None))


def _turn(stake: Stake) -> tuple[int, float, JobId]:
    return stake.priority, -stake.created_at.timestamp(), stake.job_id


@dataclass(frozen=True, slots=True)
class Forecast:
    """As if what runs now ran on."""

    runs_out_at: datetime | None  # None: not in this period
    at_end: MicroUsd | None  # of the period; None: it has no end


def forecast(standing: "Standing", now: datetime) -> Forecast:
    budget, at, end = standing.budget, standing.at, ends_at(standing.budget, now)
    at_end = None if end is None else MicroUsd(at.spent + priced(at.per_hour, end - now))
    left = budget.limit - at.spent
    if left <= 0:
        return Forecast(now, at_end)
    out = None if at.per_hour <= 0 else now + min(left * HOUR_S // at.per_hour, _AGES_S) * _SECOND
    return Forecast(None if out is not None and end is not None and out >= end else out, at_end)


# --- purchases ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Standing:
    """A budget, and where it stands."""

    budget: Budget
    at: Position

    @property
    def left(self) -> MicroUsd:
        """What may still be promised; below zero, too much is."""
        return MicroUsd(self.budget.limit - self.at.spent - self.at.kept_back)

    def promising(self, more: MicroUsd) -> "Standing":
        return replace(self, at=replace(self.at, promised=MicroUsd(self.at.promised + more)))


@dataclass(frozen=True, slots=True)
class Shortage:
    """Why something is not bought."""

    budget: Budget
    left: MicroUsd
    needed: MicroUsd
    is_final: bool  # not even if everything else that the budget pays for were over


def shortage(standings: Iterable[Standing], price: Price) -> Shortage | None:
    """The tightest of the budgets that cannot pay for it; None: all of them can."""
    return min(_shortages(standings, price), key=lambda one: (not one.is_final, one.left - one.needed), default=None)


def _shortages(standings: Iterable[Standing], price: Price) -> Iterator[Shortage]:
    for standing in standings:
        needed = MicroUsd(price.to_begin + (price.to_be_worth_it if standing.budget.pauses else NOTHING))
        if needed > 0 and standing.left < needed:
            is_final = standing.budget.limit - standing.at.spent < needed
            yield Shortage(standing.budget, standing.left, needed, is_final)
