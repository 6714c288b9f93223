"""Where a budget stands and what follows, by small examples; `property/test_budget_bound.py` has the bound."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crucible.core import budget as budgets
from crucible.core.billables import Billable, Price, before, billables, kept_back, owed, price_of, stop_time
from crucible.core.budget import Position, Stake, Standing, Verdict, covers, decide, forecast, shortage
from crucible.core.budget_words import Whom, reached, stop_notice, stopped, waits
from crucible.core.job import evolve, wish
from crucible.model.budget import KEEPER, THRESHOLDS, Budget, Payer, Period, Scope, Spender, Stakes, budget_id
from crucible.model.ids import JobId, MachineId, UserId
from crucible.model.job import Desired
from crucible.model.lease import LeasePhase, OrderPhase, SellerFacts
from crucible.model.ledger import ChargeKind, Rate, Terms, Usage
from crucible.model.policy import Policy
from crucible.model.spec import WhenSpent
from crucible.model.units import MICRO, MicroUsd
from crucible.testing.specimens import a_job, a_lease, a_task, an_order

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
POLICY = Policy()
FACTS = SellerFacts(
    idempotent_create=True,
    visibility=timedelta(seconds=60),
    boot_time=timedelta(minutes=1),
    terms=Terms(minimum_s=60),
    beside_per_hour=MicroUsd(3_600),
)
PAYER = Payer(UserId("ada"), "vision", "llama")
HORIZON_S = 20 + 180 + 30 + 1


def a_budget(limit: int = 100 * MICRO, scope: Scope = Scope.TEAM, name: str = "vision", **fields: Any) -> Budget:
    period = fields.get("period", Period.ONCE)
    given = {"period": period, "created_by": UserId("ada"), "created_at": NOW - timedelta(days=90), **fields}
    return Budget(id=budget_id(scope, name, period), scope=scope, name=name, limit=MicroUsd(limit), **given)


def a_spender(id_: str = "j1", **fields: Any) -> Spender:
    given: dict[str, Any] = {
        "id": JobId(id_),
        "root": JobId(id_),
        "payer": PAYER,
        "priority": 0,
        "created_at": NOW - timedelta(hours=1),
        "is_over": False,
        "desired": Desired.RUN,
        "desired_by": None,
        "desired_at": None,
        "budget": None,
        "when_spent": WhenSpent.STOP,
    }
    return Spender(**{**given, **fields})


def a_usage(rate: int = 3_600_000, since: datetime = NOW - timedelta(minutes=30), **fields: Any) -> Usage:
    order = an_order(a_task(a_job()))
    return Usage(
        provider=order.target.provider,
        region=order.target.region,
        machine_id=MachineId("m0"),
        order_id=order.id,
        job_id=order.job_id,
        lease_id=None,
        rate=Rate(ChargeKind.COMPUTE, MicroUsd(rate), 3600),
        from_at=since,
        **fields,
    )


def a_machine(spender: Spender | None = None, limit: int = 3_600_000, **fields: Any) -> Billable:
    """A thousandth of a dollar each second."""
    given: dict[str, Any] = {"usages": (a_usage(),), **fields}
    return Billable(spender=spender or a_spender(), facts=FACTS, limit_per_hour=MicroUsd(limit), **given)


def a_stake(id_: str, kept: int, stopped: int, priority: int = 0, age_h: int = 1, **fields: Any) -> Stake:
    given: dict[str, Any] = {"owed": MicroUsd(0), "per_hour": MicroUsd(1), "is_running": True, "is_overdue": False}
    return Stake(
        job_id=JobId(id_),
        priority=priority,
        created_at=NOW - timedelta(hours=age_h),
        kept_back=MicroUsd(kept),
        if_stopped=MicroUsd(stopped),
        **{**given, **fields},
    )


# --- periods ----------------------------------------------------------------------------------------------------


def test_a_month_is_one_of_the_calendar() -> None:
    month = a_budget(period=Period.MONTH)
    assert budgets.starts_at(month, NOW) == datetime(2026, 11, 1, tzinfo=UTC)
    assert budgets.ends_at(month, NOW) == datetime(2026, 12, 1, tzinfo=UTC)
    assert budgets.ends_at(month, datetime(2026, 12, 31, 23, 59, tzinfo=UTC)) == datetime(2027, 1, 1, tzinfo=UTC)
    assert budgets.term(month, NOW) == "2026-11"


def test_what_was_spent_before_a_budget_began_does_not_count() -> None:
    assert budgets.starts_at(a_budget(starts_at=NOW), NOW) == NOW
    assert budgets.starts_at(a_budget(), NOW) is None and budgets.ends_at(a_budget(), NOW) is None


def test_a_stretch_is_split_at_the_border_without_a_rest() -> None:
    border = NOW - timedelta(minutes=10)
    usage = a_usage(rate=1_234_567)
    earlier = before(usage, border, NOW)
    whole = owed(a_machine(usages=(usage,)), NOW, None)
    assert earlier == round(1_234_567 * 20 / 60)
    assert owed(a_machine(usages=(usage,)), NOW, border) == whole - earlier
    assert before(usage, usage.from_at, NOW) == 0 and before(usage, None, NOW) == 0


@pytest.mark.parametrize(
    ("scope", "name", "is_covered"),
    [
        (Scope.TEAM, "vision", True),
        (Scope.TEAM, "speech", False),
        (Scope.PROJECT, "llama", True),
        (Scope.USER, "ada", True),
        (Scope.USER, "bob", False),
        (Scope.SERVER, "", True),
        (Scope.JOB, "j1", True),
        (Scope.JOB, "j2", False),
    ],
)
def test_a_budget_covers_what_it_names(scope: Scope, name: str, is_covered: bool) -> None:
    assert covers(a_budget(scope=scope, name=name), PAYER, [JobId("j1")]) is is_covered


# --- one machine ------------------------------------------------------------------------------------------------


def test_a_machine_keeps_back_two_ticks_the_stop_and_the_sellers_time() -> None:
    assert stop_time(POLICY) == timedelta(minutes=3)
    assert kept_back(a_machine(), NOW, POLICY, None) == HORIZON_S * 1000


def test_one_whose_price_may_rise_keeps_back_the_most() -> None:
    """And the difference for the time in which it may have risen unheard."""
    assert kept_back(a_machine(limit=7_200_000), NOW, POLICY, None) == HORIZON_S * 2000 + 45 * 1000


def test_what_is_kept_back_melts_while_a_job_stops() -> None:
    told = NOW - timedelta(seconds=100)
    assert kept_back(a_machine(), NOW, POLICY, told) == (180 + 10 + 30 - 100 + 1) * 1000
    assert kept_back(a_machine(), NOW, POLICY, NOW - timedelta(hours=1)) == (10 + 30 + 1) * 1000
    assert kept_back(a_machine(is_leaving=True), NOW, POLICY, None) == (10 + 30 + 1) * 1000


def test_the_sellers_minimum_is_kept_back() -> None:
    hour = replace(FACTS, terms=Terms(minimum_s=3600))
    young = replace(a_machine(usages=(a_usage(since=NOW - timedelta(minutes=10)),)), facts=hour)
    assert kept_back(young, NOW, POLICY, None) == (3000 + 1) * 1000


def test_what_is_bought_is_priced_for_its_whole_stop() -> None:
    price = price_of(2, MicroUsd(3_600_000), None, FACTS, POLICY)
    assert price == Price(MicroUsd(2 * HORIZON_S * 1001), MicroUsd(2 * 600 * 1001))
    spot = price_of(1, MicroUsd(3_600_000), MicroUsd(7_200_000), FACTS, POLICY)
    assert spot.to_begin == HORIZON_S * 2001 + 45 * 1000
    assert price_of(3, MicroUsd(0), None, FACTS, POLICY) == Price()


# --- all of them ------------------------------------------------------------------------------------------------


def at_stake(**fields: Any) -> Stakes:
    given: dict[str, Any] = {"usages": (), "leases": (), "orders": (), "seen": frozenset(), "wanted": ()}
    return Stakes(spenders=(a_spender(),), **{**given, **fields})


def found(**fields: Any) -> tuple[Billable, ...]:
    order = fields["orders"][0]
    return billables(at_stake(**fields), {(order.target.provider, order.target.region): FACTS}, POLICY)


ORDER = replace(
    an_order(a_task(a_job()), count=2),
    is_spot=True,
    price_per_hour=MicroUsd(3_600_000),
    on_demand_per_hour=MicroUsd(7_200_000),
    called_at=NOW - timedelta(seconds=30),
    phase=OrderPhase.FILLED,
)
LEASES = tuple(
    replace(a_lease(ORDER, index), phase=LeasePhase.ACTIVE, machine_id=MachineId(f"m{index}")) for index in (0, 1)
)


def test_machines_that_the_books_show_cost_what_they_say_and_may_cost_what_was_agreed_to() -> None:
    usage = replace(a_usage(), order_id=ORDER.id)
    first, second = found(orders=(ORDER,), leases=LEASES, usages=(usage,), seen=frozenset({MachineId("m0")}))
    assert (first.per_hour, first.most_per_hour, first.lease_id) == (3_600_000, 7_200_000, LEASES[0].id)
    assert second.usages == () and second.since == ORDER.called_at


def test_one_that_nobody_has_seen_is_charged_from_when_it_may_have_begun() -> None:
    unseen = found(orders=(ORDER,), leases=LEASES)
    assert [owed(one, NOW, None) for one in unseen] == [30 * 2001] * 2
    late = NOW + timedelta(hours=5)
    assert owed(unseen[0], late, None) == (60 + 45) * 2001  # by then it would have been seen
    lost = replace(ORDER, phase=OrderPhase.UNKNOWN)
    assert owed(found(orders=(lost,), leases=LEASES)[0], late, None) == (5 * 3600 + 30) * 2001


def test_one_that_ended_costs_nothing_more_though_its_lease_is_open() -> None:
    assert found(orders=(ORDER,), leases=LEASES, seen=frozenset({MachineId("m0"), MachineId("m1")})) == ()


def test_an_unanswered_purchase_counts_though_its_leases_are_given_up() -> None:
    lost = replace(ORDER, phase=OrderPhase.UNKNOWN)
    assert len(found(orders=(lost,))) == 2
    assert len(found(orders=(replace(lost, called_at=None),))) == 0


def test_a_machine_that_is_listed_before_its_lease_knows_it_counts_once() -> None:
    lost = replace(ORDER, phase=OrderPhase.UNKNOWN)
    waiting = tuple(replace(lease, machine_id=None, phase=LeasePhase.REQUESTED) for lease in LEASES)
    usage = replace(a_usage(), order_id=ORDER.id)
    assert len(found(orders=(lost,), leases=waiting, usages=(usage,))) == 2


# --- what follows -----------------------------------------------------------------------------------------------


def decided(limit: int, *stakes: Stake) -> Verdict:
    return decide(Standing(a_budget(limit), Position(MicroUsd(0), stakes)))


def test_the_least_urgent_and_youngest_are_stopped_and_as_few_as_must_be() -> None:
    old, young, urgent = a_stake("old", 10, 8, age_h=3), a_stake("young", 10, 8), a_stake("urgent", 10, 8, priority=1)
    assert decided(30, old, young, urgent).stop == ()
    assert decided(29, old, young, urgent).stop == ("young",)
    assert decided(27, urgent, old, young).stop == ("young", "old")
    assert decided(1, old, urgent, young).stop == ("young", "old", "urgent")


def test_what_costs_nothing_is_not_stopped() -> None:
    assert decided(0, a_stake("free", 0, 0), a_stake("dear", 5, 4)).stop == ("dear",)


def test_a_job_that_has_had_its_time_is_cut_if_there_is_no_money_for_more() -> None:
    late = a_stake("late", 10, 10, is_running=False, is_overdue=True)
    assert decided(10, late).cut == ()
    assert decided(9, late).cut == ("late",) and decided(9, late).stop == ()


def test_the_highest_share_that_is_reached_is_told() -> None:
    standing = Standing(a_budget(100), Position(MicroUsd(81)))
    assert decide(standing).reached == 0.8
    assert decide(replace(standing, at=Position(MicroUsd(49)))).reached is None


def test_of_a_budget_of_nothing_no_share_is_spent_while_nothing_is() -> None:
    assert decide(Standing(a_budget(0), Position(MicroUsd(0)))).reached is None
    assert decide(Standing(a_budget(0), Position(MicroUsd(1)))).reached == max(THRESHOLDS)


def test_a_forecast_goes_by_what_runs() -> None:
    running = Position(MicroUsd(40), (a_stake("j", 0, 0, per_hour=MicroUsd(10)),))
    once = forecast(Standing(a_budget(100), running), NOW)
    assert (once.runs_out_at, once.at_end) == (NOW + timedelta(hours=6), None)
    month = forecast(Standing(a_budget(10_000, period=Period.MONTH), running), NOW)
    assert (month.runs_out_at, month.at_end) == (None, 40 + 12 * 24 * 10 + 12 * 10)
    assert forecast(Standing(a_budget(40), running), NOW).runs_out_at == NOW
    assert forecast(Standing(a_budget(41), Position(MicroUsd(40))), NOW).runs_out_at is None


# --- purchases --------------------------------------------------------------------------------------------------


def test_every_budget_must_pay_and_one_that_pauses_for_a_while_too() -> None:
    price = Price(MicroUsd(10), MicroUsd(5))
    pauses = Standing(a_budget(14), Position(MicroUsd(0)))
    ends = Standing(a_budget(14, when_spent=WhenSpent.STOP), Position(MicroUsd(0)))
    assert shortage([ends], price) is None
    short = shortage([ends, pauses], price)
    assert short is not None and (short.needed, short.left, short.is_final) == (15, 14, True)


def test_what_one_is_promised_the_next_cannot_have() -> None:
    standing = Standing(a_budget(20, when_spent=WhenSpent.STOP), Position(MicroUsd(0)))
    price = Price(MicroUsd(12))
    assert shortage([standing], price) is None
    short = shortage([standing.promising(price.to_begin)], price)
    assert short is not None and short.left == 8 and not short.is_final


# --- words ------------------------------------------------------------------------------------------------------


def test_what_is_said_names_the_budget_and_what_to_do() -> None:
    standing = Standing(a_budget(10 * MICRO, period=Period.MONTH), Position(MicroUsd(8_100_000)))
    short = shortage([standing], Price(MicroUsd(3 * MICRO)))
    assert short is not None
    assert waits(short) == (
        "waits: of the budget team:vision:month of $10.00 less is left this month than the $3.00 that its machines "
        "need to begin; `crucible budget top-up team:vision:month` adds to it"
    )
    assert stopped(standing.budget) == (
        "the budget team:vision:month of $10.00 pays for no more this month: paused until there is money again"
    )


def test_a_share_is_told_once_for_each_limit_and_period() -> None:
    standing = Standing(a_budget(10 * MICRO, period=Period.MONTH), Position(MicroUsd(8_100_000)))
    notice = reached(standing, 0.8, NOW, Whom("vision"))
    assert notice.key == "budget:team:vision:month:2026-11/10000000/0.8"
    assert (notice.team, notice.title) == ("vision", "80% of the budget team:vision:month is spent")


def test_that_a_job_is_stopped_concerns_its_owner_and_its_team_whosever_budget_it_is() -> None:
    for scope in (Scope.USER, Scope.PROJECT, Scope.SERVER):
        standing, job = Standing(a_budget(10, scope, "x"), Position(MicroUsd(9))), a_job(team="vision", project="cats")
        told = stop_notice(standing, job, NOW)
        assert (told.team, told.project, told.user_id, told.job_id) == ("vision", "cats", job.user_id, job.id)


# --- who holds a job --------------------------------------------------------------------------------------------


def test_a_person_may_hold_what_a_budget_has_paused() -> None:
    job = a_job()
    for event in wish(job, Desired.HOLD, KEEPER, "no money", NOW):
        job = evolve(job, event)
    assert (job.desired_by, job.desired_at) == (KEEPER, NOW)
    assert wish(job, Desired.HOLD, KEEPER, "no money", NOW) == ()
    (held,) = wish(job, Desired.HOLD, UserId("ada"), "mine", NOW)
    assert evolve(job, held).desired_by == "ada"
