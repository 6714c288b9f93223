"""Quotas: what counts against them, what is in use, and what a plan does about it."""

from dataclasses import replace
from typing import Any

import pytest

from crucible.core import spread, whynot
from crucible.core.check import check_proposal
from crucible.core.crew_plan import Held, more
from crucible.core.cycle import Placement, Plan, Shape, within_quotas
from crucible.core.offers import OfferTable
from crucible.core.plan import Question, propose
from crucible.core.proposal import Rule
from crucible.core.quota import freed, in_use
from crucible.model.errors import InvariantBroken
from crucible.model.ids import TaskId
from crucible.model.offer import Fabric, Market, Offer, Target
from crucible.model.quota import Holding, Measure, Quota
from crucible.model.spec import Execution, JobSpec, Mode
from crucible.model.sweep import Search, Sweep
from making import an_offer
from market import BOOK, NOW, a_job, a_price, a_table, a_type

P5, P4 = a_type("p5.48xlarge"), a_type("p4.24xlarge")
G5 = a_type("g5.xlarge", 1, fabric=Fabric.STANDARD)
PRICES = [a_price("p5.48xlarge", 20), a_price("p4.24xlarge", 30), a_price("p5.48xlarge", 9, Market.SPOT)]


def p_quota(most: int, used: int = 0, market: Market | None = Market.ON_DEMAND) -> Quota:
    return Quota(
        provider="aws", region="r1", most=most, used=used, market=market, families=("p",), measure=Measure.CPUS
    )


def a_market(*quotas: Quota) -> OfferTable:
    return replace(a_table([P5, P4, G5], [*PRICES, a_price("g5.xlarge", 1)], hazard=0.01), quotas=quotas)


def asked(spec: JobSpec) -> Question:
    return Question(spec=spec, now=NOW, enabled=frozenset({"aws"}))


@pytest.mark.parametrize(
    ("families", "name", "is_one"),
    [
        ((), "p5.48xlarge", True),
        (("p",), "p5.48xlarge", True),
        (("g", "gr", "vt"), "gr6.4xlarge", True),
        (("t",), "trn1.2xlarge", False),
        (("i",), "inf2.xlarge", False),
        (("d",), "dl1.24xlarge", False),
    ],
)
def test_a_family_is_the_letters_that_a_name_begins_with(families: tuple[str, ...], name: str, is_one: bool) -> None:
    quota = Quota(provider="aws", most=1, families=families)
    assert quota.holds_for("aws", "r1", Market.SPOT, name) is is_one


def test_an_offer_of_which_one_gang_passes_the_quota_is_refused_by_name() -> None:
    table = a_market(p_quota(192, used=128))
    made = propose(asked(a_job()), table, BOOK)
    check_proposal(made, a_job(), NOW)
    (refused,) = [one for one in made.refusals if one.rule is Rule.QUOTA]
    assert made.chosen is None and refused.count == 2
    assert refused.reason == ("needs 96 vCPUs, 64 are left of the quota aws/r1 on-demand p*: 192 vCPUs (128 in use)")


def test_a_quota_of_one_market_leaves_the_other_alone() -> None:
    spec = a_job(allow_spot=True)
    made = propose(asked(spec), a_market(p_quota(0)), BOOK)
    check_proposal(made, spec, NOW)
    assert made.chosen is not None and made.chosen.first.market is Market.SPOT


def test_what_is_known_of_no_quota_is_not_refused() -> None:
    assert propose(asked(a_job()), a_market(), BOOK).chosen is not None
    elsewhere = Quota(provider="gcp", most=0)
    assert propose(asked(a_job()), a_market(elsewhere), BOOK).chosen is not None


def test_why_not_names_the_quota() -> None:
    (told,) = whynot.explain(asked(a_job()), "p4.24xlarge", a_market(p_quota(90)), BOOK)
    assert told.rule is Rule.QUOTA and "90 are left of the quota aws/r1 on-demand p*: 90 vCPUs" in told.reason


def test_if_nobody_used_it_a_quota_would_be_whole() -> None:
    emptied = a_market(p_quota(192, used=192)).emptied
    assert propose(asked(a_job()), emptied, BOOK).chosen is not None


