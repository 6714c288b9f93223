"""What a refusal means for the next purchase."""

from dataclasses import replace
from datetime import timedelta

import pytest

from crucible.core import plan
from crucible.core.cooling import cooldown, cooled, is_resting, rests
from crucible.core.plan import Question
from crucible.model.change import Change
from crucible.model.errors import CredentialsRejected, NoCapacity, OrderRejected, ProviderError, QuotaReached, Scope
from crucible.model.lease import LeasePhase
from crucible.model.ledger import Cooldown
from crucible.model.offer import Market, Target
from crucible.model.policy import Policy
from crucible.model.spec import JobSpec, Strategy
from making import TARGET, a_lease, an_offer, an_order
from market import BOOK, NOW, a_job, a_price, a_table, a_type

TABLE = a_table(
    [a_type("p4d"), a_type("p5")],
    [
        a_price("p4d", 30.0),
        a_price("p4d", 31.0, zone="b"),
        a_price("p4d", 32.0, region="r2"),
        a_price("p4d", 10.0, Market.SPOT),
        a_price("p5", 50.0),
    ],
    hazard=0.001,
)
ORDER = an_order(target=Target("aws", "r1", "vm"), zone="a", instance_type="p4d")


def marked(one: Cooldown) -> set[str]:
    return {str(TABLE.id_of(row)) for row in cooled(TABLE, [one]).cooling}


@pytest.mark.parametrize(
    "error, expected",
    [
        (NoCapacity("sold out"), {"aws/r1/a/p4d/on-demand"}),
        (QuotaReached("no more", scope=Scope.REGION), {"aws/r1/a/p4d/on-demand", "aws/r1/b/p4d/on-demand"}),
        (OrderRejected("malformed"), {"aws/r1/a/p4d/on-demand"}),
        (CredentialsRejected("expired"), {str(TABLE.id_of(row)) for row in range(len(TABLE))}),
        (ProviderError("odd"), {"aws/r1/a/p4d/on-demand"}),
    ],
)
def test_a_refusal_speaks_of_as_much_as_it_says(error: ProviderError, expected: set[str]) -> None:
    assert marked(cooldown(ORDER, error, NOW, Policy())) == expected


def test_a_spot_refusal_says_nothing_about_machines_on_demand() -> None:
    spot = an_order(target=ORDER.target, zone="a", instance_type="p4d", is_spot=True)
    assert marked(cooldown(spot, NoCapacity("sold out"), NOW, Policy())) == {"aws/r1/a/p4d/spot"}


def test_what_is_malformed_is_asked_for_again_later_than_what_is_sold_out() -> None:
    soon = cooldown(ORDER, NoCapacity("sold out"), NOW, Policy())
    later = cooldown(ORDER, OrderRejected("malformed"), NOW, Policy())
    assert NOW < soon.until < later.until


def test_the_next_best_is_bought_and_the_plan_says_why_the_best_was_not() -> None:
    spec = a_job(strategy=Strategy.CHEAPEST, allow_spot=False)
    best = bought(spec)
    assert best == "aws/r1/a/p4d/on-demand"
    refused = cooldown(ORDER, NoCapacity("InsufficientInstanceCapacity in r1a"), NOW, Policy())
    table = cooled(TABLE, [refused])
    assert bought(spec, refused) == "aws/r1/b/p4d/on-demand"
    made = plan.propose(question(spec), table, BOOK)
    (said,) = [one.reason for one in made.refusals if one.rule.code == "sold_out"]
    assert said.startswith("InsufficientInstanceCapacity in r1a; asked again after")


def test_nothing_is_bought_where_it_is_not_enabled() -> None:
    spec = a_job(strategy=Strategy.CHEAPEST, allow_spot=False)
    found = plan.purchase(Question(spec=spec, now=NOW, enabled=frozenset({"aws/r2"})), TABLE, BOOK)
    assert found is not None and found.first.id == "aws/r2/a/p4d/on-demand" and found.is_enabled
    assert plan.purchase(Question(spec=spec, now=NOW, enabled=frozenset({"gcp"})), TABLE, BOOK) is None


def test_a_job_is_not_refused_because_everything_was_refused_a_moment_ago() -> None:
    everything = Cooldown(provider="aws", until=NOW + timedelta(minutes=3), reason="no credentials")
    spec = a_job(allow_spot=False)
    table = cooled(TABLE, [everything])
    assert plan.purchase(question(spec), table, BOOK) is None
    assert plan.purchase(question(spec), table.emptied, BOOK) is not None


def question(spec: JobSpec) -> Question:
    return Question(spec=spec, now=NOW, enabled=frozenset({"aws"}))


def bought(spec: JobSpec, *refused: Cooldown) -> str | None:
    found = plan.purchase(question(spec), cooled(TABLE, refused), BOOK)
    return None if found is None else str(found.first.id)


def taken(**lease: object) -> Change:
    before = a_lease(active=True)
    return Change(before, replace(before, phase=LeasePhase.CLOSED, **{"was_taken": True, **lease}), ())  # type: ignore[arg-type]


def test_a_kind_that_was_taken_back_rests_and_the_next_goes_to_another_zone_or_market() -> None:
    spot = an_order(target=ORDER.target, zone="a", instance_type="p4d", is_spot=True)
    (rest,) = rests([taken(reason="Server.SpotInstanceTermination")], [spot], NOW, Policy())
    assert marked(rest) == {"aws/r1/a/p4d/spot"}
    assert rest.until == NOW + Policy().taken_cooldown
    assert rest.reason == "a machine was taken back there: Server.SpotInstanceTermination"
    spec = a_job(strategy=Strategy.CHEAPEST, allow_spot=True)
    assert bought(spec) == "aws/r1/a/p4d/spot"
    assert bought(spec, rest) == "aws/r1/a/p4d/on-demand"


def test_nothing_rests_for_a_machine_on_demand_or_one_that_was_given_back() -> None:
    spot = an_order(target=ORDER.target, zone="a", instance_type="p4d", is_spot=True)
    assert rests([taken()], [ORDER], NOW, Policy()) == ()
    assert rests([taken(was_taken=False)], [spot], NOW, Policy()) == ()
    known = replace(a_lease(active=True), was_taken=True)
    assert rests([Change(known, replace(known, phase=LeasePhase.CLOSED), ())], [spot], NOW, Policy()) == ()


@pytest.mark.parametrize(
    ("spoken_of", "is_meant"),
    [
        ({}, True),
        ({"region": TARGET.region, "zone": "east", "instance_type": "x1", "market": "on_demand"}, True),
        ({"zone": "west"}, False),
        ({"instance_type": "x2"}, False),
        ({"market": "spot"}, False),
        ({"provider": "another"}, False),
    ],
)
def test_what_was_refused_is_not_on_sale_where_a_seller_counts_its_own_stock(
    spoken_of: dict[str, str], is_meant: bool
) -> None:
    fields = {"provider": TARGET.provider, "region": "", "zone": "", "instance_type": "", "market": "", **spoken_of}
    refused = Cooldown(**fields, until=NOW + timedelta(minutes=1), reason="no such GRES")
    assert is_resting(an_offer(1, zone="east"), [refused]) is is_meant
