"""How long a job's work takes on each type of machine, without interruptions. From the user's own estimate, scaled by
speed if it says where it holds; else from the amount of work and a rate: measured for that model, or reckoned from its
size. It says which, and how sure it is. What nobody can know is NaN."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from crucible.core.offers import Bools, Floats, Ints, OfferTable
from crucible.core.speeds import SpeedBook, make_book
from crucible.core.work import Work, pace_of, work_of
from crucible.model.offer import Fabric
from crucible.model.spec import JobSpec

__all__ = ["CONFIDENCE", "Hours", "Origin", "SpeedBook", "make_book", "parse_gpus", "work_hours"]

CONFIDENCE = ("low", "medium", "high")
LOW, MEDIUM, HIGH = range(3)
# Standard errors of a logarithm: two times in three a high one is within 15 %, a medium one within 40 %.
_HIGH_ERROR, _MEDIUM_ERROR = 0.15, 0.35
_MOST_PER_MACHINE = 8  # an estimate on more GPUs was made on several machines
_UNKNOWN = (
    "unknown: give resources.estimated_hours, or workload.model (or model_class and parameters) "
    "with tokens, samples, or steps and batch_size"
)

Levels = npt.NDArray[np.int8]


class Origin(StrEnum):
    """Where hours come from."""

    GIVEN = "given"  # by the user, for whatever is chosen
    SCALED = "scaled"  # by the user, for a GPU; by speed for others
    MEASURED = "measured"  # a rate of this very model
    RECKONED = "reckoned"  # from the size of the model
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """Per shape of a table."""

    hours: Floats  # NaN: unknown
    steps_per_hour: Floats
    tokens_per_hour: Floats
    confidence: Levels  # an index of CONFIDENCE
    origin: Origin
    basis: str  # for a person


Told = tuple[Floats, Levels, Origin, str]


@dataclass(frozen=True, slots=True)
class Gang:
    """Speed of all machines together beside one reference GPU, as a logarithm, and what its error is made of."""

    speed: Floats  # NaN: unknown
    error: Floats  # of one GPU's speed
    inside: Floats  # doublings from one GPU to those of a machine
    inside_error: Floats  # per doubling
    across: Floats  # doublings of machines
    across_error: Floats

    def error_beside(self, other: "Gang", is_same_gpu: Bools) -> Floats:
        """What both have in common is no error between them."""
        single = np.where(is_same_gpu, 0.0, np.hypot(self.error, other.error))
        inside = (self.inside - other.inside) * self.inside_error
        across = (self.across - other.across) * self.across_error
        return np.sqrt(single**2 + inside**2 + across**2)


def work_hours(spec: JobSpec, table: OfferTable, nodes: Ints, gpus_used: Ints, book: SpeedBook) -> Hours:
    """On `nodes` machines of each shape, with `gpus_used` GPUs of each."""
    work = work_of(spec, book)
    count = np.maximum(nodes * gpus_used, 1.0)
    if spec.resources.estimated_hours is not None:
        hours, confidence, origin, basis = _from_estimate(spec, work, table, nodes, gpus_used, book)
    else:
        hours, confidence, origin, basis = _from_amount(work, table, nodes, gpus_used, book)
    return Hours(
        hours=hours,
        steps_per_hour=_per_hour(work.steps_on(count), hours),
        tokens_per_hour=_per_hour(work.tokens_on(count), hours),
        confidence=confidence,
        origin=origin,
        basis=basis,
    )


def _per_hour(amount: Floats, hours: Floats) -> Floats:
    result = np.full(len(hours), np.nan)
    np.divide(amount, hours, out=result, where=hours > 0)
    return result


def parse_gpus(text: str) -> tuple[str, int]:
    """A100-80GB:8 as name and number."""
    name, _, count = text.partition(":")
    return name, int(count or 1)


def _from_estimate(spec: JobSpec, work: Work, table: OfferTable, nodes: Ints, gpus_used: Ints, book: SpeedBook) -> Told:
    hours, measured_on = spec.resources.estimated_hours or 0.0, spec.resources.estimated_on
    if measured_on is None:
        return _as_given(hours, table, "resources.estimated_on would compare GPUs by speed")
    name, count = parse_gpus(measured_on)
    reference = book.find(name)
    if reference is None or spec.resources.gpus == 0:
        return _as_given(hours, table, f"nothing is known of the speed of {name}")
    machines = -(-count // _MOST_PER_MACHINE)
    base = _gang(
        work,
        (reference.name,),
        np.zeros(1, dtype=np.int64),
        np.array([machines]),
        np.array([count / machines]),
        np.array([Fabric.HIGH]),
        book,
    )
    gang = _gang_of(work, table, nodes, gpus_used, book)
    is_known = ~np.isnan(gang.speed)
    is_same = np.append(book.is_gpu(table.gpus, reference.name), False)[table.shapes.gpu]
    ratio = np.exp(np.where(is_known, base.speed - gang.speed, 0.0))
    whom = work.kind.label if work.kind.model_class else "all kinds of models"
    basis = f"{hours:g} h on {count} × {reference.name}, by the speed of GPUs for {whom}"
    return hours * ratio, _levels(gang.error_beside(base, is_same), is_known), Origin.SCALED, basis


def _as_given(hours: float, table: OfferTable, why: str) -> Told:
    size = len(table.shapes.name)
    return np.full(size, hours), np.full(size, LOW, dtype=np.int8), Origin.GIVEN, f"{hours:g} h as given; {why}"


def _from_amount(work: Work, table: OfferTable, nodes: Ints, gpus_used: Ints, book: SpeedBook) -> Told:
    size = len(table.shapes.name)
    pace = pace_of(work, book)
    amount = None if pace is None else work.amount_on(pace.unit, np.maximum(nodes * gpus_used, 1.0))
    if pace is None or amount is None or bool(np.isnan(amount).all()):
        return np.full(size, np.nan), np.full(size, LOW, dtype=np.int8), Origin.UNKNOWN, _UNKNOWN
    gang = _gang_of(work, table, nodes, gpus_used, book)
    hours = amount / (pace.per_hour * np.exp(gang.speed))
    error = np.sqrt(gang.error**2 + (gang.inside * gang.inside_error) ** 2 + (gang.across * gang.across_error) ** 2)
    # The user's code is not the benchmark's: a rate of the same model is never more than medium.
    levels = np.minimum(_levels(error, ~np.isnan(gang.speed)), MEDIUM if pace.is_measured else LOW)
    origin = Origin.MEASURED if pace.is_measured else Origin.RECKONED
    return hours, levels.astype(np.int8), origin, pace.basis


def _gang_of(work: Work, table: OfferTable, nodes: Ints, gpus_used: Ints, book: SpeedBook) -> Gang:
    shapes = table.shapes
    return _gang(work, table.gpus, shapes.gpu, nodes, gpus_used, shapes.fabric, book)


def _gang(
    work: Work,
    names: tuple[str, ...],
    gpu: npt.NDArray[np.int64],
    nodes: Ints,
    used: npt.NDArray[np.float64 | np.int64],
    fabric: Ints,
    book: SpeedBook,
) -> Gang:
    speeds = book.speeds(names, work.kind, work.team, work.framework)
    inside, across = np.log2(np.maximum(used, 1)), np.log2(np.maximum(nodes, 1))
    alone = np.where(used > 0, _padded(speeds.speed)[gpu], np.nan)
    losses = inside * _padded(speeds.inside)[gpu] + across * speeds.across[fabric]
    return Gang(
        speed=alone + losses + np.log(2.0) * (inside + across),
        error=_padded(speeds.error)[gpu],
        inside=inside,
        inside_error=_padded(speeds.inside_error)[gpu],
        across=across,
        across_error=speeds.across_error[fabric],
    )


def _padded(column: Floats) -> Floats:
    """UNKNOWN is -1, the last: a machine without GPUs."""
    return np.append(column, np.nan)


def _levels(error: Floats, is_known: Bools) -> Levels:
    filled = np.where(is_known, error, np.inf)
    return ((filled <= _MEDIUM_ERROR).astype(np.int8) + (filled <= _HIGH_ERROR)).astype(np.int8)
