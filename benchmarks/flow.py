"""Plans of workflows over a hundred thousand offers: a diamond of four steps, and random ones of thirty, with and
without a deadline. The offers are those of `benchmarks.plan`, with lanes between all copies of a region; what is known
of the table alone is worked out beforehand."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import numpy as np

from benchmarks import timing
from benchmarks.figure import Figure
from benchmarks.plan import NOW, OFFERS, SEED, tiled
from crucible import catalog
from crucible.catalog.benchmarks import benchmarks
from crucible.core.check_flow import check_flow
from crucible.core.flow.plan import propose, study
from crucible.core.flow.proposal import FlowPlan
from crucible.core.flow.question import Flow, FlowStep
from crucible.core.offers import OfferTable
from crucible.core.perf import SpeedBook, make_book
from crucible.core.plan import Question
from crucible.model.spec import Constraints, JobSpec, Resources, Strategy

TRIES = 5
STEPS = 30
WORKFLOWS = 5
BETWEEN_COPIES = 0.02  # dollars per GB: what most clouds ask from region to region
NEEDS = (
    (1, ("T4", "L4"), 2.0),
    (8, ("A100-80GB", "H100"), 20.0),
    (8, ("H100", "H200"), 10.0),
    (1, ("L4", "A10G", "L40S"), 1.0),
    (4, ("A100-80GB", "H100"), 6.0),
    (1, ("A100-80GB", "A100", "H100"), 3.0),
    (1, ("A10G", "L4", "L40S"), 2.5),
    (2, ("L40S", "A100"), 5.0),
)


def measure() -> Iterator[Figure]:
    shipped = catalog.load()
    book = make_book(benchmarks(), shipped.gpus.values())
    table = apart(tiled(shipped.table, OFFERS))
    planned(diamond(), table, book)  # what is remembered per table is made once
    yield figure("flow.diamond", 50.0, [diamond()] * TRIES, table, book)  # one workflow: the median
    flows = [random_flow(random.Random(SEED + number)) for number in range(WORKFLOWS)]
    yield figure("flow.thirty_steps", 1000.0, flows, table, book)
    free = [planned(flow, table, book) for flow in flows]
    timed = [hurried(flow, made) for flow, made in zip(flows, free, strict=True)]
    yield figure("flow.thirty_steps_deadline", 1000.0, timed, table, book)


def figure(name: str, bound: float, flows: list[Flow], table: OfferTable, book: SpeedBook) -> Figure:
    spent, made, begun = [], [], timing.own()
    for flow in flows:
        before = timing.own()
        made.append(planned(flow, table, book))
        spent.append((timing.own() - before).cpu_s * 1000)
    whole = timing.own() - begun
    for one, flow in zip(made, flows, strict=True):
        check_flow(one, flow, table)
    return Figure(
        name=name,
        value=timing.percentile(spent, 0.5) if flows[0] is flows[-1] else max(spent),
        unit="ms CPU",
        bound=bound,
        cpu_s=whole.cpu_s,
        wall_s=whole.wall_s,
        context={
            "offers": len(table),
            "steps": len(flows[0].steps),
            "workflows": len(flows),
            "planned": sum(one.blocked is None for one in made),
            "farthest_from_optimum": max(one.bound for one in made),
            "regions": max(len({step.home for step in one.steps}) for one in made),
        },
    )


def planned(flow: Flow, table: OfferTable, book: SpeedBook) -> FlowPlan:
    return propose(study(flow, table, book))


def apart(table: OfferTable) -> OfferTable:
    """Copies of a region are regions of their own: to carry something from one to another has its price."""
    places = table.places
    lanes = places.usd_per_gb.copy()
    name = np.array([region.partition("~")[0] for region in places.region])
    is_copy = (name[:, None] == name[None, :]) & (places.seller[:, None] == places.seller[None, :])
    lanes[is_copy & ~np.eye(len(name), dtype=bool)] = BETWEEN_COPIES
    return replace(table, places=replace(places, usd_per_gb=lanes))


def diamond() -> Flow:
    """Prepare, train two models, compare."""
    parts = [(0, ()), (1, (0,)), (2, (0,)), (3, (0, 1, 2))]
    sizes = (200.0, 30.0, 30.0, 1.0)
    steps = tuple(a_step(n, NEEDS[kind], reads, sizes[n]) for n, (kind, reads) in enumerate(parts))
    return Flow(steps=steps, limits=Constraints(), objective=Strategy.BALANCED, now=NOW)


def random_flow(chance: random.Random) -> Flow:
    steps = []
    for number in range(STEPS):
        few = min(number, chance.choice([1, 1, 2, 3]))
        reads = tuple(sorted(chance.sample(range(max(0, number - 8), number), min(few, 8)))) if number else ()
        steps.append(a_step(number, chance.choice(NEEDS), reads, chance.choice([1.0, 10.0, 100.0, 500.0])))
    return Flow(steps=tuple(steps), limits=Constraints(), objective=Strategy.CHEAPEST, now=NOW)


def a_step(number: int, need: tuple[int, tuple[str, ...], float], reads: tuple[int, ...], size_gib: float) -> FlowStep:
    gpus, types, hours = need
    spec = JobSpec(
        command=("true",),
        resources=Resources(gpus=gpus, gpu_types=types, estimated_hours=hours, estimated_on=f"{types[0]}:{gpus}"),
        constraints=Constraints(allow_spot=True),
    )
    question = Question(spec=spec, now=NOW, enabled=frozenset({"aws"}))
    return FlowStep(name=f"s{number}", question=question, needs=reads, reads=reads, leaves_gib=size_gib)


def hurried(flow: Flow, made: FlowPlan) -> Flow:
    """In nine tenths of the time that the cheapest plan takes."""
    limits = replace(flow.limits, deadline=NOW + timedelta(hours=0.9 * (made.makespan_h or 1.0)))
    steps = [replace(step, question=bounded(step.question, limits)) for step in flow.steps]
    return replace(flow, steps=tuple(steps), limits=limits)


def bounded(question: Question, limits: Constraints) -> Question:
    own = replace(question.spec.constraints, deadline=limits.deadline)
    return replace(question, spec=replace(question.spec, constraints=own))
