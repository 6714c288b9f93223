"""Machines for tasks that are under way: bought as they are needed, given back when they are not."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from crucible.core.crew_plan import Held, Scaling, more
from crucible.core.offers import OfferTable
from crucible.core.plan import Question
from crucible.core.relaunch import Limit
from crucible.model.ids import OfferId
from crucible.model.offer import Target
from crucible.model.quota import Quota
from crucible.model.spec import Execution, JobSpec, Mode, Strategy
from crucible.model.sweep import Search, Sweep
from crucible.model.units import MicroUsd
from making import an_offer
from market import BOOK, NOW, a_job, a_price, a_table, a_type, dollars

ONE, FOUR = a_type("one", 1), a_type("four", 4)
AT_TWO = OfferId("aws/r1/a/one/on-demand")
TABLE = a_table([ONE], [a_price("one", 2)])
# Setting up a machine takes an hour, and is paid for.
SLOW = replace(TABLE, sellers=replace(TABLE.sellers, start_s=TABLE.sellers.start_s + 3600.0))


def a_sweep(**limits: Any) -> JobSpec:
    job = a_job(1, hours=2.0, **limits)
    tried = Sweep(method=Search.RANDOM, count=100)
    return replace(job, sweep=tried, execution=Execution(mode=Mode.MULTI_TASK))


def asked(left: int, *held: Held, table: OfferTable = TABLE, spec: JobSpec | None = None, **more_of_it: Any) -> Scaling:
    question = Question(spec=spec or a_sweep(), now=NOW, enabled=frozenset({"aws", "onprem", "local"}))
    return more(question, left, held, table, BOOK, **more_of_it)


def ones(machines: int, busy: int = 0, **changes: Any) -> Held:
    fields: dict[str, Any] = {"offer": AT_TWO, "machines": machines, "seats": 1, "price": dollars(2), "busy": busy}
    return Held(**{**fields, **changes})


def bought(made: Scaling) -> list[tuple[str, int]]:
    return [(part.listing.id, part.count) for part in made.buy]


def test_what_is_missing_is_bought() -> None:
    made = asked(5, ones(2, busy=2))
    assert bought(made) == [(AT_TWO, 3)] and made.keep == (2,) and made.why_not is None
    assert bought(asked(5)) == [(AT_TWO, 5)]


def test_nothing_is_bought_while_there_are_seats() -> None:
    made = asked(3, ones(3, busy=2))
    assert made == Scaling(keep=(3,))


def test_machines_go_when_fewer_tasks_are_left_than_seats() -> None:
    assert asked(2, ones(5, busy=1)).keep == (2,)
    assert asked(0, ones(5, busy=1)).keep == (1,)
    assert asked(0, ones(5)).keep == (0,)


def test_the_dearest_machines_go_first() -> None:
    assert asked(2, ones(2, price=dollars(3)), ones(2)).keep == (0, 2)


def test_what_runs_a_task_stays_however_dear_it_is() -> None:
    made = asked(2, ones(2, price=dollars(30), busy=1), ones(2))
    assert made.keep == (1, 1)


def test_a_machine_with_more_seats_counts_for_more() -> None:
    table = a_table([ONE, FOUR], [a_price("one", 2), a_price("four", 5)])
    four = Held(offer=OfferId("aws/r1/a/four/on-demand"), machines=1, seats=4, price=dollars(5), busy=1)
    assert bought(asked(6, four, table=table)) == [(AT_TWO, 2)]


def test_what_was_refused_just_now_is_not_asked_for_again() -> None:
    table = a_table([ONE], [a_price("one", 2), a_price("one", 3, region="r2")])
    row = table.row_of(AT_TWO)
    resting = replace(table, cooling={row: "no capacity"})
    assert bought(asked(2, table=resting)) == [("aws/r2/a/one/on-demand", 2)]


def test_own_machines_that_are_all_taken_leave_tasks_waiting_and_say_so() -> None:
    target = Target("onprem", "dc1", "vm")
    own = an_offer(1, free=0, target=target, stock="own", id="own/1")
    table = a_table([], [], live=[own])
    held = Held(offer=OfferId("own/1"), machines=2, seats=1, price=MicroUsd(0), busy=2)
    made = asked(5, held, table=table)
    assert made.buy == () and made.keep == (2,)
    assert made.why_not is not None and "free" in made.why_not


def test_more_of_them_is_bought_as_far_as_there_is_room() -> None:
    own = an_offer(1, free=2, target=Target("onprem", "dc1", "vm"), stock="own", id="own/1")
    made = asked(7, table=a_table([], [], live=[own]))
    assert bought(made) == [("own/1", 2)]
    assert made.why_not == "7 tasks need 5 more GPUs of own than are free"


def test_this_computer_is_not_bought_twice() -> None:
    local = an_offer(0, target=Target("local", "local", "local"), stock=None, free=None, cpus=4, id="local/0")
    spec = replace(a_sweep(), resources=replace(a_sweep().resources, gpus=0, cpus=2))
    table = a_table([], [], live=[local])
    assert bought(asked(10, table=table, spec=spec)) == [("local/0", 1)]
    held = Held(offer=OfferId("local/0"), machines=1, seats=2, price=MicroUsd(0), busy=1)
    assert asked(10, held, table=table, spec=spec).buy == ()


def test_no_more_tasks_at_a_time_than_allowed() -> None:
    spec = a_sweep()
    spec = replace(spec, execution=replace(spec.execution, parallelism=3))
    assert bought(asked(10, ones(1, busy=1), spec=spec)) == [(AT_TWO, 2)]
    assert asked(10, ones(3, busy=3), spec=spec).buy == ()


def test_quotas_count_what_is_held() -> None:
    made = asked(10, ones(2, busy=2), quotas=[Quota(provider="aws", most=5)])
    assert bought(made) == [(AT_TWO, 3)]
    assert made.why_not == "the quota aws: 5 machines is 5 too low for 10 tasks"


# --- time and money ---------------------------------------------------------------------------------------


def test_machines_that_are_in_time_are_enough() -> None:
    """Three waves fit: ten tasks need four machines."""
    spec = a_sweep(deadline=NOW + timedelta(hours=7))
    assert asked(10, ones(4, busy=4), table=SLOW, spec=spec).buy == ()
    assert bought(asked(10, ones(2, busy=2), table=SLOW, spec=spec)) == [(AT_TWO, 2)]


def test_tasks_that_have_run_for_a_while_need_no_more_machines() -> None:
    """Once a machine more was bought before every end of a wave: the time until the deadline held a wave less."""
    spec = a_sweep(deadline=NOW + timedelta(hours=5.1))
    assert bought(asked(10, ones(4, busy=4), table=SLOW, spec=spec)) == [(AT_TWO, 1)]
    assert asked(10, ones(4, busy=4, ahead_h=1.9), table=SLOW, spec=spec).buy == ()


def test_a_deadline_that_comes_near_buys_more() -> None:
    late, soon = (a_sweep(deadline=NOW + timedelta(hours=h)) for h in (20.5, 5.5))
    few, many = (asked(10, ones(1, busy=1), table=SLOW, spec=spec) for spec in (late, soon))
    assert few.buy == () and bought(many) == [(AT_TWO, 4)]


def test_less_money_buys_fewer_machines() -> None:
    """Setting up costs an hour each: with little left, fewer machines work longer."""
    rich = asked(4, table=SLOW, spec=a_sweep(budget=dollars(24)))
    poor = asked(4, table=SLOW, spec=a_sweep(budget=dollars(20.1)))
    assert bought(rich) == [(AT_TWO, 4)] and bought(poor) == [(AT_TWO, 2)]


def test_a_job_that_has_not_begun_waits_until_its_limits_can_be_kept() -> None:
    made = asked(10, spec=a_sweep(budget=dollars(5)))
    assert made.buy == () and made.why_not is not None
    assert made.why_not == "all 10 tasks together cost $40.00 at least, $35.00 too much"


def test_a_job_that_has_begun_is_late_rather_than_over_its_budget() -> None:
    spec = a_sweep(deadline=NOW + timedelta(hours=1), budget=dollars(100))
    made = asked(10, spec=spec, has_begun=True)
    assert bought(made) == [(AT_TWO, 10)] and made.given_up == (Limit.DEADLINE,)


def test_a_job_whose_budget_is_gone_goes_on_as_cheaply_as_it_can() -> None:
    made = asked(10, ones(2, busy=2), table=SLOW, spec=a_sweep(budget=dollars(1)), has_begun=True)
    assert made.buy == () and made.keep == (2,) and made.given_up == (Limit.BUDGET,)


def test_half_done_tasks_are_half_paid() -> None:
    """Once the budget was given up though what is left of it was enough."""
    spec = a_sweep(budget=dollars(4))
    made = asked(2, ones(2, busy=2, ahead_h=1.0), spec=spec, has_begun=True)
    assert made == Scaling(keep=(2,))


def test_machines_that_are_not_for_sale_any_more_work_on() -> None:
    made = asked(5, ones(2, busy=2, offer=OfferId("aws/r9/a/gone/on-demand")))
    assert made.keep == (2,) and bought(made) == [(AT_TWO, 3)]


def test_only_what_is_enabled_is_bought() -> None:
    types = [ONE, a_type("uno", 1, provider="gcp")]
    table = a_table(types, [a_price("one", 2), a_price("uno", 1, provider="gcp")])
    assert bought(asked(2, table=table)) == [(AT_TWO, 2)]


def test_own_first_uses_what_it_holds_of_its_own() -> None:
    own = an_offer(1, free=1, target=Target("onprem", "dc1", "vm"), stock="own", id="own/1")
    spec = a_sweep(strategy=Strategy.OWN_FIRST)
    made = asked(4, ones(1, busy=1), table=a_table([ONE], [a_price("one", 2)], live=[own]), spec=spec)
    assert sorted(bought(made)) == [(AT_TWO, 2), ("own/1", 1)]
