"""What is said of budgets: why a job waits or stops, and what people should hear of. Pure."""

from datetime import datetime
from typing import NamedTuple

from crucible.core.budget import Shortage, Standing, term
from crucible.model.budget import Budget, Period, Scope
from crucible.model.ids import JobId, UserId
from crucible.model.job import Job
from crucible.model.notice import Notice, NoticeKind, Severity, notice_key
from crucible.model.units import MicroUsd, usd


def money(amount: MicroUsd) -> str:
    """A cent is a lot in some places: what is less is said in full."""
    return f"${usd(amount):,.2f}" if abs(amount) >= 10_000 or not amount else f"${usd(amount):.6f}"


def subject(budget: Budget) -> str:
    """Whose it is."""
    if budget.scope is Scope.SERVER:
        return "the whole server"
    return f"{'the ' if budget.scope is not Scope.JOB else ''}{budget.scope} {budget.name}"


def span(budget: Budget) -> str:
    return " this month" if budget.period is Period.MONTH else ""


def waits(short: Shortage) -> str:
    """Why nothing is bought. Without what is left, which changes by the second: it is said anew only when it is."""
    budget = short.budget
    return (
        f"waits: of the budget {budget.id} of {money(budget.limit)} less is left{span(budget)} than the "
        f"{money(short.needed)} that its machines need to begin; `crucible budget top-up {budget.id}` adds to it"
    )


def refused(short: Shortage) -> str:
    """Why a job is not taken."""
    budget, left = short.budget, money(MicroUsd(max(short.left, 0)))
    has = f"the budget {budget.id} has {left} of {money(budget.limit)} left{span(budget)}"
    return f"{has}, and the machines of this job need {money(short.needed)} to begin"


def stopped(budget: Budget) -> str:
    """Why a job that ran does not any more."""
    words = f"the budget {budget.id} of {money(budget.limit)} pays for no more{span(budget)}"
    return f"{words}: paused until there is money again" if budget.pauses else words


def went_on() -> str:
    return "there is money again"


# --- notices --------------------------------------------------------------------------------------------------


class Whom(NamedTuple):
    """Whom it concerns: who is in the team, or the person; nobody: those who look after the whole server."""

    team: str | None = None
    project: str | None = None
    user_id: UserId | None = None
    job_id: JobId | None = None


def paid_for(job: Job) -> Whom:
    return Whom(job.team, job.project, job.user_id, job.id)


def reached(standing: Standing, share: float, now: datetime, whom: Whom) -> Notice:
    """Once for each limit and period: its key says so."""
    budget, spent = standing.budget, standing.at.spent
    left = money(MicroUsd(max(budget.limit - spent, 0)))
    what = "pauses" if budget.pauses else "ends"
    return _notice(
        budget,
        now,
        f"{share:g}",
        Severity.INFO if share < 0.8 else Severity.WARNING,
        f"{share:.0%} of the budget {budget.id} is spent",
        f"{money(spent)} of {money(budget.limit)} is spent for {subject(budget)}{span(budget)}; {left} is left, and "
        f"{money(standing.at.per_hour)} is spent every hour now. A spent budget {what} its jobs.",
        {"threshold": share, "spent_microusd": spent},
        whom,
    )


def stop_notice(standing: Standing, job: Job, now: datetime) -> Notice:
    budget = standing.budget
    if budget.pauses:
        what, more = "is paused", f"It saves, and goes on when there is more: `crucible budget top-up {budget.id} …`."
    else:
        what, more = "is ended", "It saves first: `crucible resume` goes on from there, as a new job."
    return _notice(
        budget,
        now,
        f"stop/{job.id}/{int(now.timestamp())}",
        Severity.CRITICAL,
        f"the budget {budget.id} is spent: job {job.id} {what}",
        f"{money(standing.at.spent)} of {money(budget.limit)} is spent for {subject(budget)}{span(budget)}, and the "
        f"rest is needed to stop what runs. {more}",
        {"spent_microusd": standing.at.spent},
        paid_for(job),
    )


def key_of(budget: Budget, now: datetime, occurrence: str) -> str:
    return notice_key(f"budget:{budget.id}", f"{term(budget, now)}/{budget.limit}/{occurrence}")


def _notice(
    budget: Budget,
    now: datetime,
    occurrence: str,
    severity: Severity,
    title: str,
    text: str,
    details: dict[str, float],
    whom: Whom,
) -> Notice:
    return Notice(
        key=key_of(budget, now, occurrence),
        at=now,
        kind=NoticeKind.BUDGET,
        severity=severity,
        title=title,
        text=text,
        team=whom.team,
        project=whom.project,
        user_id=whom.user_id,
        job_id=whom.job_id,
        details={"budget": budget.id, "limit_microusd": budget.limit, **details},
    )
