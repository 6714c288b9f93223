"""Different tasks planned as one: they share own machines, quotas and money."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest

from crucible.core import mixed
from crucible.core.check_tasks import check_mixture
from crucible.core.mixed import Mixture, propose_mixed
from crucible.core.offers import OfferTable
from crucible.core.plan import Question
from crucible.model.errors import InvariantBroken
from crucible.model.offer import Target
from crucible.model.quota import Quota
from crucible.model.spec import Constraints, Execution, JobSpec, Mode, Strategy
from crucible.model.sweep import Search, Sweep
from crucible.model.units import MicroUsd
from making import an_offer
from market import BOOK, NOW, a_job, a_price, a_table, a_type, bought, dollars

ONE, FOUR = a_type("one", 1), a_type("four", 4)
TABLE = a_table([ONE, FOUR], [a_price("one", 2), a_price("four", 5)])


def tasks(count: int, gpus: int = 1, hours: float = 2.0, **limits: Any) -> tuple[JobSpec, int]:
    job = replace(a_job(gpus, hours=hours, **limits), execution=Execution(mode=Mode.MULTI_TASK))
    return replace(job, sweep=Sweep(method=Search.RANDOM, count=count)), count


def planned(
    *groups: tuple[JobSpec, int], table: OfferTable = TABLE, quotas: Any = (), strategy: Any = None, **limits: Any
) -> Mixture:
    asked = JobSpec(constraints=Constraints(**limits))
    question = Question(spec=asked, now=NOW, enabled=frozenset({"aws"}), strategy=strategy)
    made = propose_mixed(question, groups, table, BOOK, quotas)
    check_mixture(made, groups, asked.constraints, NOW, quotas)
    return made


def test_each_group_has_machines_of_its_own() -> None:
    made = planned(tasks(1), tasks(2, gpus=4))
    assert [bought(one) for one in made.placed] == [[("aws/r1/a/one/on-demand", 1)], [("aws/r1/a/four/on-demand", 2)]]
    assert made.cost == dollars(4 + 20) and made.price_per_hour == dollars(12) and made.bound == 0.0


def test_own_machines_go_to_whom_they_save_most() -> None:
    """One own machine: eight dollars for the long task, two for the short one."""
    own = an_offer(1, free=1, target=Target("onprem", "dc1", "vm"), stock="own")
    made = planned(tasks(1, hours=1.0), tasks(1, hours=4.0), table=a_table([ONE], [a_price("one", 2)], live=[own]))
    assert [one.first.target.provider for one in made.placed] == ["aws", "onprem"]
    assert made.cost == dollars(2)


def test_a_quota_goes_to_whom_it_saves_most() -> None:
    table = a_table([ONE], [a_price("one", 2), a_price("one", 3, region="r2")])
    made = planned(
        tasks(1, hours=1.0), tasks(1, hours=4.0), table=table, quotas=[Quota(provider="aws", region="r1", most=1)]
    )
    assert [one.first.target.region for one in made.placed] == ["r2", "r1"]


def test_the_budget_is_for_all_groups() -> None:
    assert planned(tasks(1), tasks(1), budget=dollars(8)).why_not is None
    made = planned(tasks(1), tasks(1), budget=dollars(7.99))
    assert made.placed == () and made.why_not is not None and "budget" in made.why_not


def test_each_group_keeps_its_own_limits_as_well() -> None:
    assert planned(tasks(2, budget=dollars(8)), tasks(1)).why_not is None
    assert planned(tasks(2, budget=dollars(7)), tasks(1)).why_not is not None


def test_with_little_to_spend_per_hour_tasks_follow_one_another() -> None:
    made = planned(tasks(4), tasks(4), max_price_per_hour=dollars(8))
    assert made.why_not is None and made.price_per_hour <= dollars(8)
    assert max(part.waves for one in made.placed for part in one.parts) == 2


def test_until_a_deadline_machines_are_used_again() -> None:
    slow = replace(TABLE, sellers=replace(TABLE.sellers, start_s=TABLE.sellers.start_s + 3600.0))
    made = planned(tasks(4, gpus=4), table=slow, deadline=NOW + timedelta(hours=5.5))
    assert [(part.count, part.waves) for part in made.placed[0].parts] == [(2, 2)]


def test_own_machines_come_first_for_every_group() -> None:
    target = Target("onprem", "dc1", "vm")
    own = an_offer(1, free=2, target=target, stock="own", price_per_hour=MicroUsd(9_000_000))
    table = a_table([ONE], [a_price("one", 2)], live=[own])
    made = planned(tasks(1), tasks(1), table=table, strategy=Strategy.OWN_FIRST)
    assert {one.first.target for one in made.placed} == {target}


def test_a_group_that_nothing_fits_is_named() -> None:
    made = planned(tasks(1), tasks(1, gpus=400))
    assert made.why_not is not None and made.why_not.startswith("group 2: ")


def test_no_groups_are_no_plan() -> None:
    assert planned().why_not == "there are no tasks"


def test_many_groups_are_rounded_and_the_distance_is_told() -> None:
    prices = [a_price("one", 2 + i / 7, region=f"r{i}") for i in range(12)]
    groups = [tasks(2, hours=1.0 + i / 3) for i in range(15)]
    quotas = [Quota(provider="aws", region=f"r{i}", most=3) for i in range(12)]
    exact = planned(*groups, table=a_table([ONE], prices), quotas=quotas)
    with patch.object(mixed, "SMALL", 1), patch.object(mixed, "SEARCHED", 10), patch.object(mixed, "BESIDE", 1):
        near = planned(*groups, table=a_table([ONE], prices), quotas=quotas)
    assert exact.cost is not None and near.cost is not None
    assert exact.cost <= near.cost <= exact.cost / (1 - near.bound) * (1 + 1e-9) and near.bound < 0.03


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        ("every group has a place", {"placed": ()}),
        ("the price per hour is that of the machines", {"price_per_hour": MicroUsd(1)}),
        ("the cost is that of all groups", {"cost": MicroUsd(1)}),
        ("what cannot be planned is not placed", {"why_not": "no"}),
    ],
)
def test_a_doctored_mixture_is_caught(claim: str, changes: Any) -> None:
    groups = [tasks(2), tasks(3)]
    made = replace(planned(*groups), **changes)
    with pytest.raises(InvariantBroken, match=claim):
        check_mixture(made, groups, Constraints(), NOW)