def test_a_plan_that_passes_a_quota_is_found_out() -> None:
    made = propose(asked(a_job()), a_market(p_quota(96)), BOOK)
    assert made.chosen is not None
    (part,) = made.chosen.parts
    full = replace(part.listing, quotas=(p_quota(96, used=1),))
    with pytest.raises(InvariantBroken, match="quota"):
        check_proposal(replace(made, chosen=replace(made.chosen, parts=(replace(part, listing=full),))), a_job(), NOW)


# --- what is in use ---------------------------------------------------------------------------------------


def held(machines: int, name: str = "p5.48xlarge", market: Market = Market.ON_DEMAND, region: str = "r1") -> Holding:
    return Holding("aws", region, name, market, machines)


def test_what_is_held_is_in_use() -> None:
    some = [held(2), held(1, "g5.xlarge"), held(5, market=Market.SPOT), held(7, region="r2"), held(3, "p9.unheard-of")]
    table = a_market()
    assert [one.used for one in in_use([p_quota(960)], some, table)] == [192]
    machines = Quota(provider="aws", most=50, families=("p",))
    assert [one.used for one in in_use([machines], some, table)] == [17]
    gpus = Quota(provider="aws", region="r1", most=50, measure=Measure.GPUS)
    assert [one.left for one in in_use([gpus], some, table)] == [0]


def test_whoever_holds_machines_plans_as_if_they_were_not_there() -> None:
    (free,) = freed([p_quota(192, used=192)], [held(1)], a_market())
    assert (free.used, free.left) == (96, 96)
    (lowered,) = freed([p_quota(50, used=192)], [held(2)], a_market())
    assert lowered.left == 192  # nobody has to give back what runs


# --- many tasks -------------------------------------------------------------------------------------------


def tasks(count: int) -> JobSpec:
    spec = replace(a_job(1, hours=1.0), execution=Execution(mode=Mode.MULTI_TASK))
    return replace(spec, sweep=Sweep(method=Search.RANDOM, count=count))


def g_quota(most: int, used: int = 0) -> Quota:
    return Quota(provider="aws", region="r1", most=most, used=used, families=("g",))


def test_many_tasks_keep_what_is_left_of_the_quotas_of_the_table() -> None:
    made = spread.propose_tasks(asked(tasks(12)), 12, a_market(g_quota(8, used=2)), BOOK)
    check_proposal(made, tasks(12), NOW)
    assert made.chosen is not None
    assert sum(part.count for part in made.chosen.parts if part.listing.instance_type == "g5.xlarge") <= 6


def crew(machines: int, **changes: Any) -> Held:
    fields: dict[str, Any] = dict(
        offer="aws/r1/a/g5.xlarge/on-demand", machines=machines, seats=1, price=1_000_000, busy=machines
    )
    return Held(**{**fields, **changes})


def test_a_crew_buys_what_its_own_machines_leave_of_a_quota() -> None:
    table = a_market(g_quota(5, used=3), p_quota(0), p_quota(0, market=Market.SPOT))
    made = more(asked(tasks(12)), 12, [crew(3)], table, BOOK)
    assert [(part.listing.instance_type, part.count) for part in made.buy] == [("g5.xlarge", 2)]
    full = a_market(g_quota(3, used=3), p_quota(0), p_quota(0, market=Market.SPOT))
    assert more(asked(tasks(12)), 12, [crew(3)], full, BOOK).buy == ()


# --- one cycle --------------------------------------------------------------------------------------------


def bought(name: str, count: int = 1) -> Placement:
    offer: Offer = an_offer(1, target=Target("aws", "r1", "vm"), instance_type="g5.xlarge", cpus=4)
    return Placement(TaskId(name), Shape(count, 1), (), offer, count)


def test_purchases_of_one_cycle_share_a_quota() -> None:
    made = Plan((bought("a"), bought("b", 3), bought("c"), bought("d")), ())
    kept = within_quotas(made, [g_quota(5, used=2)])
    assert [one.task_id for one in kept.placements] == ["a", "c", "d"]
    assert [(one.task_id, one.reason) for one in kept.unplaced] == [
        ("b", "waits: others are using up the quota aws/r1 g*: 5 machines (2 in use)")
    ]
    assert within_quotas(made, ()) == made
