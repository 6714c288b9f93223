"""Many tasks over two thousand offers: equal ones as one exact program, different ones together, and how far from the
optimum those are. What plans show and check is part of what is measured."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import numpy as np

from benchmarks import timing
from benchmarks.figure import Figure
from crucible import catalog
from crucible.catalog.benchmarks import benchmarks
from crucible.core import integer, mixed
from crucible.core.check import check_proposal
from crucible.core.check_tasks import check_mixture, check_tasks
from crucible.core.mixed import Mixture, propose_mixed
from crucible.core.offers import OfferTable
from crucible.core.perf import SpeedBook, make_book
from crucible.core.plan import Question
from crucible.core.proposal import Proposal
from crucible.core.spread import propose_tasks
from crucible.model.offer import Market
from crucible.model.quota import Measure, Quota
from crucible.model.spec import Constraints, Execution, JobSpec, Mode, Resources, Strategy
from crucible.model.sweep import Search, Sweep
from crucible.model.units import micro_usd

OFFERS = 2_000
EQUAL = 200
EQUAL_PLANS = 10
FIFTY = 50
FIVE_HUNDRED = 500
INSTANCES = 100
# A search to the end, for comparison: so many branches, and no column is left out.
TO_THE_END = 200_000
SEED = 11
NOW = datetime(2026, 11, 16, tzinfo=UTC)
ENABLED = frozenset({"aws", "local"})

Groups = Sequence[tuple[JobSpec, int]]


def measure() -> Iterator[Figure]:
    shipped = catalog.load()
    book = make_book(benchmarks(), shipped.gpus.values())
    chance = random.Random(SEED)
    tables = [sampled(shipped.table, chance.randrange(1 << 30)) for _ in range(EQUAL_PLANS)]
    yield from equal(tables, book)
    yield from fifty(tables, book)
    yield from five_hundred(tables[:3], book)


def sampled(table: OfferTable, seed: int) -> OfferTable:
    """So many of the catalog's offers, each at a price a little different."""
    draw = np.random.default_rng(seed)
    rows = np.sort(draw.choice(len(table), min(OFFERS, len(table)), replace=False))
    price = np.where(
        table.price[rows] > 0, np.rint(table.price[rows] * draw.uniform(0.8, 1.25, len(rows))), table.price[rows]
    )
    return replace(
        table,
        shape=table.shape[rows],
        place=table.place[rows],
        zone=table.zone[rows],
        market=table.market[rows],
        price=price.astype(np.int64),
        hazard=table.hazard[rows],
        availability=table.availability[rows],
        as_of=table.as_of[rows],
        source=table.source[rows],
        stock=table.stock[rows],
    )


def quotas_of(table: OfferTable, scale: int = 1) -> tuple[Quota, ...]:
    """vCPUs for each market and family of AWS in each of its regions, and machines of every other provider."""
    aws = table.seller_code("aws")
    regions = [name for name, seller in zip(table.places.region, table.places.seller, strict=True) if seller == aws]
    families = [
        Quota(provider="aws", region=region, market=market, families=families, most=most * scale, measure=Measure.CPUS)
        for region in regions
        for market in (Market.ON_DEMAND, Market.SPOT)
        for families, most in ((("p",), 96), (("g", "gr", "vt"), 64))
    ]
    return (*families, *(Quota(provider=name, most=6 * scale) for name in table.sellers.name if name != "aws"))


# --- equal tasks ------------------------------------------------------------------------------------------


def equal(tables: Sequence[OfferTable], book: SpeedBook) -> Iterator[Figure]:
    """The slowest of several markets; every plan must be proven."""
    propose_tasks(question(equal_tasks()), EQUAL, tables[0], book)  # loads the solver
    spent, total, bounds = [], timing.own(), []
    for table in tables:
        quotas, spec = quotas_of(table), equal_tasks()
        before = timing.own()
        made = propose_tasks(question(spec), EQUAL, table, book, quotas)
        check(made, spec, quotas)
        spent.append((timing.own() - before).cpu_s)
        bounds.append(made.bound)
    whole = timing.own() - total
    context = {"tasks": EQUAL, "offers": OFFERS, "plans": len(tables), "mean_s": sum(spent) / len(spent)}
    yield Figure(
        name="plan.equal_tasks",
        value=max(spent),
        unit="s CPU",
        bound=0.5,
        cpu_s=whole.cpu_s,
        wall_s=whole.wall_s,
        context=context,
    )
    yield Figure(
        name="plan.equal_tasks_from_optimum",
        value=max(bounds) * 100,
        unit="%",
        bound=0.0,
        cpu_s=whole.cpu_s,
        wall_s=whole.wall_s,
    )


def equal_tasks() -> JobSpec:
    limits = Constraints(
        budget=micro_usd(1500), deadline=NOW + timedelta(hours=8), max_price_per_hour=micro_usd(400), allow_spot=True
    )
    return sweep(Resources(gpus=1, gpu_memory_gib=16, estimated_hours=2.0, estimated_on="A100-40GB:1"), limits, EQUAL)


def check(made: Proposal, spec: JobSpec, quotas: Sequence[Quota]) -> None:
    if made.chosen is None:
        raise RuntimeError(f"nothing fits: {[one.reason for one in made.refusals]}")
    check_proposal(made, spec, NOW)
    check_tasks(made.chosen, spec, made.tasks, NOW, quotas)


