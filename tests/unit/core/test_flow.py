"""Plans of workflows: steps beside their data, trees that are carried once, limits of all steps together."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from crucible.core.check_flow import check_flow
from crucible.core.flow.links import filled
from crucible.core.flow.plan import propose, study
from crucible.core.flow.proposal import FlowPlan
from crucible.core.flow.question import Flow, FlowStep
from crucible.core.flow.steps import expected
from crucible.core.offers import OfferTable, make_table
from crucible.core.perf import make_book
from crucible.core.plan import Question
from crucible.model.catalog import InstanceType, Lane, Price
from crucible.model.errors import InvariantBroken
from crucible.model.offer import Market
from crucible.model.spec import Constraints, JobSpec, Resources, Step, Strategy, When
from crucible.model.units import MicroUsd, micro_usd
from making import NOW

BOOK = make_book((), ())


def a_table(lane: float = 0.1, **prices: float) -> OfferTable:
    """One machine in each of some regions, "aws_r1" and so on, at a price."""
    named = [(name.partition("_")[0], name.partition("_")[2], usd) for name, usd in prices.items()]
    places = [f"{provider}:{region}" for provider, region, _ in named]
    return make_table(
        [
            InstanceType(provider=provider, name="one", gpu="T4", gpus=1, gpu_memory_gib=16, cpus=8, memory_gib=64)
            for provider in dict.fromkeys(provider for provider, _, _ in named)
        ],
        [
            Price(provider=provider, region=region, zone="", instance_type="one", market=Market.ON_DEMAND,
                  price=micro_usd(usd), as_of=NOW, source="test")
            for provider, region, usd in named
        ],
        lanes=[Lane(source=a, target=b, usd_per_gb=lane, gbps=8.0) for a in places for b in places if a != b],
    )  # fmt: skip


def a_step(name: str, *reads: int, hours: float = 1.0, size: float | None = None, **limits: object) -> FlowStep:
    spec = JobSpec(
        command=("x",),
        resources=Resources(gpus=1, estimated_hours=hours),
        constraints=Constraints(**limits),  # type: ignore[arg-type]
    )
    question = Question(spec=spec, now=NOW, enabled=frozenset({"aws", "gcp"}))
    return FlowStep(name=name, question=question, needs=reads, reads=reads, leaves_gib=size)


def planned(table: OfferTable, *steps: FlowStep, strategy: Strategy = Strategy.CHEAPEST, **limits: object) -> FlowPlan:
    flow = Flow(steps=steps, limits=Constraints(**limits), objective=strategy, now=NOW)  # type: ignore[arg-type]
    made = propose(study(flow, table, BOOK))
    check_flow(made, flow, table)
    return made


def homes(made: FlowPlan) -> list[str]:
    return [step.home for step in made.steps]


def test_a_step_goes_where_its_data_is_if_carrying_costs_more() -> None:
    table = a_table(aws_r1=1.0, gcp_r1=0.9)
    first = a_step("a", size=100.0, providers=("aws",))
    assert homes(planned(table, first, a_step("b", 0, hours=2.0))) == ["aws/r1", "aws/r1"]
    assert homes(planned(table, first, a_step("b", 0, hours=200.0))) == ["aws/r1", "gcp/r1"]


def test_what_several_steps_read_in_one_region_is_carried_once() -> None:
    table = a_table(aws_r1=1.0, gcp_r1=0.1)
    readers = [a_step(name, 0, hours=30.0, providers=("gcp",)) for name in "bcd"]
    made = planned(table, a_step("a", size=100.0, providers=("aws",)), *readers)
    assert [(one.source, one.target) for one in made.carried] == [("aws/r1", "gcp/r1")]
    assert made.moved == made.carried[0].cost > 0


def test_without_a_size_carrying_costs_nothing_and_a_note_says_so() -> None:
    made = planned(a_table(aws_r1=1.0, gcp_r1=0.9), a_step("a", providers=("aws",)), a_step("b", 0))
    assert homes(made) == ["aws/r1", "gcp/r1"] and made.moved == 0
    assert made.notes == ("what carrying the outputs of a costs is not counted: give output_size",)


def test_what_has_ended_stays_and_pulls_what_reads_it() -> None:
    table = a_table(aws_r1=1.0, gcp_r1=0.9)
    done = replace(a_step("a", size=100.0), home="aws/r1")
    made = planned(table, done, a_step("b", 0, hours=2.0))
    assert homes(made) == ["aws/r1", "aws/r1"]
    assert made.steps[0].candidate is None and made.steps[0].cost == 0


def test_a_deadline_holds_for_the_longest_path_and_says_what_is_missing() -> None:
    table = a_table(aws_r1=1.0)
    steps = [a_step("a", hours=3.0), a_step("b", 0, hours=3.0)]
    assert planned(table, *steps, deadline=NOW + timedelta(hours=6.5)).blocked is None
    made = planned(table, *steps, deadline=NOW + timedelta(hours=5))
    assert made.blocked is not None and made.blocked.field == "constraints.deadline"
    assert made.blocked.reason == "the fastest way through all steps takes 6 h, 1 h more than the deadline leaves"


def test_a_budget_holds_for_the_sum_and_says_what_is_missing() -> None:
    table = a_table(aws_r1=1.0)
    made = planned(table, a_step("a", hours=3.0), a_step("b", 0, hours=3.0), budget=MicroUsd(5_000_000))
    assert made.blocked is not None
    assert made.blocked.reason == "all steps cost $6.00 at least, $1.00 more than the budget"


def test_a_step_that_nothing_fits_is_named() -> None:
    made = planned(a_table(aws_r1=1.0), a_step("a"), a_step("b", 0, providers=("azure",)))
    assert made.blocked is not None and made.blocked.reason.startswith("step b: ")


def test_the_fastest_is_the_soonest_done_though_fetching_takes_time() -> None:
    table = a_table(lane=0.0, aws_r1=1.0, gcp_r1=0.5)
    first = a_step("a", size=1000.0, providers=("aws",))
    made = planned(table, first, a_step("b", 0), strategy=Strategy.FASTEST)
    assert homes(made) == ["aws/r1", "aws/r1"] and made.makespan_h == pytest.approx(2.0)


def test_a_plan_whose_sum_is_wrong_is_not_let_through() -> None:
    table = a_table(aws_r1=1.0, gcp_r1=0.9)
    flow = Flow(steps=(a_step("a"), a_step("b", 0)), limits=Constraints(), objective=Strategy.CHEAPEST, now=NOW)
    made = propose(study(flow, table, BOOK))
    check_flow(made, flow, table)
    late = replace(made.steps[1], begins_h=0.0)
    for broken in (
        replace(made, cost=MicroUsd(1)),
        replace(made, makespan_h=0.1),
        replace(made, steps=(made.steps[0], late)),
        replace(made, steps=made.steps[:1]),
    ):
        with pytest.raises(InvariantBroken):
            check_flow(broken, flow, table)


def test_who_is_nearest_to_the_least_pays_for_a_lane() -> None:
    slack = np.array([[0.0, 5.0, np.inf], [2.0, 0.0, 1.0]])
    assert filled(slack, np.array([1.0, 7.0, 3.0])).tolist() == [[1.0, 1.0, 0.0], [0.0, 6.0, 3.0]]


def test_steps_that_run_only_after_a_failure_are_not_expected() -> None:
    def step(name: str, *needs: str, when: When = When.SUCCEEDED) -> Step:
        return Step(name=name, job=JobSpec(command=("x",)), needs=needs, when=when)

    steps = [step("a"), step("tell", "a", when=When.FAILED), step("more", "tell"), step("end", "a", when=When.ENDED)]
    assert expected(steps) == [0, 3]
