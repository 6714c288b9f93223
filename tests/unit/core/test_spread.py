"""Many equal tasks: the least cost, within stocks, shares of regions, budget and price per hour."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from crucible.core import spread
from crucible.core.check import check_proposal
from crucible.core.offers import with_live
from crucible.core.plan import Question
from crucible.core.proposal import Rule
from crucible.engine.plan_view import plan_view
from crucible.model.errors import InfeasibleJob
from crucible.model.offer import Market, Target
from crucible.model.quota import Measure, Quota
from crucible.model.shards import Shards
from crucible.model.spec import Data, Execution, JobSpec, Mode, Replication, Resources, Strategy
from crucible.model.sweep import Evaluation, Parameter, Search, Sweep
from crucible.model.units import MicroUsd
from making import an_offer
from market import BOOK, NOW, a_job, a_price, a_table, a_type, bought, dollars, propose

ONE, FOUR = a_type("one", 1), a_type("four", 4)


def a_sweep(tasks: int, gpus: int = 1, **limits: Any) -> JobSpec:
    return replace(
        a_job(gpus, hours=2.0, **limits),
        sweep=Sweep(method=Search.RANDOM, count=tasks),
        execution=Execution(mode=Mode.MULTI_TASK),
    )


def a_question(spec: JobSpec) -> Question:
    return Question(spec=spec, now=NOW, enabled=frozenset({"aws"}), strategy=Strategy.CHEAPEST)


GRID = Sweep(parameters=(Parameter(name="a", values=(1, 2, 3)), Parameter(name="b", least=0, most=4, is_whole=True)))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, 1),
        ({"sweep": GRID}, 15),
        ({"sweep": replace(GRID, count=7)}, 7),
        ({"sweep": replace(GRID, count=70)}, 15),
        ({"sweep": Sweep(method=Search.LIST, trials=({"a": 1}, {"a": 2}))}, 2),
        ({"sweep": Sweep(method=Search.TPE, count=30)}, 30),
        ({"evaluation": Evaluation(models=("a", "b"), datasets=("x", "y", "z"))}, 6),
        ({"shards": Shards(count=16)}, 16),
        ({"shards": Shards(count=16, size=5)}, 4),
        ({"shards": Shards(items=("a", "b", "c"), size=2)}, 2),
        ({"shards": Shards(glob="*.jpg")}, 1),
    ],
)
def test_the_number_of_tasks_is_that_of_trials_pairs_or_shards(asked: Any, expected: int) -> None:
    assert spread.task_count(replace(a_job(), **asked)) == expected


def test_too_many_tasks_are_refused() -> None:
    with pytest.raises(InfeasibleJob, match="at most 100,000 tasks"):
        spread.task_count(replace(a_job(), sweep=Sweep(method=Search.RANDOM, count=10**30)))


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
    assert made.refusals[-1].reason == "all 10 tasks together cost $40.00 at least, $0.01 too much"


def test_the_price_per_hour_is_for_all_of_them() -> None:
    """The cheapest in all may have the higher price per hour."""
    slow = a_type("slow", 1, gpu="T4", gpu_memory_gib=16.0)
    table = a_table([ONE, slow], [a_price("one", 2), a_price("slow", 1)])
    spec = a_sweep(10, max_price_per_hour=dollars(10))
    assert bought(propose(spec, table).chosen) == [("aws/r1/a/slow/on-demand", 10)]
    in_two = propose(a_sweep(10, max_price_per_hour=dollars(9.99)), table).chosen
    assert in_two is not None and [(part.count, part.tasks, part.waves) for part in in_two.parts] == [(5, 10, 2)]
    late = NOW + timedelta(hours=3)
    made = propose(a_sweep(10, max_price_per_hour=dollars(9.99), deadline=late), table)
    assert made.chosen is None and made.refusals[-1].rule is Rule.PRICE_LIMIT
    assert "10 tasks cost $10.00 per hour at least, $0.01 too much" in made.refusals[-1].reason


def test_own_machines_that_are_few_run_tasks_one_after_another() -> None:
    own = an_offer(1, free=3, target=Target("onprem", "dc1", "vm"), stock="own")
    made = propose(a_sweep(5), a_table([], [], live=[own])).chosen
    assert made is not None and [(part.count, part.tasks, part.waves) for part in made.parts] == [(3, 5, 2)]
    assert made.expected_h == pytest.approx(4.0)


def test_no_room_in_time_has_a_reason() -> None:
    """Once a plan without a choice and without a refusal."""
    own = an_offer(1, free=3, target=Target("onprem", "dc1", "vm"), stock="own")
    late = NOW + timedelta(hours=3)
    made = propose(a_sweep(5, deadline=late), a_table([], [], live=[own]))
    view = plan_view(made, NOW, 0.0)
    assert made.chosen is None and "5 tasks need 2 more GPUs of own than are free" in view["reason"]
    assert "5 tasks take 4.0 h at least, 1.0 h longer than there is" in view["reason"]


def test_a_computer_that_nobody_counts_is_one_machine() -> None:
    """Once two hundred times the same computer."""
    local = an_offer(0, target=Target("local", "local", "local"), stock=None, free=None, cpus=4)
    spec = replace(a_sweep(10), resources=Resources(cpus=2, estimated_hours=1.0))
    made = propose(spec, a_table([], [], live=[local])).chosen
    assert made is not None and [(part.count, part.tasks, part.waves) for part in made.parts] == [(1, 10, 5)]


def test_machines_that_a_seller_counts_are_no_more_than_it_has() -> None:
    host = an_offer(1, target=Target("onprem", "dc1", "vm"), stock=None, free=None, free_machines=2, all_machines=2)
    made = propose(a_sweep(5), a_table([ONE], [a_price("one", 2)], live=[host])).chosen
    assert made is not None and {part.listing.target.provider: part.count for part in made.parts} == {
        "onprem": 2,
        "aws": 3,
    }


# --- waves ------------------------------------------------------------------------------------------------


def test_machines_work_until_the_deadline() -> None:
    """Set up once: the fewer there are, the less is paid for starting them."""
    table = a_table([ONE], [a_price("one", 2)])
    slow_start = replace(table, sellers=replace(table.sellers, start_s=table.sellers.start_s + 1800.0))
    made = propose(a_sweep(10, deadline=NOW + timedelta(hours=7)), slow_start).chosen
    assert made is not None and [(part.count, part.tasks, part.waves) for part in made.parts] == [(4, 10, 3)]
    assert made.cost == dollars(4 * 0.5 * 2 + 10 * 2 * 2) and made.expected_h == pytest.approx(6.5)


def test_so_many_tasks_at_a_time_as_the_spec_says() -> None:
    table = a_table([ONE, FOUR], [a_price("one", 2), a_price("four", 5)])
    spec = a_sweep(12)
    spec = replace(spec, execution=replace(spec.execution, parallelism=3))
    made = propose(spec, table).chosen
    assert made is not None and sum(-(-part.tasks // part.waves) for part in made.parts) <= 3
    assert made.expected_h == pytest.approx(8.0)  # four waves


def test_tasks_that_share_no_machines_each_pay_for_their_own() -> None:
    """A cluster of its own for every task: a machine is set up for each of them."""
    table = a_table([ONE, FOUR], [a_price("one", 2), a_price("four", 5)])
    table = replace(table, sellers=replace(table.sellers, start_s=table.sellers.start_s + 1800.0))
    spec = replace(a_sweep(4, deadline=NOW + timedelta(hours=6)), execution=Execution())
    made = propose(spec, table).chosen
    assert made is not None and made.cost == dollars(4 * 2.5 * 2)
    assert [(part.listing.instance_type, part.tasks) for part in made.parts] == [("one", 4)]


def test_machines_that_may_be_taken_away_have_fewer_waves_before_a_deadline() -> None:
    table = a_table([ONE], [a_price("one", 1, Market.SPOT)], hazard=0.2)
    made = propose(a_sweep(40, allow_spot=True, deadline=NOW + timedelta(hours=21), min_reliability=0.9), table).chosen
    assert made is not None and made.reliability >= 0.9
    assert max(part.waves for part in made.parts) < 10


# --- limits and strategies --------------------------------------------------------------------------------


def test_quotas_send_tasks_elsewhere() -> None:
    table = a_table([ONE], [a_price("one", 2), a_price("one", 3, region="r2")])
    quotas = [Quota(provider="aws", region="r1", most=4)]
    made = spread.propose_tasks(a_question(a_sweep(10)), 10, table, BOOK, quotas)
    check_proposal(made, a_sweep(10), NOW, quotas)
    assert sorted(bought(made.chosen)) == [("aws/r1/a/one/on-demand", 4), ("aws/r2/a/one/on-demand", 6)]


def test_a_quota_that_is_in_the_way_is_named() -> None:
    table = a_table([ONE], [a_price("one", 2)])
    spec = a_sweep(10, deadline=NOW + timedelta(hours=3))
    made = spread.propose_tasks(a_question(spec), 10, table, BOOK, [Quota(provider="aws", region="r1", most=4)])
    assert made.chosen is None
    assert "the quota aws/r1: 4 machines is 6 too low for 10 tasks" in made.refusals[-1].reason


@pytest.mark.parametrize(
    ("measure", "most", "machines"),
    [(Measure.MACHINES, 2, 2), (Measure.GPUS, 8, 2), (Measure.CPUS, 96, 1)],
)
def test_quotas_count_machines_gpus_or_cpus(measure: Measure, most: int, machines: int) -> None:
    table = a_table([FOUR], [a_price("four", 5)])
    quotas = [Quota(provider="aws", most=most, measure=measure, market=Market.ON_DEMAND, families=("four",))]
    made = spread.propose_tasks(a_question(a_sweep(16)), 16, table, BOOK, quotas)
    assert made.chosen is not None and made.chosen.nodes == machines


def test_several_limits_that_only_give_way_together_are_all_named() -> None:
    own = an_offer(1, free=1, target=Target("onprem", "dc1", "vm"), stock="own")
    spec = a_sweep(10, deadline=NOW + timedelta(hours=3), budget=dollars(1), providers=("onprem", "gcp"))
    table = a_table([a_type("uno", 1, provider="gcp")], [a_price("uno", 3, provider="gcp")], live=[own])
    made = spread.propose_tasks(a_question(spec), 10, table, BOOK, [Quota(provider="gcp", most=1)])
    assert made.chosen is None and made.refusals[-1].reason


def test_own_machines_come_first_and_the_cloud_helps_out() -> None:
    """Even where the cloud is cheaper than what one's own machines are said to cost."""
    target = Target("onprem", "dc1", "vm")
    own = an_offer(1, free=3, target=target, stock="own", price_per_hour=MicroUsd(9_000_000))
    table = a_table([ONE], [a_price("one", 2)], live=[own])
    made = propose(a_sweep(5), table, Strategy.OWN_FIRST).chosen
    assert made is not None and {p.listing.target.provider: p.count for p in made.parts} == {"onprem": 3, "aws": 2}
    cheapest = propose(a_sweep(5), table, Strategy.CHEAPEST).chosen
    assert cheapest is not None and {p.listing.target.provider: p.count for p in cheapest.parts} == {"aws": 5}