def sweep(need: Resources, limits: Constraints, count: int) -> JobSpec:
    return JobSpec(
        command=("true",),
        resources=need,
        constraints=limits,
        execution=Execution(mode=Mode.MULTI_TASK),
        sweep=Sweep(method=Search.RANDOM, count=count),
    )


def question(spec: JobSpec, strategy: Strategy | None = None) -> Question:
    return Question(spec=spec, now=NOW, enabled=ENABLED, strategy=strategy)


# --- different tasks --------------------------------------------------------------------------------------


def fifty(tables: Sequence[OfferTable], book: SpeedBook) -> Iterator[Figure]:
    chance, total = random.Random(SEED), timing.own()
    spent, gaps, unproven = [], [], 0
    for number in range(INSTANCES):
        table, groups, asked = tables[number % len(tables)], random_tasks(chance, FIFTY), random_limits(chance)
        quotas = quotas_of(table)
        before = timing.own()
        made = propose_mixed(asked, groups, table, book, quotas)
        check_mixture(made, groups, asked.spec.constraints, NOW, quotas)
        spent.append((timing.own() - before).cpu_s)
        best = exact(asked, groups, table, book, quotas)
        unproven += best.bound > 0
        gaps.append(gap(made, best))
    whole = timing.own() - total
    context = {"tasks": FIFTY, "offers": OFFERS, "instances": INSTANCES, "seed": SEED, "unproven": unproven}
    figures = (
        ("plan.fifty_tasks_p99", timing.percentile(spent, 0.99), "s CPU", 1.0),
        ("plan.fifty_tasks_gap_mean", sum(gaps) / len(gaps) * 100, "%", 1.0),
        ("plan.fifty_tasks_gap_p99", timing.percentile(gaps, 0.99) * 100, "%", 3.0),
    )
    for name, value, unit, bound in figures:
        yield Figure(
            name=name, value=value, unit=unit, bound=bound, cpu_s=whole.cpu_s, wall_s=whole.wall_s, context=context
        )


def five_hundred(tables: Sequence[OfferTable], book: SpeedBook) -> Iterator[Figure]:
    chance, total = random.Random(SEED), timing.own()
    spent, bounds = [], []
    for table in tables:
        groups, asked, quotas = random_tasks(chance, FIVE_HUNDRED), random_limits(chance, 10), quotas_of(table, 10)
        before = timing.own()
        made = propose_mixed(asked, groups, table, book, quotas)
        check_mixture(made, groups, asked.spec.constraints, NOW, quotas)
        spent.append((timing.own() - before).cpu_s)
        if made.why_not is not None:
            raise RuntimeError(made.why_not)
        bounds.append(made.bound)
    whole = timing.own() - total
    context = {"tasks": FIVE_HUNDRED, "offers": OFFERS, "plans": len(tables), "seed": SEED}
    for name, value, unit, bound in (
        ("plan.five_hundred_tasks", max(spent), "s CPU", 5.0),
        ("plan.five_hundred_tasks_bound", max(bounds) * 100, "%", 3.0),
    ):
        yield Figure(
            name=name, value=value, unit=unit, bound=bound, cpu_s=whole.cpu_s, wall_s=whole.wall_s, context=context
        )


def random_tasks(chance: random.Random, count: int) -> Groups:
    return [(sweep(random_need(chance), Constraints(allow_spot=chance.random() < 0.7), 1), 1) for _ in range(count)]


def random_need(chance: random.Random) -> Resources:
    return Resources(
        gpus=chance.choice([1, 1, 1, 2, 4, 8]),
        gpu_memory_gib=chance.choice([0, 16, 24, 40, 80]),
        cpu_memory_gib=chance.choice([0, 0, 32, 128]),
        estimated_hours=round(chance.uniform(0.2, 20), 2),
        estimated_on=chance.choice(["A100-80GB:8", "A100-40GB:1", "T4:1"]),
    )


def random_limits(chance: random.Random, scale: int = 1) -> Question:
    """Now and then money is short, or time is."""
    limits = Constraints(
        budget=chance.choice([None, micro_usd(3_000 * scale), micro_usd(6_000 * scale)]),
        max_price_per_hour=chance.choice([None, None, micro_usd(400 * scale)]),
        deadline=chance.choice([None, NOW + timedelta(hours=72)]),
    )
    return question(JobSpec(constraints=limits), Strategy.CHEAPEST)


def exact(asked: Question, groups: Groups, table: OfferTable, book: SpeedBook, quotas: Sequence[Quota]) -> Mixture:
    """The same program searched to its end."""
    patient = tuple((name, TO_THE_END if name == "mip_max_nodes" else value) for name, value in integer.OPTIONS)
    with patch.object(mixed, "SMALL", len(groups)), patch.object(integer, "OPTIONS", patient):
        return propose_mixed(asked, groups, table, book, quotas)


def gap(made: Mixture, best: Mixture) -> float:
    """How much dearer than the best that is known to be possible."""
    if made.why_not is not None or best.why_not is not None or made.cost is None or not best.cost:
        if (made.why_not is None) != (best.why_not is None):
            raise RuntimeError(f"{made.why_not or 'a plan'}, where the exact search says: {best.why_not or 'a plan'}")
        return 0.0
    return max(made.cost / best.cost - 1, 0.0)
