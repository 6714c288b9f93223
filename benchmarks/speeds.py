"""The performance model beside what was measured: each public rate is foretold by a model that never saw it, alone,
with all others of its GPU and kind of model, and with all others of its GPU. No bound: the figures say how far to trust
it."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from benchmarks import timing
from benchmarks.figure import Figure
from crucible.catalog import benchmarks, facts
from crucible.core.offers import make_table
from crucible.core.perf import make_book, work_hours
from crucible.core.speed_fit import Fit, kind_of, series_of
from crucible.model.catalog import Benchmark, Gpu, InstanceType
from crucible.model.spec import JobSpec, ModelClass, Resources, Workload

SHAPES = 900
RUNS = 200
GOAL = 0.15  # requirement C10
HELD_OUT: Mapping[str, Callable[[Benchmark], object]] = {
    "one rate": lambda row: row,
    "a GPU for a kind of model": lambda row: (row.gpu, kind_of(row).label),
    "a GPU": lambda row: row.gpu,
}


def measure() -> Iterator[Figure]:
    gpus = {gpu.name: gpu for gpu in facts.read(facts.SHIPPED, "gpus.csv", Gpu)}
    rows = [row for row in benchmarks.benchmarks() if row.gpu in gpus]
    before = timing.own()
    fit = Fit.of(rows, gpus)
    spent = timing.own() - before
    for name, key in HELD_OUT.items():
        errors = np.abs(np.expm1(_missed(fit, rows, key)))
        yield Figure(
            name=f"speeds, error of a rate, unseen: {name}",
            value=float(np.median(errors)) * 100,
            unit="% median",
            cpu_s=spent.cpu_s,
            wall_s=spent.wall_s,
            context={
                "p90": float(np.quantile(errors, 0.9)) * 100,
                "within_15": float(np.mean(errors <= GOAL)) * 100,
                "rates": len(errors),
            },
        )
    yield _hours(tuple(gpus.values()))


def _missed(fit: Fit, rows: Sequence[Benchmark], key: Callable[[Benchmark], object]) -> Sequence[float]:
    """Of every rate whose series still has another: without one there is no unit to foretell it in."""
    groups: dict[object, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        groups[key(row)].append(index)
    total = Counter(series_of(row) for row in rows)
    found: list[float] = []
    for group in groups.values():
        left = total - Counter(series_of(rows[index]) for index in group)
        missed = fit.held_out(group)
        found += [float(miss) for miss, index in zip(missed, group, strict=True) if left[series_of(rows[index])]]
    return found


def _hours(gpus: Sequence[Gpu]) -> Figure:
    book = make_book(benchmarks.benchmarks(), gpus, benchmarks.architectures().values())
    types = [
        InstanceType(
            provider="x",
            name=f"{index:04}",
            gpu=gpus[index % len(gpus)].name,
            gpus=2 ** (index % 4),
            gpu_memory_gib=80,
            cpus=8,
            memory_gib=64,
        )
        for index in range(SHAPES)
    ]
    table = make_table(types, [])
    spec = JobSpec(
        resources=Resources(gpus=8, estimated_hours=6, estimated_on="A100-80GB:8"),
        workload=Workload(model_class=ModelClass.LLM, tokens=1e9),
    )
    nodes, used = -(-8 // table.shapes.gpus), table.shapes.gpus
    work_hours(spec, table, nodes, used, book)
    before = timing.own()
    for _ in range(RUNS):
        work_hours(spec, table, nodes, used, book)
    spent = timing.own() - before
    return Figure(
        name="speeds, hours of one job",
        value=spent.cpu_s / RUNS * 1000,
        unit="ms CPU",
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"shapes": SHAPES, "runs": RUNS},
    )
