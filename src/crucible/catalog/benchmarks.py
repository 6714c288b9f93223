"""Shipped facts of speed: measured rates of GPUs, and well-known models with their sizes. `build` makes the rates from
their public sources; `differences` says whether the shipped file is what the sources give."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from crucible.catalog import facts
from crucible.catalog.benchmark_sources import gavel, lambda_labs, mlperf_inference, mlperf_training
from crucible.core.architectures import Architectures
from crucible.model.catalog import Architecture, Benchmark

FILE = "benchmarks.csv"
ARCHITECTURES = "architectures.csv"


def benchmarks(folder: Path = facts.SHIPPED) -> tuple[Benchmark, ...]:
    return tuple(facts.read(folder, FILE, Benchmark))


@cache
def architectures() -> Architectures:
    """The shipped ones, by name; `find` takes aliases and Hugging Face ids too."""
    return Architectures(_architecture(row) for row in facts.table(facts.SHIPPED, ARCHITECTURES))


def build(data: Path) -> tuple[Benchmark, ...]:
    """From the folders gavel_throughputs, lambda_bench and mlperf of `data`."""
    rows = [
        *gavel(data / "gavel_throughputs" / "simulation_throughputs.json.xz"),
        *lambda_labs(data / "lambda_bench"),
        *mlperf_inference(data / "mlperf" / "inference_v5.1_summary.csv"),
        *mlperf_training(data / "mlperf" / "training_v5.0_time_to_train.csv"),
    ]
    return tuple(sorted(rows, key=_place))


def differences(data: Path) -> Sequence[str]:
    """Lines that are only in the shipped file (-) or only in what `data` gives (+)."""
    shipped = set(facts.write(Benchmark, benchmarks()).splitlines())
    given = set(facts.write(Benchmark, build(data)).splitlines())
    return [*(f"- {line}" for line in sorted(shipped - given)), *(f"+ {line}" for line in sorted(given - shipped))]


def _place(row: Benchmark) -> tuple[str, str, str, str, int, int]:
    return row.source, row.model, row.precision, row.gpu, row.nodes, row.gpus


def _architecture(row: Mapping[str, str]) -> Architecture:
    return Architecture(
        name=row["name"],
        aliases=tuple(row["aliases"].split(";")) if row["aliases"] else (),
        model_class=row["model_class"],
        parameters=float(row["parameters"]),
        active=float(row["active"]),
        hidden=int(row["hidden"]) if row["hidden"] else None,
        layers=int(row["layers"]) if row["layers"] else None,
        heads=int(row["heads"]) if row["heads"] else None,
    )
