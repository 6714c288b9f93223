"""Many equal tasks: the least cost, within stocks, shares of regions, budget and price per hour."""

from dataclasses import replace
from typing import Any

import pytest

from crucible.core import spread
from crucible.core.proposal import Rule
from crucible.engine.plan_view import plan_view
from crucible.model.errors import InfeasibleJob
from crucible.model.offer import Market, Target
from crucible.model.spec import Data, Execution, JobSpec, Mode, Replication, Strategy
from making import an_offer
from market import NOW, a_job, a_price, a_table, a_type, bought, dollars, propose

ONE, FOUR = a_type("one", 1), a_type("four", 4)


def a_sweep(tasks: int, gpus: int = 1, **limits: Any) -> JobSpec:
    return replace(a_job(gpus, hours=2.0, **limits), sweep={"trials": tasks}, execution=Execution(mode=Mode.MULTI_TASK))


def test_the_number_of_tasks_is_that_of_the_sweep_or_the_shards() -> None:
    assert spread.task_count(a_job()) == 1
    assert spread.task_count(replace(a_job(), shards={"count": 16})) == 16
    for odd in ("16", 1.5, 0, -3, None):
        assert spread.task_count(replace(a_job(), shards={"count": odd})) == 1
    with pytest.raises(InfeasibleJob, match="at most 1,000,000 tasks"):
        spread.task_count(replace(a_job(), sweep={"trials": 10**30}))


def test_a_machine_with_room_runs_several() -> None:
    table = a_table([ONE, FOUR], [a_price("one", 2), a_price("four", 5)])
    made = propose(a_sweep(10), table)
    assert sorted(bought(made.chosen)) == [("aws/r1/a/four/on-demand", 2), ("aws/r1/a/one/on-demand", 2)]
    assert made.chosen is not None and made.chosen.cost == dollars(28)
    assert made.tasks == 10 and made.bound == 0.0


def test_a_large_machine_that_is_dearer_than_hundreds_of_small_offers_is_still_found() -> None:
    """What is cheapest for one task is not all that is needed for many."""
    prices = [a_price("one", 2 + i / 1000, zone=f"z{i:03}") for i in range(300)]
    table = a_table([ONE, FOUR], [*prices, a_price("four", 4)])
    assert bought(propose(a_sweep(8), table).chosen) == [("aws/r1/a/four/on-demand", 2)]


def test_own_machines_are_used_as_far_as_they_go() -> None:
    own = an_offer(1, free=3, target=Target("onprem", "dc1", "vm"), stock="own")
    made = propose(a_sweep(5), a_table([ONE], [a_price("one", 2)], live=[own]))
    assert bought(made.chosen) == [("aws/r1/a/one/on-demand", 2), ("x/1/0", 3)] or bought(made.chosen) == [
        ("x/1/0", 3),
        ("aws/r1/a/one/on-demand", 2),
    ]
    assert made.chosen is not None and made.chosen.cost == dollars(8)


def test_two_offers_of_one_stock_do_not_sell_it_twice() -> None:
    target = Target("onprem", "dc1", "vm")
    offers = [an_offer(1, free=3, target=target, stock="own", id=name) for name in ("a", "b")]
    made = propose(a_sweep(5), a_table([ONE], [a_price("one", 2)], live=offers))
    assert made.chosen is not None
    assert sum(part.count for part in made.chosen.parts if part.listing.target == target) == 3


def test_tasks_are_spread_over_three_regions_if_that_is_wished() -> None:
    prices = [a_price("one", 2 + i, region=f"r{i}") for i in range(5)]
    made = propose(a_sweep(9), a_table([ONE], prices), Strategy.SPREAD)
    assert sorted(bought(made.chosen)) == [(f"aws/r{i}/a/one/on-demand", 3) for i in range(3)]
    assert len(bought(propose(a_sweep(9), a_table([ONE], prices)).chosen)) == 1


