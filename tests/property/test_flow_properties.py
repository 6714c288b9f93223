"""Workflows over random offers: together as good as the best that is found by trying every combination, within every
limit, and the same every time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import product
from math import inf
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.core import cost, plan
from crucible.core.check_flow import check_flow
from crucible.core.flow.plan import propose, study
from crucible.core.flow.proposal import FlowPlan
from crucible.core.flow.question import Flow, FlowStep
from crucible.core.offers import OfferTable
from crucible.core.plan import Question
from crucible.model.catalog import InstanceType, Lane, Price
from crucible.model.offer import Market
from crucible.model.spec import Constraints, JobSpec, Resources, Strategy
from crucible.model.units import GIB, MicroUsd
from property.brute_force import World
from property.test_plan_properties import BOOK, GPUS, NOW, SOME, a_bill, a_hazard, table_of, worlds

A_FEW = settings(SOME, max_examples=60)
PROVIDERS = frozenset({"aws", "gcp", "lambda", "onprem"})
KINDS = ("T4", "A100-80GB", "H100-SXM")


def markets(most: int) -> st.SearchStrategy[World]:
    """Every lane has its price and its speed: where steps are matters."""
    return st.builds(a_market, st.integers(0, 2**32), st.sampled_from([most, most // 2, 3]))


def a_market(seed: int, size: int) -> World:
    dice = Random(seed)
    types = [a_machine(provider, gpu) for provider in ("aws", "gcp") for gpu in KINDS]
    offers = [(kind, region, market) for kind in types for region in ("r1", "r2") for market in SOLD]
    dear = {"T4": 0.4, "A100-80GB": 2.0, "H100-SXM": 4.0}
    places = [f"{provider}:{region}" for provider in ("aws", "gcp") for region in ("r1", "r2")]
    return World(
        types=types,
        prices=[
            a_price(kind, region, market, dear[kind.gpu or ""] * dice.choice([0.8, 1.0, 1.0, 1.3]))
            for kind, region, market in dice.sample(offers, size)
        ],
        billing=[a_bill(dice, provider) for provider in ("aws", "gcp")],
        hazards=[a_hazard(dice, "aws", "", "")],
        lanes=[
            Lane(source=a, target=b, usd_per_gb=dice.choice([0.01, 0.02, 0.09]), gbps=dice.choice([1.0, 8.0, None]))
            for a in places
            for b in places
            if a != b
        ],
    )


SOLD = (Market.ON_DEMAND, Market.SPOT)


def a_machine(provider: str, gpu: str) -> InstanceType:
    memory = GPUS[gpu][0]
    return InstanceType(
        provider=provider, name=f"one-{gpu}", gpu=gpu, gpus=1, gpu_memory_gib=memory, cpus=8.0, memory_gib=64.0
    )


def a_price(kind: InstanceType, region: str, market: Market, dollars: float) -> Price:
    cheap = 0.4 if market is Market.SPOT else 1.0
    return Price(
        provider=kind.provider,
        region=region,
        zone="",
        instance_type=kind.name,
        market=market,
        price=MicroUsd(round(dollars * cheap * 1e6)),
        as_of=NOW,
        source="test",
    )


@st.composite
def moving(draw: st.DrawFn, most: int = 4) -> Flow:
    """Chains, diamonds and whatever else, with as much to carry as to compute."""
    limits = Constraints(
        budget=draw(st.sampled_from([None, None, MicroUsd(6_000_000), MicroUsd(15_000_000)])),
        deadline=draw(st.sampled_from([None, *(NOW + timedelta(hours=hours) for hours in (3, 6, 9, 15))])),
        performance_weight=draw(st.sampled_from([0.0, 0.0, 0.3])),
    )
    objective = draw(st.sampled_from([Strategy.CHEAPEST, Strategy.BALANCED, Strategy.FASTEST]))
    steps = []
    for number in range(draw(st.integers(2, most))):
        reads = draw(st.lists(st.integers(0, number - 1), unique=True, min_size=1, max_size=3)) if number else []
        kinds = draw(st.sampled_from([(), ("T4",), ("A100-80GB", "H100-SXM")]))
        spec = JobSpec(
            command=("true",),
            resources=Resources(
                gpus=1, gpu_types=kinds, estimated_hours=draw(st.sampled_from([0.5, 2.0])), estimated_on="A100-80GB:1"
            ),
            constraints=replace(limits, allow_spot=draw(st.booleans())),
        )
        question = Question(spec=spec, now=NOW, enabled=PROVIDERS, strategy=objective)
        size = draw(st.sampled_from([2.0, 20.0, 60.0, 400.0]))
        steps.append(
            FlowStep(name=f"s{number}", question=question, needs=tuple(reads), reads=tuple(reads), leaves_gib=size)
        )
    return Flow(steps=tuple(steps), limits=limits, objective=objective, now=NOW)


@st.composite
def flows(draw: st.DrawFn, most: int = 4) -> Flow:
    limits = Constraints(
        budget=draw(st.sampled_from([None, None, MicroUsd(8_000_000), MicroUsd(40_000_000)])),
        deadline=draw(st.sampled_from([None, None, NOW + timedelta(hours=5), NOW + timedelta(hours=14)])),
    )
    objective = draw(st.sampled_from([Strategy.CHEAPEST, Strategy.BALANCED, Strategy.FASTEST]))
    steps = []
    for number in range(draw(st.integers(1, most))):
        needs = draw(st.lists(st.integers(0, number - 1), unique=True, max_size=2)) if number else []
        reads = [need for need in needs if draw(st.booleans())]
        spec = JobSpec(
            command=("true",),
            resources=Resources(
                gpus=draw(st.sampled_from([1, 4])),
                estimated_hours=draw(st.sampled_from([0.5, 2.0, 7.0])),
                estimated_on=draw(st.sampled_from([None, "A100-80GB:1"])),
            ),
            constraints=replace(limits, allow_spot=draw(st.booleans())),
        )
        question = Question(spec=spec, now=NOW, enabled=PROVIDERS, strategy=objective)
        size = draw(st.sampled_from([None, 1.0, 50.0, 2000.0]))
        steps.append(
            FlowStep(name=f"s{number}", question=question, needs=tuple(needs), reads=tuple(reads), leaves_gib=size)
        )
    return Flow(steps=tuple(steps), limits=limits, objective=objective, now=NOW)


# --- every combination --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    row: int
    place: int
    cost: float
    value: float
    hours: float
    price: float


@dataclass(frozen=True)
class Total:
    value: float
    money: float
    makespan: float


def ways_of(step: FlowStep, table: OfferTable, objective: Strategy) -> list[Way]:
    """All that core.plan would take for the step alone."""
    found = plan.study(step.question, table, BOOK)
    share = 1 - step.question.spec.constraints.performance_weight if objective is not Strategy.CHEAPEST else 1.0
    pool = plan.pool_of(found, plan.ways_at(found, plan.everything(found)))
    ways, risk = pool.ways, 1 - pool.odds.reliability
    value = share * ways.cost + (0.2 * found.view.least_cost * risk if objective is not Strategy.CHEAPEST else 0.0)
    place = table.place[ways.row]
    return [
        Way(int(ways.row[i]), int(place[i]), float(ways.cost[i]), float(value[i]), float(ways.wall_h[i]),
            float(ways.price[i]))
        for i in range(len(ways))
    ]  # fmt: skip


def totals(flow: Flow, ways: Sequence[Sequence[Way]], table: OfferTable) -> Iterator[Total]:
    for choice in product(*ways):
        yield total(flow, choice, table)


def total(flow: Flow, choice: Sequence[Way], table: OfferTable) -> Total:
    moved, fetched, ends = 0.0, 0.0, [0.0] * len(choice)
    for number, step in enumerate(flow.steps):
        size = round((step.leaves_gib or 0.0) * GIB)
        home = choice[number].place
        there = {choice[n].place for n, other in enumerate(flow.steps) if number in other.reads}
        moved += float(np.nan_to_num(cost.egress(table, home, size))[sorted(there)].sum())
        begins = max((ends[need] for need in step.needs), default=0.0)
        hours = 0.0
        for source in step.reads:
            gib = flow.steps[source].leaves_gib or 0.0
            hour = float(cost.moves(table, choice[source].place, gib).hours[home])
            hours += hour
            fetched += round(hour * choice[number].price)
        ends[number] = begins + hours + choice[number].hours
    share = 1 - flow.limits.performance_weight if flow.objective is not Strategy.CHEAPEST else 1.0
    value = sum(way.value for way in choice) + share * (moved + fetched) + hour_of(flow, table) * max(ends)
    return Total(value, sum(way.cost for way in choice) + moved + fetched, max(ends))


def hour_of(flow: Flow, table: OfferTable) -> float:
    """Where hours weigh: the fastest path is worth as much as the cheapest ways."""
    if flow.objective is not Strategy.BALANCED or not flow.limits.performance_weight:
        return 0.0
    found = [plan.study(step.question, table, BOOK).view for step in flow.steps]
    ends: list[float] = []
    for step, view in zip(flow.steps, found, strict=True):
        ends.append(view.least_h + max((ends[need] for need in step.needs), default=0.0))
    return flow.limits.performance_weight * sum(view.least_cost for view in found) / max(ends)


def is_kept(one: Total, flow: Flow) -> bool:
    deadline, budget = flow.limits.deadline, flow.limits.budget
    left = inf if deadline is None else (deadline - NOW).total_seconds() / 3600
    return one.makespan <= left * (1 + 1e-6) and one.money <= (inf if budget is None else budget) * (1 + 1e-6)


def planned(flow: Flow, table: OfferTable) -> FlowPlan:
    made = propose(study(flow, table, BOOK))
    check_flow(made, flow, table)
    return made


def chosen(made: FlowPlan, ways: Sequence[Sequence[Way]]) -> list[Way]:
    rows = [step.candidate.first.row for step in made.steps if step.candidate is not None]
    return [next(way for way in some if way.row == row) for some, row in zip(ways, rows, strict=True)]


# --- what must hold -----------------------------------------------------------------------------------------


@A_FEW
@given(worlds(12), flows())
def test_no_combination_of_ways_is_better(world: World, flow: Flow) -> None:
    compare(world, flow)


@settings(SOME, max_examples=150)
@given(markets(14), moving())
def test_no_combination_is_better_where_carrying_costs_as_much_as_computing(world: World, flow: Flow) -> None:
    compare(world, flow)


def compare(world: World, flow: Flow) -> None:
    table = table_of(world)
    made = planned(flow, table)
    ways = [ways_of(step, table, flow.objective) for step in flow.steps]
    kept = [one for one in totals(flow, ways, table) if is_kept(one, flow)] if all(ways) else []
    if not kept:
        assert made.blocked is not None
        return
    assert made.blocked is None and made.cost is not None and made.makespan_h is not None
    ours = total(flow, chosen(made, ways), table)
    assert abs(ours.money - made.cost) <= len(flow.steps) + 1
    assert abs(ours.makespan - made.makespan_h) <= 1e-6 * ours.makespan
    assert is_kept(ours, flow)
    if flow.objective is Strategy.FASTEST:
        assert ours.makespan <= min(one.makespan for one in kept) * (1 + 1e-5) + 1e-9
    else:
        assert ours.value <= min(one.value for one in kept) * (1 + 1e-5) + 10
    assert made.bound <= 1e-5


@A_FEW
@given(st.one_of(worlds(40), markets(24)), st.one_of(flows(9), moving(9)))
def test_a_plan_keeps_what_it_promises_and_is_the_same_every_time(world: World, flow: Flow) -> None:
    table = table_of(world)
    made = planned(flow, table)
    assert 0 <= made.bound <= 1
    assert planned(flow, table) == made
