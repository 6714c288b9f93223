"""Budgets: how much may be spent on what, in which time, and what becomes of the jobs when it is spent. What is spent
is never kept here: it follows from the ledger and from what runs."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, NewType

from crucible.model.ids import JobId, MachineId, UserId
from crucible.model.job import Desired
from crucible.model.lease import Lease, Order
from crucible.model.ledger import Usage
from crucible.model.spec import WhenSpent
from crucible.model.units import MicroUsd

BudgetId = NewType("BudgetId", str)

# Who pauses and ends jobs whose budget is spent. No person can have this name: theirs hold no colon.
KEEPER = UserId("crucible:budgets")

THRESHOLDS = (0.5, 0.8, 0.95)


class Scope(StrEnum):
    JOB = "job"
    PROJECT = "project"
    TEAM = "team"
    USER = "user"
    SERVER = "server"  # everything; its name is ""


class Period(StrEnum):
    ONCE = "once"  # everything that is spent since the budget began
    MONTH = "month"  # of the calendar, UTC


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """`thresholds` are shares of the limit, in order: each is told of once in a period. `starts_at`: what was spent
    before does not count; None counts all of it."""

    id: BudgetId
    scope: Scope
    name: str
    period: Period
    limit: MicroUsd
    when_spent: WhenSpent = WhenSpent.PAUSE
    thresholds: tuple[float, ...] = THRESHOLDS
    starts_at: datetime | None = None
    created_by: UserId
    created_at: datetime
    version: int = 0

    @property
    def pauses(self) -> bool:
        return self.when_spent is WhenSpent.PAUSE


class Payer(NamedTuple):
    """Whose money a job spends."""

    user_id: UserId
    team: str | None
    project: str | None


class Spender(NamedTuple):
    """A job that costs something, may cost something soon, or waits for money. Jobs of a workflow's steps spend for the
    workflow, their `root`: it is what is paused or ended."""

    id: JobId
    root: JobId
    payer: Payer
    priority: int
    created_at: datetime
    is_over: bool
    desired: Desired
    desired_by: UserId | None
    desired_at: datetime | None
    budget: MicroUsd | None  # of its own, by its spec
    when_spent: WhenSpent

    @property
    def runs(self) -> bool:
        """Or may: nobody has told it to stop."""
        return not self.is_over and self.desired is Desired.RUN


@dataclass(frozen=True, slots=True)
class Stakes:
    """Everything that is or may be charged for, as of one moment."""

    spenders: tuple[Spender, ...]  # their roots too
    usages: tuple[Usage, ...]  # open ones
    leases: tuple[Lease, ...]  # open ones
    orders: tuple[Order, ...]  # of these leases, and all that are not settled
    seen: frozenset[MachineId]  # machines of these leases that the books know, whether they still run or not
    wanted: tuple[Order, ...]  # what each job that waits for money bought last


class Posted(NamedTuple):
    """What the ledger holds since some moment."""

    payer: Payer
    amount: MicroUsd


def budget_id(scope: Scope, name: str, period: Period) -> BudgetId:
    """One budget for each: `team:vision:month`, `server:month`, `job:<id>`, which has no month."""
    words = (scope, name, period) if scope is not Scope.JOB else (scope, name)
    return BudgetId(":".join(word for word in words if word))
