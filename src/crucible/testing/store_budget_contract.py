"""Budgets, and what they are held against. A part of StoreContract."""

from dataclasses import replace
from datetime import timedelta

import pytest

from crucible.model.audit import AuditEntry
from crucible.model.budget import KEEPER, Budget, BudgetId, Payer, Period, Scope
from crucible.model.errors import Conflict, NotFound, StaleVersion
from crucible.model.ids import JobId, TokenId, UserId
from crucible.model.job import Desired, JobDesired
from crucible.model.lease import LeaseClosed, OrderUnanswered
from crucible.model.ledger import ChargeKind, Entry, Posting
from crucible.model.spec import WhenSpent
from crucible.model.units import MicroUsd
from crucible.ports.accounts import AuditQuery
from crucible.ports.store import Store
from crucible.testing.specimens import NOW, running, step, submitted
from crucible.testing.store_money_contract import COMPUTE, HOUR, START, a_posting, a_stretch, closed, write

MINE = Budget(
    id=BudgetId("team:vision:month"),
    scope=Scope.TEAM,
    name="vision",
    period=Period.MONTH,
    limit=MicroUsd(500_000_001),
    thresholds=(0.5, 0.875),
    created_by=UserId("ann"),
    created_at=NOW,
)
SAID = AuditEntry(at=NOW, user_id=UserId("ann"), token_id=TokenId("t"), action="budget.create", subject="budget:x")


