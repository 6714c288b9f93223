"""How fast one GPU is beside another, for each kind of model, and what is lost when several work together: measured
rates where there are any, the data sheet where there are none, corrected by what past jobs did. It knows no jobs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from crucible.core.architectures import Architectures
from crucible.core.offers import Bools, Floats
from crucible.core.speed_fit import Fit, Kind, Terms, fabric_terms, kind_of, link_terms, series_of, speed_terms
from crucible.model.catalog import Architecture, Benchmark, Gpu
from crucible.model.offer import Fabric

REFERENCE = "A100-80GB"  # speeds are multiples of its speed
_MOST_CACHED = 256  # kinds of work times tables of GPUs


@dataclass(frozen=True, slots=True)
class Speeds:
    """Per GPU of a table. Everything is a natural logarithm; NaN: unknown."""

    speed: Floats  # of one GPU beside the reference
    error: Floats
    inside: Floats  # change per doubling of the GPUs of a machine, not above 0
    inside_error: Floats
    across: Floats  # by Fabric: change per doubling of the machines, not above 0
    across_error: Floats


@dataclass(frozen=True, slots=True)
class Rate:
    """What the reference GPU does alone of a model of the table."""

    series: str
    value: float
    unit: str
    precision: str
    framework: str
    source: str


@dataclass(frozen=True, slots=True)
class Factor:
    """What past jobs say of a speed: a logarithm, and which share of the old doubt is left."""

    log: float
    doubt: float


Key = tuple[str, str, str, str]  # team, framework, kind of model, GPU; "" for any


@dataclass(frozen=True, eq=False)
class SpeedBook:
    gpus: Mapping[str, Gpu]
    architectures: Architectures
    fit: Fit
    rates: Mapping[tuple[str, bool], tuple[Rate, ...]]  # by model, and whether it is inference
    factors: Mapping[Key, Factor]

    def with_telemetry(self, factors: Mapping[Key, Factor]) -> "SpeedBook":
        return replace(self, factors=factors)

    def speeds(self, names: tuple[str, ...], kind: Kind, team: str = "", framework: str = "") -> Speeds:
        """Of the GPUs `names`; asked again, the answer is remembered."""
        return _speeds(self, names, kind, *((team, framework) if self.factors else ("", "")))

    def find(self, name: str) -> Gpu | None:
        """The GPU that somebody means by `name`."""
        found = known_as(name, tuple(self.gpus))
        return None if found is None else self.gpus[found]

    def is_gpu(self, names: tuple[str, ...], gpu: str) -> Bools:
        return _is_gpu(self, names, gpu)

    def factor(self, gpu: str, kind: Kind, team: str, framework: str) -> Factor | None:
        """The most particular there is."""
        keys = ((team, framework), ("", framework), ("", ""))
        return next(
            (self.factors[key] for who in keys if (key := (*who, kind.label, gpu)) in self.factors),
            None,
        )


def make_book(
    benchmarks: Iterable[Benchmark], gpus: Iterable[Gpu], architectures: Iterable[Architecture] = ()
) -> SpeedBook:
    """Takes some milliseconds. Rows of GPUs that are not among `gpus` are left out."""
    facts = {gpu.name: gpu for gpu in gpus}
    rows = tuple(row for row in benchmarks if row.gpu in facts)
    book = SpeedBook(facts, Architectures(architectures), Fit.of(rows, facts), {}, {})
    return replace(book, rates=_rates(book, rows))


@lru_cache(maxsize=4096)
def known_as(name: str, names: tuple[str, ...]) -> str | None:
    """Which of `names` is meant: itself however it is spelled, else the GPU of the same chip that has most in common
    with it: A100-80GB for A100-SXM4-80GB. If nothing tells them apart the usual socket is meant, then the first."""
    wanted = fold(name)
    if "MIG" in wanted:
        return None  # a slice of a GPU is not the GPU
    folded = {fold(known): known for known in names}
    compact = {known.replace("-", ""): whole for known, whole in folded.items()}
    for spelling in (wanted.replace("-", ""), f"RTX{wanted.replace('-', '')}"):
        if spelling in compact:
            return compact[spelling]
    parts = wanted.split("-")
    kin = [known for known in folded if known.split("-")[0] == parts[0]]
    common = {known: len(set(known.split("-")) & set(parts)) for known in kin}
    best = min(kin, key=lambda known: (-common[known], "SXM" not in known, known), default=None)
    return None if best is None else folded[best]


def fold(name: str) -> str:
    text = name.upper().replace("_", "-").replace(" ", "-")
    return text.removeprefix("NVIDIA-").removeprefix("TESLA-").removeprefix("GEFORCE-")


@lru_cache(maxsize=_MOST_CACHED)
def _speeds(book: SpeedBook, names: tuple[str, ...], kind: Kind, team: str, framework: str) -> Speeds:
    found = [known_as(name, tuple(book.gpus)) for name in names]
    known = [index for index, name in enumerate(found) if name is not None]
    gpus = [book.gpus[name] for name in found if name is not None]
    unknown = np.full(len(names), np.nan)
    speed, error, inside, inside_error = (unknown.copy() for _ in range(4))
    speed[known], error[known] = _beside_reference(book, gpus, kind)
    for index, gpu in zip(known, gpus, strict=True):
        factor = book.factor(gpu.name, kind, team, framework)
        if factor is not None:
            speed[index] += factor.log
            error[index] *= factor.doubt
    inside[known], inside_error[known] = book.fit.predict(link_terms(gpu, kind) for gpu in gpus)
    across, across_error = book.fit.predict(fabric_terms(fabric, kind) for fabric in Fabric)
    return Speeds(speed, error, np.minimum(inside, 0.0), inside_error, np.minimum(across, 0.0), across_error)


@lru_cache(maxsize=_MOST_CACHED)
def _is_gpu(book: SpeedBook, names: tuple[str, ...], gpu: str) -> Bools:
    known = tuple(book.gpus)
    return np.array([known_as(name, known) == gpu for name in names], dtype=np.bool_)


def _beside_reference(book: SpeedBook, gpus: Sequence[Gpu], kind: Kind) -> tuple[Floats, Floats]:
    base = [(name, -factor) for name, factor in _reference_terms(book, kind)]
    return book.fit.predict([*speed_terms(gpu, kind), *base] for gpu in gpus)


def _reference_terms(book: SpeedBook, kind: Kind) -> Terms:
    """None without its facts: then speeds are beside a GPU that is what its data sheet says."""
    reference = book.find(REFERENCE)
    return [] if reference is None else speed_terms(reference, kind)


def _rates(book: SpeedBook, rows: Sequence[Benchmark]) -> Mapping[tuple[str, bool], tuple[Rate, ...]]:
    first = {series_of(row): row for row in reversed(rows)}
    levels, _ = book.fit.predict(
        [(f"series:{series}", 1.0), *_reference_terms(book, kind_of(row))] for series, row in first.items()
    )
    found: dict[tuple[str, bool], tuple[Rate, ...]] = {}
    for (series, row), level in zip(first.items(), levels, strict=True):
        key = (row.model, row.is_inference)
        rate = Rate(series, float(np.exp(level)), row.unit, row.precision, row.framework, row.source)
        found[key] = (*found.get(key, ()), rate)
    return found