def test_a_machine_may_have_more_room_than_a_region_may_have_tasks() -> None:
    prices = [a_price("four", 5, region=f"r{i}") for i in range(3)]
    made = propose(a_sweep(9), a_table([FOUR], prices), Strategy.SPREAD)
    assert sorted(count for _, count in bought(made.chosen)) == [1, 1, 1]


def test_with_fewer_regions_each_has_a_larger_share() -> None:
    prices = [a_price("one", 2 + i, region=f"r{i}") for i in range(2)]
    made = propose(a_sweep(9), a_table([ONE], prices), Strategy.SPREAD)
    assert sorted(count for _, count in bought(made.chosen)) == [4, 5]
    assert propose(a_sweep(9), a_table([ONE], prices[:1]), Strategy.SPREAD).chosen is not None


def test_the_budget_is_for_all_of_them() -> None:
    table = a_table([ONE], [a_price("one", 2)])
    assert propose(a_sweep(10, budget=dollars(40)), table).chosen is not None
    made = propose(a_sweep(10, budget=dollars(39.99)), table)
    assert made.chosen is None and made.runnable is None and made.others == ()
    assert made.refusals[-1].rule is Rule.BUDGET
    assert made.refusals[-1].reason == "all 10 tasks together would cost more than $39.99"


def test_the_price_per_hour_is_for_all_of_them() -> None:
    """The cheapest in all may have the higher price per hour."""
    slow = a_type("slow", 1, gpu="T4", gpu_memory_gib=16.0)
    table = a_table([ONE, slow], [a_price("one", 2), a_price("slow", 1)])
    spec = a_sweep(10, max_price_per_hour=dollars(10))
    assert bought(propose(spec, table).chosen) == [("aws/r1/a/slow/on-demand", 10)]
    made = propose(a_sweep(10, max_price_per_hour=dollars(9.99)), table)
    assert made.chosen is None
    assert made.refusals[-1].reason == "all 10 tasks at a time would cost more than $9.99 per hour"


def test_no_room_for_all_has_a_reason() -> None:
    """Once a plan without a choice and without a refusal."""
    own = an_offer(1, free=3, target=Target("onprem", "dc1", "vm"), stock="own")
    made = propose(a_sweep(5), a_table([], [], live=[own]))
    view = plan_view(made, NOW, 0.0)
    assert made.chosen is None and "5 tasks need 5 GPUs at a time, 3 are free" in view["reason"]


def test_a_shard_moves_its_part_of_the_data_and_a_trial_all_of_it() -> None:
    types = [a_type("one", 1, provider="gcp")]
    table = a_table([*types, ONE], [a_price("one", 2, provider="gcp"), a_price("one", None)])
    data = Data(dataset="s3://b/d", size_gib=100.0, region="r1", replication_policy=Replication.PRE_STAGE)
    mode = Execution(mode=Mode.MULTI_TASK)
    shards = replace(a_job(1, hours=2.0, data=data), shards={"count": 10}, execution=mode)
    trials = replace(a_job(1, hours=2.0, data=data), sweep={"trials": 10}, execution=mode)
    few, many = propose(shards, table).chosen, propose(trials, table).chosen
    assert few is not None and many is not None
    assert many.egress == pytest.approx(10 * few.egress, rel=1e-6)


def test_what_each_provider_would_cost_is_told() -> None:
    types = [ONE, a_type("uno", 1, provider="gcp")]
    table = a_table(types, [a_price("one", 2), a_price("uno", 3, provider="gcp")])
    made = propose(a_sweep(4), table)
    assert [(one.first.target.provider, one.why) for one in made.others] == [("gcp", "+50% cost")]


def test_risky_machines_count_with_what_they_cost_in_the_end() -> None:
    table = a_table([ONE], [a_price("one", 1, Market.SPOT), a_price("one", 1.02)], hazard=0.5)
    made = propose(a_sweep(4, allow_spot=True), table)
    assert made.chosen is not None and made.chosen.first.market is Market.ON_DEMAND
