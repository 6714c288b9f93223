"""What could be saved: the best other way of each kind, and only where it is worth it."""

from dataclasses import replace
from typing import Any

import pytest

from crucible.core.offers import Listing
from crucible.core.proposal import Candidate, Part, Proposal
from crucible.core.savings import Move, Standing, ideas, move_to, standing_of, ways_of
from crucible.model.ids import JobId
from crucible.model.offer import Market, Target
from crucible.model.spec import Strategy
from crucible.model.units import MicroUsd

NOW = Standing(
    job_id=JobId("j"),
    name="train",
    provider="aws",
    region="us-east-1",
    instance_type="p4d",
    is_spot=False,
    cost_left=MicroUsd(50_000_000),
    share_left=0.5,
)


def a_way(
    cost: int, provider: str = "aws", region: str = "us-east-1", kind: str = "p4d", spot: bool = False
) -> Candidate:
    market = Market.SPOT if spot else Market.ON_DEMAND
    known: dict[str, Any] = dict.fromkeys(Listing.__dataclass_fields__, None)
    target = Target(provider, region, "vm")
    listing = Listing(**{**known, "target": target, "instance_type": kind, "market": market, "quotas": ()})
    given: dict[str, Any] = dict.fromkeys(Candidate.__dataclass_fields__, None)
    return Candidate(**{**given, "parts": (Part(listing, 1),), "cost": MicroUsd(cost), "is_enabled": True})


def a_proposal(*ways: Candidate) -> Proposal:
    return Proposal(
        strategy=Strategy.CHEAPEST,
        tasks=1,
        chosen=ways[0],
        alternatives=ways[1:],
        others=(),
        runnable=None,
        refusals=(),
        considered=1,
        feasible=1,
        bound=0.0,
        notes=(),
    )


@pytest.mark.parametrize(
    ("way", "move"),
    [
        (a_way(1, provider="gcp", spot=True), Move.PROVIDER),
        (a_way(1, region="us-west-2", spot=True), Move.REGION),
        (a_way(1, spot=True, kind="p5"), Move.SPOT),
        (a_way(1, kind="p5"), Move.MACHINE),
        (a_way(1), None),
    ],
)
def test_a_move_is_named_after_the_greatest_difference(way: Candidate, move: Move | None) -> None:
    assert move_to(NOW, way) is move


def test_the_best_of_each_kind_is_told_for_what_is_left_of_the_job() -> None:
    ways = a_way(60_000_000, spot=True), a_way(40_000_000, spot=True), a_way(80_000_000, provider="gcp"), a_way(1)
    found = ideas(NOW, ways_of(a_proposal(*ways)))
    assert [(one.move, one.cost, one.saves) for one in found] == [
        (Move.SPOT, 20_000_000, 30_000_000),
        (Move.PROVIDER, 40_000_000, 10_000_000),
    ]


def test_what_saves_next_to_nothing_is_not_told() -> None:
    assert ideas(NOW, [a_way(97_000_000, spot=True), a_way(120_000_000, provider="gcp")]) == ()


def test_a_job_that_waits_stands_where_it_would_run() -> None:
    stands = standing_of(a_way(7, provider="gcp", spot=True), JobId("j"), "n")
    assert stands is not None and (stands.provider, stands.is_spot, stands.cost_left) == ("gcp", True, 7)
    assert standing_of(replace(a_way(7), cost=None), JobId("j"), "n") is None


def test_what_can_be_bought_comes_before_what_cannot() -> None:
    elsewhere = replace(a_way(1_000_000, provider="gcp"), is_enabled=False)
    (found,) = ideas(NOW, [elsewhere, a_way(20_000_000, provider="azure")])
    assert found.way.first.target.provider == "azure"
