"""Plans of random jobs over random catalogs: safe, exact beside a planner that tries everything, the same every time,
and never worse for more choice."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crucible.api.reply import encoded
from crucible.core import plan
from crucible.core.check import check_proposal
from crucible.core.offers import OfferTable, with_live
from crucible.core.perf import make_book
from crucible.core.plan import Question, propose
from crucible.core.proposal import Candidate, Proposal, Rule
from crucible.core.remedy import Remedy, remedies
from crucible.engine.plan_view import plan_view
from crucible.model.catalog import Billing, Gpu, Hazard, InstanceType, Lane, Price
from crucible.model.ids import OfferId
from crucible.model.offer import Fabric, Market, Offer, Target
from crucible.model.spec import (
    Checkpointing,
    Constraints,
    Data,
    Execution,
    JobSpec,
    Locality,
    Mode,
    Replication,
    Resources,
    Strategy,
)
from crucible.model.units import MicroUsd
from property import brute_force
from property.brute_force import Way, World

NOW = datetime(2026, 11, 16, tzinfo=UTC)
MANY = settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SOME = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
PROVIDERS = ("aws", "gcp", "lambda")
PLACES = ("aws:r1", "aws:r2", "gcp:r1", "gcp:r2", "lambda:r1", "onprem:dc1")
GPUS = {"A100-80GB": (80.0, 312.0), "H100-SXM": (80.0, 989.0), "H100-PCIe": (80.0, 756.0), "T4": (16.0, 65.0)}
BOOK = make_book(
    (),
    [
        Gpu(
            name=name,
            memory_gib=memory,
            bandwidth_gbps=2000.0,
            tflops=tflops,
            tflops_fp8=None,
            has_bf16=True,
            link_gbps=600.0,
            link="NVLink",
            source="test",
        )
        for name, (memory, tflops) in GPUS.items()
    ],
)

# --- worlds -----------------------------------------------------------------------------------------------
# Made by dice from a seed: as large as they are said to be, and like real ones in what is often and what is rare.


def worlds(most: int = 40) -> st.SearchStrategy[World]:
    sizes = [size for size in (40, 30, 20, 12, 8, 5, 4, 3, 2, 1, 0) if size <= most]
    return st.builds(a_world, st.integers(0, 2**32), st.sampled_from(sizes), st.booleans())


def a_world(seed: int, size: int, is_joined: bool) -> World:
    """`is_joined`: every machine has a fast network."""
    dice = Random(seed)
    kinds = list({(t.provider, t.name): t for t in (a_type(dice, is_joined) for _ in range(8))}.values())
    prices = {}
    while len(prices) < size:
        price = a_price(dice, dice.choice(kinds))
        markets = [price.market, Market.ON_DEMAND] if price.market is Market.SPOT else [price.market]
        for market in markets:  # what can be taken away is mostly sold for more as well
            key = price.provider, price.region, price.zone, price.instance_type, market
            times = 1 if market is Market.SPOT else 4
            prices[key] = replace(price, market=market, price=price.price and MicroUsd(price.price * times))
    pairs = {(dice.choice(PLACES), dice.choice(PLACES)) for _ in range(6)}
    return World(
        types=kinds,
        prices=list(prices.values()),
        billing=[a_bill(dice, provider) for provider in (*PROVIDERS, "onprem") if dice.random() < 0.8],
        hazards=[
            *(a_hazard(dice, provider, "", "") for provider in PROVIDERS if dice.random() < 0.8),
            *(a_hazard(dice, kind.provider, dice.choice(["", "r1"]), kind.name) for kind in kinds[::2]),
        ],
        lanes=[Lane(source=a, target=b, **a_lane(dice)) for a, b in sorted(pairs)],
        live=own(dice) if dice.random() < 0.5 else (),
    )


def a_type(dice: Random, is_joined: bool) -> InstanceType:
    gpu = dice.choice(["A100-80GB", "A100-80GB", "H100-SXM", "H100-SXM", "H100-PCIe", "T4", "MI300X", None])
    return InstanceType(
        provider=dice.choice(PROVIDERS),
        name=dice.choice(["small", "large", "huge", "p3", "p4", "p5"]),
        gpu=gpu,
        gpus=0 if gpu is None else dice.choice([1, 2, 4, 8, 8, 8, 8]),
        gpu_memory_gib=0.0 if gpu is None else GPUS.get(gpu, (192.0, 0.0))[0],
        cpus=dice.choice([8.0, 96.0, 96.0, 96.0]),
        memory_gib=dice.choice([64.0, 1024.0, 1024.0, 1024.0]),
        disk_gib=dice.choice([None, None, None, 100.0, 4000.0]),
        fabric=Fabric.HIGH if is_joined else dice.choice([Fabric.HIGH, Fabric.STANDARD]),
    )


def a_price(dice: Random, kind: InstanceType) -> Price:
    market = dice.choice([Market.ON_DEMAND, Market.ON_DEMAND, Market.SPOT, Market.SPOT, Market.RESERVED])
    # Equal prices are common: ties must be broken the same way every time.
    dollars = dice.choice([1.0, 1.03, 1.055, 1.1, 1.2]) if dice.random() < 0.6 else dice.uniform(0.05, 9)
    return Price(
        provider=kind.provider,
        region=dice.choice(["r1", "r2"]),
        zone=dice.choice(["", "a"]),
        instance_type=kind.name,
        market=market,
        price=None if dice.random() < 0.1 else MicroUsd(round(dollars * 1e6)),
        as_of=NOW - timedelta(days=dice.choice([0, 3, 3, 90])),
        source="test",
    )


def a_bill(dice: Random, provider: str) -> Billing:
    return Billing(
        provider=provider,
        unit_s=dice.choice([1, 60, 3600]),
        minimum_s=dice.choice([0, 60, 600]),
        start_s=dice.choice([0.0, 30.0, 300.0]),
        egress_usd_per_gb=dice.choice([None, 0.0, 0.09, 0.09]),
        max_nodes=dice.choice([1, 2, 8, 16, 16, 16]),
        source="test",
    )


def a_hazard(dice: Random, provider: str, region: str, instance_type: str) -> Hazard:
    return Hazard(
        provider=provider,
        region=region,
        instance_type=instance_type,
        per_hour=dice.choice([0.0, 0.001, 0.02, 0.02, 0.1, 0.5, 3.0]),
        low=0.0,
        high=9.0,
        availability=None,
        method="test",
        as_of=NOW.date(),
    )


def a_lane(dice: Random) -> dict[str, Any]:
    return {"usd_per_gb": dice.choice([0.0, 0.02, 0.12]), "gbps": dice.choice([None, 1.0, 10.0])}


def own(dice: Random) -> list[Offer]:
    """Machines cut to measure, of one stock."""
    provider, gpu = dice.choice(["onprem", "local"]), dice.choice(["A100-80GB", "T4", "slot"])
    free, price = dice.randint(0, 16), dice.choice([0, 0, 1_500_000])
    return [
        Offer(
            id=OfferId(f"{provider}/{gpu}/{gpus}"),
            target=Target(provider, "local" if provider == "local" else "dc1", "vm"),
            instance_type=f"{provider}-{gpus}gpu",
            gpu=gpu,
            gpus=gpus,
            gpu_memory_gib=80.0,
            cpus=64,
            memory_gib=512.0,
            price_per_hour=MicroUsd(price * gpus),
            stock="stock",
            free_gpus=free,
        )
        for gpus in range(1, dice.choice([1, 4, 8]) + 1)
    ]


# --- jobs -------------------------------------------------------------------------------------------------
# A few wishes each: with all of them nothing is left to choose from.

WISHES: dict[str, dict[str, Sequence[Any]]] = {
    "resources": {
        "gpu_types": [("A100-80GB",), ("H100",), ("T4", "H100")],
        "max_gpus_per_node": [1, 4, 8],
        "requires_multi_node": [True],
        "gpu_memory_gib": [16.0, 40.0, 80.0],
        "cpu_memory_gib": [100.0],
        "cpus": [16],
        "storage_gib": [500.0],
        "estimated_on": ["A100-80GB:8"],
    },
    "constraints": {
        "budget": [MicroUsd(n * 1_000_000) for n in (1, 20, 300, 5000)],
        "deadline": [NOW + timedelta(hours=h) for h in (-1, 1, 2, 8, 9, 44, 48, 500)],
        "min_reliability": [0.3, 0.6, 0.9, 0.999],
        "performance_weight": [0.3, 1.0],
        "preferred_regions": [("r1",), ("r2", "dc1")],
        "providers": [("aws",), ("gcp", "onprem")],
        "max_price_per_hour": [MicroUsd(5_000_000), MicroUsd(60_000_000)],
        "max_price_age": [timedelta(days=7)],
    },
}
DATA = st.one_of(
    st.just(Data()),
    st.just(Data()),
    st.builds(
        Data,
        dataset=st.sampled_from(["s3://b/d", "gs://b/d", "minio://h/b/d", "/data"]),
        size_gib=st.sampled_from([500.0, 50.0, 1e5, None]),
        region=st.sampled_from(["r1", "r2", "dc1", "nowhere", None]),
        locality=st.sampled_from([Locality.PREFER, Locality.PREFER, Locality.IGNORE, Locality.REQUIRED]),
        replication_policy=st.sampled_from(
            [Replication.PRE_STAGE, Replication.PRE_STAGE, Replication.ON_DEMAND_CACHE, Replication.NONE]
        ),
    ),
)
NAMES = [(section, field) for section, fields in WISHES.items() for field in fields]


@st.composite
def jobs(draw: st.DrawFn) -> JobSpec:
    wishes: dict[str, dict[str, Any]] = {section: {} for section in WISHES}
    for section, field in draw(st.sets(st.sampled_from(NAMES), max_size=3)):
        wishes[section][field] = draw(st.sampled_from(WISHES[section][field]))
    return JobSpec(
        command=("true",),
        resources=Resources(
            gpus=draw(st.sampled_from([8, 8, 8, 1, 4, 12, 16, 32, 0])),
            estimated_hours=draw(st.sampled_from([7.5, 40.0, 40.0, 0.01, 1.0, 400.0, None])),
            **wishes["resources"],
        ),
        data=draw(DATA),
        constraints=Constraints(allow_spot=draw(st.sampled_from([True, True, True, False])), **wishes["constraints"]),
        execution=Execution(mode=draw(st.sampled_from([Mode.SINGLE_CLUSTER, Mode.SINGLE_CLUSTER, Mode.MULTI_TASK]))),
        checkpoint=Checkpointing(interval=draw(st.sampled_from([None, None, timedelta(minutes=10)]))),
    )


@st.composite
def gangs(draw: st.DrawFn) -> JobSpec:
    """Of several machines, with little time to spare: interruptions decide."""
    late = draw(st.sampled_from([40.5, 41, 42, 43, 44, 50]))
    return JobSpec(
        command=("true",),
        resources=Resources(gpus=draw(st.sampled_from([64, 32, 16])), estimated_hours=40.0),
        constraints=Constraints(
            allow_spot=True,
            deadline=NOW + timedelta(hours=late),
            budget=draw(st.sampled_from([None, None, *(MicroUsd(n * 1_000_000) for n in (300, 600, 1000))])),
            min_reliability=draw(st.sampled_from([0.8, 0.9, 0.99, 0.0])),
            max_price_per_hour=draw(st.sampled_from([None, None, MicroUsd(20_000_000)])),
        ),
    )


def a_risky_world(seed: int, size: int) -> World:
    """Large machines on a fast network, each on spot and on demand."""
    world = a_world(seed, size, is_joined=True)
    kinds = [replace(kind, gpu="A100-80GB", gpus=8, gpu_memory_gib=80.0) for kind in world.types]
    dice = Random(seed)
    hazards = [replace(hazard, per_hour=dice.choice([0.003, 0.01, 0.03])) for hazard in world.hazards]
    return replace(world, types=kinds, hazards=hazards, billing=[replace(b, max_nodes=16) for b in world.billing])


def a_connected_world(seed: int, size: int) -> World:
    """Data can be moved from everywhere to everywhere, at a price."""
    world, dice = a_world(seed, size, is_joined=True), Random(seed)
    cents = [(a, b, dice.choice([0.0, 0.01, 0.02, 0.05])) for a in PLACES for b in PLACES if a != b]
    lanes = [Lane(source=a, target=b, usd_per_gb=usd, gbps=dice.choice([None, 1.0, 10.0])) for a, b, usd in cents]
    return replace(world, lanes=lanes)


@st.composite
def jobs_with_data(draw: st.DrawFn) -> JobSpec:
    data = Data(
        dataset=draw(st.sampled_from(["s3://b/d", "gs://b/d", "minio://h/b/d"])),
        size_gib=draw(st.sampled_from([20.0, 200.0, 2000.0])),
        region=draw(st.sampled_from(["r1", "r2", "dc1"])),
        replication_policy=draw(st.sampled_from(Replication)),
    )
    mode = draw(st.sampled_from([Mode.SINGLE_CLUSTER, Mode.MULTI_TASK]))
    late = draw(st.sampled_from([None, 8.0, 9.0]))
    return JobSpec(
        command=("true",),
        resources=Resources(gpus=draw(st.sampled_from([1, 8])), estimated_hours=7.5),
        data=data,
        constraints=Constraints(
            allow_spot=True,
            budget=draw(st.sampled_from([None, MicroUsd(30_000_000)])),
            deadline=None if late is None else NOW + timedelta(hours=late),
        ),
        execution=Execution(mode=mode),
    )


JOBS = st.one_of(jobs(), gangs())
STRATEGIES = st.sampled_from(Strategy)


def table_of(world: World) -> OfferTable:
    return with_live(brute_force.table_of(world), list(world.live), NOW)


def asked(spec: JobSpec, world: World, strategy: Strategy = Strategy.BALANCED) -> Proposal:
    question = Question(spec=spec, now=NOW, enabled=frozenset(("aws", "onprem")), strategy=strategy)
    made = propose(question, table_of(world), BOOK)
    check_proposal(made, spec, NOW)
    return made


def parts(candidate: Candidate | None) -> list[tuple[str, int]]:
    return [] if candidate is None else [(part.listing.id, part.count) for part in candidate.parts]


def parts_of(way: Way | None) -> list[tuple[str, int]]:
    if way is None:
        return []
    firm = [(way.sale.id.removesuffix("/spot") + "/on-demand", way.firm)] if way.firm else []
    return [(way.sale.id, way.nodes - way.firm), *firm]


# --- one job ----------------------------------------------------------------------------------------------


@MANY
@given(worlds(), JOBS, STRATEGIES)
def test_the_choice_is_the_one_of_a_planner_that_tries_everything(
    world: World, spec: JobSpec, strategy: Strategy
) -> None:
    made = asked(spec, world, strategy)
    verdicts, ways = brute_force.judged(spec, world, BOOK, NOW)
    best = brute_force.best(spec, ways, strategy)
    assert parts(made.chosen) == parts_of(best)
    if made.chosen is not None and best is not None and made.chosen.cost is not None:
        assert made.chosen.cost == best.cost
        assert made.chosen.expected_h == pytest.approx(best.hours, rel=1e-12)
        assert made.chosen.reliability == pytest.approx(best.reliability, abs=1e-12)
    # What is too dear per hour alone may still be part of a mixed gang.
    last = Rule.PRICE_LIMIT if any(one.firm for one in ways) else Rule.DEADLINE
    hard = Counter(rule for _, rule in verdicts if Rule.NONE < rule < last)
    assert {one.rule: one.count for one in made.refusals if one.rule < last} == dict(hard)


@SOME
@given(st.integers(0, 2**32), st.sampled_from([4, 12, 30]), gangs(), STRATEGIES)
def test_the_best_of_all_mixes_of_spot_and_on_demand_is_found(
    seed: int, size: int, spec: JobSpec, strategy: Strategy
) -> None:
    world = a_risky_world(seed, size)
    _, ways = brute_force.judged(spec, world, BOOK, NOW)
    assert parts(asked(spec, world, strategy).chosen) == parts_of(brute_force.best(spec, ways, strategy))


@SOME
@given(st.integers(0, 2**32), st.sampled_from([4, 12, 30]), jobs_with_data(), STRATEGIES)
def test_what_moving_the_data_costs_and_takes_is_counted(
    seed: int, size: int, spec: JobSpec, strategy: Strategy
) -> None:
    world = a_connected_world(seed, size)
    _, ways = brute_force.judged(spec, world, BOOK, NOW)
    chosen, best = asked(spec, world, strategy).chosen, brute_force.best(spec, ways, strategy)
    assert parts(chosen) == parts_of(best)
    if chosen is not None and best is not None:
        assert (chosen.cost, chosen.expected_h) == (best.cost, pytest.approx(best.hours, rel=1e-12))


@SOME
@given(worlds(), JOBS, STRATEGIES, st.integers(1, 3))
def test_looking_at_few_at_a_time_finds_the_same(world: World, spec: JobSpec, strategy: Strategy, block: int) -> None:
    with patch.object(plan, "BLOCK", block), patch.object(plan, "MIXED", block):
        few = asked(spec, world, strategy)
    assert parts(few.chosen) == parts(asked(spec, world, strategy).chosen)


@SOME
@given(worlds(), JOBS, STRATEGIES)
def test_nothing_that_fits_beats_what_is_shown_unless_it_lacks_what_was_wished(
    world: World, spec: JobSpec, strategy: Strategy
) -> None:
    made = asked(spec, world, strategy)
    _, ways = brute_force.judged(spec, world, BOOK, NOW)
    good = [one for one in ways if one.is_good]
    for shown in made.alternatives:
        assert not any(beats(one, shown) for one in good)
    if made.chosen is not None and strategy in (Strategy.BALANCED, Strategy.CHEAPEST, Strategy.FASTEST):
        is_preferred = made.chosen.first.target.region in spec.constraints.preferred_regions
        assert is_preferred or not any(beats(one, made.chosen) for one in good)


def beats(way: Way, shown: Candidate) -> bool:
    """By more than the last digit."""
    if shown.cost is None or shown.expected_h is None:
        return False
    figures = (way.cost, shown.cost), (way.hours, shown.expected_h), (1 - way.reliability, 1 - shown.reliability)
    return all(a <= b for a, b in figures) and any(a < b - 1e-9 * max(abs(b), 1) for a, b in figures)


@SOME
@given(worlds(), JOBS, STRATEGIES)
def test_the_same_question_has_the_same_answer_to_the_last_byte(
    world: World, spec: JobSpec, strategy: Strategy
) -> None:
    first, again = (encoded(plan_view(asked(spec, world, strategy), NOW, 0.0)) for _ in range(2))
    assert first == again


@SOME
@given(worlds(), JOBS, STRATEGIES, st.randoms(use_true_random=False))
def test_the_order_in_which_offers_come_does_not_matter(
    world: World, spec: JobSpec, strategy: Strategy, chance: Any
) -> None:
    shuffled = [list(rows) for rows in (world.types, world.prices, world.billing, world.hazards, world.lanes)]
    for rows in shuffled:
        chance.shuffle(rows)
    names = ("types", "prices", "billing", "hazards", "lanes")
    other = replace(world, **dict(zip(names, shuffled, strict=True)))
    assert encoded(plan_view(asked(spec, world, strategy), NOW, 0.0)) == encoded(
        plan_view(asked(spec, other, strategy), NOW, 0.0)
    )


@SOME
@given(worlds(), JOBS, st.sampled_from([Strategy.CHEAPEST, Strategy.FASTEST, Strategy.RELIABLE]), st.data())
def test_another_offer_never_makes_the_best_worse(
    world: World, spec: JobSpec, strategy: Strategy, data: st.DataObject
) -> None:
    if not world.prices:
        return
    gone = data.draw(st.integers(0, len(world.prices) - 1))
    less = replace(world, prices=[price for i, price in enumerate(world.prices) if i != gone])
    before, after = asked(spec, less, strategy).chosen, asked(spec, world, strategy).chosen
    if before is None:
        return
    assert after is not None
    assert worth(after, strategy) <= worth(before, strategy) * (1 + 1e-12)


def worth(candidate: Candidate, strategy: Strategy) -> float:
    """What the strategy makes as little as it can."""
    if candidate.cost is None or candidate.expected_h is None:
        return 0.0
    if strategy is Strategy.RELIABLE:
        return 1 - candidate.reliability + any((part.listing.hazard_per_hour or 0) > 0 for part in candidate.parts)
    return candidate.cost if strategy is Strategy.CHEAPEST else candidate.expected_h


RELAXED: dict[str, Callable[[JobSpec], JobSpec]] = {
    "constraints.budget": lambda spec: limited(spec, budget=None),
    "constraints.deadline": lambda spec: limited(spec, deadline=None),
    "constraints.allow_spot": lambda spec: limited(spec, allow_spot=True),
    "constraints.min_reliability": lambda spec: limited(spec, min_reliability=0.0),
    "constraints.providers": lambda spec: limited(spec, providers=()),
    "constraints.max_price_per_hour": lambda spec: limited(spec, max_price_per_hour=None),
    "constraints.max_price_age": lambda spec: limited(spec, max_price_age=None),
    "resources.gpu_memory": lambda spec: sized(spec, gpu_memory_gib=0),
    "resources.cpu_memory": lambda spec: sized(spec, cpu_memory_gib=0),
    "resources.cpus": lambda spec: sized(spec, cpus=0),
    "resources.storage": lambda spec: sized(spec, storage_gib=0),
    "data.locality": lambda spec: replace(spec, data=replace(spec.data, locality=Locality.PREFER)),
}


def limited(spec: JobSpec, **changes: Any) -> JobSpec:
    return replace(spec, constraints=replace(spec.constraints, **changes))


def sized(spec: JobSpec, **changes: Any) -> JobSpec:
    return replace(spec, resources=replace(spec.resources, **changes))


@SOME
@given(worlds(), JOBS, STRATEGIES, st.sampled_from(sorted(RELAXED)))
def test_asking_for_less_never_makes_a_job_impossible(
    world: World, spec: JobSpec, strategy: Strategy, field: str
) -> None:
    if asked(spec, world, strategy).chosen is not None:
        assert asked(RELAXED[field](spec), world, strategy).chosen is not None


@SOME
@given(worlds(), JOBS)
def test_everything_that_is_said_to_help_does(world: World, spec: JobSpec) -> None:
    if asked(spec, world).chosen is not None:
        return
    for remedy in remedies(spec, lambda other, how: asked(other, world, how).chosen, NOW):
        assert asked(healed(spec, remedy), world).chosen is not None, remedy


def healed(spec: JobSpec, remedy: Remedy) -> JobSpec:
    """As somebody who reads the words would change it."""
    match remedy.field:
        case "constraints.budget":
            dollars = re.search(r"\$([\d,]+\.\d\d)", remedy.change)
            assert dollars is not None
            return limited(spec, budget=MicroUsd(round(float(dollars[1].replace(",", "")) * 1e6)))
        case "constraints.deadline":
            moment = re.search(r"\S+Z", remedy.change)
            assert moment is not None
            return limited(spec, deadline=datetime.fromisoformat(moment[0]))
        case "resources.gpus" | "resources.gpu_memory":
            number = re.search(r"\d+", remedy.change)
            assert number is not None
            name = "gpus" if remedy.field == "resources.gpus" else "gpu_memory_gib"
            return sized(spec, **{name: int(number[0])})
        case "data.locality" | "data.replication_policy":
            copied = replace(spec.data, locality=Locality.PREFER, replication_policy=Replication.PRE_STAGE)
            return replace(spec, data=copied)
        case "resources.max_gpus_per_node":
            return sized(spec, max_gpus_per_node=None)
        case "resources.requires_multi_node":
            return sized(spec, requires_multi_node=False)
        case "resources.gpu_type":
            return sized(spec, gpu_types=())
        case field:
            return RELAXED[field](spec)
