"""The independent check of proposals can fail: every claim it makes is broken once, by a doctored proposal."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from crucible.core.check import check_proposal
from crucible.core.offers import Listing, make_table, with_live
from crucible.core.perf import make_book
from crucible.core.plan import Question, propose
from crucible.core.proposal import Candidate, Part, Proposal
from crucible.model.errors import InvariantBroken
from crucible.model.offer import Market, Target
from crucible.model.spec import Constraints, JobSpec, Resources, Strategy
from crucible.model.units import MicroUsd
from making import NOW, an_offer

SPEC = JobSpec(
    command=("true",),
    resources=Resources(gpus=4, gpu_memory_gib=40, cpu_memory_gib=32, cpus=4, max_gpus_per_node=4, estimated_hours=10),
    constraints=Constraints(
        budget=MicroUsd(100_000_000),
        deadline=NOW + timedelta(hours=20),
        min_reliability=0.9,
        providers=("fake", "onprem"),
        max_price_per_hour=MicroUsd(8_000_000),
    ),
)
OFFERS = [
    an_offer(4, price=4_000_000),
    an_offer(4, price=5_000_000, target=Target("onprem", "dc1", "vm"), stock="own", gpu="A100-80GB"),
]


def proposal(spec: JobSpec = SPEC) -> Proposal:
    question = Question(spec=spec, now=NOW, enabled=frozenset({"fake"}))
    return propose(question, with_live(make_table((), ()), OFFERS, NOW), make_book((), ()))


def chosen(**changes: Any) -> Callable[[Proposal], Proposal]:
    return lambda made: replace(made, chosen=replace(made.chosen, **changes))  # type: ignore[type-var]


def listed(**changes: Any) -> Callable[[Proposal], Proposal]:
    """The chosen offer is another than it was."""

    def doctored(made: Proposal) -> Proposal:
        assert made.chosen is not None
        part = made.chosen.parts[0]
        other: Listing = replace(part.listing, **changes)
        return replace(made, chosen=replace(made.chosen, parts=(replace(part, listing=other),)))

    return doctored


def split(made: Proposal) -> Proposal:
    """Half of the gang in another region, at the same price."""
    assert made.chosen is not None
    listing = made.chosen.parts[0].listing
    there = replace(listing, target=replace(listing.target, region="elsewhere"))
    parts = (Part(listing, 1), Part(there, 1))
    return replace(made, chosen=replace(made.chosen, parts=parts, price_per_hour=MicroUsd(8_000_000)))


def like(made: Proposal, **changes: Any) -> Candidate:
    assert made.chosen is not None
    return replace(made.chosen, **changes)


DOCTORED: dict[str, list[Callable[[Proposal], Proposal]]] = {
    "no part is empty": [lambda made: replace(made, chosen=like(made, parts=(Part(like(made).first, 0),)))],
    "every price is known": [listed(price=None)],
    "the price per hour is that of the machines": [chosen(price_per_hour=MicroUsd(1)), listed(price=MicroUsd(1))],
    "as many GPUs as were asked for": [listed(gpus=3)],
    "every task has one place": [lambda made: replace(made, tasks=2)],
    "no GPU is sold twice": [listed(free_gpus=3)],
    "GPU memory fits": [listed(gpu_memory_gib=39.0)],
    "memory and CPUs fit": [listed(memory_gib=31.0), listed(cpus=3.0)],
    "no machine has more GPUs than allowed": [listed(gpus=8)],
    "spot only where it is allowed": [listed(market=Market.SPOT)],
    "only providers asked for": [listed(target=Target("aws", "r1", "vm"))],
    "one cluster stands in one region of one provider": [split],
    "no dearer per hour than allowed": [
        lambda made: replace(
            made,
            chosen=like(
                made,
                parts=(Part(replace(like(made).first, price=MicroUsd(9_000_000)), 1),),
                price_per_hour=MicroUsd(9_000_000),
            ),
        )
    ],
    "a probability": [chosen(reliability=1.1)],
    "as reliable as asked for": [chosen(reliability=0.89)],
    "ordered": [chosen(p50_h=12.0, p90_h=11.0), chosen(cost_p50=MicroUsd(50_000_000), cost_p90=MicroUsd(40_000_000))],
    "more likely in time than not": [chosen(p50_h=21.0, p90_h=22.0)],
    "more likely within the budget than not": [chosen(cost_p50=MicroUsd(110_000_000), cost_p90=MicroUsd(120_000_000))],
    "every offer is either refused or feasible": [lambda made: replace(made, feasible=made.feasible + 1)],
    "only what is enabled is bought": [lambda made: replace(made, runnable=like(made, is_enabled=False))],
    "alternatives are alternatives to something": [
        lambda made: replace(made, chosen=None, alternatives=(like(made),)),
    ],
    "no alternative is beaten": [
        lambda made: replace(made, alternatives=(like(made, cost=MicroUsd(50)), like(made, cost=MicroUsd(60)))),
    ],
    "the choice is not beaten": [lambda made: replace(made, alternatives=(like(made, cost=MicroUsd(1)),))],
}


def test_what_the_planner_says_passes() -> None:
    made = proposal()
    assert made.chosen is not None and made.chosen.first.target.provider == "fake"
    check_proposal(made, SPEC, NOW)


@pytest.mark.parametrize(("claim", "doctor"), [(claim, one) for claim, several in DOCTORED.items() for one in several])
def test_a_doctored_proposal_is_caught(claim: str, doctor: Callable[[Proposal], Proposal]) -> None:
    with pytest.raises(InvariantBroken, match=claim):
        check_proposal(doctor(proposal()), SPEC, NOW)


@pytest.mark.parametrize("where", ["alternatives", "others", "runnable"])
def test_whatever_is_shown_is_checked(where: str) -> None:
    made = proposal()
    broken = like(made, reliability=2.0)
    shown = broken if where == "runnable" else (broken,)
    with pytest.raises(InvariantBroken, match="a probability"):
        check_proposal(replace(made, **{where: shown}), SPEC, NOW)


@pytest.mark.parametrize("strategy", [Strategy.OWN_FIRST, Strategy.RELIABLE])
def test_a_choice_may_be_beaten_by_what_lacks_the_wish(strategy: Strategy) -> None:
    limits = replace(SPEC.constraints, strategy=strategy)
    made = proposal(replace(SPEC, constraints=limits))
    assert made.chosen is not None and made.chosen.first.target.provider == "onprem"
    assert made.alternatives[0].first.target.provider == "fake"
    check_proposal(made, replace(SPEC, constraints=limits), NOW)


def test_a_proposal_without_hours_is_checked_too() -> None:
    spec = replace(SPEC, resources=replace(SPEC.resources, estimated_hours=None))
    made = proposal(spec)
    assert made.chosen is not None and made.chosen.cost is None
    check_proposal(made, spec, NOW)
    with pytest.raises(InvariantBroken, match="GPU memory fits"):
        check_proposal(listed(gpu_memory_gib=1.0)(made), spec, NOW)
