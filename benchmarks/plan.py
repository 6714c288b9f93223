"""One job over a hundred thousand offers: the real catalog, tiled into more regions with jittered prices. Random specs
of every kind, wide-open ones included; the explanation is part of what is measured."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from benchmarks import timing
from benchmarks.figure import Figure
from crucible import catalog
from crucible.catalog.benchmarks import benchmarks
from crucible.core.check import check_proposal
from crucible.core.offers import UNKNOWN, OfferTable, Places
from crucible.core.perf import make_book
from crucible.core.plan import Question, propose
from crucible.model.spec import Constraints, Data, JobSpec, Locality, Replication, Resources, Strategy
from crucible.model.units import micro_usd

OFFERS = 100_000
SPECS = 1000
SCALE = (1_000, 10_000, 100_000, 1_000_000)
SCALE_SPECS = 30
SEED = 7
NOW = datetime(2026, 11, 16, tzinfo=UTC)


def measure() -> Iterator[Figure]:
    shipped = catalog.load()
    book = make_book(benchmarks(), shipped.gpus.values())
    table = tiled(shipped.table, OFFERS)
    specs = random_specs(SPECS)
    for spec in specs[:20]:
        propose(question(spec), table, book)  # what is remembered per table is made once
    spent, total = [], timing.own()
    for spec in specs:
        before = timing.own()
        made = propose(question(spec), table, book)
        spent.append((timing.own() - before).cpu_s * 1000)
        check_proposal(made, spec, NOW)
    whole = timing.own() - total
    for share, bound in ((0.50, 5.0), (0.99, 20.0)):
        yield Figure(
            name=f"plan.one_job_p{share * 100:.0f}",
            value=timing.percentile(spent, share),
            unit="ms CPU",
            bound=bound,
            cpu_s=whole.cpu_s,
            wall_s=whole.wall_s,
            context={"offers": len(table), "specs": SPECS, "seed": SEED},
        )
    for size in SCALE:
        yield linear(tiled(shipped.table, size), book, specs[:SCALE_SPECS])


def linear(table: OfferTable, book: object, specs: list[JobSpec]) -> Figure:
    """Time per offer: it must not grow with their number."""
    propose(question(specs[0]), table, book)  # type: ignore[arg-type]
    before = timing.own()
    for spec in specs:
        propose(question(spec), table, book)  # type: ignore[arg-type]
    spent = timing.own() - before
    return Figure(
        name=f"plan.per_offer, {len(table):,} offers",
        value=spent.cpu_s / len(specs) / len(table) * 1e9,
        unit="ns CPU",
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"ms_per_plan": spent.cpu_s / len(specs) * 1000, "specs": len(specs)},
    )


def question(spec: JobSpec) -> Question:
    return Question(spec=spec, now=NOW, enabled=frozenset({"aws", "local"}))


def tiled(table: OfferTable, size: int) -> OfferTable:
    """`size` offers: the catalog again and again, each copy in regions of its own at prices a little different."""
    chance = np.random.default_rng(SEED)
    copies = -(-size // len(table))
    places = len(table.places.region)
    rows = np.tile(np.arange(len(table)), copies)[:size]
    copy = np.repeat(np.arange(copies), len(table))[:size]
    price = table.price[rows]
    jitter = np.repeat(chance.uniform(0.8, 1.25, size // 2 + 1), 2)[:size]
    return replace(
        table,
        places=Places(
            region=tuple(f"{r}~{c}" if c else r for c in range(copies) for r in table.places.region),
            seller=np.tile(table.places.seller, copies),
            usd_per_gb=np.tile(table.places.usd_per_gb, (copies, copies)),
            gbps=np.tile(table.places.gbps, (copies, copies)),
        ),
        shape=table.shape[rows],
        place=table.place[rows] + places * copy,
        zone=table.zone[rows],
        market=table.market[rows],
        price=np.where(price == UNKNOWN, UNKNOWN, np.rint(price * jitter)).astype(np.int64),
        hazard=table.hazard[rows],
        availability=table.availability[rows],
        as_of=table.as_of[rows],
        source=table.source[rows],
        stock=table.stock[rows],
    )


# --- specs ------------------------------------------------------------------------------------------------

GPUS = ("A100", "A100-80GB", "H100", "L4", "T4", "V100", "A10G", "L40S", "H200", "B200", "RTX4090")
REFERENCES = ("A100-80GB:8", "H100-SXM:8", "A100-40GB:1", "T4:1", None)


def random_specs(count: int) -> list[JobSpec]:
    chance = random.Random(SEED)
    return [random_spec(chance) for _ in range(count)]


def random_spec(chance: random.Random) -> JobSpec:
    hours = chance.choice([None, chance.uniform(0.2, 5), chance.uniform(5, 100)])
    is_wide_open = chance.random() < 0.05
    resources = Resources(
        gpus=1 if is_wide_open else chance.choice([1, 1, 2, 4, 8, 8, 8, 16, 32]),
        gpu_types=() if is_wide_open else tuple(chance.sample(GPUS, chance.choice([0, 1, 1, 2, 4]))),
        gpu_memory_gib=0 if is_wide_open else chance.choice([0, 0, 16, 24, 40, 80]),
        cpu_memory_gib=chance.choice([0, 0, 0, 64, 256]),
        estimated_hours=hours,
        estimated_on=chance.choice(REFERENCES) if hours else None,
    )
    limits = Constraints(
        budget=micro_usd(round(chance.uniform(5, 5000), 2)) if chance.random() < 0.6 else None,
        deadline=NOW + timedelta(hours=chance.uniform(2, 200)) if chance.random() < 0.5 else None,
        allow_spot=is_wide_open or chance.random() < 0.7,
        min_reliability=chance.choice([0.0, 0.0, 0.5, 0.9]),
        performance_weight=chance.choice([0.0, 0.0, 0.3, 1.0]),
        strategy=chance.choice([None, None, *Strategy]),
    )
    return JobSpec(command=("true",), resources=resources, constraints=limits, data=random_data(chance))


def random_data(chance: random.Random) -> Data:
    if chance.random() < 0.6:
        return Data()
    home = chance.choice([("s3://data", "us-east-1"), ("gs://data", "us-central1"), ("az://data", "eastus")])
    return Data(
        dataset=home[0],
        region=home[1],
        size_gib=chance.uniform(1, 5000),
        locality=chance.choice(list(Locality)),
        replication_policy=chance.choice(list(Replication)),
    )
