"""Budgets as people ask for them: to see where they stand, to set, change and remove them. A change is written with its
line in the audit log, and the keeper looks at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from crucible.core import rights
from crucible.core.budget import Standing
from crucible.engine.budgets import CHANGED
from crucible.engine.context import Context
from crucible.engine.purse import Purse
from crucible.model.account import Principal
from crucible.model.audit import AuditEntry
from crucible.model.budget import THRESHOLDS, Budget, BudgetId, Period, Scope, budget_id
from crucible.model.errors import Forbidden, InvalidRequest, NotFound, StaleVersion
from crucible.model.ids import JobId, UserId
from crucible.model.job import Job
from crucible.model.spec import WhenSpent
from crucible.model.units import MicroUsd


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What somebody wants a budget to be; None: as it is, or as is usual."""

    limit: MicroUsd | None = None
    when_spent: WhenSpent | None = None
    thresholds: tuple[float, ...] | None = None
    version: int | None = None  # that they have seen


class BudgetDesk:
    def __init__(self, context: Context) -> None:
        self._context = context

    async def all(self, who: Principal) -> Sequence[Standing]:
        """Those that cover them or what they manage; own ones of jobs only while these cost money."""
        found = await Purse(self._context).standings()
        return [one for one in found if await self._sees(who, one.budget)]

    async def find(self, who: Principal, id_: BudgetId) -> Standing:
        """A foreign one does not exist. The own budget of a job is found by `job:<id>`."""
        purse = Purse(self._context)
        known = {one.budget.id: one for one in await purse.standings()}
        standing = known.get(id_) or await self._own(purse, id_)
        if standing is None or not await self._sees(who, standing.budget):
            raise NotFound(f"there is no budget {id_}; `crucible budget ls` shows those that concern you")
        return standing

    async def create(self, who: Principal, scope: Scope, name: str, period: Period, wanted: Wanted) -> Standing:
        job = await self._check_subject(who, scope, name, period)
        now = self._context.clock.now()
        if wanted.limit is None:
            raise InvalidRequest("a budget needs a limit", field="limit_usd")
        budget = Budget(
            id=budget_id(scope, name, period),
            scope=scope,
            name=name,
            period=period,
            limit=wanted.limit,
            when_spent=wanted.when_spent or (WhenSpent.PAUSE if job is None else job.when_spent),
            thresholds=THRESHOLDS if wanted.thresholds is None else wanted.thresholds,
            starts_at=None if scope is Scope.JOB or period is Period.MONTH else now,
            created_by=who.user_id,
            created_at=now,
        )
        await self._check_rights(who, budget)
        return await self._save(who, budget, "budget.create")

    async def change(self, who: Principal, id_: BudgetId, wanted: Wanted) -> Standing:
        """Raises StaleVersion if it is not what they have seen. The own budget of a job becomes one that was set."""
        before = (await self.find(who, id_)).budget
        await self._check_rights(who, before)
        stored = {one.id for one in await self._context.store.budgets()}
        if wanted.version not in (None, before.version):
            raise StaleVersion(f"the budget {id_} was changed meanwhile; look at it again")
        after = replace(
            before,
            limit=before.limit if wanted.limit is None else wanted.limit,
            when_spent=wanted.when_spent or before.when_spent,
            thresholds=before.thresholds if wanted.thresholds is None else wanted.thresholds,
            version=before.version + 1 if id_ in stored else 0,
        )
        return await self._save(who, after, "budget.change", {"was_microusd": before.limit})

    async def remove(self, who: Principal, id_: BudgetId) -> None:
        """Jobs that it has paused go on."""
        budget = (await self.find(who, id_)).budget
        await self._check_rights(who, budget)
        audit = await self._audit(who, budget, "budget.remove", {})
        await self._context.store.remove_budget(id_, audit)
        self._context.hub.notify(CHANGED)

    # --- whose ----------------------------------------------------------------------------------------------------

    async def _check_subject(self, who: Principal, scope: Scope, name: str, period: Period) -> Job | None:
        """The job, if it is for one. Raises NotFound, also for a team or project that they have nothing to do with."""
        if scope is Scope.SERVER:
            return None
        if scope is Scope.JOB:
            if period is not Period.ONCE:
                raise InvalidRequest("the budget of a job is for all of it: it has no period", field="period")
            job = await self._context.store.job(JobId(name))
            if not rights.sees_job(who, job):
                raise NotFound(f"there is no job {name}")
            return job
        if scope is Scope.USER:
            if rights.is_admin(who):  # nobody else may, whoever there is
                await self._context.store.user(UserId(name))
            return None
        team: str | None = name
        if scope is Scope.PROJECT:
            team = await self._team_of(name)
        elif name not in {team.name for team in await self._context.store.teams()}:
            team = None
        if team is None or rights.role_in(who, team) is None:
            raise NotFound(f"there is no {scope} {name}")
        return None

    async def _sees(self, who: Principal, budget: Budget) -> bool:
        match budget.scope:
            case Scope.SERVER:
                return True  # it covers everybody
            case Scope.USER:
                return rights.is_admin(who) or budget.name == who.user_id
            case Scope.JOB:
                return rights.sees_job(who, await self._context.store.job(JobId(budget.name)))
            case Scope.TEAM | Scope.PROJECT:
                return rights.role_in(who, await self._team(budget)) is not None

    async def _check_rights(self, who: Principal, budget: Budget) -> None:
        team = await self._team(budget)
        match budget.scope:
            case Scope.SERVER | Scope.USER:
                if not rights.is_admin(who):
                    raise Forbidden(f"only an admin may set the budget of a {budget.scope}")
            case Scope.JOB:
                if not rights.changes_job(who, await self._context.store.job(JobId(budget.name))):
                    raise Forbidden("only its owner, managers of its team and admins may set the budget of a job")
            case Scope.TEAM | Scope.PROJECT:
                rights.require_manager(who, team or budget.name)

    async def _team(self, budget: Budget) -> str | None:
        if budget.scope is Scope.PROJECT:
            return await self._team_of(budget.name)
        return budget.name if budget.scope is Scope.TEAM else None

    async def _team_of(self, project: str) -> str | None:
        found = {one.name: one.team for one in await self._context.store.projects()}
        return found.get(project)

    # --- writing --------------------------------------------------------------------------------------------------

    async def _own(self, purse: Purse, id_: BudgetId) -> Standing | None:
        scope, _, name = id_.partition(":")
        if scope != Scope.JOB:
            return None
        try:
            job = await self._context.store.job(JobId(name))
        except NotFound:
            return None
        return next((one for one in await purse.covering(job) if one.budget.id == id_), None)

    async def _save(self, who: Principal, budget: Budget, action: str, more: dict[str, Any] | None = None) -> Standing:
        audit = await self._audit(who, budget, action, more or {})
        await self._context.store.save_budget(budget, audit)
        self._context.hub.notify(CHANGED)
        return await self.find(who, budget.id)

    async def _audit(self, who: Principal, budget: Budget, action: str, more: dict[str, Any]) -> AuditEntry:
        facts = {"limit_microusd": budget.limit, "when_spent": budget.when_spent, "thresholds": budget.thresholds}
        return AuditEntry(
            at=self._context.clock.now(),
            user_id=who.user_id,
            token_id=who.token_id,
            action=action,
            subject=f"budget:{budget.id}",
            team=await self._team(budget),
            details={**facts, **more},
        )