class BudgetContract:
    async def test_budgets_are_remembered_and_listed_by_id(self, store: Store) -> None:
        assert tuple(await store.budgets()) == ()
        other = replace(MINE, id=BudgetId("server:once"), scope=Scope.SERVER, name="", starts_at=START)
        for one in (MINE, other):
            await store.save_budget(one, SAID)
        assert tuple(await store.budgets()) == (other, MINE)
        assert await store.budget(MINE.id) == MINE

    async def test_a_second_budget_of_the_same_kind_is_refused(self, store: Store) -> None:
        await store.save_budget(MINE, SAID)
        with pytest.raises(Conflict):
            await store.save_budget(replace(MINE, limit=MicroUsd(1)), SAID)
        assert await store.budget(MINE.id) == MINE

    async def test_a_change_follows_on_what_was_seen(self, store: Store) -> None:
        await store.save_budget(MINE, SAID)
        more = replace(MINE, limit=MicroUsd(7), when_spent=WhenSpent.STOP, thresholds=(), version=1)
        await store.save_budget(more, SAID)
        assert await store.budget(MINE.id) == more
        with pytest.raises(StaleVersion):
            await store.save_budget(replace(more, limit=MicroUsd(8)), SAID)
        assert await store.budget(MINE.id) == more

    async def test_each_change_has_its_line_in_the_log_and_what_fails_has_none(self, store: Store) -> None:
        await store.save_budget(MINE, SAID)
        with pytest.raises(Conflict):
            await store.save_budget(MINE, SAID)
        await store.remove_budget(MINE.id, replace(SAID, action="budget.remove"))
        with pytest.raises(NotFound):
            await store.remove_budget(MINE.id, SAID)
        assert tuple(await store.budgets()) == ()
        lines = await store.audit_lines(AuditQuery())
        assert sorted(entry.action for _, entry in lines) == ["budget.create", "budget.remove"]

    async def test_what_costs_money_is_at_stake(self, store: Store) -> None:
        family = await running(store, team="vision", budget_microusd=MicroUsd(9), when_spent=WhenSpent.PAUSE)
        await submitted(store, "idle")
        usage = a_stretch(family)
        await write(store, usage)
        stakes = await store.stakes()
        (spender,) = stakes.spenders
        assert (spender.id, spender.root, spender.payer.team) == (family.job.id, family.job.id, "vision")
        assert (spender.budget, spender.when_spent, spender.runs) == (9, WhenSpent.PAUSE, True)
        assert stakes.usages == (usage,) and stakes.seen == {family.leases[0].machine_id}
        assert {lease.id for lease in stakes.leases} == {lease.id for lease in family.leases}
        assert [order.id for order in stakes.orders] == [family.order.id] and stakes.wanted == ()

    async def test_an_order_that_nobody_has_answered_is_at_stake_when_its_leases_are_given_up(
        self, store: Store
    ) -> None:
        family = await running(store)
        gone = [step(lease, LeaseClosed(NOW, "over"))[1] for lease in family.leases]
        await store.commit(gone, label="close")
        assert (await store.stakes()).orders == ()
        _, asked = step(family.order, OrderUnanswered(NOW, "no reply"))
        await store.commit([asked], label="ask")
        assert [order.id for order in (await store.stakes()).orders] == [family.order.id]

    async def test_those_that_the_keeper_holds_are_at_stake_with_what_they_bought_last(self, store: Store) -> None:
        family = await running(store)
        by_people = await running(store, "j2")
        for one, by in ((family, KEEPER), (by_people, UserId("ann"))):
            _, held = step(one.job, JobDesired(NOW, Desired.HOLD, by, "held"))
            gone = [step(lease, LeaseClosed(NOW, "over"))[1] for lease in one.leases]
            await store.commit([held, *gone], label="hold")
        stakes = await store.stakes()
        (spender,) = stakes.spenders
        assert (spender.id, spender.desired_by, spender.desired_at) == (family.job.id, KEEPER, NOW)
        assert [order.id for order in stakes.wanted] == [family.order.id]

    async def test_a_workflow_comes_with_the_jobs_of_its_steps(self, store: Store) -> None:
        await submitted(store, "flow", budget_microusd=MicroUsd(5))
        family = await running(store, "step", parent=JobId("flow"), step=0)
        await write(store, closed(a_stretch(family)), a_posting(family.job.id))
        stakes = await store.stakes()
        assert {(one.id, one.root) for one in stakes.spenders} == {("flow", "flow"), ("step", "flow")}
        assert await store.posted_of([JobId("flow"), JobId("step")]) == {"flow": 4_500_000, "step": 4_500_000}

    async def test_what_is_posted_to_young_jobs_counts_by_who_pays(self, store: Store) -> None:
        mine = await running(store, created_at=START)
        theirs = await running(store, "j2", created_at=START, user_id=UserId("bob"))
        await write(store, a_posting(mine.job.id), a_posting(theirs.job.id, "p2", 7))
        payers = [Payer(one.job.user_id, one.job.team, one.job.project) for one in (mine, theirs)]
        found = {posted.payer: posted.amount for posted in await store.posted_since(START - HOUR)}
        assert found == dict(zip(payers, (4_500_000, 7), strict=True))

    async def test_a_stretch_across_the_border_is_split_there(self, store: Store) -> None:
        """What its own seconds before the border cost falls before it; the rest, corrections too, after it."""
        family = await running(store, created_at=START - timedelta(days=40))
        usage = a_stretch(family)
        early, late = START - HOUR, START + 2 * HOUR
        before = Posting(
            id="p0",
            at=early,
            memo="earlier",
            job_id=family.job.id,
            kind=ChargeKind.COMPUTE,
            entries=(Entry(f"job:{family.job.id}", MicroUsd(11)), Entry("provider:fake", MicroUsd(-11))),
        )
        await write(store, before, a_posting(family.job.id, "p1", 4_500_001), closed(usage, amount=4_500_001))
        border = START + timedelta(minutes=20)
        third = COMPUTE.amount // 3
        assert [one.amount for one in await store.posted_since(border)] == [4_500_001 - third]
        assert [one.amount for one in await store.posted_since(START + HOUR)] == [1]
        assert [one.amount for one in await store.posted_since(early)] == [4_500_001 + 11]
        assert tuple(await store.posted_since(late)) == ()