def test_the_fastest_waits_for_no_second_wave() -> None:
    fast = a_type("fast", 1, gpu="H100-SXM")
    table = a_table([ONE, fast], [a_price("one", 1), a_price("fast", 9)])
    table = replace(table, sellers=replace(table.sellers, start_s=table.sellers.start_s + 600.0))
    own = an_offer(1, free=2, target=Target("onprem", "dc1", "vm"), stock="own")
    made = propose(a_sweep(4), with_live(table, [own], NOW), Strategy.FASTEST).chosen
    assert made is not None and all(part.waves == 1 for part in made.parts)


def test_a_shard_moves_its_part_of_the_data_and_a_trial_all_of_it() -> None:
    types = [a_type("one", 1, provider="gcp")]
    table = a_table([*types, ONE], [a_price("one", 2, provider="gcp"), a_price("one", None)])
    data = Data(dataset="s3://b/d", size_gib=100.0, region="r1", replication_policy=Replication.PRE_STAGE)
    mode = Execution(mode=Mode.MULTI_TASK)
    shards = replace(a_job(1, hours=2.0, data=data), shards=Shards(count=10), execution=mode)
    trials = replace(a_job(1, hours=2.0, data=data), sweep=Sweep(method=Search.RANDOM, count=10), execution=mode)
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
